"""Determinants, ranks and conditions against NumPy."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
T = RNG.normal(size=(2, 5, 3)).astype(np.float32)
L = fnp.linalg
N = np.linalg


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_determinants(n: int) -> None:
    for m in (A[:, :n, :n], Z[:, :n, :n]):
        assert same(N.det(m), L.det(m), 1e-3)
        for method in (None, "lu", "qr"):
            assert same(N.slogdet(m), L.slogdet(m, method=method), 1e-3)
    assert same(N.slogdet(np.zeros((n, n))), L.slogdet(np.zeros((n, n))), 1e-3)
    with pytest.raises(ArgumentError, match="method"):
        L.slogdet(A, method="svd")


def test_properties() -> None:
    low = np.ones((4, 4), np.float32)
    assert same(N.matrix_rank(T), L.matrix_rank(T))
    assert int(L.matrix_rank(low)) == 1 and int(L.matrix_rank(low, tol=9.0)) == 0
    assert int(L.matrix_rank(low, hermitian=True)) == 1
    assert int(L.matrix_rank(np.zeros(3))) == 0
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        assert same(N.cond(A, p), L.cond(A, p), 1e-2), p
    assert float(L.cond(np.zeros((2, 2)), 1)) == np.inf


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (2, 0, 3)])
def test_cond_of_nothing(shape) -> None:
    with pytest.raises(ShapeError, match=r"cond: got .* no condition number"):
        L.cond(np.zeros(shape))
    assert L.cond(np.zeros((0, 2, 2))).shape == (0,)
    with pytest.raises(ShapeError, match="no condition number"):
        L.cond(np.zeros((0, 0)), 1)


def test_slogdet_of_singular_matrices_with_infinities() -> None:
    for diagonal in ([np.inf, 0, 2], [0, 1], [np.inf, 1, -2]):
        x = np.diag(np.array(diagonal, "f4"))
        assert [float(v) for v in fnp.linalg.slogdet(x)] == [
            float(v) for v in np.linalg.slogdet(x)
        ]
