"""Linear algebra against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.errors import ArgumentError, ShapeError
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
T = RNG.normal(size=(2, 5, 3)).astype(np.float32)
S = (A @ A.swapaxes(1, 2) + np.eye(4)).astype(np.float32)
H = (Z @ Z.conj().swapaxes(1, 2) + np.eye(4)).astype(np.complex64)
B = RNG.normal(size=(2, 4, 3)).astype(np.float32)
L = fnp.linalg
N = np.linalg


def numerical(function: Any, x: Any) -> Any:
    """Gradient by central differences, in 64 bits."""
    x = x.astype(np.float64)
    out = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        out[place] = (function(x + step) - function(x - step)) / 2e-5
    return out


def test_cholesky() -> None:
    for m in (S, H):
        assert same(N.cholesky(m), L.cholesky(m), 1e-3)
        assert same(N.cholesky(m, upper=True), L.cholesky(m, upper=True), 1e-3)
        low = np.tril(m)
        assert same(N.cholesky(m), L.cholesky(low, symmetrize_input=False), 1e-3)
        up = L.cholesky(np.triu(m), upper=True, symmetrize_input=False)
        assert same(N.cholesky(m, upper=True), up, 1e-3)
    assert np.isnan(L.cholesky(-np.eye(2))).any()
    assert L.cholesky(np.eye(2, dtype=np.float16)).dtype == np.float32


def test_qr() -> None:
    for m in (T, T.swapaxes(1, 2), Z):
        for mode in ("reduced", "complete"):
            q, r = L.qr(m, mode)
            want = N.qr(m, mode)
            assert q.shape == want.Q.shape and r.shape == want.R.shape
            assert same(m, q @ r, 1e-4)
            assert same(
                np.eye(q.shape[-1]) + 0 * np.asarray(q[..., :1, :1]),
                q.mT.conj() @ q,
                1e-4,
            )
        assert same(N.qr(m, "r"), L.qr(m, "r"), 1e-4)
    assert same(N.qr(T, "raw"), L.qr(T, "raw"), 1e-4)
    with pytest.raises(ArgumentError, match="mode"):
        L.qr(T, "economic")


def test_svd() -> None:
    for m in (T, T.swapaxes(1, 2), Z):
        assert same(N.svdvals(m), L.svdvals(m), 1e-4)
        for full in (False, True):
            u, s, vh = L.svd(m, full_matrices=full)
            k = s.shape[-1]
            assert u.shape == N.svd(m, full).U.shape
            assert same(m, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], 1e-4)
    for m in (S - 3 * np.eye(4, dtype=np.float32), H):
        u, s, vh = L.svd(m, hermitian=True)
        assert same(m, (u * s[..., None, :]) @ vh, 1e-3)
        assert same(N.svd(m, hermitian=True, compute_uv=False), s, 1e-3)


def test_eigen() -> None:
    for m in (A, Z):
        w, v = L.eig(m)
        assert same(m @ np.asarray(v), v * w[..., None, :], 1e-3)
        assert same(np.sort(N.eigvals(m)), np.sort(np.asarray(L.eigvals(m))), 1e-3)
    for m in (S, H):
        w, v = L.eigh(m)
        assert same(m @ np.asarray(v), v * w[..., None, :], 1e-3)
        assert same(N.eigvalsh(m), L.eigvalsh(m), 1e-3)
        for which, part in (("L", np.tril), ("U", np.triu)):
            got = L.eigvalsh(part(m), which, symmetrize_input=False)
            assert same(N.eigvalsh(m), got, 1e-3)
    with pytest.raises(ArgumentError, match="UPLO"):
        L.eigh(S, "X")


def test_solve() -> None:
    assert same(N.solve(A, B), L.solve(A, B), 1e-3)
    assert same(N.solve(Z, B), L.solve(Z, B), 1e-3)
    assert same(N.solve(A[0], B[0, :, 0]), L.solve(A[0], B[0, :, 0]), 1e-3)
    assert same(N.solve(A, B[0, :, 0]), L.solve(A, B[0, :, 0]), 1e-3)
    assert same(N.solve(A[0], B), L.solve(A[0], B), 1e-3)
    assert same(N.inv(A), L.inv(A), 1e-3)
    assert same(N.inv(Z), L.inv(Z), 1e-3)
    got = fxflow.jit(L.solve)(A, B)
    assert same(N.solve(A, B), got, 1e-3)
    got = fxflow.vmap(L.solve)(A, B)
    assert same(N.solve(A, B), got, 1e-3)
    with pytest.raises(ShapeError, match="square"):
        L.solve(T, B)
    with pytest.raises(ShapeError, match="b must be"):
        L.solve(A, T)
    with pytest.raises(ShapeError, match="square"):
        L.inv(T)


def test_pinv_and_lstsq() -> None:
    low = T[0] @ T[1].T
    for m in (T, T.swapaxes(1, 2), Z):
        assert same(N.pinv(m), L.pinv(m), 1e-3)
    assert same(N.pinv(low, rcond=1e-5), L.pinv(low), 1e-3)
    assert same(N.pinv(H), L.pinv(H, hermitian=True), 1e-3)
    assert same(N.pinv(S, rtol=0.1), L.pinv(S, 0.1), 1e-3)
    assert same(N.pinv(S, rtol=0.1), L.pinv(S, rcond=0.1), 1e-3)
    for b in (T[1][:, 0], T[1]):
        x, residuals, rank, s = L.lstsq(T[0], b)
        want = N.lstsq(T[0], b)
        assert same((want[0], want[1], want[3]), (x, residuals, s), 1e-3)
        assert int(rank) == 3
    assert L.lstsq(low, T[0], numpy_resid=True)[1].shape == (0,)
    assert int(L.lstsq(low, T[0], 1e-4)[2]) == 3
    with pytest.raises(ArgumentError, match="both"):
        L.pinv(A, 0.1, rcond=0.1)
    with pytest.raises(ShapeError):
        L.lstsq(A, B)


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
    for power in (0, 1, 2, 5, -1, -3):
        assert same(N.matrix_power(A / 2, power), L.matrix_power(A / 2, power), 2e-2)
    assert L.matrix_power(np.eye(2, dtype=np.int32), 3).dtype == np.int32
    with pytest.raises(ArgumentError):
        L.matrix_power(A, 0.5)
    with pytest.raises(ShapeError):
        L.matrix_power(T, 2)


def test_tensors() -> None:
    a = RNG.normal(size=(2, 3, 6)).astype(np.float32)
    b = RNG.normal(size=(2, 3)).astype(np.float32)
    assert same(N.tensorsolve(a, b), L.tensorsolve(a, b), 1e-3)
    moved = np.moveaxis(a, 2, 0)
    got = L.tensorsolve(moved, b, axes=(0,))
    assert same(N.tensorsolve(moved, b, axes=(0,)), got, 1e-3)
    assert same(N.tensorinv(a), L.tensorinv(a), 1e-3)
    with pytest.raises(ShapeError):
        L.tensorinv(a, 1)
    with pytest.raises(ShapeError):
        L.tensorsolve(a, b[0])


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


CASES: dict[str, tuple[Any, Any]] = {
    "solve": (A[0], lambda m, x: m.solve(x, B[0].astype(x.dtype)).sum()),
    "inv": (A[0], lambda m, x: m.inv(x)[0].sum()),
    "det": (A[0], lambda m, x: m.det(x)),
    "det3": (A[0, :3, :3], lambda m, x: m.det(x)),
    "slogdet": (A[0], lambda m, x: m.slogdet(x)[1]),
    "cholesky": (S[0], lambda m, x: m.cholesky((x + x.T) / 2)[2].sum()),
    "eigh": (S[0], lambda m, x: m.eigh((x + x.T) / 2)[0][1:].sum()),
    "svd": (T[0], lambda m, x: m.svd(x, False)[1][:2].sum()),
    "pinv": (T[0], lambda m, x: m.pinv(x)[0].sum()),
    "qr": (T[0], lambda m, x: m.qr(x)[1][0].sum()),
    "lstsq": (T[0], lambda m, x: m.lstsq(x, T[1].astype(x.dtype))[0].sum()),
    "norm": (T[0], lambda m, x: m.norm(x, "nuc")),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    x, function = CASES[name]
    want = numerical(lambda x: function(N, x), x)
    got = fxflow.grad(lambda x: function(L, x))(x)
    assert same(want, got, 2e-2 * max(1.0, float(np.abs(want).max()))), name


def test_gradient_of_pinv_of_equal_singular_values() -> None:
    g = fxflow.grad(lambda x: fnp.linalg.pinv(x).sum())(np.eye(3, dtype=np.float32))
    assert same(-np.ones((3, 3)), g, 1e-4)
