"""Polynomials against NumPy."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from tests.numpy.oracle import check, same

RNG = np.random.default_rng(0)
P = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
Q = np.array([2.0, 1.0], np.float32)
X = RNG.normal(size=(3, 4)).astype(np.float32)


def test_polyval_agrees_with_numpy() -> None:
    check("polyval", P, X, tol=1e-5)
    check("polyval", np.array([3, 0, 1]), np.arange(4))
    check("polyval", P, 2.0, tol=1e-5)
    long = RNG.normal(size=40).astype(np.float32)
    check("polyval", long, X / 4, tol=1e-4)
    check("polyval", P, np.complex64(1 + 2j), tol=1e-5)
    assert same(
        np.polyval(np.polyder(P), X),
        fxflow.grad(lambda x: fnp.polyval(P, x).sum())(X),
        1e-4,
    )
    check("polyval", X, 2.0, tol=1e-5)
    check("polyval", X, P, tol=1e-5)
    check("polyval", X[:, :, None], X[:, 0], tol=1e-5)
    many = RNG.normal(size=(40, 3)).astype(np.float32)
    check("polyval", many, X[:1, :3] / 4, tol=1e-4)
    with pytest.raises(ShapeError, match="polyval: operands"):
        fnp.polyval(X, Q)


def test_arithmetic() -> None:
    for a, b in ((P, Q), (Q, P), (P, P)):
        check("polyadd", a, b)
        check("polysub", a, b)
        check("polymul", a, b, tol=1e-5)
    assert same(np.polydiv(P, Q)[0], fnp.polydiv(P, Q)[0], 1e-5)
    quotient, rest = fnp.polydiv(P, Q, trim_leading_zeros=True)
    assert same(np.polydiv(P, Q), (quotient, rest), 1e-5)
    assert same(P, fnp.polyadd(fnp.polymul(quotient, Q), rest), 1e-5)
    assert same((np.zeros(1), Q), fnp.polydiv(Q, P))
    zeros = np.r_[0, 0, Q].astype(np.float32)
    assert same(np.polymul(P, Q), fnp.polymul(P, zeros, trim_leading_zeros=True), 1e-5)
    with pytest.raises(ConcretizationError):
        fxflow.jit(lambda p: fnp.polymul(p, Q, trim_leading_zeros=True))(P)


def test_calculus() -> None:
    for m in (0, 1, 2, 5):
        check("polyder", P, m)
        check("polyint", P, m, tol=1e-6)
    check("polyint", P, 2, k=np.array([1.0, 5.0]), tol=1e-6)
    check("polyint", P, 2, k=3.0, tol=1e-6)
    with pytest.raises(ArgumentError):
        fnp.polyder(P, -1)
    with pytest.raises(ShapeError, match="constants"):
        fnp.polyint(P, 3, k=np.ones(2))


def test_roots_agree_with_numpy() -> None:
    check("poly", np.array([1.0, 2.0, -3.0], np.float32), tol=1e-5)
    check("poly", X[:, :3], tol=1e-4)
    got = np.sort(np.asarray(fnp.roots(P)))
    assert same(np.sort(np.roots(P)), got, 1e-4)
    padded = np.array([0, 0, 1.0, -3.0, 2.0, 0, 0], np.float32)
    got = np.sort(np.asarray(fnp.roots(padded)))
    assert same(np.sort(np.roots(padded)).astype(complex), got, 1e-4)
    assert fnp.roots(np.zeros(3)).shape == (0,)
    assert fnp.roots(np.array([3.0])).shape == (0,)
    run = fxflow.jit(lambda p: fnp.roots(p, strip_zeros=False))
    assert same(np.sort(np.roots(P)), np.sort(np.asarray(run(P))), 1e-4)
    for zeros in (1, 2, 5):
        given = np.r_[np.zeros(zeros), padded[2:]].astype(np.float32)
        for got in (run(given), fnp.roots(given, strip_zeros=False)):
            assert np.isnan(got[-zeros:]).all()
            assert same(np.sort(np.roots(given)), np.sort(got[:-zeros]).real, 1e-4)
    assert np.isnan(run(np.zeros(3))).all()
    with pytest.raises(ConcretizationError):
        fxflow.jit(fnp.roots)(P)


def test_fit() -> None:
    x = np.linspace(-1, 2, 20).astype(np.float32)
    y = (np.polyval(P, x) + 0.1 * RNG.normal(size=20)).astype(np.float32)
    w = RNG.random(20).astype(np.float32) + 0.5
    check("polyfit", x, y, 3, tol=2e-3)
    check("polyfit", x, y, 2, w=w, tol=2e-3)
    check("polyfit", x, np.stack([y, -y], 1), 2, tol=2e-3)
    want = np.polyfit(x, y, 2, full=True)
    got = fnp.polyfit(x, y, 2, full=True)
    assert same(want[:4], got[:4], 2e-3)
    check("polyfit", x, y, 2, cov=True, tol=2e-3)
    check("polyfit", x, y, 2, w=w, cov="unscaled", tol=2e-3)
    check("polyfit", x, np.stack([y, -y], 1), 1, cov=True, tol=2e-3)
    with pytest.raises(ArgumentError, match="degree"):
        fnp.polyfit(x, y, -1)
    with pytest.raises(ArgumentError, match="data"):
        fnp.polyfit(x[:3], y[:3], 2, cov=True)
    with pytest.raises(ShapeError):
        fnp.polyfit(x, y[:3], 2)
