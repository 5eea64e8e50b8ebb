"""Linear algebra against SciPy."""

import numpy as np
import pytest
import scipy.linalg as want

import fxflow
from fxflow.core.errors import ArgumentError, ShapeError
from fxflow.scipy import linalg
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
H = (Z @ Z.conj().T + np.eye(4)).astype(np.complex64)
S = (A @ A.T + np.eye(4)).astype(np.float32)
B = RNG.normal(size=(4, 3)).astype(np.float32)


@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("lower", [False, True])
def test_solve_triangular(trans: int, lower: bool) -> None:
    for a in (
        A + 3 * np.eye(4, dtype=np.float32),
        Z + 3 * np.eye(4, dtype=np.complex64),
    ):
        for unit in (False, True):
            for b in (B, B[:, 0]):
                expected = want.solve_triangular(a, b, trans, lower, unit)
                got = linalg.solve_triangular(a, b, trans, lower, unit)
                assert same(expected, got, 1e-3)
    with pytest.raises(ArgumentError, match="trans"):
        linalg.solve_triangular(A, B, "X")
    with pytest.raises(ShapeError):
        linalg.solve_triangular(A, B[:2])


def test_solve() -> None:
    assert same(want.solve(A, B), linalg.solve(A, B), 1e-3)
    for lower in (False, True):
        half = np.tril(H) if lower else np.triu(H)
        for kind in ("her", "pos"):
            got = linalg.solve(half, B, lower, assume_a=kind)
            assert same(want.solve(H, B), got, 1e-3)
        half = np.tril(S) if lower else np.triu(S)
        got = linalg.solve(half, B[:, 0], lower, assume_a="sym")
        assert same(want.solve(S, B[:, 0]), got, 1e-3)
    with pytest.raises(ArgumentError, match="assume_a"):
        linalg.solve(A, B, assume_a="banded")


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(lower: bool) -> None:
    for a in (S, H):
        assert same(want.cholesky(a, lower), linalg.cholesky(a, lower), 1e-3)
        factor = linalg.cho_factor(a, lower)
        assert same(want.solve(a, B), linalg.cho_solve(factor, B), 1e-3)
        assert same(want.solve(a, B[:, 0]), linalg.cho_solve(factor, B[:, 0]), 1e-3)


def test_lu() -> None:
    for a in (A, Z, A[:, :2], A[:2]):
        assert same(want.lu(a), linalg.lu(a), 1e-4)
        assert same(want.lu(a, permute_l=True), linalg.lu(a, permute_l=True), 1e-4)
    for a in (A, Z):
        factor = linalg.lu_factor(a)
        assert same(want.lu_factor(a), factor, 1e-4)
        for trans in (0, 1, 2):
            expected = want.lu_solve(want.lu_factor(a), B.astype(a.dtype), trans)
            assert same(expected, linalg.lu_solve(factor, B, trans), 1e-3)
    got = fxflow.vmap(linalg.lu)(np.stack([A, S]))
    assert same(want.lu(S), [g[1] for g in got], 1e-4)


def test_numpy_names() -> None:
    tall = A[:, :2]
    for mode in ("full", "economic"):
        q, r = linalg.qr(tall, mode=mode)
        assert same(tall, q @ r, 1e-4) and q.shape == want.qr(tall, mode=mode)[0].shape
    assert linalg.qr(tall, mode="r")[0].shape == (4, 2)
    assert same(want.svdvals(tall), linalg.svd(tall, compute_uv=False), 1e-4)
    assert len(linalg.svd(tall)) == 3
    for lower in (False, True):
        half = np.tril(H) if lower else np.triu(H)
        values, vectors = linalg.eigh(half, lower=lower)
        assert same(want.eigvalsh(H), values, 1e-3)
        assert same(H @ np.asarray(vectors), vectors * values, 1e-3)
        values, vectors = linalg.eigh(half, S, lower=lower)
        assert same(want.eigvalsh(H, S), values, 1e-3)
        assert same(H @ np.asarray(vectors), S @ np.asarray(vectors) * values, 1e-2)
    with pytest.raises(ArgumentError, match="pivoting"):
        linalg.qr(A, pivoting=True)


def test_expm() -> None:
    for a in (A, A * 10, Z, A * 0, np.stack([A, A * 8])):
        expected = want.expm(a.astype(np.complex128 if a is Z else np.float64))
        got = np.asarray(linalg.expm(a))
        scale = np.abs(expected).max()
        assert same(expected / scale, got / scale, 2e-3)
    upper = np.triu(A)
    assert same(want.expm(upper), linalg.expm(upper, upper_triangular=True), 1e-3)
    assert np.isnan(linalg.expm(A * 1e4, max_squarings=3)).all()
    g = fxflow.grad(lambda a: linalg.expm(a)[0, 1])(A)
    step = np.zeros_like(A)
    step[2, 3] = 1e-4
    slope = (want.expm(A + step) - want.expm(A - step))[0, 1] / 2e-4
    assert float(g[2, 3]) == pytest.approx(float(slope), rel=1e-2, abs=1e-2)


def test_special_matrices() -> None:
    assert same(want.block_diag(A, B, 2.0, B[0]), linalg.block_diag(A, B, 2.0, B[0]))
    assert same(want.toeplitz(B[0], A[0]), linalg.toeplitz(B[0], A[0]))
    assert same(want.toeplitz(Z[0]), linalg.toeplitz(Z[0]))
    with pytest.raises(ShapeError):
        linalg.toeplitz(A)
    with pytest.raises(ShapeError):
        linalg.block_diag(np.ones((2, 2, 2)))
