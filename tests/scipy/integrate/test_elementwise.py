"""Elementwise integrals and sums beside SciPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate as want
from scipy import special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError
from fxflow.scipy import integrate


def test_each_element_is_an_integral() -> None:
    a = np.array([1.0, -np.inf, -np.inf, 1.0, 3.0, 2.0])
    b = np.array([1.5, 1.0, np.inf, np.inf, 1.0, 2.0])
    c = np.array([[1.0], [0.3]])
    exact = want.tanhsinh(lambda x, c: np.exp(-c * x * x), a, b, args=(c,)).integral
    with fxflow.config.override(x64=True):

        @fxflow.jit  # where infinite bounds are not known
        def found(a: Any, b: Any) -> Any:
            return integrate.tanhsinh(lambda x, c: fnp.exp(-c * x * x), a, b, args=(c,))

        got = found(a, b)
        assert got.integral.shape == (2, 6) and bool(fnp.all(got.success))
        np.testing.assert_allclose(got.integral, exact, 1e-10, 1e-14)
        assert bool(fnp.all(got.error <= 1e-9))


def test_singular_ends_and_slow_tails() -> None:
    with fxflow.config.override(x64=True):
        power = np.array([-0.9, -0.5, 1.5])
        ends = integrate.tanhsinh(lambda x, p: x**p, 0.0, 1.0, args=(power,))
        np.testing.assert_allclose(ends.integral, 1 / (1 + power), 1e-9)
        assert bool(fnp.all(ends.success))
        tails = integrate.tanhsinh(
            lambda x, p: x**p, 1.0, fnp.inf, args=(fnp.asarray([-1.0, -1.5, 2.0]),)
        )
        assert tails.success.tolist() == [False, True, False]
        np.testing.assert_allclose(tails.integral[1], 2, 1e-9)


def test_derivatives_of_elements() -> None:
    def area(a: Any, b: Any, c: Any) -> Any:
        return fnp.sum(
            integrate.tanhsinh(lambda x, c: fnp.exp(-c * x), a, b, args=(c,)).integral
        )

    with fxflow.config.override(x64=True):
        a, b, c = 0.2, np.array([1.0, np.inf]), np.array([2.0, 3.0])
        slopes = fxflow.jit(fxflow.grad(area, (0, 2)))(
            a, fnp.asarray(b), fnp.asarray(c)
        )
        np.testing.assert_allclose(slopes[0], -np.exp(-c * a).sum(), 1e-9)
        exact = [
            want.quad(lambda x, c=c: -x * np.exp(-c * x), a, b)[0]
            for b, c in zip(b, c, strict=True)
        ]
        np.testing.assert_allclose(slopes[1], exact, 1e-9)


@pytest.mark.slow
def test_logarithms_of_integrals() -> None:
    with fxflow.config.override(x64=True):
        got = integrate.tanhsinh(
            lambda x: -x * x / 2 - 1000, -fnp.inf, fnp.inf, log=True, rtol=-20.0
        )
        assert got.success
        np.testing.assert_allclose(
            got.integral, math.log(2 * math.pi) / 2 - 1000, 1e-12
        )
        sums = integrate.nsum(lambda k: -2 * fnp.log(k) - 900, 1.0, fnp.inf, log=True)
        exact = math.log(math.pi**2 / 6) - 900
        assert sums.success
        np.testing.assert_allclose(sums.sum, exact, 1e-12)


def test_sums_beside_those_of_scipy() -> None:
    a = np.array([1.0, 2.0, 1.0, 5.0, 1.0])
    b = np.array([np.inf, 300.7, 5e6, 1.0, np.inf])
    step = np.array([1.0, 0.5, 1.0, 1.0, 2.0])
    with fxflow.config.override(x64=True):
        got = integrate.nsum(lambda k: 1 / k**2, a, b, step=step)
        exact = want.nsum(lambda k: 1 / k**2, a, b, step=step)
        np.testing.assert_allclose(got.sum, exact.sum, 1e-10)
        assert bool(fnp.all(got.success)) and got.sum[3] == 0


@pytest.mark.slow
def test_sums_to_both_sides_and_divergent_ones() -> None:
    with fxflow.config.override(x64=True):
        bell = integrate.nsum(lambda k: fnp.exp(-k * k / 9), -fnp.inf, fnp.inf)
        np.testing.assert_allclose(bell.sum, 3 * math.sqrt(math.pi), 1e-12)
        left = integrate.nsum(lambda k: 1 / (k - 1) ** 4, -fnp.inf, 0.0, step=0.5)
        exact = want.nsum(lambda k: 1 / (k - 1) ** 4, -np.inf, 0, step=0.5)
        np.testing.assert_allclose(left.sum, exact.sum, 1e-10)
        harmonic = integrate.nsum(lambda k: 1 / k, 1.0, fnp.inf)
        assert not harmonic.success
        signs = integrate.nsum(lambda k: fnp.cos(fnp.pi * k), 0.0, 1000.0)
        np.testing.assert_allclose(signs.sum, 1, 1e-9)
        none = integrate.nsum(lambda k: k, 0.0, 1.0, step=-1.0)
        assert fnp.isnan(none.sum) and none.status == -1
        slope = fxflow.grad(
            lambda p: integrate.nsum(lambda k, p: k**-p, 1.0, fnp.inf, args=(p,)).sum
        )(2.5)
        size = 1e-4
        exact = (special.zeta(2.5 + size) - special.zeta(2.5 - size)) / (2 * size)
        np.testing.assert_allclose(slope, exact, 1e-6)


def test_callbacks_and_first_levels() -> None:
    seen: list[Any] = []
    a, b = fnp.array([0.0, 1.0]), fnp.array([[1.0], [0.0]])
    kink = lambda x: fnp.abs(x - 0.3)
    found = integrate.tanhsinh(kink, a, b, minlevel=2, callback=seen.append)
    most = int(found.nfev.max())
    assert seen[0].nfev.tolist() == [[8 * 21] * 2] * 2
    # A division is two new intervals.
    assert len(seen) == 1 + (most - 8 * 21) // (2 * 21) > 5
    assert seen[-1].integral.shape == (2, 2)
    np.testing.assert_array_equal(seen[-1].nfev, found.nfev)
    np.testing.assert_allclose(seen[-1].integral, found.integral, 1e-6)
    np.testing.assert_allclose(found.integral, [[0.29, 0], [0, -0.29]], 1e-5)
    few = integrate.tanhsinh(kink, 0.0, 1.0, minlevel=9, maxlevel=1)
    assert int(few.nfev) == 2 * 21 and few.status == -2


@pytest.mark.slow
def test_callbacks_see_logarithms() -> None:
    seen: list[Any] = []
    log = integrate.tanhsinh(
        lambda x: fnp.log(1 + x),
        0.0,
        fnp.array([1.0, 2.0]),
        log=True,
        callback=seen.append,
    )
    np.testing.assert_allclose(seen[-1].integral, log.integral, 1e-6)
    np.testing.assert_allclose(log.integral, np.log(np.array([1.5, 4.0])), 1e-5)


def test_tolerances_of_sums() -> None:
    near = integrate.nsum(
        lambda k: k**-1.5, 1.0, fnp.inf, tolerances={"rtol": 1e-3}, maxterms=600
    )
    assert near.success
    np.testing.assert_allclose(near.sum, special.zeta(1.5), 1e-3)
    with pytest.raises(ArgumentError, match="tolerances are atol, rtol, got tol"):
        integrate.nsum(fnp.exp, 0.0, 1.0, tolerances={"tol": 1.0})


def test_bad_problems_are_refused() -> None:
    with pytest.raises(ArgumentError, match="maxlevel must be at least 1"):
        integrate.tanhsinh(fnp.exp, 0.0, 1.0, maxlevel=0)
    with pytest.raises(ArgumentError, match="must not be negative"):
        integrate.tanhsinh(fnp.exp, 0.0, 1.0, rtol=-1.0)
    with pytest.raises(DtypeError, match="bounds must be real"):
        integrate.tanhsinh(fnp.exp, 0.0, 1j)
    with pytest.raises(DtypeError, match="must return a real number for a number"):
        integrate.tanhsinh(lambda x: fnp.ones(3) * x, 0.0, 1.0)
    with pytest.raises(ArgumentError, match="maxterms must be at least 1"):
        integrate.nsum(fnp.exp, 0.0, 1.0, maxterms=0)
    with pytest.raises(DtypeError, match="must return a real number for a number"):
        integrate.nsum(lambda x: x + 1j, 0.0, 1.0)


@pytest.mark.slow
def test_many_integrals_in_groups() -> None:
    rng = np.random.default_rng(2)
    low, high = rng.uniform(-1, 0, 150), rng.uniform(1, 2, 150)
    high[::3], low[::5] = np.inf, -np.inf
    scale = rng.uniform(1, 2, 150)
    with fxflow.config.override(x64=True):
        f = lambda x, c: fnp.exp(-c * x * x)
        found = integrate.tanhsinh(f, low, high, args=(scale,))
        root = np.sqrt(scale)
        exact = special.erf(root * high) - special.erf(root * low)
        exact = np.sqrt(np.pi) / 2 / root * exact
        assert bool(found.success.all())
        np.testing.assert_allclose(found.integral, exact, 1e-11)
        slope = fxflow.grad(
            lambda c: integrate.tanhsinh(
                f, 0.0, fnp.ones(150), args=(c,)
            ).integral.sum()
        )(scale)
        step = 1e-6
        ends = [
            special.erf(np.sqrt(c)) / np.sqrt(c) for c in (scale + step, scale - step)
        ]
        change = np.sqrt(np.pi) / 2 * (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(slope, change, 1e-6)
