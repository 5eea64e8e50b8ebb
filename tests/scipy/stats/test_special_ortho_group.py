"""Random matrices of the group, their products and determinants."""

import numpy as np
import pytest

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy.stats import special_ortho_group as ours


def test_matrices_are_of_the_group() -> None:
    for dim in (1, 3):
        q = np.asarray(ours.rvs(fxflow.random.key(dim), dim, (40,)))
        assert q.shape == (40, dim, dim)
        unit = np.broadcast_to(np.eye(dim), q.shape)
        np.testing.assert_allclose(q @ q.conj().swapaxes(-1, -2), unit, 0, 1e-5)
        signs = np.linalg.det(q)
        np.testing.assert_allclose(signs, 1, 1e-4)


def test_the_mean_of_all_directions_is_zero() -> None:
    q = np.asarray(ours.rvs(fxflow.random.key(3), 3, (2000,)))
    assert abs(q.mean(0)).max() < 0.07


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="dim must be a positive int, got 0"):
        ours.rvs(fxflow.random.key(0), 0)
