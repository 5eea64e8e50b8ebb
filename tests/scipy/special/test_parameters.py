"""Inverses of distribution functions by their parameters, against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
P, Q = RNG.uniform(0.05, 0.95, (2, 12))
R = 10 ** RNG.uniform(-0.7, 1, 12)
K = np.floor(RNG.uniform(0, 8, 12))
CASES: dict[str, Any] = {
    "bdtrik": (P, K + 3, Q),
    "bdtrin": (K, P, Q),
    "btdtria": (P, R, Q),
    "btdtrib": (R, P, Q),
    "chdtriv": (P, R),
    "fdtridfd": (R, 0.4 * P, R),
    "gdtrib": (R, P, R[::-1]),
    "nbdtrik": (P, K + 1, Q),
    "nbdtrin": (K, P, Q),
    "nrdtrimn": (P, R, Q),
    "nrdtrisd": (Q, P, R),
    "pdtrik": (P, R),
    "stdtridf": (np.array([0.2, 0.8]), np.array([-1.0, 0.95])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_agree_with_scipy(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    args = CASES[name]
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        got, want = np.asarray(function(*args)), theirs(*args)
        rooted = (want < 1e10) & (want == want)
        assert rooted.sum() >= 2
        np.testing.assert_allclose(got[rooted], want[rooted], 1e-8, 1e-9)
        if name not in ("btdtria", "nrdtrisd", "pdtrik", "stdtridf"):
            return
        i = int(np.argmax(rooted & (np.abs(want) > 1e-3)))
        at = [float(a[i]) for a in args]
        slopes = fxflow.grad(function, tuple(range(len(at))))(*at)
        for k, slope in enumerate(slopes):
            h = 1e-5
            ends = [float(function(*at[:k], at[k] + s, *at[k + 1 :])) for s in (h, -h)]
            rate = (ends[0] - ends[1]) / (2 * h)
            assert float(slope) == pytest.approx(rate, rel=1e-5, abs=1e-6)


def test_no_root_is_nan() -> None:
    assert np.isnan(special.stdtridf(0.9999, 1.0))
    assert np.isnan(special.stdtridf(0.5, 0.0))
    assert np.isnan(special.gdtrib(1.0, 1.5, 2.0))
    assert float(special.pdtrik(0.01, 3.0)) == 0
    for p in (0.0, 1.0, 1.5):
        assert np.isnan(special.nrdtrisd(0.0, p, 1.0))


def test_tukey_distribution() -> None:
    shapes = np.concatenate([RNG.uniform(-2, 2, 12), [0.0, 0.0, 1e-9, 1.0, 2.0]])
    x = RNG.normal(size=17) * 2
    with fxflow.config.override(x64=True):
        got = special.tklmbda(x, shapes)
        np.testing.assert_allclose(got, scipy.special.tklmbda(x, shapes), 1e-9)
        # The quantile function has the digits that SciPy's has not.
        p = np.array([1e-300, 1e-12, 0.3, 0.5, 0.9])
        quantile = (p**-0.2 - (1 - p) ** -0.2) / -0.2
        np.testing.assert_allclose(special.tklmbda(quantile, -0.2), p, 1e-12)
        ends = special.tklmbda(np.array([-np.inf, -5.0, 5.0, np.inf, np.nan]), 0.5)
        np.testing.assert_array_equal(ends, [0, 0, 1, 1, np.nan])
        slopes = fxflow.grad(special.tklmbda, (0, 1))(0.7, 0.3)
        h = 1e-4
        for k, step in enumerate(np.eye(2) * h):
            at = np.array([0.7, 0.3])
            high, low = (
                scipy.special.tklmbda(*(at + step)),
                scipy.special.tklmbda(*(at - step)),
            )
            assert float(slopes[k]) == pytest.approx((high - low) / (2 * h), rel=1e-6)
