"""The distribution of directions beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.stats import vonmises_fisher

RNG = np.random.default_rng(0)


def directions(n: int, d: int) -> np.ndarray:
    x = RNG.normal(size=(n, d))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_functions_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for d, kappa in ((2, 0.5), (3, 4.0), (5, 300.0)):
            x, mu = directions(4, d), directions(1, d)[0]
            for name in ("logpdf", "pdf"):
                want = getattr(scipy.stats.vonmises_fisher, name)(x, mu, kappa)
                found = getattr(vonmises_fisher, name)(x, mu, kappa)
                np.testing.assert_allclose(found, want, 1e-8)
            want = scipy.stats.vonmises_fisher.entropy(mu, kappa)
            np.testing.assert_allclose(vonmises_fisher.entropy(mu, kappa), want, 1e-8)
        assert np.isnan(vonmises_fisher.logpdf(x, 2 * mu, 1.0)).all()
        assert np.isnan(vonmises_fisher.logpdf(x, mu, 0.0)).all()


@pytest.mark.slow
def test_samples_give_back_the_parameters() -> None:
    with fxflow.config.override(x64=True):
        for d, kappa in ((3, 5.0), (4, 40.0)):
            mu = directions(1, d)[0]
            key = fxflow.random.key(d)
            x = np.asarray(vonmises_fisher.rvs(key, mu, kappa, shape=(4000,)))
            np.testing.assert_allclose((x * x).sum(-1), 1, 1e-12)
            found = vonmises_fisher.fit(x)
            want = scipy.stats.vonmises_fisher.fit(x)
            np.testing.assert_allclose(found[0], want[0], 1e-9)
            np.testing.assert_allclose(found[1], want[1], 1e-7)
            np.testing.assert_allclose(found[0], mu, atol=0.05)
            np.testing.assert_allclose(found[1], kappa, 0.1)


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match="same number of elements, at least 2"):
        vonmises_fisher.logpdf(directions(2, 3), directions(1, 2)[0], 1.0)
    with pytest.raises(ShapeError, match=r"vonmises_fisher\.fit: x must be \[n, d\]"):
        vonmises_fisher.fit(np.ones(3))
