"""Schur and Hessenberg forms against SciPy."""

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


def test_schur() -> None:
    assert same(want.schur(A), linalg.schur(A), 1e-3)
    assert same(want.schur(Z), linalg.schur(Z), 1e-3)
    for a in (A, Z, np.stack([A, S])):
        t, z = map(np.asarray, linalg.schur(a, output="complex"))
        assert same(a.astype(np.complex64), z @ t @ np.conj(np.swapaxes(z, -1, -2)))
        assert not np.tril(t, -1).any()
    with pytest.raises(ArgumentError, match="output must be"):
        linalg.schur(A, output="triangular")
    with pytest.raises(ShapeError):
        linalg.schur(B)


def test_rsf2csf() -> None:
    turns = want.block_diag([[1.0, 3.0], [-2.0, 1.0]], 4.0, [[0.0, 1.0], [-1.0, 0.0]])
    turns = (turns + np.triu(RNG.normal(size=(5, 5)), 2)).astype(np.float32)
    for a in (A, S, turns, A[:1, :1]):
        real = linalg.schur(a)
        expected = want.rsf2csf(*map(np.asarray, real))
        assert same(expected, linalg.rsf2csf(*real), 1e-3)
    pairs = np.stack([A, S])
    t, z = map(np.asarray, linalg.rsf2csf(*linalg.schur(pairs)))
    back = z @ t @ np.conj(np.swapaxes(z, -1, -2))
    assert same(pairs.astype(np.complex64), back, 1e-3)
    with pytest.raises(ShapeError):
        linalg.rsf2csf(A, A[:2, :2])


def test_hessenberg() -> None:
    for a in (A, Z, A[:1, :1], A[:2, :2]):
        assert same(want.hessenberg(a), linalg.hessenberg(a), 1e-3)
        expected = want.hessenberg(a, calc_q=True)
        assert same(expected, linalg.hessenberg(a, calc_q=True), 1e-3)
    several = np.stack([A, S])
    h, q = map(np.asarray, linalg.hessenberg(several, calc_q=True))
    assert same(several, q @ h @ np.swapaxes(q, -1, -2), 1e-3)
