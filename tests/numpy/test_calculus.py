"""Differences, integrals and interpolation against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.numpy.oracle import check, same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)).astype(np.float32)


def test_diff() -> None:
    for n in (0, 1, 2, 5):
        check("diff", X, n, 0)
        check("diff", X, n=n)
    check("diff", X, prepend=0.0, append=1.0)
    check("diff", X, axis=0, prepend=X[:2], append=X[:1])
    check("diff", np.array([True, False, False]))
    check("diff", np.array([3, 1, 9]))
    check("ediff1d", X)
    check("ediff1d", X, to_end=np.array([1.0, 2.0]), to_begin=3)
    with pytest.raises(ArgumentError, match="negative"):
        fnp.diff(X, n=-1)
    with pytest.raises(ShapeError):
        fnp.diff(np.float32(1))
    with pytest.raises(AxisError):
        fnp.diff(X, axis=2)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_fnp_gradient_agrees_with_numpy(edge_order: int) -> None:
    check("gradient", X, edge_order=edge_order, tol=1e-4)
    check("gradient", X, 0.5, axis=0, edge_order=edge_order, tol=1e-4)
    x = np.array([0.0, 1.0, 3.0, 3.5, 5.0], np.float32)
    check("gradient", X, 2.0, x, edge_order=edge_order, tol=1e-4)
    check("gradient", X[0], x, edge_order=edge_order, tol=1e-4)
    check("gradient", np.array([1, 4, 9, 16]), edge_order=edge_order)


def test_gradient_mistakes() -> None:
    with pytest.raises(ArgumentError, match="edge_order"):
        fnp.gradient(X, edge_order=3)
    with pytest.raises(ArgumentError, match="distance"):
        fnp.gradient(X, 1.0, 2.0, 3.0)
    with pytest.raises(ShapeError, match="at least 2"):
        fnp.gradient(X[:1])
    with pytest.raises(ShapeError, match="coordinates"):
        fnp.gradient(X[0], X[:, 0])


def test_trapezoid() -> None:
    check("trapezoid", X, tol=1e-5)
    check("trapezoid", X, dx=0.3, axis=0, tol=1e-5)
    check("trapezoid", X, np.sort(X, 0), axis=0, tol=1e-5)
    check("trapezoid", X, np.array([0.0, 1.0, 3.0, 3.5, 5.0]), tol=1e-5)
    check("trapezoid", np.array([1, 2, 4]), tol=1e-5)
    with pytest.raises(ShapeError, match="fit"):
        fnp.trapezoid(X, np.ones(3))


def test_interp() -> None:
    xp = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)
    fp = np.array([3.0, -1.0, 4.0, 0.0], np.float32)
    check("interp", X, xp, fp, tol=1e-5)
    check("interp", X, xp, fp, left=7.0, right=8, tol=1e-5)
    check("interp", X * 3, xp[::-1].copy(), fp, period=3.5, tol=1e-5)
    check("interp", X, xp, (fp + 1j).astype(np.complex64), tol=1e-5)
    check("interp", 0.25, xp, fp, tol=1e-5)
    check("interp", X, xp[:1], fp[:1])
    line = fnp.interp(np.array([-2.0, 3.0]), xp, fp, "extrapolate", "extrapolate")
    assert same(np.array([7.0, -8 / 3]), line, 1e-5)
    g = fxflow.grad(lambda x: fnp.interp(x, xp, fp))(np.float32(0.2))
    assert same(np.array(10.0), g, 1e-5)
    with pytest.raises(ShapeError):
        fnp.interp(X, xp, fp[:2])
    with pytest.raises(ArgumentError, match="extrapolate"):
        fnp.interp(X, xp, fp, left="linear")
    with pytest.raises(DtypeError):
        fnp.interp(X * 1j, xp, fp)


def test_unwrap() -> None:
    x = (RNG.normal(size=(3, 20)).cumsum(1) * 2 % (2 * np.pi)).astype(np.float32)
    check("unwrap", x, tol=1e-4)
    check("unwrap", x, axis=0, tol=1e-4)
    check("unwrap", x, 4.0, tol=1e-4)
    check("unwrap", np.array([0, 1, 2, -1, 0, 5, 9]), period=4)
    check("unwrap", np.array([0, 1, 2, -1, 0, 5, 9]), period=5)


def test_diff_under_vmap() -> None:
    got: Any = fxflow.vmap(fnp.diff)(X)
    assert same(np.diff(X), got)


def test_coordinates_broadcast() -> None:
    y, x = X[0], np.cumsum(np.abs(X), 1)
    check("trapezoid", y, x)
    check("trapezoid", X[:, None], x[None])
    check("trapezoid", X[None], X[0])
    check("trapezoid", X[None], X[:, 0], axis=1)
    with pytest.raises(ShapeError, match="do not fit axis 1"):
        fnp.trapezoid(X, x[:, :2])


def test_interp_has_derivatives_at_points_close_together() -> None:
    x = np.exp(np.linspace(-90, -20, 1000)).astype(np.float32)
    run = lambda z: fnp.interp(z, z, fnp.ones_like(z)).sum()
    for slope in (fxflow.grad(run), fxflow.jit(fxflow.grad(run))):
        assert same(np.zeros(1000, np.float32), slope(x), 0)
    assert float(fxflow.jvp(run, (x,), (x,))[1]) == 0


@pytest.mark.parametrize("place", [-1.0, 0.3, 1.5, 3.2, 5.0])
def test_derivatives_of_interp(place: float) -> None:
    points, values = np.array([0, 1, 2, 2, 4.0]), np.array([1, 3, 2, 5, 0.0])
    with fxflow.config.override(x64=True):
        args = (np.float64(place), points, values)
        directions = (np.float64(1), np.array([0.2, -0.3, 0.5, 0.5, 0.1]), values[::-1])
        for f in (fnp.interp, fxflow.grad(fnp.interp), fxflow.grad(fnp.interp, 2)):
            slope = fxflow.jvp(f, args, directions)[1]
            above, below = (
                f(*(a + h * d for a, d in zip(args, directions, strict=True)))
                for h in (1e-6, -1e-6)
            )
            assert same(np.asarray(above - below) / 2e-6, slope, 1e-6)
        forward = fxflow.jacfwd(fnp.interp, (0, 1, 2))(*args)
        reverse = fxflow.jacrev(fnp.interp, (0, 1, 2))(*args)
        for one, other in zip(forward, reverse, strict=True):
            assert same(one, other, 1e-12)


def test_gradient_of_neighbours_alone():
    check("gradient", np.array([1.0, np.inf, 3.0, np.nan, 5.0, 2.0], "f4"))
    check("gradient", np.array([1.0, np.inf, 3.0, np.nan, 5.0, 2.0], "f4"), 0.5)
