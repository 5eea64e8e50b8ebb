"""Medians and extremes of neighbourhoods beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.ndimage as want

import fxflow
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 11))
WHOLE = RNG.integers(0, 99, (9, 11)).astype(np.int32)
CROSS = np.array([[0, 1, 0, 1], [1, 1, 1, 0], [0, 1, 0, 0]])
MODES = ["reflect", "mirror", "nearest", "wrap", "constant"]
AROUND: list[dict[str, Any]] = [
    {"size": 3},
    {"size": (2, 5)},
    {"footprint": CROSS},
    {"size": 3, "origin": (1, -1)},
    {"size": 4, "axes": (1,)},
]


@pytest.mark.parametrize("mode", MODES)
def test_filters_agree_with_scipy(mode: str) -> None:
    names = ("minimum_filter", "maximum_filter", "median_filter")
    calls: list[tuple[str, tuple[Any, ...]]] = [(n, ()) for n in names]
    calls += [
        ("rank_filter", (2,)),
        ("rank_filter", (-1,)),
        ("percentile_filter", (70,)),
    ]
    with fxflow.config.override(x64=True):
        for x in (X, WHOLE):
            for around in AROUND:
                for name, args in calls:
                    s = {"mode": mode, "cval": 1, **around}
                    got = getattr(ndimage, name)(x, *args, **s)
                    assert got.dtype == x.dtype
                    np.testing.assert_array_equal(
                        got, getattr(want, name)(x, *args, **s)
                    )
            for name in ("minimum_filter1d", "maximum_filter1d"):
                got = getattr(ndimage, name)(x, 6, 0, None, mode, 1.0, -2)
                expected = getattr(want, name)(x, 6, 0, None, mode, 1.0, -2)
                np.testing.assert_array_equal(got, expected)


def test_large_neighbourhoods_are_sorted() -> None:
    x = X.astype(np.float32)
    np.testing.assert_array_equal(ndimage.median_filter(x, 9), want.median_filter(x, 9))


def test_the_derivative_goes_to_the_chosen_element() -> None:
    x = np.array([3.0, 1.0, 4.0, 1.5, 5.0], np.float32)
    slope = fxflow.jit(fxflow.grad(lambda x: ndimage.median_filter(x, 3)[2]))(x)
    assert slope.tolist() == [0, 0, 0, 1, 0]
    slope = fxflow.grad(lambda x: ndimage.maximum_filter(x, 3).sum())(x)
    assert slope.tolist() == [1, 0, 2, 0, 2]
    rows = fxflow.vmap(lambda x: ndimage.median_filter(x, 3))(X)
    np.testing.assert_allclose(rows, want.median_filter(X, (1, 3)), 1e-6)


def test_bad_neighbourhoods_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: ndimage.median_filter(X), "size or footprint"),
        (ArgumentError, lambda: ndimage.median_filter(X, 0), "size must be at least 1"),
        (
            ArgumentError,
            lambda: ndimage.median_filter(X, 3, origin=2),
            "origin must lie",
        ),
        (
            ArgumentError,
            lambda: ndimage.median_filter(X, 3, mode="cut"),
            "mode must be",
        ),
        (ArgumentError, lambda: ndimage.rank_filter(X, 9, 3), "rank must be in -9 … 8"),
        (ArgumentError, lambda: ndimage.percentile_filter(X, 101, 3), "percentile"),
        (ShapeError, lambda: ndimage.median_filter(X, footprint=[1, 1]), "2 axes"),
        (ArgumentError, lambda: ndimage.median_filter(X, footprint=[[0]]), "is True"),
        (DtypeError, lambda: ndimage.median_filter(X * 1j, 3), "no order"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
