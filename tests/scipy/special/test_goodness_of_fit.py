"""Kolmogorov's and Smirnov's distributions against SciPy and definitions."""

import numpy as np
import scipy.special
import scipy.stats

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
Y = np.concatenate([RNG.uniform(0.05, 3, 40), [0.0, -1, 12, 40, np.inf, np.nan, 0.82]])
P = np.concatenate(
    [RNG.uniform(0, 1, 20), 10 ** RNG.uniform(-90, 0, 10), [0, 1, -1, 2]]
)


def test_kolmogorov() -> None:
    with fxflow.config.override(x64=True):
        got = special.kolmogorov(Y)
        # SciPy's has 40 units of the last place.
        np.testing.assert_allclose(got, scipy.special.kolmogorov(Y), 2e-14)
        np.testing.assert_allclose(special.kolmogi(P), scipy.special.kolmogi(P), 1e-14)
        y = Y[:20]
        slope = fxflow.vmap(fxflow.grad(special.kolmogorov))(y)
        want = -scipy.stats.kstwobign.pdf(y)
        # SciPy has 8 digits between 0.7 and 0.82.
        np.testing.assert_allclose(slope, want, 1e-7, 1e-14)
        inner = np.asarray(got)[:20] < 1
        back = fxflow.vmap(fxflow.grad(special.kolmogi))(np.asarray(got)[:20][inner])
        np.testing.assert_allclose(back, 1 / np.asarray(slope)[inner], 1e-10)
    narrow = special.kolmogorov(Y[:40].astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(
        narrow, scipy.special.kolmogorov(Y[:40].astype(np.float32)), 2e-6
    )
    assert special.kolmogi(np.zeros((0, 2))).shape == (0, 2)


def test_smirnov() -> None:
    n = np.floor(10 ** RNG.uniform(0, 2.5, 30))
    d = RNG.uniform(0, 1, 30) / np.sqrt(n)
    with fxflow.config.override(x64=True):
        want = scipy.special.smirnov(n.astype(int), d)
        np.testing.assert_allclose(special.smirnov(n, d), want, 3e-14)
        back = special.smirnovi(n, want)
        np.testing.assert_allclose(back, d, 1e-9)
        edges = special.smirnov(3.0, np.array([0.0, 1, -0.1, 1.1, np.nan]))
        np.testing.assert_array_equal(edges, [1, 0, np.nan, np.nan, np.nan])
        assert np.isnan(special.smirnov(2.5, 0.3))
        edges = special.smirnovi(3.0, np.array([0.0, 1, -0.1]))
        np.testing.assert_array_equal(edges, [1, 0, np.nan])
        slope = fxflow.grad(special.smirnov, 1)(5.0, 0.3)
        h = 1e-6
        rise = scipy.special.smirnov(5, 0.3 + h) - scipy.special.smirnov(5, 0.3 - h)
        np.testing.assert_allclose(slope, rise / (2 * h), 1e-7)
        # Near 0, smirnov(n, d) is 1 - d (1 + d)ⁿ⁻¹.
        slope = fxflow.grad(special.smirnovi, 1)
        np.testing.assert_allclose(slope(4.0, 1.0), -1)
        np.testing.assert_allclose(fxflow.grad(slope, 1)(4.0, 1.0), -6)
