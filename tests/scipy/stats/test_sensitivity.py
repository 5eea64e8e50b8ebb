"""Sobol's indices of a function whose indices are known, and of values."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats

_RNG = np.random.default_rng(2)
VALUES = {
    "f_A": _RNG.normal(size=(2, 64)),
    "f_B": _RNG.normal(size=(2, 64)),
    "f_AB": _RNG.normal(size=(3, 2, 64)),
}


def ishigami(x: Any) -> Any:
    return fnp.sin(x[0]) + 7 * fnp.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * fnp.sin(x[0])


def test_indices_of_values() -> None:
    want = scipy.stats.sobol_indices(func=VALUES, n=64)
    with fxflow.config.override(x64=True):
        got = stats.sobol_indices(func=VALUES, n=64)
    np.testing.assert_allclose(got.first_order, want.first_order, 1e-10)
    np.testing.assert_allclose(got.total_order, want.total_order, 1e-10)


def test_indices_of_a_function() -> None:
    law = stats.uniform(-np.pi, 2 * np.pi)
    key = fxflow.random.key(0)
    found = stats.sobol_indices(func=ishigami, n=1024, dists=[law] * 3, key=key)
    np.testing.assert_allclose(found.first_order, [0.314, 0.442, 0], 0, 0.03)
    np.testing.assert_allclose(found.total_order, [0.558, 0.442, 0.244], 0, 0.03)
    spread = found.bootstrap(key, 0.9, n_resamples=99)
    low, high = spread.total_order.confidence_interval
    assert (low < found.total_order).all() and (found.total_order < high).all()
    assert spread.first_order.bootstrap_distribution.shape == (3, 99)


def test_a_method_of_one_s_own() -> None:
    own = lambda a, b, ab: (fnp.mean(ab, -1).T, fnp.mean(a + b, -1))
    found = stats.sobol_indices(func=VALUES, n=64, method=own)
    assert found.first_order.shape == (2, 3)


def test_what_is_refused() -> None:
    law, key = stats.uniform(), fxflow.random.key(0)
    with pytest.raises(ArgumentError, match="n must be a power of 2, got 100"):
        stats.sobol_indices(func=ishigami, n=100, dists=[law] * 3, key=key)
    with pytest.raises(ArgumentError, match="key must be given"):
        stats.sobol_indices(func=ishigami, n=4, dists=[law] * 3)
    with pytest.raises(ArgumentError, match="dists must be a sequence"):
        stats.sobol_indices(func=ishigami, n=4, key=key)
    with pytest.raises(ArgumentError, match="must have the values f_A, f_B and f_AB"):
        stats.sobol_indices(func={"f_A": VALUES["f_A"]}, n=64)
    with pytest.raises(ShapeError, match="values must be"):
        stats.sobol_indices(func=VALUES, n=32)
    with pytest.raises(ShapeError, match=r"func must return \[4\] or \[s, 4\], got"):
        stats.sobol_indices(func=fnp.sum, n=4, dists=[law] * 3, key=key)
