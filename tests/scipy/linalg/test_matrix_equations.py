"""Equations, factors and functions of matrices beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(0)
A, B, C = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 3)), RNG.normal(size=(4, 3))
Z = A + 1j * RNG.normal(size=A.shape)


def test_sylvester() -> None:
    with fxflow.config.override(x64=True):
        for a, b, c in [(A, B, C), (Z, B, C), (A, B, C + 1j * C[::-1])]:
            x = linalg.solve_sylvester(a, b, c)
            # SciPy's is wrong where one matrix is complex and another real.
            np.testing.assert_allclose(a @ x + x @ b, c, 1e-9, 1e-10)
        many = linalg.solve_sylvester(np.stack([A, A.T]), B, C, method="eigen")
        np.testing.assert_allclose(many[1], want.solve_sylvester(A.T, B, C), 1e-9)
        loss = lambda a, b, c: (linalg.solve_sylvester(a, b, c) ** 2).sum()
        slopes = fxflow.jit(fxflow.grad(loss, (0, 1, 2)))(A, B, C)
        for k, given in enumerate((A, B, C)):
            way, h = RNG.normal(size=given.shape), 1e-6
            up, down = [A, B, C], [A, B, C]
            up[k], down[k] = given + h * way, given - h * way
            rise = float(loss(*up) - loss(*down)) / (2 * h)
            assert float((slopes[k] * way).sum()) == pytest.approx(rise, 1e-6)
    with pytest.raises(ShapeError):
        linalg.solve_sylvester(A, B, C.T)
    with pytest.raises(ArgumentError):
        linalg.solve_sylvester(A, B, C, method="qr")


@pytest.mark.parametrize("side", ["left", "right"])
def test_polar(side: Any) -> None:
    with fxflow.config.override(x64=True):
        for a in (A, C, C.T, Z):
            for method in ("qdwh", "svd"):
                got = linalg.polar(a, side, method=method)
                for ours, theirs in zip(got, want.polar(a, side), strict=True):
                    np.testing.assert_allclose(ours, theirs, 1e-9, 1e-10)
    with pytest.raises(ArgumentError):
        linalg.polar(A, "up")


def test_functions_of_matrices_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for a in (A, Z):
            np.testing.assert_allclose(linalg.funm(a, fnp.exp), want.expm(a), 1e-8)
        out, error = linalg.funm(A, fnp.sin, disp=False)
        theirs, _ = want.funm(A, np.sin, disp=False)
        np.testing.assert_allclose(out, theirs, 1e-8, 1e-9)
        assert 0 < float(error) < 1e-10
        for compute in (True, False):
            got = linalg.expm_frechet(A, A.T, compute_expm=compute)
            theirs = want.expm_frechet(A, A.T, compute_expm=compute)
            np.testing.assert_allclose(np.stack(got), np.stack(theirs), 1e-8)


@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_multiply(pivoting: bool) -> None:
    with fxflow.config.override(x64=True):
        for a, c, mode in [
            (A, C.T, "right"),
            (C, C.T, "right"),
            (C, B, "left"),
            (Z, Z, "left"),
            (C, C[:, 0], "right"),
            (C, B[0], "left"),
        ]:
            for conjugate in (False, True):
                q, r, *order = want.qr(a, mode="economic", pivoting=pivoting)
                q = q.conj() if conjugate else q
                got = linalg.qr_multiply(a, c, mode, pivoting, conjugate)
                theirs = (c @ q if mode == "right" else q @ c, r, *order)
                for x, y in zip(got, theirs, strict=True):
                    np.testing.assert_allclose(x, y, 1e-9, 1e-10)
    with pytest.raises(ShapeError):
        linalg.qr_multiply(A, C)


def test_tridiagonal() -> None:
    d, e = RNG.normal(size=6), RNG.normal(size=5)
    with fxflow.config.override(x64=True):
        values, vectors = linalg.eigh_tridiagonal(d, e)
        np.testing.assert_allclose(values, want.eigh_tridiagonal(d, e)[0], 1e-9)
        full = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        np.testing.assert_allclose(full @ vectors, values * vectors, 1e-8, 1e-9)
        some = linalg.eigh_tridiagonal(
            d, e, eigvals_only=True, select="i", select_range=(1, 3)
        )
        np.testing.assert_allclose(some, values[1:4], 1e-9)
        slope = fxflow.grad(lambda d: linalg.eigh_tridiagonal(d, e)[0][0])(d)
        np.testing.assert_allclose(slope, np.asarray(vectors[:, 0]) ** 2, 1e-8)
    with pytest.raises(ArgumentError, match="interval"):
        linalg.eigh_tridiagonal(d, e, select="v", select_range=(0.0, 1.0))
    with pytest.raises(ShapeError):
        linalg.eigh_tridiagonal(d, d)


def test_funm_takes_a_function_with_numpy_values() -> None:
    got = linalg.funm(np.array([[2.0, 1.0], [0.5, 3.0]]), lambda x: np.ones(2))
    np.testing.assert_allclose(got, np.eye(2), atol=1e-5)
