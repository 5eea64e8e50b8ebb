"""Zeta functions against mpmath and SciPy."""

import mpmath
import numpy as np
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
SOME = [-200.3, 0.999999, 1.0000001, -1e-9, 0.0]
S = np.concatenate(
    [RNG.uniform(-50, 0, 20), RNG.uniform(0, 1, 9), RNG.uniform(1, 60, 9), SOME]
)


def test_riemann_of_all_real_numbers() -> None:
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        want = np.array([float(mpmath.zeta(s)) for s in S])
        np.testing.assert_allclose(special.zeta(S), want, 3e-14)
        high = RNG.uniform(1, 600, 9)
        want = np.array([float(mpmath.zeta(s, 2)) for s in high])
        np.testing.assert_allclose(special.zetac(high), want, 1e-15)
        edges = np.array([-np.inf, -1000.5, -2.0, 0, 1, np.inf, np.nan])
        for name in ("zeta", "zetac"):
            want = getattr(scipy.special, name)(edges)
            np.testing.assert_array_equal(getattr(special, name)(edges), want)


def test_derivatives() -> None:
    with fxflow.config.override(x64=True):
        first = fxflow.grad(special.zeta)
        for s in (3.3, 0.5, -1.5, -4.0):
            rates = [float(mpmath.diff(mpmath.zeta, s, k)) for k in (1, 2)]
            np.testing.assert_allclose(first(s), rates[0], 1e-13)
            np.testing.assert_allclose(fxflow.grad(first)(s), rates[1], 1e-12)


def test_hurwitz() -> None:
    s, q = np.float32([2, 3.5, 0.5]), np.float32([[1], [0.5]])
    want = scipy.special.zeta(s.astype(float), q)
    np.testing.assert_allclose(special.zeta(s, q), want, 1e-6)
    slope = fxflow.grad(special.zeta, 1)(np.float32(2), np.float32(0.5))
    np.testing.assert_allclose(slope, -2 * scipy.special.zeta(3, 0.5), 1e-6)
