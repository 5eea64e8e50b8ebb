"""The multinomial distribution beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import DtypeError, ShapeError
from fxflow.scipy.stats import multinomial

P = np.array([0.2, 0.7, 0.1])


def test_multinomial() -> None:
    x, n = (
        np.array([[1, 2, 0], [1, 1, 2], [0, 3, 0], [4, -1, 0]]),
        np.array([3, 4, 4, 3]),
    )
    with fxflow.config.override(x64=True):
        for name in ("logpmf", "pmf"):
            want = getattr(scipy.stats.multinomial, name)(x, n, P)
            np.testing.assert_allclose(getattr(multinomial, name)(x, n, P), want, 1e-9)
        slope = fxflow.grad(lambda p: multinomial.logpmf(x[0], 3, p))(P)
        np.testing.assert_allclose(slope, x[0] / P, 1e-9)
    zero = np.array([0.2, 0.8, 0.0])
    assert np.isfinite(multinomial.logpmf(x[0], 3, zero))
    with pytest.raises(DtypeError):
        multinomial.logpmf(x * 1.5, 3, P)
    with pytest.raises(ShapeError):
        multinomial.logpmf(x[:, :2], 3, P)


@pytest.mark.slow
def test_entropies() -> None:
    n = np.array([0, 1, 4, 9])
    with fxflow.config.override(x64=True):
        want = [scipy.stats.multinomial.entropy(k, P) for k in n]
        np.testing.assert_allclose(multinomial.entropy(n, P), want, 1e-9, 1e-12)
        slope = fxflow.jit(fxflow.grad(lambda q: multinomial.entropy(4, _whole(q))))(
            0.2
        )
        ends = [
            scipy.stats.multinomial.entropy(4, _whole(0.2 + s)) for s in (1e-5, -1e-5)
        ]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, 1e-6)
    assert np.isnan(multinomial.entropy(-1, P))


def _whole(q: Any) -> Any:
    """Three probabilities, of which one is given."""
    return q * np.array([1.0, 0.0, -1.0]) + np.array([0.0, 0.7, 0.3])


@pytest.mark.slow
def test_moments_and_samples() -> None:
    p = np.array([0.2, 0.5, 0.3])
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(multinomial.mean(7, p), 7 * p, 1e-12)
        want = scipy.stats.multinomial.cov(7, p)
        np.testing.assert_allclose(multinomial.cov(7, p), want, 1e-12)
        assert np.isnan(multinomial.mean(-1, p)).all()
    drawn = np.asarray(multinomial.rvs(fxflow.random.key(0), 7, p, shape=(2000,)))
    assert drawn.shape == (2000, 3) and (drawn.sum(-1) == 7).all()
    np.testing.assert_allclose(drawn.mean(0), 7 * p, atol=0.2)
