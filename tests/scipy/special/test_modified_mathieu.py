"""Modified Mathieu functions against SciPy, their equation and their Wronskian."""

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.scipy import special

RNG = np.random.default_rng(31)
M = RNG.integers(1, 10, 16)
Q = 10 ** RNG.uniform(-1, 1.5, 16)
X = RNG.uniform(0, 1.5, 16)
NAMES = ["modcem1", "modcem2", "modsem1", "modsem2"]


@pytest.mark.parametrize(
    "name", [NAMES[0], *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES[1:])]
)
def test_functions(name: str) -> None:
    function, theirs = (getattr(s, f"mathieu_{name}") for s in (special, scipy.special))
    with fxflow.config.override(x64=True):
        value, slope = function(M, Q, X)
        want, want_slope = theirs(M, Q, X)
        np.testing.assert_allclose(value, want, 1e-8, 1e-10)
        np.testing.assert_allclose(slope, want_slope, 1e-8, 1e-10)
        bad = function(np.array([0.5, -1, 2, 2]), np.array([1.0, 1, -1, 3000]), 0.5)
        assert np.isnan(np.asarray(bad)).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["c", "s"])
def test_wronskians(kind: str) -> None:
    first, second = (getattr(special, f"mathieu_mod{kind}em{i}") for i in (1, 2))
    m, x = np.array([1, 4, 30, 2]), np.array([0.3, -0.8, 0.3, 0.5])
    with fxflow.config.override(x64=True):
        q = fnp.asarray([0.01, 12.0, 100.0, 1500.0])
        a, da = first(m, q, x)
        b, db = second(m, q, x)
        # DLMF 28.20.21.
        np.testing.assert_allclose(a * db - da * b, np.full(4, 2 / np.pi), 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str) -> None:
    function = getattr(special, f"mathieu_{name}")
    even = name[3] == "c"
    m, q, x, h = 3, 5.0, 0.7, 1e-4
    with fxflow.config.override(x64=True):
        of = lambda q, x: function(m, q, x)[0]
        by_q, by_x = fxflow.grad(of, (0, 1))(q, x)
        assert float(by_x) == pytest.approx(float(function(m, q, x)[1]))
        high, low = (float(of(q + d, x)) for d in (h, -h))
        assert float(by_q) == pytest.approx((high - low) / (2 * h), rel=1e-6)
        bend = float(fxflow.grad(fxflow.grad(of, 1), 1)(q, x))
        a = (special.mathieu_a if even else special.mathieu_b)(m, q)
        want = (float(a) - 2 * q * np.cosh(2 * x)) * float(of(q, x))
        assert bend == pytest.approx(want)
