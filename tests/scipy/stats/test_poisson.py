"""The distribution poisson beside SciPy's."""

import numpy as np
import scipy.stats

import fxflow
from fxflow.scipy.stats import poisson
from tests.scipy.stats import suite


def test_poisson() -> None:
    far = lambda k, *_: k == np.inf
    means = np.array([0.1, 1, 3, 30, 300])
    suite.check("poisson", means, discrete=True, without="entropy", logpmf=far, pmf=far)


def test_entropy() -> None:
    means = suite.ENTROPY
    with fxflow.config.override(x64=True):
        got = np.asarray(poisson.entropy(means))
        assert np.allclose(got, scipy.stats.poisson.entropy(means), 1e-8)
        slope = fxflow.vmap(fxflow.grad(poisson.entropy))(means[1:])
        step = 1e-6 * means[1:]
        up, down = poisson.entropy(means[1:] + step), poisson.entropy(means[1:] - step)
        np.testing.assert_allclose(slope, (up - down) / (2 * step), 1e-5)
    assert np.isnan(poisson.entropy(-1.0))
    assert float(poisson.entropy(2.0, 1)) == float(poisson.entropy(2.0))
