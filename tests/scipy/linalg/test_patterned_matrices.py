"""Patterned matrices beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import linalg
from tests.numpy.oracle import same

A = np.array([2.0, -3, 4, 0.5, 7, 1.5], np.float32)


@pytest.mark.parametrize("name", ["circulant", "companion", "fiedler", "hankel"])
def test_of_one_vector(name: str) -> None:
    ours, theirs = getattr(linalg, name), getattr(want, name)
    for n in range(2, 7):
        assert same(theirs(A[:n]), ours(A[:n]), 1e-6)
        assert same(theirs(A[:n]), fxflow.jit(ours)(A[:n]), 1e-6)
    many = np.stack([A, A[::-1]])
    assert same(np.stack([theirs(a) for a in many]), ours(many), 1e-6)


def test_fiedler_companion() -> None:
    for n in range(2, 7):
        assert same(
            want.fiedler_companion(A[:n]), linalg.fiedler_companion(A[:n]), 1e-6
        )
    assert linalg.fiedler_companion(A[:1]).shape == (0, 0)


def test_of_two_arguments() -> None:
    for n in (1, 3, 8):
        for mode in ("full", "same", "valid"):
            expected: Any = want.convolution_matrix(A, n, mode)
            assert same(expected, linalg.convolution_matrix(A, n, mode))
    assert same(want.hankel(A[:3], A[2:]), linalg.hankel(A[:3], A[2:]))
    assert same(want.leslie(A[:3], A[3:5]), linalg.leslie(A[:3], A[3:5]))


def test_invalid_shapes_and_modes_are_refused() -> None:
    with pytest.raises(ShapeError):
        linalg.companion(A[:1])
    with pytest.raises(ShapeError):
        linalg.leslie(A, A)
    with pytest.raises(ArgumentError):
        linalg.convolution_matrix(A, 3, "half")
    with pytest.raises(ArgumentError):
        linalg.convolution_matrix(A, 0)
