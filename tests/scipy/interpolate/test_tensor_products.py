"""Polynomials and splines of several variables beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.interpolate import NdBSpline, NdPPoly

RNG = np.random.default_rng(0)
POINTS = [np.array([0.0, 0.4, 1.0]), np.array([-1.0, 0.0, 0.5, 2.0])]
KNOTS = (np.r_[[0] * 4, 0.3, 0.6, [1] * 4], np.r_[[0] * 3, 0.5, [1] * 3])
AT = RNG.random((5, 3, 2)) * 1.4 - 0.2


def close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got, expected, 1e-9, 1e-9)


def test_polynomials_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for c in (RNG.normal(size=(3, 4, 2, 3, 2)), 1j * RNG.normal(size=(3, 4, 2, 3))):
            ours, theirs = NdPPoly(c, POINTS), want.NdPPoly(c, POINTS)
            close(ours(AT), theirs(AT))
            close(ours(AT, (1, 2)), theirs(AT, (1, 2)))
            close(ours(AT, extrapolate=False), theirs(AT, extrapolate=False))
            close(ours((AT[..., 0], AT[..., 1])), theirs(AT))
            close(ours.antiderivative((1, 2))(AT), theirs.antiderivative((1, 2))(AT))
            box = [(0.1, 0.9), (-0.5, 1.5)]
            close(ours.integrate(box), theirs.integrate(box))
            one, other = (f.integrate_1d(0.1, 0.7, 1) for f in (ours, theirs))
            close(one(AT[..., :1]), other(AT[..., :1]))
        line = RNG.normal(size=(3, 2))
        ours, theirs = (s(line, POINTS[:1]) for s in (NdPPoly, want.NdPPoly))
        close(ours.integrate_1d(0.1, 0.7, 0), theirs.integrate_1d(0.1, 0.7, 0))


def test_splines_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        c = RNG.normal(size=(6, 4, 2))
        ours, theirs = (s(KNOTS, c, (3, 2)) for s in (NdBSpline, want.NdBSpline))
        close(ours(AT), theirs(AT))
        close(ours(AT, nu=(1, 2)), theirs(AT, nu=(1, 2)))
        close(ours(AT, nu=(4, 0)), 0 * theirs(AT))
        close(ours(AT, extrapolate=False), theirs(AT, extrapolate=False))
        close(ours.derivative((1, 1))(AT), theirs.derivative((1, 1))(AT))
        inside = RNG.random((7, 2))
        rows = NdBSpline.design_matrix(inside, KNOTS, (3, 2))
        close(rows @ c.reshape(24, 2), ours(inside))
        with pytest.raises(ArgumentError, match="beyond"):
            NdBSpline.design_matrix(inside + 1, KNOTS, (3, 2), extrapolate=False)


def test_they_have_derivatives_and_compile() -> None:
    with fxflow.config.override(x64=True):
        c = RNG.normal(size=(6, 4))
        f, inside = NdBSpline(KNOTS, c, (3, 2)), RNG.random((4, 2))
        slopes = fxflow.jit(fxflow.vmap(fxflow.grad(lambda x: f(x))))(inside)
        close(slopes[:, 0], f(inside, nu=(1, 0)))
        close(slopes[:, 1], f(inside, nu=(0, 1)))
        g = NdPPoly(RNG.normal(size=(3, 4, 2, 3)), POINTS)
        bend = fxflow.jit(fxflow.hessian(lambda x: g(x)))(inside[0])
        close(bend[0, 1], g(inside[0], (1, 1)))
        made = fxflow.jit(lambda g, f: (g(inside), f(inside)))(g, f)
        close(made[1], f(inside))
        by = fxflow.grad(lambda c: NdBSpline(KNOTS, c, (3, 2))(inside).sum())(c)
        close((by * c).sum(), f(inside).sum())


def test_bad_parts_are_refused() -> None:
    f = NdPPoly(RNG.normal(size=(3, 4, 2, 3)), POINTS)
    g = NdBSpline(KNOTS, RNG.normal(size=(6, 4)), (3, 2))
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: NdPPoly(np.ones((3, 4, 2, 2)), POINTS), "c must be"),
        (
            ArgumentError,
            lambda: NdPPoly(np.ones((1, 2)), [POINTS[0][::-1]]),
            "ascending",
        ),
        (ShapeError, lambda: f(AT[..., :1]), "2 coordinates"),
        (ArgumentError, lambda: f(AT, (1,)), "2 orders"),
        (ArgumentError, lambda: f(AT, (1, -1)), "nu"),
        (ArgumentError, lambda: f.integrate([(0, 1)]), "ranges"),
        (ArgumentError, lambda: NdBSpline(KNOTS, g.c, (3, 2, 1)), "k must be"),
        (ArgumentError, lambda: NdBSpline(KNOTS[0], g.c, 3), "tuple"),
        (ShapeError, lambda: NdBSpline(KNOTS, g.c, 3), "2 k"),
        (ShapeError, lambda: NdBSpline(KNOTS, g.c[1:], (3, 2)), "c must have"),
        (
            ArgumentError,
            lambda: NdBSpline((KNOTS[0][::-1], KNOTS[1]), g.c, (3, 2)),
            "descend",
        ),
        (ArgumentError, lambda: g(AT, nu=(0, -1)), "nu"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
