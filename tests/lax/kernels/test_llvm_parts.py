"""Rows by their numbers, and the nearest of many, in compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.core.ir.primitive import table
from fxflow.lax.kernels.llvm_parts import RULES
from fxflow.lax.kernels.native import why_not
from tests.lax.kernels.samples import params_of

pytest.importorskip("llvmlite")


def test_nearest_of_many() -> None:
    """The assignment of k-means: no array of all distances is made."""

    def out(x: Any, c: Any) -> Any:
        return kernels.like(x, "int32", shape=x.shape[:1])

    @kernels.kernel("i:16 d, k d -> i:16", out=out)
    def nearest(x: Any, c: Any, o: Any) -> None:
        scores = fnp.sum(c[...] ** 2, 1) - 2 * kernels.dot(x[...], c[...].T)
        o[...] = fnp.argmin(scores, 1)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 8)).astype(np.float32)
    c = rng.normal(size=(20, 8)).astype(np.float32)
    assert why_not(params_of(nearest, x, c), [fxflow.typeof(x), fxflow.typeof(c)]) == ""
    expected = ((x[:, None] - c) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(fxflow.jit(nearest)(x, c), expected)


def test_rules_are_of_primitives() -> None:
    assert set(RULES) <= set(table)
