"""Wright's generalized Bessel function against mpmath and SciPy."""

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
A = np.concatenate([RNG.uniform(0, 5, 8), 10 ** RNG.uniform(-6, 1, 8), [0, 1, 0.5, 2]])
B = np.concatenate([RNG.uniform(0, 9, 8), 10 ** RNG.uniform(-3, 2, 8), [1, 0, 0, 0.5]])
X = np.concatenate([RNG.uniform(0, 30, 8), 10 ** RNG.uniform(-3, 2, 8), [3, 2, 0, 0]])


def _exact(a: float, b: float, x: float) -> mpmath.mpf:
    a, b, x = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(x)
    return mpmath.fsum(
        x**k * mpmath.rgamma(a * k + b) / mpmath.factorial(k) for k in range(400)
    )


def test_sums_and_their_logarithms_to_the_last_digits() -> None:
    with (
        fxflow.config.override(x64=True),
        mpmath.workdps(30),
        np.errstate(all="ignore"),
    ):
        rows = zip(A.tolist(), B.tolist(), X.tolist(), strict=True)
        want = np.array([float(_exact(*row)) for row in rows])
        np.testing.assert_allclose(special.wright_bessel(A, B, X), want, 1e-13)
        log = special.log_wright_bessel(A, B, X)
        np.testing.assert_allclose(log, np.log(want), 1e-14, 1e-14)
        # Where the function overflows, and by the asymptotic series.
        a, x = (
            np.array([1.5, 0.5, 0.01, 2, 2, 0]),
            np.array([2e3, 1e6, 1e5, 1e18, 1e25, 9]),
        )
        got = special.log_wright_bessel(a, 1.5, x)
        np.testing.assert_allclose(
            got, scipy.special.log_wright_bessel(a, 1.5, x), 1e-13
        )
        odd = special.wright_bessel(
            np.array([-1, 1, 1, np.inf]), 1.0, np.array([1, -1, np.nan, 1])
        )
        assert np.isnan(odd).all()
    assert special.wright_bessel(np.float32(1), 1.0, 2.0).dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("at", [(1.5, 1.1, 2.0), (0.5, 0.0, 1.0)])
def test_derivatives(at: tuple[float, float, float]) -> None:
    with fxflow.config.override(x64=True), mpmath.workdps(40):
        slopes = fxflow.grad(special.wright_bessel, (0, 1, 2))(*at)
        logs = fxflow.grad(special.log_wright_bessel, (0, 1, 2))(*at)
        value, h = _exact(*at), mpmath.mpf(10) ** -12
        for k in range(3):
            ends = [_exact(*at[:k], at[k] + s, *at[k + 1 :]) for s in (h, -h)]
            want = (ends[0] - ends[1]) / (2 * h)
            assert float(slopes[k]) == pytest.approx(float(want), rel=1e-11)
            assert float(logs[k]) == pytest.approx(float(want / value), rel=1e-11)
