"""Integrals of functions beside SciPy's and closed forms."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError
from fxflow.scipy import integrate

INTEGRALS: list[tuple[Callable[[Any], Any], float, float, float]] = [
    (lambda x: fnp.exp(-x), 0.0, math.inf, 1.0),
    (lambda x: fnp.exp(x), -math.inf, 0.0, 1.0),
    (lambda x: fnp.exp(-x * x), -math.inf, math.inf, math.sqrt(math.pi)),
    (lambda x: fnp.exp(-x * x), math.inf, -math.inf, -math.sqrt(math.pi)),
    (lambda x: fnp.exp(-x), math.inf, 0.0, -1.0),
    (lambda x: 1 / (1 + x * x), -math.inf, math.inf, math.pi),
    (lambda x: 1 / fnp.sqrt(x), 0.0, 1.0, 2.0),
    (lambda x: fnp.log(x), 0.0, 1.0, -1.0),
    (lambda x: fnp.cos(20 * x), 1.0, -2.0, (math.sin(20) + math.sin(40)) / -20),
    (lambda x: 1 / (1e-3 + x * x), -1.0, 1.0, 2 * math.atan(1e3**0.5) * 1e3**0.5),
    (lambda x: x**3, 2.0, 2.0, 0.0),
]


@pytest.mark.parametrize("case", range(len(INTEGRALS)))
def test_integrals_of_closed_form(case: int) -> None:
    func, a, b, value = INTEGRALS[case]
    with fxflow.config.override(x64=True):
        got, error, info = integrate.quad(func, a, b, full_output=True)
        assert abs(got - value) <= max(float(error), 1e-14)
        assert error < 1e-7 * max(1, abs(value)) and info["converged"]


def test_single_precision_stops_at_its_rounding() -> None:
    got, error, info = integrate.quad(fnp.cos, 0.0, 1.0, full_output=True)
    assert got.dtype == np.float32 and info["converged"] and info["last"] == 1
    assert abs(got - math.sin(1)) < 1e-6 and error < 1e-5


def test_limits_and_points() -> None:
    with fxflow.config.override(x64=True):

        def kink(x: Any) -> Any:
            return abs(x - 0.3) + fnp.where(x < 0.6, 1.0, 0.0)

        got, _, info = integrate.quad(kink, 0, 1, points=[0.3, 0.6], full_output=True)
        np.testing.assert_allclose(got, (0.09 + 0.49) / 2 + 0.6, 1e-12)
        assert info["last"] == 3
        down = integrate.quad(kink, 1, 0, points=[0.3, 0.6])[0]
        np.testing.assert_allclose(down, -got, 1e-12)
        rough = integrate.quad(kink, 0, 1, limit=2, full_output=True)
        assert not rough[2]["converged"] and rough[2]["last"] == 2


def test_derivatives_by_bounds_arguments_and_closures() -> None:
    def area(p: Any, a: Any, b: Any) -> Any:
        return integrate.quad(lambda x: fnp.sin(p * x), a, b)[0]

    def passed(p: Any, a: Any, b: Any) -> Any:
        return integrate.quad(lambda x, p: fnp.sin(p * x), a, b, (p,))[0]

    with fxflow.config.override(x64=True):
        for f in (area, passed):
            p, a, b = 3.0, 0.2, 1.5
            slopes = fxflow.jit(fxflow.grad(f, (0, 1, 2)))(p, a, b)
            by_p = b * math.sin(p * b) / p + math.cos(p * b) / p**2
            by_p -= a * math.sin(p * a) / p + math.cos(p * a) / p**2
            expected = [by_p, -math.sin(p * a), math.sin(p * b)]
            np.testing.assert_allclose(slopes, expected, 1e-10)
        second = fxflow.grad(fxflow.grad(area))(3.0, 0.0, 1.0)
        exact, _ = want.quad(lambda x: -x * x * np.sin(3 * x), 0, 1)
        np.testing.assert_allclose(second, exact, 1e-9)
        tail = fxflow.grad(
            lambda s: integrate.quad(lambda x: fnp.exp(-s * x), 0.0, fnp.inf)[0]
        )(2.0)
        np.testing.assert_allclose(tail, -0.25, 1e-7)
        many = fxflow.vmap(lambda b: area(2.0, 0.0, b))(np.array([0.5, 1.0]))
        np.testing.assert_allclose(many, (1 - np.cos([1.0, 2.0])) / 2)


def test_fixed_quad_agrees_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for n in (1, 5, 9):
            got, _ = integrate.fixed_quad(fnp.exp, 0.0, 2.0, n=n)
            expected, _ = want.fixed_quad(np.exp, 0.0, 2.0, n=n)
            np.testing.assert_allclose(got, expected, 1e-12)
        slope = fxflow.grad(lambda b: integrate.fixed_quad(fnp.exp, 0.0, b)[0])(1.0)
        np.testing.assert_allclose(slope, math.e, 1e-8)


def test_bad_integrals_are_refused() -> None:
    with pytest.raises(ArgumentError, match="limit must be at least 1"):
        integrate.quad(fnp.cos, 0.0, 1.0, limit=0)
    with pytest.raises(ArgumentError, match="epsabs"):
        integrate.quad(fnp.cos, 0.0, 1.0, epsabs=0, epsrel=0)
    with pytest.raises(ArgumentError, match="finite bounds"):
        integrate.quad(fnp.cos, 0.0, fnp.inf, points=[1.0])
    with pytest.raises(DtypeError, match="func must return a real number"):
        integrate.quad(lambda x: fnp.exp(1j * x), 0.0, 1.0)
    with pytest.raises(ArgumentError, match="n must be at least 1"):
        integrate.fixed_quad(fnp.exp, 0.0, 1.0, n=0)


@pytest.mark.parametrize("rn", [1, 2, 3, 8, [0, 0.5, 2.0], [0.0, 1.0, 2.0]])
def test_newton_and_cotes_rules_are_those_of_scipy(rn: Any) -> None:
    with fxflow.config.override(x64=True):
        weights, factor = integrate.newton_cotes(rn)
        expected = want.newton_cotes(np.asarray(rn) if isinstance(rn, list) else rn)
        np.testing.assert_allclose(weights, expected[0], 1e-9)
        np.testing.assert_allclose(factor, expected[1], 1e-6, 1e-12)
        with pytest.raises(ArgumentError, match="must go from 0 to N = 1"):
            integrate.newton_cotes([0.0, 2.0])
