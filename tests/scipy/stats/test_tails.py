"""Tails of the gamma distribution against mpmath, where digits are easily lost."""

import mpmath
import numpy as np
import pytest

import fxflow
from fxflow.scipy import stats


def tails(a: float, x: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """P(a, x) by its series, and Q(a, x), with 60 digits."""
    with mpmath.workdps(60):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        term = total = mpmath.mpf(1)
        k = 0
        while term > total * mpmath.mpf(10) ** -60:
            k += 1
            term *= x / (a + k)
            total += term
        lower = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1)) * total
        return lower, 1 - lower


def test_survival_of_tiny_shapes_keeps_its_digits() -> None:
    a = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.45, 0.7])
    x = np.array([[1e-3], [0.1], [0.9], [1.3]])
    want = [
        [float(tails(*pair)[1]) for pair in zip(a, row * len(a), strict=True)]
        for row in x.tolist()
    ]
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(stats.gamma.sf(x, a), want, 1e-14)
        np.testing.assert_allclose(stats.gamma.logsf(x, a), np.log(want), 1e-13)
    narrow = stats.gamma.sf(x.astype(np.float32), np.float32(1e-6))
    np.testing.assert_allclose(np.asarray(narrow)[:, 0], np.array(want)[:, 1], 2e-5)


@pytest.mark.parametrize("a", [1100.0, pytest.param(1e6, marks=pytest.mark.slow)])
def test_large_shapes(a: float) -> None:
    x = a + np.array([-8.0, -2.0, 0.3, 6.0]) * np.sqrt(a)
    exact = [tails(a, place) for place in x.tolist()]
    lower, upper = (np.array([float(pair[i]) for pair in exact]) for i in (0, 1))
    with mpmath.workdps(60):
        h = mpmath.mpf(a) * mpmath.mpf(10) ** -20
        moved = [tails(a + h, place)[0] for place in x.tolist()]
        slopes = [
            float((mpmath.log(new) - mpmath.log(pair[0])) / h)
            for new, pair in zip(moved, exact, strict=True)
        ]
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(stats.gamma.cdf(x, a), lower, 1e-12)
        np.testing.assert_allclose(stats.gamma.sf(x, a), upper, 1e-12)
        by_a = fxflow.vmap(fxflow.grad(stats.gamma.logcdf, 1), (0, None))
        np.testing.assert_allclose(by_a(x, a), slopes, 1e-10)
