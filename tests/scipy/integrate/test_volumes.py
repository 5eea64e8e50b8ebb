"""Integrals over boxes beside SciPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import integrate
from fxflow.scipy.stats import qmc


def _bell(m: Any) -> Any:
    return lambda x: m.exp(-m.sum(x * x, -1))[:, None] * m.cos(x)


@pytest.mark.parametrize(
    "rule",
    [
        "genz-malik",
        *(pytest.param(r, marks=pytest.mark.slow) for r in ("gk15", "gk21")),
    ],
)
def test_boxes_are_divided_as_scipy_does(rule: str) -> None:
    a, b = [0.0, 0.5], [1.0, 2.0]
    exact = want.cubature(_bell(np), a, b, rule=rule, rtol=1e-7)
    with fxflow.config.override(x64=True):
        got = integrate.cubature(_bell(fnp), a, b, rule=rule, rtol=1e-7)
        np.testing.assert_allclose(got.estimate, exact.estimate, 1e-12)
        np.testing.assert_allclose(got.error, exact.error, 0.1, 1e-12)
        assert got.success and got.status == exact.status
        assert got.subdivisions == exact.subdivisions


def test_three_variables_and_infinite_bounds() -> None:
    with fxflow.config.override(x64=True):
        got = integrate.cubature(
            lambda x: fnp.exp(-fnp.sum(x * x, 1)),
            [-fnp.inf, fnp.inf],
            [fnp.inf, 0.0],
            rule="genz-malik",
            rtol=1e-5,
        )
        np.testing.assert_allclose(got.estimate, -math.pi / 2, 1e-5)
        cube = integrate.cubature(
            lambda x: fnp.prod(x, 1) ** 2, [0.0] * 3, [1.0] * 3, rule="genz-malik"
        )
        np.testing.assert_allclose(cube.estimate, 1 / 27, 1e-10)


@pytest.mark.slow
def test_corners_at_points() -> None:
    with fxflow.config.override(x64=True):
        kink = lambda x: fnp.sum(fnp.abs(x - 0.3), -1)
        got = integrate.cubature(kink, [0.0, 0.0], [1.0, 1.0], points=[[0.3, 0.3]])
        assert got.success and got.subdivisions == 0
        np.testing.assert_allclose(got.estimate, 0.58, 1e-12)


def test_derivatives_by_bounds_and_arguments() -> None:
    def volume(p: Any, b: Any) -> Any:
        def wave(x: Any) -> Any:
            return fnp.sin(p * fnp.sum(x, 1))

        return integrate.cubature(
            wave, [0.0, 0.0], fnp.stack([1.0, b]), rule="genz-malik", rtol=1e-6
        ).estimate

    def exact(p: float, b: float) -> float:
        parts = math.sin(p) + math.sin(p * b) - math.sin(p * (1 + b))
        return parts / p**2

    with fxflow.config.override(x64=True):
        slopes = fxflow.jit(fxflow.grad(volume, (0, 1)))(1.3, 0.7)
        size = 1e-5
        by_p = (exact(1.3 + size, 0.7) - exact(1.3 - size, 0.7)) / (2 * size)
        by_b = (exact(1.3, 0.7 + size) - exact(1.3, 0.7 - size)) / (2 * size)
        np.testing.assert_allclose(slopes, [by_p, by_b], 1e-5)


def test_a_search_that_ends_early_says_so() -> None:
    rough = integrate.cubature(
        lambda x: fnp.sin(50 * fnp.prod(x, 1)),
        *([0.0, 0.0], [3.0, 3.0]),
        rule="genz-malik",
        max_subdivisions=2,
    )
    assert not rough.success and rough.status == "not_converged"
    assert rough.subdivisions == 2


@pytest.mark.parametrize("engine", [qmc.Halton, qmc.Sobol])
def test_random_points(engine: Any) -> None:
    key = fxflow.random.key(3)
    bell = lambda x: fnp.exp(-fnp.sum(x * x, 0))
    side = math.sqrt(math.pi) / 2 * math.erf(1)
    got = integrate.qmc_quad(bell, [0.0, 1.0], [1.0, 0.0], qrng=engine, key=key)
    assert abs(got.integral + side**2) < 5 * got.standard_error < 0.01
    log = integrate.qmc_quad(
        lambda x: -fnp.sum(x * x, 0), [0.0, 0.0], [1.0, 1.0], log=True, key=key
    )
    np.testing.assert_allclose(log.integral, 2 * math.log(side), rtol=1e-2)
    assert log.standard_error < -5


def test_bad_boxes_are_refused() -> None:
    one = lambda x: fnp.ones(len(x))
    with pytest.raises(ArgumentError, match="must be gk21, gk15 or genz-malik"):
        integrate.cubature(one, [0.0], [1.0], rule="gk31")
    with pytest.raises(ArgumentError, match="genz-malik needs two variables"):
        integrate.cubature(one, [0.0], [1.0], rule="genz-malik")
    with pytest.raises(ShapeError, match="vectors of one length"):
        integrate.cubature(one, [0.0, 1.0], [1.0])
    with pytest.raises(DtypeError, match="bounds must be real"):
        integrate.cubature(one, [0.0], [1j])
    with pytest.raises(ShapeError, match="a row for each of the points"):
        integrate.cubature(lambda x: fnp.ones(()), [0.0], [1.0])
    with pytest.raises(ArgumentError, match="must be known, not traced"):
        fxflow.jit(lambda a: integrate.cubature(one, a, [1.0], points=[[0.5]]))([0.0])
    with pytest.raises(ShapeError, match="must return f32"):
        integrate.qmc_quad(
            lambda x: x, [0.0], [1.0], n_points=8, key=fxflow.random.key(0)
        )
    with pytest.raises(ArgumentError, match="n_estimates must be at least 2"):
        integrate.qmc_quad(one, [0.0], [1.0], n_estimates=1, key=fxflow.random.key(0))
