"""Filters by functions of the caller, against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(7)
X = RNG.normal(size=(5, 6))
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)


@pytest.fixture(autouse=True)
def wide() -> Any:
    with fxflow.config.override(x64=True):
        yield


def spread(v: Any, power: float = 2.0, *, shift: float = 0.0) -> Any:
    return ((v - v.mean()) ** power).sum() + v[0] + shift


@pytest.mark.parametrize(
    "given",
    [
        {"size": 3},
        {"size": (2, 3), "mode": "mirror"},
        {"footprint": CROSS, "mode": "constant", "cval": 2.0},
        {"size": 4, "origin": (1, -1), "mode": "nearest"},
        {"size": 3, "axes": (1,)},
        {"footprint": CROSS, "axes": (1, 0), "origin": 1},
    ],
)
def test_generic_filter(given: dict[str, Any]) -> None:
    more = {"extra_arguments": (4.0,), "extra_keywords": {"shift": 0.5}}
    want = scipy.ndimage.generic_filter(X, spread, **given, **more)
    got = fxflow.jit(lambda x: ndimage.generic_filter(x, spread, **given, **more))(X)
    np.testing.assert_allclose(got, want, 1e-12, 1e-12)
    if "axes" not in given:
        size = {k: v for k, v in given.items() if k != "cval"}
        want = scipy.ndimage.generic_filter(X, np.max, **given)
        got = ndimage.vectorized_filter(X, fnp.max, cval=given.get("cval"), **size)
        np.testing.assert_allclose(got, want, 1e-12)


def test_a_filter_is_differentiated() -> None:
    slopes = fxflow.grad(lambda x: ndimage.generic_filter(x, fnp.mean, 3).sum())(X)
    want = fxflow.grad(lambda x: ndimage.uniform_filter(x, 3).sum())(X)
    np.testing.assert_allclose(slopes, want, 1e-12)
    rows = fxflow.vmap(lambda x: ndimage.generic_filter(x, fnp.max, 3))(X)
    np.testing.assert_allclose(rows[2], ndimage.maximum_filter(X[2], 3))


@pytest.mark.parametrize(("axis", "origin"), [(0, 0), (-1, 1)])
def test_generic_filter1d(axis: int, origin: int) -> None:
    def fill(line: Any, out: Any, factor: Any) -> None:
        out[...] = line[3:] * factor + line[:-3]

    for mode in ("reflect", "constant"):
        want = scipy.ndimage.generic_filter1d(
            X, fill, 4, axis, None, mode, 1.5, origin, (2.0,)
        )
        got = ndimage.generic_filter1d(
            X,
            lambda line, factor: line[3:] * factor + line[:-3],
            *(4, axis, None, mode, 1.5, origin, (2.0,)),
        )
        np.testing.assert_allclose(got, want, 1e-12)


def test_gradient_magnitude_and_laplace() -> None:
    def second(x: Any, axis: int, output: Any, mode: str, cval: Any) -> Any:
        return ndimage.correlate1d(x, np.array([1.0, -2, 1]), axis, output, mode, cval)

    for axes in (None, (0,)):
        got = ndimage.generic_gradient_magnitude(X, ndimage.sobel, "f4", axes=axes)
        want = scipy.ndimage.generic_gradient_magnitude(
            X, scipy.ndimage.sobel, "f4", axes=axes
        )
        np.testing.assert_allclose(got, want, 1e-6)
        got = ndimage.generic_laplace(X, second, mode="wrap", axes=axes)
        want = scipy.ndimage.laplace(X, mode="wrap", axes=axes)
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)


def test_nothing() -> None:
    empty = np.zeros((0, 3))
    for function in (ndimage.generic_filter, ndimage.vectorized_filter):
        assert function(empty, fnp.mean, size=3).shape == (0, 3)
    assert ndimage.generic_filter1d(empty, fnp.mean, 3).shape == (0, 3)


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="give size or footprint"):
        ndimage.generic_filter(X, fnp.mean)
    with pytest.raises(ArgumentError, match="takes a function, got 3"):
        ndimage.generic_filter(X, 3, 3)
    with pytest.raises(ShapeError, match=r"a number, of shape \(\), got f64\[9\]"):
        ndimage.generic_filter(X, lambda v: v, 3)
    with pytest.raises(ShapeError, match=r"a line of shape \(6,\), got f64\[8\]"):
        ndimage.generic_filter1d(X, lambda line: line, 3)
    with pytest.raises(ArgumentError, match="vectorized_filter: takes a function"):
        ndimage.vectorized_filter(X, None, size=3)
    with pytest.raises(AxisError):
        ndimage.generic_filter1d(X, fnp.mean, 3, axis=2)
    with pytest.raises(ArgumentError, match="mode must be one of"):
        ndimage.generic_laplace(X, ndimage.sobel, mode="round")
