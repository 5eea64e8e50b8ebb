"""Interpolation on grids, beside SciPy's."""

import numpy as np
import pytest
import scipy.interpolate

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.interpolate import RegularGridInterpolator, interpn

RNG = np.random.default_rng(0)
GRID = np.array([0.0, 1, 3]), np.array([-1.0, 0.5, 2, 2.5])
VALUES = RNG.normal(size=(3, 4, 2))
POINTS = RNG.uniform(-0.5, 3.2, (30, 2))


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [None, 7.0, np.nan])
def test_interpolation_agrees_with_scipy(method: str, fill: float | None) -> None:
    with fxflow.config.override(x64=True):
        for values in (VALUES, VALUES[..., 0]):
            ours = RegularGridInterpolator(GRID, values, method, False, fill)
            theirs = scipy.interpolate.RegularGridInterpolator(
                GRID, values, method, False, fill
            )
            want = theirs(POINTS)
            np.testing.assert_allclose(ours(POINTS), want, 1e-10)
            np.testing.assert_allclose(ours(tuple(POINTS.T)), want, 1e-10)
            np.testing.assert_allclose(fxflow.jit(ours)(POINTS), want, 1e-10)
            np.testing.assert_allclose(ours(POINTS[3]), theirs(POINTS[3]), 1e-10)
            knots = np.array([[0, -1], [1, 0.5], [3, 2.5]])
            np.testing.assert_allclose(ours(knots), theirs(knots), 1e-10)
        line = RegularGridInterpolator((GRID[1],), VALUES[0, :, 0])
        want = np.interp(POINTS[:5, 0] / 2, GRID[1], VALUES[0, :, 0])
        np.testing.assert_allclose(line(POINTS[:5, 0] / 2), want, 1e-10)
        assert np.isnan(ours(np.array([[np.nan, 0.0]]))).all()


def test_derivatives_and_trees() -> None:
    with fxflow.config.override(x64=True):
        f = RegularGridInterpolator(GRID, VALUES[..., 0])
        x = np.array([0.3, 0.1])
        slope = fxflow.grad(lambda x: f(x)[0])(x)
        h = 1e-6
        for k in range(2):
            step = np.eye(2)[k] * h
            want = (float(f(x + step)[0]) - float(f(x - step)[0])) / (2 * h)
            assert float(slope[k]) == pytest.approx(want, 1e-6)
        total = fxflow.jit(fxflow.grad(lambda f: f(x)[0]))(f)
        assert float(total.values.sum()) == pytest.approx(1)


def test_invalid_methods_grids_and_points_are_refused() -> None:
    with pytest.raises(ArgumentError):
        RegularGridInterpolator(GRID, VALUES, "other")
    with pytest.raises(ShapeError, match="at least 4 points"):
        RegularGridInterpolator(GRID, VALUES, "cubic")
    with pytest.raises(ShapeError):
        RegularGridInterpolator(GRID, VALUES[:2])
    with pytest.raises(ShapeError):
        RegularGridInterpolator(GRID, VALUES)(np.zeros((4, 3)))


@pytest.mark.parametrize("flipped", [(True, False), (False, True), (True, True)])
def test_descending_axes(flipped: tuple[bool, bool]) -> None:
    grid = tuple(g[::-1] if f else g for g, f in zip(GRID, flipped, strict=True))
    want = scipy.interpolate.RegularGridInterpolator(grid, VALUES, "linear", False)
    with fxflow.config.override(x64=True):
        expected = want(POINTS)
        ours = RegularGridInterpolator(grid, VALUES)
        np.testing.assert_allclose(ours(POINTS), expected, 1e-10)
        traced = fxflow.jit(lambda x, y, v, p: RegularGridInterpolator((x, y), v)(p))
        np.testing.assert_allclose(traced(*grid, VALUES, POINTS), expected, 1e-10)
    for points in ([0.0, 2.0, 1.0], [0.0, 0.0, 1.0], [0.0, np.nan, 1.0]):
        with pytest.raises(ArgumentError, match="axis 0 must be strictly ascending"):
            RegularGridInterpolator((np.array(points),), np.zeros(3))


FINE = np.sort(RNG.uniform(size=6)), np.sort(RNG.uniform(size=7))


@pytest.mark.parametrize("method", ["slinear", "cubic", "quintic", "pchip"])
def test_smooth_methods_agree_with_scipy(method: str) -> None:
    inside = RNG.uniform([g[0] for g in FINE], [g[-1] for g in FINE], (9, 2))
    points = np.concatenate([inside, [[5.0, 5.0], [np.nan, 0.5]]])
    # SciPy solves for the coefficients by iterations, to 1e-6 or so.
    near = 2e-3 if method in ("cubic", "quintic") else 1e-9
    with fxflow.config.override(x64=True):
        for values in (RNG.normal(size=(6, 7)), RNG.normal(size=(6, 7, 2))):
            ours = RegularGridInterpolator(FINE, values, method, False)
            theirs = scipy.interpolate.RegularGridInterpolator(
                FINE, values, method, False
            )
            expected = theirs(points)
            np.testing.assert_allclose(ours(points), expected, near, near)
            got = fxflow.jit(lambda p, ours=ours: ours(p))(points)
            np.testing.assert_allclose(got, ours(points), 1e-12, 1e-12)
        # A line's spline is solved for exactly.
        line = [
            module.RegularGridInterpolator(FINE[:1], values[:, 0], method)
            for module in (fxflow.scipy.interpolate, scipy.interpolate)
        ]
        np.testing.assert_allclose(line[0](inside[:, 0]), line[1](inside[:, 0]), 1e-9)
        slope = fxflow.grad(lambda x: ours(x)[0, 0])(inside[0])
        step = np.array([1e-6, 0.0])
        low, high = ours(inside[0] - step)[0, 0], ours(inside[0] + step)[0, 0]
        np.testing.assert_allclose(slope[0], (high - low) / 2e-6, 1e-4, 1e-6)


def test_points_outside_are_an_error_where_it_is_asked_for() -> None:
    inside, outside = np.array([[0.5, 0.0]]), np.array([[0.5, 0.0], [9.0, 0.0]])
    f = RegularGridInterpolator(GRID, VALUES, bounds_error=True)
    np.testing.assert_allclose(f(inside), interpn(GRID, VALUES, inside), 1e-6)
    for call in (f, lambda p: interpn(GRID, VALUES, p)):
        with pytest.raises(ArgumentError, match="1 points outside"):
            call(outside)
        with pytest.raises(ConcretizationError, match="bounds_error=False"):
            fxflow.jit(call)(inside)
    assert np.isnan(interpn(GRID, VALUES, outside, bounds_error=False)[1]).all()
    assert (interpn(GRID, VALUES, outside, "nearest", False, None)[1] < 9).all()
    for points in (1.5, None, 1j):
        with pytest.raises(ArgumentError, match="points must be a tuple"):
            interpn(points, VALUES, inside)
    with pytest.raises(ShapeError, match="each axis must have"):
        interpn((), VALUES, inside)
    with pytest.raises(ArgumentError, match="method must be one of"):
        interpn(GRID, VALUES, inside, ["linear"])
    with pytest.raises(ArgumentError, match="bounds_error must be a bool"):
        interpn(GRID, VALUES, inside, bounds_error=np.array([True, False]))
