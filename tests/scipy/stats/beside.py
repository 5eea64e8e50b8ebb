"""Comparing functions of samples with SciPy's, in 64 bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.stats

import fxflow
from fxflow.scipy import stats


def parts(value: Any) -> list[Any]:
    """The numbers of a result, in the order in which it unpacks."""
    if not hasattr(value, "__iter__") and hasattr(value, "pvalue"):
        value = (value.statistic, value.pvalue)
    if isinstance(value, tuple | list) or type(value).__name__.endswith("Result"):
        return [p for v in value for p in parts(v)]
    return [np.asarray(value)]


def same(name: str, *args: Any, tolerance: float = 1e-9, **settings: Any) -> None:
    """Asserts that a function gives the numbers and shapes that SciPy's does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            want = parts(getattr(scipy.stats, name)(*args, **settings))
    with fxflow.config.override(x64=True):
        got = parts(getattr(stats, name)(*args, **settings))
    assert len(got) == len(want), (name, settings)
    for ours, theirs in zip(got, want, strict=True):
        words = f"{name} {settings}"
        assert ours.shape == theirs.shape, (words, ours.shape, theirs.shape)
        np.testing.assert_allclose(ours, theirs, tolerance, 1e-12, err_msg=words)
