"""Linear systems against SciPy."""

import numpy as np
import pytest
import scipy.linalg as want

from fxflow.errors import ArgumentError, ShapeError
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
        linalg.solve(A, B, assume_a="bands")


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(lower: bool) -> None:
    for a in (S, H):
        assert same(want.cholesky(a, lower), linalg.cholesky(a, lower), 1e-3)
        factor = linalg.cho_factor(a, lower)
        assert same(want.solve(a, B), linalg.cho_solve(factor, B), 1e-3)
        assert same(want.solve(a, B[:, 0]), linalg.cho_solve(factor, B[:, 0]), 1e-3)


@pytest.mark.parametrize("kind", ["gen", "sym", "her", "pos"])
def test_solve_transposed(kind) -> None:
    for a in (S, H) if kind != "sym" else (S, Z + Z.T):
        got = np.asarray(linalg.solve(a, B, assume_a=kind, transposed=True))
        np.testing.assert_allclose(a.T @ got, B, atol=1e-4)


def test_arguments_that_have_no_effect() -> None:
    assert same(want.det(A), linalg.det(A, True, False), 1e-3)
    assert same(want.inv(A), linalg.inv(A, True, check_finite=False), 1e-3)
    # `debug` stands where JAX has it.
    args = (S, B, False, False, False, True, True, "pos")
    assert same(want.solve(S, B), linalg.solve(*args), 1e-3)
    lower = np.tril(A) + 3 * np.eye(4, dtype=np.float32)
    args = (lower, B, 0, True, False, False, None, True)
    assert same(np.linalg.solve(lower, B), linalg.solve_triangular(*args), 1e-3)


def test_what_a_matrix_is_known_to_be() -> None:
    upper = np.triu(A) + 3 * np.eye(4, dtype=np.float32)
    kinds = {"general": A, "symmetric": S, "hermitian": H, "positive definite": H}
    kinds |= {"upper triangular": upper, "lower triangular": upper.T}
    kinds |= {"diagonal": np.diag(np.diag(upper)), "banded": upper}
    kinds["tridiagonal"] = np.tril(upper, 1)
    for kind, a in kinds.items():
        for b in (B, B[:, 0]):
            got = linalg.solve(a, b, assume_a=kind)
            assert same(want.solve(a, b, assume_a=kind), got, 1e-3)
        assert same(want.inv(a), linalg.inv(a, assume_a=kind), 1e-3)
    got = linalg.solve(upper, B, assume_a="upper triangular", transposed=True)
    assert same(want.solve(upper.T, B), got, 1e-3)
    assert same(want.inv(H), linalg.inv(np.tril(H), assume_a="her", lower=True), 1e-3)
    with pytest.raises(ArgumentError, match="assume_a must be one of"):
        linalg.inv(A, assume_a="sparse")
