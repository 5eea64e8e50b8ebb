"""Distances to the background beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.ndimage as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "size", [(30,), (25, 30), pytest.param((7, 8, 9), marks=pytest.mark.slow)]
)
def test_distances_agree_with_scipy(size: tuple[int, ...]) -> None:
    with fxflow.config.override(x64=True):
        for share in (0.5, 0.98):
            shape = RNG.random(size) < share
            shape[(0,) * len(size)] = False
            for sampling in (None, 0.5, tuple(RNG.random(len(size)) + 0.5)):
                got, at = ndimage.distance_transform_edt(shape, sampling, True, True)
                expected = want.distance_transform_edt(shape, sampling)
                np.testing.assert_allclose(got, expected, 1e-12)
                assert not shape[tuple(np.asarray(at))].any()
            for metric in ("chessboard", "taxicab"):
                got = ndimage.distance_transform_bf(shape, metric)
                expected = want.distance_transform_cdt(shape, metric)
                np.testing.assert_array_equal(got, expected)
    slope = fxflow.grad(lambda s: ndimage.distance_transform_edt(shape, s).sum())(2.0)
    total = ndimage.distance_transform_edt(shape).sum()
    assert float(slope) == pytest.approx(float(total), 1e-5)


def test_no_background_is_far_away() -> None:
    full = np.ones((3, 4), bool)
    assert np.isposinf(ndimage.distance_transform_edt(full)).all()
    assert (ndimage.distance_transform_cdt(full) == -1).all()
    assert ndimage.distance_transform_edt(np.zeros((0, 3))).shape == (0, 3)


def test_bad_arguments_are_refused() -> None:
    shape = np.ones((3, 4), bool)
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: ndimage.distance_transform_cdt(shape, "l3"), "metric"),
        (
            ShapeError,
            lambda: ndimage.distance_transform_edt(shape, [1, 2, 3]),
            "sampling",
        ),
        (
            ArgumentError,
            lambda: ndimage.distance_transform_edt(shape, None, False),
            "set return_distances",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
