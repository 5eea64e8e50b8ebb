"""Rational functions beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(32)
X = np.sort(RNG.uniform(-1, 1, 12))
AT = RNG.uniform(-1, 1, (2, 3))


def test_blended_polynomials_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for d in (0, 1, 3, 11):
            for shape, axis in (((12,), 0), ((2, 12), 1)):
                y = RNG.normal(size=shape)
                f = interpolate.FloaterHormannInterpolator(X, y, d=d, axis=axis)
                g = want.FloaterHormannInterpolator(X, y, d=d, axis=axis)
                got, expected = f(AT[0]), g(AT[0])
                assert got.shape == expected.shape
                np.testing.assert_allclose(got, expected, 1e-8, 1e-8)
        y = RNG.normal(size=12)
        f = interpolate.FloaterHormannInterpolator(X[::-1], y[::-1])
        g = want.FloaterHormannInterpolator(X, y)
        np.testing.assert_allclose(f(X), y, 1e-12)
        for ours, theirs in ((f.poles(), g.poles()), (f.roots(), g.roots())):
            near = np.abs(theirs) < 1e3
            apart = np.abs(theirs[near, None] - np.asarray(ours)).min(1)
            assert apart.max() < 1e-6
        slope = fxflow.grad(
            lambda y: interpolate.FloaterHormannInterpolator(X, y)(0.3)
        )(y)
        assert float((slope * y).sum()) == pytest.approx(float(f(0.3)), 1e-9)
        jitted = fxflow.jit(
            lambda x, t: interpolate.FloaterHormannInterpolator(x, y)(t)
        )
        np.testing.assert_allclose(jitted(X, AT), g(AT), 1e-9, 1e-9)


def test_aaa_finds_poles_zeros_and_residues() -> None:
    x = np.linspace(-1, 1, 200)
    with fxflow.config.override(x64=True):
        for run in (
            lambda x: np.tan(2 * x),
            lambda x: (x - 0.3) / ((x - 1.5) * (x + 2)),
            lambda x: np.exp(x) / (1 + 4 * x**2),
        ):
            f = interpolate.AAA(x, run(x))
            np.testing.assert_allclose(f(AT), run(AT), 1e-8, 1e-9)
            np.testing.assert_allclose(
                fxflow.jit(lambda f, t: f(t))(f, AT), f(AT), 1e-12
            )
        f = interpolate.AAA(x, (x - 0.3) / ((x - 1.5) * (x + 2)))
        np.testing.assert_allclose(np.sort(f.poles().real), [-2, 1.5], 1e-8)
        zeros = f.roots()
        assert np.abs(np.asarray(zeros) - 0.3).min() < 1e-9
        order = np.argsort(f.poles().real)
        expected = [(-2 - 0.3) / -3.5, 1.2 / 3.5]
        np.testing.assert_allclose(f.residues()[order].real, expected, 1e-7)
        g = want.AAA(x, np.tan(2 * x))
        assert len(interpolate.AAA(x, np.tan(2 * x)).errors) <= len(g.errors) + 1
        z = np.exp(2j * np.pi * np.arange(50) / 50)
        h = interpolate.AAA(z, 1 / (z - 2j))
        np.testing.assert_allclose(h.poles(), [2j], 1e-9, 1e-9)
        slope = fxflow.grad(lambda t: interpolate.AAA(x, np.exp(x))(t))(0.21)
        assert float(slope) == pytest.approx(np.exp(0.21), 1e-6)
    assert interpolate.AAA(x, np.ones(200))(0.5) == 1


def test_bad_functions_are_refused() -> None:
    blended = interpolate.FloaterHormannInterpolator
    refused: list[tuple[Any, Any, str]] = [
        (
            ArgumentError,
            lambda: blended(X, X, d=12),
            "d must",
        ),
        (
            ArgumentError,
            lambda: blended([0.0, 0.0], [1.0, 1.0], d=0),
            "different",
        ),
        (ShapeError, lambda: interpolate.AAA(X, X[:3]), "12 elements"),
        (ArgumentError, lambda: interpolate.AAA([0.0, np.inf], [1.0, 1.0]), "finite"),
        (ConcretizationError, lambda: fxflow.jit(interpolate.AAA)(X, X), "support"),
        (ShapeError, lambda: interpolate.AAA(X, np.ones((12, 2))), "vector"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
