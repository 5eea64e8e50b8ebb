"""Counting and histograms against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import (
    ArgumentError,
    ConcretizationError,
    DtypeError,
    ShapeError,
)
from tests.numpy.oracle import check, same

RNG = np.random.default_rng(0)
X = RNG.normal(size=50).astype(np.float32)
W = RNG.random(50).astype(np.float32)
N = RNG.integers(0, 9, 30)


def test_bincount() -> None:
    check("bincount", N, compiled=False)
    check("bincount", N, W[:30], compiled=False, tol=1e-5)
    check("bincount", N, minlength=20, compiled=False)
    check("bincount", np.zeros(0, int), compiled=False)
    got = fxflow.jit(lambda i: fnp.bincount(i, length=5))(N)
    assert same(np.bincount(N)[:5], got)
    assert int(fnp.bincount(np.array([-3, 0]))[0]) == 2
    with pytest.raises(ConcretizationError, match="length="):
        fxflow.jit(fnp.bincount)(N)
    with pytest.raises(DtypeError):
        fnp.bincount(X)
    with pytest.raises(ShapeError):
        fnp.bincount(N.reshape(2, 15))
    with pytest.raises(ShapeError, match="weights"):
        fnp.bincount(N, W)


@pytest.mark.parametrize(
    "bins", [1, 7, np.array([-1.0, 0.0, 0.3, 2.0]), "auto", "sturges"]
)
def test_histogram(bins: Any) -> None:
    simple = not isinstance(bins, str)
    check("histogram_bin_edges", X, bins, tol=1e-4, compiled=simple)
    check("histogram", X, bins, compiled=simple, tol=1e-4)
    check("histogram", X, bins, density=True, tol=1e-4, compiled=simple)
    if simple:
        check("histogram", X, bins, weights=W, tol=1e-4)
        check("histogram", X, bins, weights=W, density=True, tol=1e-4)


def test_histogram_edges() -> None:
    check("histogram", X, 5, range=(-1, 0.5), tol=1e-4)
    check("histogram", np.full(3, 2.0, np.float32), 4)
    check("histogram", np.zeros(0, np.float32), 4)
    check("histogram", N, 4, compiled=False)
    check("histogram", N, np.array([0, 2, 8]))
    with pytest.raises(ArgumentError, match="bin"):
        fnp.histogram(X, 0)
    with pytest.raises(ArgumentError, match="pair"):
        fnp.histogram(X, 3, range=(1, 2, 3))
    with pytest.raises(ShapeError, match="weights"):
        fnp.histogram(X, 3, weights=W[:3])


def test_histograms_of_points() -> None:
    y = RNG.normal(size=50).astype(np.float32)
    edges = np.array([-1.0, 0.0, 1.0], np.float32)
    check("histogram2d", X, y, tol=1e-4)
    check("histogram2d", X, y, [3, 4], tol=1e-4, density=True)
    check("histogram2d", X, y, [edges, 4], weights=W, tol=1e-4)
    check("histogram2d", X, y, 3, range=[[-1, 1], [0, 1]], tol=1e-4)
    points = RNG.normal(size=(40, 3)).astype(np.float32)
    check("histogramdd", points, 3, tol=1e-4)
    check("histogramdd", points, (2, edges, 4), density=True, tol=1e-4)
    check(
        "histogramdd", points, 2, range=[None, (-1, 1), None], weights=W[:40], tol=1e-4
    )
    with pytest.raises(ArgumentError, match="3 axes"):
        fnp.histogramdd(points, (2, 2))
    with pytest.raises(ShapeError):
        fnp.histogram2d(X, X[:3])


def test_a_sample_of_nothing() -> None:
    with pytest.raises(TypeError, match="one column at least"):
        fnp.histogramdd(())


def test_axes_of_different_integers() -> None:
    x, y = np.array([-1, 2, 2], np.int8), np.array([1, 2**32 - 1, 2], np.uint32)
    counts, _, edges = fnp.histogram2d(x, y, 2)
    np.testing.assert_array_equal(counts, np.histogram2d(x, y, 2)[0])
    assert float(edges[-1]) == 2.0**32
