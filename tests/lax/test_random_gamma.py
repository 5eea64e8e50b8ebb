"""Gamma numbers, each from a key of its own."""

import numpy as np
import pytest
import scipy.stats

from fxflow import lax
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.random_gamma import RandomGamma, random_gamma


def test_distribution_and_logarithm() -> None:
    key = lax.random_seed(3)
    a = np.full(1000, 2.5, np.float32)
    drawn = np.asarray(random_gamma(key, a))
    assert scipy.stats.kstest(drawn, scipy.stats.gamma(2.5).cdf).pvalue > 1e-3
    logs = np.asarray(random_gamma(key, a, log_space=True))
    np.testing.assert_allclose(np.exp(logs), drawn, rtol=1e-5)


def test_invalid_keys_and_parameters_are_refused() -> None:
    key = lax.random_seed(3)
    with pytest.raises(DtypeError, match="random_gamma: takes floating point arrays"):
        random_gamma(key, np.arange(3))
    words = np.zeros((2, 2), np.uint32)
    with pytest.raises(ShapeError, match="takes one key for each parameter"):
        RandomGamma.bind(words, np.ones(3, np.float32), log_space=False)
    with pytest.raises(DtypeError, match=r"keys are data u32\[..., 2\], got f32"):
        RandomGamma.bind(
            np.ones((3, 2), np.float32), np.ones(3, np.float32), log_space=False
        )
