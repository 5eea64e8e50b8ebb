"""Random directions: their lengths and their angles."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy.stats import uniform_direction


def test_directions() -> None:
    x = np.asarray(uniform_direction.rvs(fxflow.random.key(0), 3, (2000,)))
    np.testing.assert_allclose((x * x).sum(-1), 1, 1e-5)
    # In three dimensions each coordinate is uniform.
    for along in x.T:
        assert scipy.stats.kstest(along, scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"dim must be a positive int, got 2\.5"):
        uniform_direction.rvs(fxflow.random.key(0), 2.5)  # type: ignore[arg-type]
