"""Integrals of functions beside SciPy's and closed forms."""

import functools
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


WEIGHTED: list[tuple[Any, ...]] = [
    (lambda m: lambda x: m.exp(-x / 3) * x, 0.0, 3.0, "cos", 200.3),
    (lambda m: lambda x: 1 / m.sqrt(x + 1), 0.0, math.inf, "cos", 3.7),
    (lambda m: lambda x: 1 / (1 + x * x), -math.inf, 1.0, "sin", 0.7),
    (lambda m: m.exp, 1.0, 2.5, "alg", (-0.5, -0.9)),
    (lambda m: m.exp, 1.0, 2.5, "alg-loga", (0.7, 0.0)),
    (lambda m: m.exp, 1.0, 2.5, "alg-logb", (2, -0.3)),
    (lambda m: m.exp, 1.0, 2.5, "alg-log", (0.7, -0.3)),
    (lambda m: m.exp, -1.0, 2.0, "cauchy", 0.3),
    (lambda m: m.exp, 1.0, 0.0, "cauchy", 0.4),
    (lambda m: m.exp, 0.0, 1.0, "cauchy", 3.0),
]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(i, marks=[] if i in (0, 4, 7) else pytest.mark.slow)
        for i in range(len(WEIGHTED))
    ],
)
def test_weights_are_those_of_quadpack(case: int) -> None:
    make, a, b, weight, wvar = WEIGHTED[case]
    exact = want.quad(make(np), a, b, weight=weight, wvar=wvar)[0]
    with fxflow.config.override(x64=True):
        got, error, info = integrate.quad(
            make(fnp), a, b, full_output=True, weight=weight, wvar=wvar
        )
        assert info["converged"]
        assert abs(got - exact) <= max(float(error), 1e-9 * abs(exact))


def test_weights_have_derivatives_by_their_variable() -> None:
    def area(w: Any) -> Any:
        return integrate.quad(lambda x: fnp.exp(-x), 0.0, 2.0, weight="sin", wvar=w)[0]

    slope = fxflow.grad(area)(3.0)
    exact = want.quad(lambda x: x * np.exp(-x), 0, 2, weight="cos", wvar=3)[0]
    np.testing.assert_allclose(slope, exact, 1e-5)


@pytest.mark.slow
def test_singular_weights_have_derivatives() -> None:
    with fxflow.config.override(x64=True):

        def value(weight: str, *v: Any) -> Any:
            wvar = v if len(v) > 1 else v[0]
            return integrate.quad(fnp.exp, 0.5, 2.0, weight=weight, wvar=wvar)[0]

        for weight, v in (
            ("alg", (-0.4, 0.3)),
            ("alg-log", (0.2, 0.3)),
            ("cauchy", (1.1,)),
        ):
            first = functools.partial(value, weight)
            slopes = fxflow.jit(fxflow.grad(first, tuple(range(len(v)))))(*v)
            for i, slope in enumerate(slopes):
                up, down = (
                    want.quad(
                        np.exp,
                        *(0.5, 2.0),
                        weight=weight,
                        wvar=moved if len(v) > 1 else moved[0],
                    )[0]
                    for s in (1e-4, -1e-4)
                    for moved in [tuple(x + s * (j == i) for j, x in enumerate(v))]
                )
                np.testing.assert_allclose(slope, (up - down) / 2e-4, 1e-6)


def test_weights_that_mean_nothing_are_refused() -> None:
    for settings, message in (
        ({"weight": "tan", "wvar": 1.0}, "weight must be one of cos, sin, alg"),
        ({"weight": "alg", "wvar": 1.0}, "must be a pair"),
        ({"weight": "cos"}, "must be a number, got None"),
        ({"weight": "cos", "wvar": 1.0, "points": [0.5]}, "points or a weight"),
        ({"weight": "cos", "wvar": 1.0, "limlst": 2}, "limlst must be at least 8"),
    ):
        with pytest.raises(ArgumentError, match=message):
            integrate.quad(fnp.cos, 0.0, 1.0, **settings)
    with pytest.raises(ArgumentError, match="needs a finite bound"):
        integrate.quad(fnp.cos, -fnp.inf, fnp.inf, weight="cos", wvar=1.0)
    with pytest.raises(ArgumentError, match="needs finite bounds"):
        integrate.quad(fnp.cos, 0.0, fnp.inf, weight="cauchy", wvar=1.0)


def test_complex_functions() -> None:
    got, error, info = integrate.quad(
        lambda x: fnp.exp(1j * x), 0.0, 2.0, full_output=True, complex_func=True
    )
    np.testing.assert_allclose(got, (np.exp(2j) - 1) / 1j, 1e-5)
    assert error.real > 0 and error.imag > 0 and info["real"]["converged"]


def test_arrays_of_integrals() -> None:
    rates = np.arange(1.0, 4.0)

    def decays(rate: Any, b: Any = fnp.inf) -> Any:
        return integrate.quad_vec(lambda x, r: fnp.exp(-x * r), 0.0, b, args=(rate,))

    with fxflow.config.override(x64=True):
        value, error = decays(rates)
        np.testing.assert_allclose(value, 1 / rates, 1e-8)
        exact = want.quad_vec(lambda x: np.exp(-x * rates), 0, np.inf)
        assert 0 < error < 1e-7 and abs(exact[0] - value).max() < 1e-8
        slope = fxflow.jacrev(lambda r: decays(r)[0])(fnp.asarray(rates))
        np.testing.assert_allclose(np.diag(slope), -1 / rates**2, 1e-7)
        turned, _, info = integrate.quad_vec(
            lambda x: fnp.exp(1j * rates * x),
            *(0.0, 2.0),
            norm="max",
            points=[1.0],
            quadrature="gk15",
            full_output=True,
        )
        np.testing.assert_allclose(
            turned, (np.exp(2j * rates) - 1) / (1j * rates), 1e-9
        )
        assert info["neval"] == 15 * (2 * info["last"] - 2) and info["converged"]
    for settings, message in (
        ({"norm": "1"}, 'must be "2" or "max"'),
        ({"quadrature": "gk10"}, "one of gk21, gk15, trapezoid"),
        ({"limit": 0}, "limit must be at least 1"),
    ):
        with pytest.raises(ArgumentError, match=message):
            integrate.quad_vec(fnp.cos, 0.0, 1.0, **settings)
    with pytest.raises(DtypeError, match="bounds must be real numbers"):
        integrate.quad_vec(fnp.cos, 0.0, 1j)
