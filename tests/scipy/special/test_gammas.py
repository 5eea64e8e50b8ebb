"""The gamma function and its family against SciPy."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special
from tests.numpy.oracle import same
from tests.scipy.special import suite
from tests.scipy.special.suite import P, X

ONE: dict[str, Any] = {
    "gammaln": X,
    "gammasgn": X,
    "gamma": X,
    "digamma": X,
    "factorial": P,
}
TWO: dict[str, Any] = {
    "beta": (P, P[:, None]),
    "betaln": (P, P[:, None]),
    "gammainc": (P, P[:, None]),
    "gammaincc": (P, P[:, None]),
    "poch": (P, P[:, None]),
    "zeta": (P + 1.5, P[:, None]),
    "polygamma": (np.arange(4), P[:, None]),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument_agree_with_scipy(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    suite.two_arguments(name, *TWO[name])


@pytest.mark.parametrize("name", ["gammasgn"])
def test_limits_agree_with_scipy(name: str) -> None:
    suite.edges(name)


def test_functions_of_several_arguments_agree_with_scipy() -> None:
    got = special.betainc(P, np.float32(2.0), np.float32(0.3))
    assert same(scipy.special.betainc(P, 2.0, 0.3), got, 1e-4)
    got = special.multigammaln(P + 2, 3)
    assert same(scipy.special.multigammaln(P + 2, 3), got, 1e-4)
    assert same(scipy.special.zeta(3.0), special.zeta(3.0), 1e-5)
    with pytest.raises(ArgumentError):
        special.multigammaln(P, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="math"):
        special.factorial(P, exact=True)
    assert special.psi is special.digamma


LARGE = np.array([1e-3, 0.5, 1, 2.5, 9.9, 10.1, 50, 1e3, 1e6, 1e8])


# SciPy itself is right to 2e-10 only.
@pytest.mark.parametrize(("wide", "tol"), [(False, 2e-5), (True, 1e-9)])
def test_betaln_of_large_arguments(wide: bool, tol: float) -> None:
    a, b = (v.ravel() for v in np.meshgrid(LARGE, LARGE))
    keep = np.maximum(a, b) / np.minimum(a, b) < 1e9
    a, b = (v[keep].astype("f8" if wide else "f4") for v in (a, b))
    with fxflow.config.override(x64=wide):
        want = scipy.special.betaln(a.astype("f8"), b.astype("f8"))
        for f in (special.betaln, fxflow.jit(special.betaln)):
            np.testing.assert_allclose(np.asarray(f(a, b)), want, tol, tol)
        first = fxflow.vmap(fxflow.grad(special.betaln, (0, 1)))
        second = fxflow.vmap(fxflow.hessian(special.betaln, (0, 1)))
        forward = fxflow.vmap(fxflow.jacfwd(special.betaln, (0, 1)))
        bends = second(a, b)
        # ψ(x) - ψ(x + y), which SciPy cannot subtract where y is much less than x.
        near = np.minimum(a, b) * 1e4 > np.maximum(a, b)
        for k, x in enumerate((a, b)):
            x, total = (v.astype("f8") for v in (x, a.astype("f8") + b))
            want = scipy.special.digamma(x) - scipy.special.digamma(total)
            for got in (first(a, b)[k], forward(a, b)[k]):
                got = np.asarray(got)
                np.testing.assert_allclose(got[near], want[near], 100 * tol)
                assert np.all(got < 0)
            want = scipy.special.polygamma(1, x) - scipy.special.polygamma(1, total)
            np.testing.assert_allclose(bends[k][k][near], want[near], 100 * tol)
        want = -scipy.special.polygamma(1, a.astype("f8") + b)
        np.testing.assert_allclose(bends[0][1], want, tol)
        np.testing.assert_allclose(bends[1][0], want, tol)


def test_beta_and_its_limits() -> None:
    assert float(special.beta(1e8, 1.0)) == pytest.approx(1e-8)
    assert float(fxflow.grad(special.betaln)(1e8, 1.0)) == pytest.approx(-1e-8)
    assert float(special.poch(1e6, 1.0)) == pytest.approx(1e6, 1e-5)
    assert float(special.betaln(-0.5, 1e8)) == pytest.approx(10.475852)
    for a, b in [(np.inf, 1.0), (2.0, np.inf)]:
        assert float(special.betaln(a, b)) == -np.inf
        assert float(special.beta(a, b)) == 0
    assert np.isnan(special.betaln(np.nan, 1.0))


def test_rising_factorials_at_poles() -> None:
    z, m = np.meshgrid(np.arange(-4.0, 3), np.arange(-4.0, 6))
    wanted = scipy.special.poch(z, m)
    known = np.isfinite(wanted)
    found = special.poch(z, m)
    np.testing.assert_allclose(found[known], wanted[known], 1e-5)
    np.testing.assert_array_equal(special.poch(np.array([-3.0, -1.0]), 0.5), [0, 0])


def test_beta_at_the_poles_of_its_factors() -> None:
    a = np.array([-2, -2.5, -2, -3, -3, -3, 1, -0.5, 0, 2.5, -2])
    b = np.array([1, 1.5, 2, 2, 3, 4, -2, 0.5, 1, -1.5, 1.5])
    with fxflow.config.override(x64=True):
        for name in ("beta", "betaln"):
            want = getattr(scipy.special, name)(a, b)
            for f in (getattr(special, name), fxflow.jit(getattr(special, name))):
                np.testing.assert_allclose(f(a, b), want, 1e-12)


def test_slopes_of_betaln_beside_a_tiny_argument() -> None:
    for a, b in ((3.0, 1e-18), (1e-3, 2e-13), (2.9e24, 4.0), (-2.5, -1e-6)):
        b32 = np.float32(b)
        slope = fxflow.grad(special.betaln)(np.float32(a), b32)
        want = -float(b32) * scipy.special.polygamma(1, a) if a < 1e9 else -b / a
        if a < 0:  # ψ'(a) by reflection
            wide = np.pi**2 / np.sin(np.pi * a) ** 2 - scipy.special.polygamma(1, 1 - a)
            want = -float(b32) * wide
        np.testing.assert_allclose(slope, want, 1e-4)


def test_gamma_to_some_units_of_the_last_place() -> None:
    rng = np.random.default_rng(27)
    x = np.concatenate(
        [rng.uniform(-160, 171, 90), 10 ** rng.uniform(-300, 0, 20), [171.6, -0.5]]
    )
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        want = np.array([float(mpmath.gamma(v)) for v in x])
        np.testing.assert_allclose(special.gamma(x), want, 2e-15, 1e-300)
        np.testing.assert_allclose(special.factorial(20.0), 2432902008176640000, 1e-15)
        second = fxflow.grad(fxflow.grad(special.gamma))(-0.5)
        rate = float(mpmath.diff(mpmath.gamma, -0.5, 2))
        assert float(second) == pytest.approx(rate, rel=1e-13)
        edges = np.array([-np.inf, -3.0, -0.0, 0.0, np.inf, 172, -1000.5, np.nan])
        np.testing.assert_array_equal(special.gamma(edges), scipy.special.gamma(edges))


def test_factorials_are_integers() -> None:
    whole = np.arange(17.0)
    exact = [float(math.factorial(n)) for n in range(17)]
    assert special.factorial(whole[:10]).tolist() == exact[:10]
    assert fxflow.jit(special.gamma)(whole[:10] + 1).tolist() == exact[:10]
    with fxflow.config.override(x64=True):
        assert special.gamma(whole + 1).tolist() == exact
        slopes = fxflow.vmap(fxflow.grad(special.gamma))(whole[:8] + 1)
        want = scipy.special.digamma(whole[:8] + 1) * exact[:8]
        np.testing.assert_allclose(slopes, want, 1e-13)
