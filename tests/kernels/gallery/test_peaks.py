"""Peaks by one program for each signal: against whole arrays, and the checker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import kernels
from fxflow.kernels.gallery.peaks import Conditions, Places, between, peaks_where
from fxflow.scipy.signal.peaks import _plain

RNG = np.random.default_rng(0)
CASES = [
    Conditions(plateau=(0, 1), threshold=(2, -1), edges=True),
    *(
        pytest.param(one, marks=pytest.mark.slow)
        for one in (
            Conditions(distance=3, prominence=(4, 5), bases=True, edges=True),
            Conditions(width=(0, 5), share=2, bases=True),
            Conditions(distance=3, width=(-1, 5), share=2, bases=True, reach=3),
        )
    ),
]


def listed(found: Places) -> list[Any]:
    return [v for v in found if v is not None]


@pytest.mark.parametrize("conditions", CASES)
def test_the_kernel_agrees_with_whole_arrays(conditions: Conditions) -> None:
    bounds = np.array([1, 2, 0.5, 3, 0.2, 6], "float32")

    def run(x: Any, bounds: Any) -> list[Any]:
        plain = lambda x, bounds: _plain(x, bounds, conditions, 5)
        return listed(peaks_where(x, bounds, conditions, 5, reference=plain))

    x = RNG.integers(0, 5, 17).astype("float32")
    x[4] = np.nan
    # Compares with the reference and, if it is compiled, with machine code.
    kernels.check(run, x, bounds)
    many = RNG.normal(size=(30, 17)).astype("float32")
    many[3, 5], many[4, [0, 16]] = np.nan, np.inf
    found, expected = (
        fxflow.jit(fxflow.vmap(f, (0, None)))(many, bounds)
        for f in (run, lambda x, b: listed(_plain(x, b, conditions, 5)))
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_levels_between_samples() -> None:
    x = np.array([0.0, 4.0, 1.0, 1.0], "float32")
    at = np.int32(2)
    assert float(between(x, at, 1, np.float32(2.5))) == 1.5
    assert float(between(x, np.int32(0), -1, np.float32(1.0))) == 0.25
    # No step to interpolate in.
    assert float(between(x, np.int32(3), 1, np.float32(2.0))) == 3
