"""Random correlation matrices have their eigenvalues."""

import numpy as np
import pytest

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.stats import random_correlation

EIGS = np.array([0.5, 0.8, 1.2, 1.5])


def test_eigenvalues_and_diagonals() -> None:
    with fxflow.config.override(x64=True):
        a = np.asarray(random_correlation.rvs(fxflow.random.key(0), EIGS, (20,)))
    assert (np.einsum("kii->ki", a) == 1).all()
    np.testing.assert_allclose(np.linalg.eigvalsh(a), np.tile(EIGS, (20, 1)), 1e-10)
    assert a[:, 0, 1].std() > 0.05


def test_eigenvalues_of_no_correlation_are_nan() -> None:
    with fxflow.config.override(x64=True):
        for wrong in (EIGS + 0.1, EIGS * [-1, 1, 1, 1] + [0, 0, 0, 1]):
            a = random_correlation.rvs(fxflow.random.key(0), wrong, (20,))
            assert np.isnan(a).all()
    with pytest.raises(ShapeError, match="a row of at least 2 numbers"):
        random_correlation.rvs(fxflow.random.key(0), np.ones(1))
