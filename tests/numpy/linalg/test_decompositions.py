"""Decompositions against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
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
def test_gradients_agree_with_finite_differences(name: str) -> None:
    x, function = CASES[name]
    want = numerical(lambda x: function(N, x), x)
    got = fxflow.grad(lambda x: function(L, x))(x)
    assert same(want, got, 2e-2 * max(1.0, float(np.abs(want).max()))), name
