"""MINRES, LSQR and LSMR against dense solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ShapeError
from fxflow.scipy.sparse.linalg import LeastSquares, lsmr, lsqr, minres

RNG = np.random.default_rng(0)
SYMMETRIC = RNG.normal(size=(12, 12))
SYMMETRIC = SYMMETRIC + SYMMETRIC.T
TALL = sparse.random_array((20, 7), density=0.4, rng=1, dtype="float64", format="csr")


def wide(x: Any) -> fxflow.Array:
    return fnp.asarray(x, "float64")


def test_indefinite_systems() -> None:
    b = RNG.normal(size=12)
    a = sparse.csr_array(SYMMETRIC, dtype="float64")
    x, info = fxflow.jit(lambda a, b: minres(a, b, rtol=1e-12))(a, wide(b))
    np.testing.assert_allclose(x, np.linalg.solve(SYMMETRIC, b), rtol=1e-6)
    assert int(info) == 0
    x, _ = minres(a, wide(b), wide(np.ones(12)), rtol=1e-12, shift=0.5)
    want = np.linalg.solve(SYMMETRIC - 0.5 * np.eye(12), b)
    np.testing.assert_allclose(x, want, rtol=1e-6)
    _, info = minres(a, wide(b), rtol=1e-12, maxiter=2)
    assert int(info) == 2
    x, _ = minres(lambda v: 2 * v, wide(b), M=lambda v: v / 2)
    np.testing.assert_allclose(x, b / 2)


def test_hermitian_and_singular_systems() -> None:
    a = SYMMETRIC + 1j * np.triu(SYMMETRIC, 1) - 1j * np.triu(SYMMETRIC, 1).T
    b = RNG.normal(size=12) * (1 + 1j)
    x, _ = minres(
        fnp.asarray(a, "complex128"), fnp.asarray(b, "complex128"), rtol=1e-12
    )
    np.testing.assert_allclose(a @ np.asarray(x), b, rtol=1e-6)
    singular = wide(np.diag([1.0, -2.0, 0.0]))
    x, info = minres(singular, wide([1.0, 2.0, 0.0]), rtol=1e-12)
    np.testing.assert_allclose(x, [1, -1, 0], atol=1e-12)
    assert int(info) == 0
    x, info = minres(singular, wide([0.0, 0.0, 0.0]))
    assert not np.any(x) and int(info) == 0
    assert np.isnan(minres(singular, wide([np.nan, 0, 0]))[0]).all()


def test_gradients_of_minres() -> None:
    b = wide(RNG.normal(size=12))

    def loss(a: Any, b: Any) -> Any:
        return fnp.sum(minres((a + a.T) / 2, b, rtol=1e-13)[0] ** 2)

    def dense_loss(a: Any, b: Any) -> Any:
        return fnp.sum(fnp.linalg.solve((a + a.T) / 2, b) ** 2)

    got = fxflow.grad(loss, argnums=(0, 1))(wide(SYMMETRIC), b)
    want = fxflow.grad(dense_loss, argnums=(0, 1))(wide(SYMMETRIC), b)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("damp", [0.0, 0.5])
def test_least_squares(damp: float) -> None:
    b = RNG.normal(size=20)
    got = fxflow.jit(lambda a, b: lsqr(a, b, damp, 1e-12, 1e-12))(TALL, wide(b))
    want = scipy.sparse.linalg.lsqr(TALL.to_scipy(), b, damp, 1e-12, 1e-12)
    assert isinstance(got, LeastSquares) and int(got.istop) == 2
    np.testing.assert_allclose(got.x, want[0], rtol=1e-8)
    np.testing.assert_allclose(got.r1norm, want[3], rtol=1e-8)
    np.testing.assert_allclose(got.r2norm, want[4], rtol=1e-8)
    np.testing.assert_allclose(got.xnorm, want[8], rtol=1e-8)
    other = lsqr(TALL, wide(b), 0.0, 1e-12, 1e-12, x0=fnp.ones(7))
    np.testing.assert_allclose(other.x, np.linalg.lstsq(
        np.asarray(TALL.todense()), b, rcond=None
    )[0], rtol=1e-8)  # fmt: skip


def test_gradients_of_least_squares() -> None:
    b = wide(RNG.normal(size=20))
    got = fxflow.grad(
        lambda a, b: fnp.sum(lsqr(a, b, 0.0, 1e-13, 1e-13).x ** 2), argnums=(0, 1)
    )(TALL, b)
    want = fxflow.grad(
        lambda a, b: fnp.sum(fnp.linalg.lstsq(a, b)[0] ** 2), argnums=(0, 1)
    )(TALL.todense(), b)
    row, col = TALL.coords
    np.testing.assert_allclose(got[0].values, want[0][row, col], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6, atol=1e-9)


def test_why_least_squares_stopped() -> None:
    b = wide(RNG.normal(size=20))
    assert int(lsqr(TALL, b * 0).istop) == 0
    assert int(lsqr(TALL, b, iter_lim=1).istop) == 7
    square = wide(np.diag([1.0, 2.0]))
    assert int(lsqr(square, wide([1.0, 1.0]), atol=1e-10, btol=1e-10).istop) == 1


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="does not fit b"):
        lsqr(TALL, fnp.ones(3))
    with pytest.raises(ShapeError, match="b must be a vector"):
        minres(fnp.eye(2), fnp.ones((2, 1)))


@pytest.mark.parametrize("damp", [0.0, 0.5])
def test_least_squares_by_lsmr(damp: float) -> None:
    b = RNG.normal(size=20)
    start = RNG.normal(size=7)
    got = fxflow.jit(lambda a, b: lsmr(a, b, damp, 1e-13, 1e-13, maxiter=40))(
        TALL, wide(b)
    )
    want = scipy.sparse.linalg.lsqr(TALL.to_scipy(), b, damp, 1e-13, 1e-13)
    assert isinstance(got, LeastSquares) and int(got.istop) == 2
    np.testing.assert_allclose(got.x, want[0], rtol=1e-9)
    np.testing.assert_allclose(got.r2norm, want[4], rtol=1e-9)
    got = lsmr(TALL, wide(b), 0.0, 1e-13, 1e-13, maxiter=40, x0=wide(start))
    dense = np.asarray(TALL.todense())
    np.testing.assert_allclose(got.x, np.linalg.lstsq(dense, b)[0], rtol=1e-8)


def test_gradient_and_special_cases_of_lsmr() -> None:
    b = wide(RNG.normal(size=20))
    dense = wide(TALL.todense())
    slope = fxflow.grad(lambda b: fnp.sum(lsmr(TALL, b, 0.3).x ** 2))(b)

    def direct(b: Any) -> Any:
        normal = dense.T @ dense + 0.09 * fnp.eye(7, dtype="float64")
        return fnp.sum(fnp.linalg.solve(normal, dense.T @ b) ** 2)

    np.testing.assert_allclose(slope, fxflow.grad(direct)(b), rtol=1e-4, atol=1e-6)
    assert not np.any(lsmr(TALL, 0 * b).x)
    assert np.isnan(lsmr(TALL, fnp.nan * b).x).all()
    with pytest.raises(ShapeError, match="lsmr: A of shape"):
        lsmr(TALL, b[:3])


def test_condition_numbers_and_variances_are_those_of_scipy() -> None:
    b = RNG.normal(size=20)
    options = {"damp": 0.1, "atol": 0, "btol": 0, "iter_lim": 5}
    got = lsqr(TALL, wide(b), calc_var=True, **options)
    want = scipy.sparse.linalg.lsqr(TALL.to_scipy(), b, calc_var=True, **options)
    # The norms of residuals are SciPy's estimates.
    for i in (0, 1, 2, 5, 6, 8, 9):
        np.testing.assert_allclose(got[i], want[i], rtol=1e-6, atol=1e-9)
    limit = {"maxiter": 5, "atol": 0, "btol": 0}
    got = lsmr(TALL, wide(b), **limit)
    want = scipy.sparse.linalg.lsmr(TALL.to_scipy(), b, **limit)
    np.testing.assert_allclose(got.acond, want[6], rtol=1e-9)
    assert got.var is None
    steep = np.diag([1.0, 1e-3, 1e-6])
    for solver, theirs in ((lsqr, "lsqr"), (lsmr, "lsmr")):
        limit = {"conlim": 100.0, "atol": 0, "btol": 0}
        got = solver(wide(steep), wide(np.ones(3)), **limit)
        want = getattr(scipy.sparse.linalg, theirs)(steep, np.ones(3), **limit)
        assert (int(got.istop), int(got.itn)) == want[1:3] == (3, want[2])
