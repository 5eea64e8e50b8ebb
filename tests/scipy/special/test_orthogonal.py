"""Orthogonal polynomials against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
X = RNG.uniform(-0.95, 0.95, 9)
STEPS = (1e-6, -1e-6)
N = np.arange(-2, 7)
PARAMETERS = {"genlaguerre": (0.7,), "gegenbauer": (0.8,), "jacobi": (0.7, -0.3)}
NAMES = [
    *("legendre", "chebyt", "chebyu", "chebyc", "chebys", "sh_legendre", "sh_chebyt"),
    *("sh_chebyu", "laguerre", "hermite", "hermitenorm", *PARAMETERS),
]


@pytest.mark.parametrize("name", NAMES)
def test_whole_degrees_agree_with_scipy(name: str) -> None:
    function = getattr(special, f"eval_{name}")
    theirs = getattr(scipy.special, f"eval_{name}")
    given = PARAMETERS.get(name, ())
    n = N[2:] if name in ("jacobi", "chebyc", "chebys") else N
    x = X[: len(n)]
    with fxflow.config.override(x64=True):
        got = function(n, *given, x)
        np.testing.assert_allclose(got, theirs(n, *given, x), 1e-11, 1e-12)
        slope = fxflow.grad(lambda x: function(4, *given, x))(0.3)
        h = 1e-5
        ends = theirs(4, *given, np.array([0.3 + h, 0.3 - h]))
        assert float(slope) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


@pytest.mark.parametrize(
    "name", ["legendre", "chebyt", "chebyu", "laguerre", *PARAMETERS]
)
def test_real_degrees_agree_with_scipy(name: str) -> None:
    function = getattr(special, f"eval_{name}")
    theirs = getattr(scipy.special, f"eval_{name}")
    given = PARAMETERS.get(name, ())
    with fxflow.config.override(x64=True):
        got = function(1.7, *given, X)
        np.testing.assert_allclose(got, theirs(1.7, *given, X), 1e-10)


def test_slope_by_a_parameter() -> None:
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(special.eval_jacobi, 1)(3, 0.7, -0.3, 0.4)
        theirs = scipy.special.eval_jacobi
        h = 1e-5
        want = (theirs(3, 0.7 + h, -0.3, 0.4) - theirs(3, 0.7 - h, -0.3, 0.4)) / (2 * h)
        assert float(slope) == pytest.approx(want, rel=1e-7)


def test_jacobi_on_the_unit_interval() -> None:
    n, p, q = np.arange(6), RNG.uniform(2, 5, 6), RNG.uniform(0.1, 2, 6)
    x = RNG.uniform(0, 1, 6)
    with fxflow.config.override(x64=True):
        got = special.eval_sh_jacobi(n, p, q, x)
        want = scipy.special.eval_sh_jacobi(n, p, q, x)
        np.testing.assert_allclose(got, want, 1e-12, 1e-14)
        slope = fxflow.grad(special.eval_sh_jacobi, 1)(2, 3.0, 1.5, 0.4)
        high, low = (scipy.special.eval_sh_jacobi(2, 3 + h, 1.5, 0.4) for h in STEPS)
        assert float(slope) == pytest.approx((high - low) / 2e-6, rel=1e-7)
        got = special.assoc_laguerre(4 * x, n, q)
        want = scipy.special.eval_genlaguerre(n, q, 4 * x)
        np.testing.assert_allclose(got, want, 1e-12, 1e-14)
        laguerre = special.assoc_laguerre(x, 3)
        np.testing.assert_allclose(laguerre, special.eval_laguerre(3, x))
