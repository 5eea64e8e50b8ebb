"""Watersheds against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import fxflow
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(5)
IMAGES = RNG.integers(0, 60, (2, 9, 11)).astype(np.uint8)
MARKERS = np.where(RNG.random((2, 9, 11)) < 0.06, RNG.integers(-2, 5, (2, 9, 11)), 0)
MARKERS = MARKERS.astype(np.int32)
FULL = np.ones((3, 3), bool)


def test_agrees_with_scipy() -> None:
    for x, marks in zip(IMAGES, MARKERS, strict=True):
        for structure in (None, FULL):
            want = scipy.ndimage.watershed_ift(x, marks, structure)
            got = ndimage.watershed_ift(x, marks, structure)
            np.testing.assert_array_equal(got, want)
            assert got.dtype == np.int32
    got = ndimage.watershed_ift(x.astype(np.uint16), marks.astype(np.int8), FULL, "f4")
    np.testing.assert_array_equal(got, want)
    assert got.dtype == np.float32


def test_traced_and_mapped() -> None:
    got = fxflow.jit(fxflow.vmap(ndimage.watershed_ift))(IMAGES, MARKERS)
    for row, x, marks in zip(got, IMAGES, MARKERS, strict=True):
        np.testing.assert_array_equal(row, scipy.ndimage.watershed_ift(x, marks))
    empty = ndimage.watershed_ift(IMAGES[:0, 0], MARKERS[:0, 0])
    assert empty.shape == (0, 11)


def test_wrong_arguments() -> None:
    x, marks = IMAGES[0], MARKERS[0]
    with pytest.raises(DtypeError, match=r"input must be uint8 or uint16, got f32"):
        ndimage.watershed_ift(x.astype("f4"), marks)
    with pytest.raises(DtypeError, match=r"markers must be signed integers, got u8"):
        ndimage.watershed_ift(x, x)
    with pytest.raises(ShapeError, match=r"one shape"):
        ndimage.watershed_ift(x, marks[:3])
    with pytest.raises(ShapeError, match=r"structure must have shape \(3, 3\)"):
        ndimage.watershed_ift(x, marks, np.ones(3))
    with pytest.raises(ArgumentError, match="symmetric"):
        ndimage.watershed_ift(x, marks, np.triu(FULL, 1))
