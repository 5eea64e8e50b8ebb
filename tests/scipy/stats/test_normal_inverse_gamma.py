"""The normal inverse gamma distribution beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.scipy.stats import normal_inverse_gamma as ours

theirs = scipy.stats.normal_inverse_gamma
X, S2 = np.array([0.1, -0.3, 2.0, 0.5]), np.array([0.3, 2, -1, 1.0])
P = (0.5, 2.0, 3.0, 1.5)


def test_numbers() -> None:
    with fxflow.config.override(x64=True):
        for name in ("logpdf", "pdf"):
            got = getattr(ours, name)(X, S2, *P)
            np.testing.assert_allclose(got, getattr(theirs, name)(X, S2, *P), 1e-12)
        for name in ("mean", "var"):
            got = getattr(ours, name)(*P)
            np.testing.assert_allclose(got, getattr(theirs, name)(*P), 1e-12)
    assert np.isnan(ours.logpdf(X, S2, 0.5, -1.0)).all()
    # The mean of the normal variable exists already for a above ½.
    first, second = ours.mean(0.5, 2.0, 0.7, 1.0)
    assert first == 0.5 and np.isnan(second)


@pytest.mark.slow
def test_samples() -> None:
    x, s2 = ours.rvs(fxflow.random.key(0), *P, shape=(5000,))
    law = scipy.stats.t(2 * P[2], P[0], (P[3] / (P[2] * P[1])) ** 0.5)
    assert scipy.stats.kstest(np.asarray(x), law.cdf).pvalue > 1e-3
    law = scipy.stats.invgamma(P[2], scale=P[3])
    assert scipy.stats.kstest(np.asarray(s2), law.cdf).pvalue > 1e-3
