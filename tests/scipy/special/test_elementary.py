"""Elementary functions and losses against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from fxflow.scipy import special

RNG = np.random.default_rng(27)
WIDE = RNG.choice([-1, 1], 40) * 10 ** RNG.uniform(-12, 1, 40)
EDGES = np.array([-np.inf, -3.0, -1.0, -0.0, 0.0, 1.0, 2.0, np.inf, np.nan])
TAILS = np.concatenate(
    [10 ** RNG.uniform(-250, 0, 30), 2 - 10 ** RNG.uniform(-9, 0, 9)]
)
# Arguments, and the derivative.
ONE: dict[str, tuple[Any, Any]] = {
    "cbrt": (WIDE, lambda x: np.cbrt(x) / (3 * x)),
    "exp2": (WIDE, lambda x: np.exp2(x) * np.log(2)),
    "expm1": (WIDE, np.exp),
    "log1p": (abs(WIDE), lambda x: 1 / (1 + x)),
    "cosm1": (WIDE, lambda x: -np.sin(x)),
    "sinc": (
        WIDE[abs(WIDE) > 0.01],
        lambda x: (np.cos(np.pi * x) - np.sinc(x)) / x,
    ),
    "rgamma": (WIDE, lambda x: -scipy.special.psi(x) * scipy.special.rgamma(x)),
    "erfcinv": (
        TAILS,
        lambda x: -np.sqrt(np.pi) / 2 * np.exp(scipy.special.erfcinv(x) ** 2),
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_agree_with_scipy(name: str) -> None:
    x, slope = ONE[name]
    function, theirs = getattr(special, name), getattr(scipy.special, name, np.sinc)
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        np.testing.assert_allclose(function(x), theirs(x), 2e-14)
        edges = EDGES
        if name == "rgamma":  # at -inf: SciPy differs between its versions
            edges = EDGES[1:]
        np.testing.assert_allclose(function(edges), theirs(edges), 2e-14)
        got = fxflow.vmap(fxflow.grad(function))(x)
        np.testing.assert_allclose(got, slope(x), 1e-11, 1e-13)
    narrow = x[abs(x) > 1e-30].astype(np.float32)
    got = function(narrow)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, theirs(narrow.astype(float)), 3e-6, 1e-7)
    assert function(np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(DtypeError, match="real"):
        function(1j)


def test_derivatives_of_rgamma_at_its_zeros() -> None:
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(special.rgamma)
        assert float(slope(-2.0)) == pytest.approx(2)
        # 1 / Γ(x) = x + γ x² + …
        assert float(fxflow.grad(slope)(0.0)) == pytest.approx(2 * np.euler_gamma)


@pytest.mark.parametrize("name", ["huber", "pseudo_huber"])
def test_losses(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    values = np.array([-np.inf, -1.0, 0.0, 0.5, 2.0, np.nan])
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        delta, r = np.meshgrid(values[1:], values[1:])
        np.testing.assert_allclose(function(delta, r), theirs(delta, r), 1e-15)
        delta, r = 10 ** RNG.uniform(-3, 3, 40), 10 ** RNG.uniform(-3, 3, 40)
        np.testing.assert_allclose(function(delta, r), theirs(delta, r), 1e-14)
        total = lambda delta, r: fnp.sum(function(delta, r))
        by_delta, by_r = fxflow.grad(total, (0, 1))(delta, r)
        q = r / delta
        if name == "huber":
            want = np.where(q <= 1, 0, r - delta), np.minimum(r, delta)
        else:
            root = np.sqrt(1 + q * q)
            want = delta * (root - 1) ** 2 / root, r / root
        np.testing.assert_allclose(by_delta, want[0], 1e-6, 1e-12)
        np.testing.assert_allclose(by_r, want[1], 1e-12)
        twice = fxflow.grad(fxflow.grad(function, 1), 1)(2.0, 0.0)
        assert float(twice) == pytest.approx(1)
    assert function(fnp.ones((2, 1)), fnp.ones(3)).shape == (2, 3)


def test_softplus_and_powm1() -> None:
    x, y = (v.ravel() for v in np.meshgrid(EDGES, EDGES))
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        np.testing.assert_allclose(
            special.softplus(EDGES), scipy.special.softplus(EDGES), 1e-15
        )
        finite = np.isfinite(y) & np.isfinite(x) & (x != 0)
        want = scipy.special.powm1(x, y)[finite]
        np.testing.assert_allclose(special.powm1(x, y)[finite], want, 1e-14)
        tiny = special.powm1(3.0, 1e-12)
        assert float(tiny) == pytest.approx(np.log(3) * 1e-12, rel=1e-11)
        slopes = fxflow.grad(special.powm1, (0, 1))(2.0, 0.5)
        np.testing.assert_allclose(slopes, [0.5 / 2**0.5, 2**0.5 * np.log(2)], 1e-15)
        assert float(fxflow.grad(special.softplus)(0.0)) == 0.5


EDGES = np.array([-np.inf, -2.5, -2.0, -0.0, 0.0, 1e-9, 1.0, 2.5, np.inf, np.nan])
