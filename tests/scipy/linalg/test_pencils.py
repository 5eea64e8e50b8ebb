"""Generalized Schur and cosine-sine decompositions against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg as want
import scipy.stats

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, NotDifferentiableError, ShapeError
from fxflow.scipy import linalg
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A, B = (RNG.normal(size=(4, 4)).astype(np.float32) for _ in range(2))
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
#: A pair with two complex and two real eigenvalues.
PAIRS = [(A, B), (Z, B.astype(np.complex64)), (A, Z)]
RUNS = pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


@RUNS
def test_qz(run: Any) -> None:
    for a, b in PAIRS:
        found = run(linalg.qz)(a, b)
        assert same(want.qz(a, b), found, 1e-3)
        aa, bb, q, z = map(np.asarray, found)
        assert same(q @ aa @ adjoint(z), a + 0 * aa, 1e-4)
        assert same(q @ bb @ adjoint(z), b + 0 * bb, 1e-4)
    aa, bb, *_ = linalg.qz(A, B, output="complex")
    assert aa.dtype == np.complex64 and not np.tril(aa, -1).any()
    with fxflow.config.override(x64=True):
        found = run(linalg.qz)(A.astype("f8"), B.astype("f8"))
    assert found[0].dtype == np.float64
    assert same(want.qz(A.astype("f8"), B.astype("f8")), found, 1e-12)


@RUNS
def test_ordqz(run: Any) -> None:
    orders: list[Any] = ["lhp", "rhp", "iuc", "ouc", lambda a, b: a.real < b.real]
    for sort in orders:
        for a, b in PAIRS:
            found = run(lambda a, b, s=sort: linalg.ordqz(a, b, s))(a, b)
            kind = "real" if a.dtype == b.dtype == np.float32 else "complex"
            assert same(want.ordqz(a, b, sort=sort, output=kind), found, 1e-3)


@RUNS
def test_cossin(run: Any) -> None:
    orthogonal = want.qr(RNG.normal(size=(5, 5)))[0].astype(np.float32)
    unitary = scipy.stats.unitary_group.rvs(5, random_state=RNG).astype(np.complex64)
    for x in (orthogonal, unitary):
        for p, q in ((2, 2), (1, 3), (4, 2)):
            got = run(lambda x, p=p, q=q: linalg.cossin(x, p, q))(x)
            assert same(want.cossin(x, p, q), got, 1e-4)
            u, cs, vh = map(np.asarray, got)
            assert same(x, u @ cs @ vh, 1e-5)
            parts = want.cossin(x, p, q, separate=True, swap_sign=True)
            got = run(
                lambda x, p=p, q=q: linalg.cossin(
                    x, p, q, separate=True, swap_sign=True
                )
            )(x)
            for a, b in zip(parts, got, strict=True):
                assert same(a, b, 1e-4)
    blocks = [x[:2, :3], x[:2, 3:], x[2:, :3], x[2:, 3:]]
    assert same(linalg.cossin(x, 2, 3), linalg.cossin(blocks))
    u, cs, vh = linalg.cossin(x, 2, 3, compute_u=False, compute_vh=False)
    assert u.size == vh.size == 0
    assert same(want.cossin(x, 2, 3)[1], cs, 1e-4)


def test_batches_and_matrices_that_are_not_finite() -> None:
    several = np.stack([A, A.T, A + np.nan, A[::-1]])
    aa, *_ = linalg.qz(several, B)
    for i in (0, 1, 3):
        assert same(want.qz(several[i], B)[0], aa[i], 1e-3)
    assert np.isnan(aa[2]).all()
    again = fxflow.jit(fxflow.vmap(linalg.qz, (0, None)))(several, fnp.asarray(B))
    assert same(aa, again[0])
    assert linalg.qz(np.zeros((0, 0), "f4"), np.zeros((0, 0), "f4"))[0].shape == (0, 0)
    alpha = linalg.ordqz(np.zeros((2, 0, 0), "f4"), np.zeros((0, 0), "f4"))[2]
    assert alpha.shape == (2, 0)
    (u, _), theta, _ = linalg.cossin(several[:, :, :] * 0 + np.eye(4), 1, 1, True)
    assert u.shape == (4, 1, 1) and theta.shape == (4, 1)
    assert np.isnan(theta[2]).all() and (np.asarray(theta)[[0, 1, 3]] == 0).all()


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"qz: output must be .* got 'both'"):
        linalg.qz(A, B, "both")
    with pytest.raises(ArgumentError, match="use ordqz"):
        linalg.qz(A, B, sort="lhp")
    with pytest.raises(ArgumentError, match=r"ordqz: sort must be .* got 'up'"):
        linalg.ordqz(A, B, "up")
    with pytest.raises(ShapeError, match=r"qz: A, f32\[4,4\], and B, f32\[3,3\]"):
        linalg.qz(A, B[:3, :3])
    with pytest.raises(ShapeError, match=r"cossin: takes square .* f32\[4,3\]"):
        linalg.cossin(A[:, :3], 1, 1)
    for p, q in ((0, 1), (4, 1), (1, 4)):
        with pytest.raises(ArgumentError, match=r"must lie in 1 … 3 for f32\[4,4\]"):
            linalg.cossin(A, p, q)
    with pytest.raises(ArgumentError, match="give p and q"):
        linalg.cossin(A, 1)
    blocks = [A[:2, :3], A[:2, 3:], A[2:, :3], A[2:, 3:]]
    with pytest.raises(ArgumentError, match="blocks of X, or X with p and q"):
        linalg.cossin(blocks, 2, 3)
    with pytest.raises(ShapeError, match="blocks of X do not fit"):
        linalg.cossin([*blocks[:3], A[2:, :1].repeat(2, 1)])
    with pytest.raises(NotDifferentiableError):
        fxflow.grad(lambda a: linalg.qz(a, B)[0].sum())(fnp.asarray(A))
