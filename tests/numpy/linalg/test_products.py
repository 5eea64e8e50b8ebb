"""Powers and products of matrices against NumPy."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
T = RNG.normal(size=(2, 5, 3)).astype(np.float32)
B = RNG.normal(size=(2, 4, 3)).astype(np.float32)
L = fnp.linalg
N = np.linalg


def test_names_of_the_standard() -> None:
    assert same(N.diagonal(T, offset=1), L.diagonal(T, offset=1))
    assert same(N.trace(T), L.trace(T), 1e-5)
    assert same(N.outer(B[0, 0], B[0, 1]), L.outer(B[0, 0], B[0, 1]), 1e-5)
    assert same(N.cross(B, B[::-1]), L.cross(B, B[::-1]), 1e-5)
    for name in ("matmul", "tensordot", "vecdot", "multi_dot", "matrix_transpose"):
        assert callable(getattr(L, name))
    with pytest.raises(ShapeError):
        L.outer(T, T)
    with pytest.raises(ShapeError):
        L.cross(A, A)


def test_multi_dot() -> None:
    shapes = [(4,), (4, 3), (3, 10), (10, 2), (2,)]
    parts = [RNG.normal(size=s).astype(np.float32) for s in shapes]
    assert same(N.multi_dot(parts), L.multi_dot(parts), 1e-4)
    assert same(N.multi_dot(parts[1:4]), L.multi_dot(parts[1:4]), 1e-4)
    with pytest.raises(ArgumentError, match="two arrays"):
        L.multi_dot([A])
    with pytest.raises(ShapeError, match="two axes"):
        L.multi_dot([A, A])


def test_powers() -> None:
    for power in (0, 1, 2, 5, -1, -3):
        assert same(N.matrix_power(A / 2, power), L.matrix_power(A / 2, power), 2e-2)
    assert L.matrix_power(np.eye(2, dtype=np.int32), 3).dtype == np.int32
    with pytest.raises(ArgumentError):
        L.matrix_power(A, 0.5)
    with pytest.raises(ShapeError):
        L.matrix_power(T, 2)
