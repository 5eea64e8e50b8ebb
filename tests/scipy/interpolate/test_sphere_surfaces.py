"""Splines on the sphere beside SciPy's, their poles, derivatives and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import interpolate
from fxflow.scipy.interpolate import (
    LSQSphereBivariateSpline,
    RectSphereBivariateSpline,
    SmoothSphereBivariateSpline,
)

RNG = np.random.default_rng(0)
THETA, PHI = np.arccos(RNG.uniform(-0.99, 0.99, 90)), RNG.uniform(0, 2 * np.pi, 90)
R = np.cos(THETA) + np.sin(THETA) * np.cos(PHI - 1) + 0.1 * RNG.normal(size=90)
W = RNG.uniform(0.5, 2, 90)
TT, TP = np.array([1.0, 1.7, 2.2]), np.array([1.5, 3.0, 4.5])
AT = np.linspace(0, np.pi, 9), np.linspace(0, 6.2, 7)
U, V = np.array([0.3, 0.7, 1.2, 1.6, 2.1, 2.6]), np.linspace(-2.5, 3.0, 7)
GRID = RNG.normal(size=(6, 7))


def test_nearest_splines_on_knots_are_those_of_scipy() -> None:
    want = scipy.interpolate.LSQSphereBivariateSpline(THETA, PHI, R, TT, TP, W)
    with fxflow.config.override(x64=True):
        got = fxflow.jit(LSQSphereBivariateSpline)(THETA, PHI, R, TT, TP, W)
        for ours, theirs in zip(got.get_knots(), want.get_knots(), strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-12)
        np.testing.assert_allclose(got.get_coeffs(), want.get_coeffs(), 1e-8, 1e-9)
        np.testing.assert_allclose(got.get_residual(), want.get_residual(), 1e-9)
        np.testing.assert_allclose(got(*AT), want(*AT), 1e-9, 1e-9)
        for orders in ((1, 0), (0, 2), (1, 1)):
            np.testing.assert_allclose(
                got.ev(AT[0][:7], AT[1], *orders),
                want.ev(AT[0][:7], AT[1], *orders),
                1e-7,
                1e-8,
            )
        # Periodic, and one value at each pole.
        turned = got.ev(AT[0][:7], AT[1] - 4 * np.pi)
        np.testing.assert_allclose(turned, got.ev(AT[0][:7], AT[1]), 1e-9)
        np.testing.assert_allclose(np.ptp(np.asarray(got(0.0, AT[1]))), 0, atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_nearest_splines() -> None:
    with fxflow.config.override(x64=True):
        parts = (THETA, PHI, R, TT, TP, W)

        @fxflow.jit
        def value(theta: Any, phi: Any, r: Any, tt: Any, tp: Any, w: Any) -> Any:
            return LSQSphereBivariateSpline(theta, phi, r, tt, tp, w).ev(1.1, 2.3)

        ways = tuple(0.1 * np.random.default_rng(1).normal(size=p.shape) for p in parts)
        _, slope = fxflow.jvp(value, parts, ways)
        size = 1e-6
        ahead, back = (
            value(*(p + s * q for p, q in zip(parts, ways, strict=True)))
            for s in (size, -size)
        )
        np.testing.assert_allclose(slope, (ahead - back) / (2 * size), 1e-5)
        many = fxflow.vmap(lambda r: value(*parts[:2], r, *parts[3:]))(
            fnp.stack([R, 2 * R])
        )
        np.testing.assert_allclose(many[1], 2 * many[0], 1e-10)


@pytest.mark.slow
def test_smooth_splines_leave_a_sum_of_squares() -> None:
    with fxflow.config.override(x64=True):
        for s in (2.0, 0.6):
            got = SmoothSphereBivariateSpline(THETA, PHI, R, s=s)
            want = scipy.interpolate.SmoothSphereBivariateSpline(THETA, PHI, R, s=s)
            missed = np.asarray(got.ev(THETA, PHI)) - R
            np.testing.assert_allclose([got.fp, np.sum(missed**2)], s, 1e-8)
            for ours, theirs in zip(got.get_knots(), want.get_knots(), strict=True):
                np.testing.assert_allclose(ours, theirs)
            np.testing.assert_allclose(got(*AT), want(*AT), atol=0.1)
        few = (np.arange(4.0), np.arange(4.0), np.cos(np.arange(4.0)))
        flat = SmoothSphereBivariateSpline(*few, s=0.5)
        want = scipy.interpolate.SmoothSphereBivariateSpline(*few, s=0.5)
        assert flat.c.shape == (4, 4)
        np.testing.assert_allclose(flat.get_coeffs(), want.get_coeffs(), 1e-9)
        slope = fxflow.grad(
            lambda s: SmoothSphereBivariateSpline(THETA, PHI, R, s=s).fp
        )(1.0)
        np.testing.assert_allclose(slope, 1, 1e-6)
    with pytest.raises(ConcretizationError, match="give knots to LSQSphere"):
        fxflow.jit(SmoothSphereBivariateSpline)(THETA, PHI, R)


@pytest.mark.parametrize(
    "poles",
    [
        {"pole_values": (0.5, -1.0)},
        {"pole_values": (0.5, -1.0), "pole_continuity": True, "pole_flat": True},
        {"pole_values": 0.5, "pole_continuity": (True, False), "pole_flat": (True, 0)},
    ],
)
def test_splines_through_grids_are_those_of_scipy(poles: Any) -> None:
    theirs = {k: v if isinstance(v, tuple) else (v, v) for k, v in poles.items()}
    want = scipy.interpolate.RectSphereBivariateSpline(U, V, GRID, **theirs)
    with fxflow.config.override(x64=True):
        got = fxflow.jit(lambda r: RectSphereBivariateSpline(U, V, r, **poles))(GRID)
        for knots, given in zip(got.get_knots(), want.get_knots(), strict=True):
            np.testing.assert_allclose(knots, given, 1e-12)
        np.testing.assert_allclose(got(U, V), GRID, 1e-9, 1e-9)
        np.testing.assert_allclose(got.get_coeffs(), want.get_coeffs(), 1e-7, 1e-8)
        at = AT[0], np.linspace(-2.4, 3.7, 6)
        np.testing.assert_allclose(got(*at), want(*at), 1e-7, 1e-8)
        with pytest.raises(ArgumentError, match="theta must be from 0 to π"):
            got.ev(4.0, 1.0)


@pytest.mark.slow
def test_open_poles_are_smooth() -> None:
    with fxflow.config.override(x64=True):
        plane = lambda u, v: 2 + np.cos(u) + np.sin(u) * np.cos(v)
        u, v = np.linspace(0.2, 3.0, 12), np.linspace(-np.pi, 2.8, 12)
        r = plane(u[:, None], v)
        for continuity in (False, True):
            got = RectSphereBivariateSpline(u, v, r, pole_continuity=continuity)
            np.testing.assert_allclose(got(u, v), r, 1e-9)
            at = np.array([0.0, 0.1, 1.5, 3.1]), np.array([0.0, 2.0, 9.0])
            np.testing.assert_allclose(
                got(*at), plane(at[0][:, None], at[1]), atol=0.02
            )
        slope = fxflow.jit(
            fxflow.grad(
                lambda r: RectSphereBivariateSpline(u, v, r, pole_continuity=True).ev(
                    0.0, 1.0
                )
            )
        )(r)
        np.testing.assert_allclose(np.sum(np.asarray(slope)), 1, 1e-8)
        near = RectSphereBivariateSpline(
            u, v, r, 0.01, True, pole_values=(3.2, None), pole_exact=(True, False)
        )
        np.testing.assert_allclose(near.ev(0.0, 1.0), 3.2, 1e-9)
        np.testing.assert_allclose(
            [near.fp, np.sum((np.asarray(near(u, v)) - r) ** 2)], 0.01, 1e-6
        )
        loose = RectSphereBivariateSpline(u, v, r, 0.02, pole_values=(3.05, 1.1))
        ends = np.sum((np.asarray(loose([0.0, np.pi], 0.0))[:, 0] - [3.05, 1.1]) ** 2)
        inner = np.sum((np.asarray(loose(u, v)) - r) ** 2)
        np.testing.assert_allclose([loose.fp, ends + inner], 0.02, 1e-6)


def test_bad_points_are_refused() -> None:
    lsq = interpolate.LSQSphereBivariateSpline
    with pytest.raises(ArgumentError, match="theta must be from 0 to π"):
        lsq(THETA + 1, PHI, R, TT, TP)
    with pytest.raises(ArgumentError, match="phi must be from 0 to 2π"):
        lsq(THETA, PHI - 1, R, TT, TP)
    with pytest.raises(ShapeError, match="theta, phi, r and w must have one length"):
        lsq(THETA, PHI, R[1:], TT, TP)
    with pytest.raises(ArgumentError, match="weights must be positive"):
        lsq(THETA, PHI, R, TT, TP, -1.0)
    with pytest.raises(ArgumentError, match="tt must ascend inside of 0 … π"):
        lsq(THETA, PHI, R, TT[::-1], TP)
    with pytest.raises(ShapeError, match="tp must be a vector of knots"):
        lsq(THETA, PHI, R, TT, 3.0)
    with pytest.raises(ArgumentError, match="s too small"):
        SmoothSphereBivariateSpline(THETA[:40], PHI[:40], R[:40])
    with pytest.raises(ArgumentError, match="s must not be negative"):
        SmoothSphereBivariateSpline(THETA, PHI, R, s=-1.0)
    rect = RectSphereBivariateSpline
    with pytest.raises(ArgumentError, match="u must ascend inside of 0 … π"):
        rect(U[::-1], V, GRID)
    with pytest.raises(ArgumentError, match="v must ascend within a turn"):
        rect(U, V * 2, GRID)
    with pytest.raises(ShapeError, match=r"r must be float\[m\], float\[n\]"):
        rect(U, V, GRID.T)
    with pytest.raises(ShapeError, match="at least 4 angles"):
        rect(U[:3], V, GRID[:3])
    with pytest.raises(ArgumentError, match="a flat pole must have a continuous"):
        rect(U, V, GRID, pole_flat=True)
    with pytest.raises(ArgumentError, match="an exact pole must have a value"):
        rect(U, V, GRID, pole_exact=True)
    with pytest.raises(ArgumentError, match="pole_values must be one or two"):
        rect(U, V, GRID, pole_values=(1.0, 2.0, 3.0))
