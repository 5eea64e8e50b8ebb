"""Decompositions against SciPy."""

import numpy as np
import pytest
import scipy.linalg as want

import fxflow
from fxflow.core.errors import ArgumentError
from fxflow.scipy import linalg
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
H = (Z @ Z.conj().T + np.eye(4)).astype(np.complex64)
S = (A @ A.T + np.eye(4)).astype(np.float32)
B = RNG.normal(size=(4, 3)).astype(np.float32)


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
    with pytest.raises(ArgumentError, match="mode must be"):
        linalg.qr(A, mode="raw")


@pytest.mark.parametrize("mode", ["full", "economic", "r"])
def test_qr_with_exchanged_columns(mode: str) -> None:
    for a in (A, Z, A[:, :2], A[:2]):
        got = linalg.qr(a, mode=mode, pivoting=True)
        assert same(want.qr(a, mode=mode, pivoting=True), got, 1e-4)
