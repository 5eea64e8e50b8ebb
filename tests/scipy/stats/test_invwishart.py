"""The inverse Wishart distribution beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.scipy.stats import invwishart

RNG = np.random.default_rng(0)
ROOTS = RNG.normal(size=(4, 3, 3))
MATRICES = ROOTS @ ROOTS.transpose(0, 2, 1) + np.eye(3)
SCALE, X = MATRICES[0], MATRICES[1:]


def test_functions_agree_with_scipy() -> None:
    oracle = scipy.stats.invwishart
    with fxflow.config.override(x64=True):
        for name in ("logpdf", "pdf"):
            want = getattr(oracle, name)(X.transpose(1, 2, 0), 8.5, SCALE)
            found = getattr(invwishart, name)(X, 8.5, SCALE)
            np.testing.assert_allclose(found, want, 1e-9)
        for name in ("mean", "mode", "var"):
            want = getattr(oracle, name)(8.5, SCALE)
            found = getattr(invwishart, name)(8.5, SCALE)
            np.testing.assert_allclose(found, want, 1e-9)
        assert np.isnan(invwishart.mean(3.5, SCALE)).all()
        one = invwishart.entropy(5.0, np.array([[2.0]]))
        np.testing.assert_allclose(one, oracle.entropy(5.0, 2.0), 1e-9)


@pytest.mark.slow
def test_samples_have_the_moments_and_the_entropy() -> None:
    key = fxflow.random.key(0)
    with fxflow.config.override(x64=True):
        drawn = invwishart.rvs(key, 12.0, SCALE, shape=(3000,))
        spread = np.sqrt(scipy.stats.invwishart.var(12.0, SCALE))
        away = np.asarray(drawn).mean(0) - scipy.stats.invwishart.mean(12.0, SCALE)
        assert (np.abs(away) < 5 * spread / 3000**0.5).all()
        logs = -np.asarray(invwishart.logpdf(drawn, 12.0, SCALE))
        # SciPy's entropy lacks (p + 1) (p - 1) / 2 log 2.
        apart = logs.mean() - float(invwishart.entropy(12.0, SCALE))
        assert abs(apart) < 5 * logs.std() / 3000**0.5
