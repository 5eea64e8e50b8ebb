"""Entropies and distances of samples beside SciPy's."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(29)
P = RNG.uniform(size=(3, 4))
Q = RNG.uniform(size=(3, 4))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_entropy(axis: Any) -> None:
    same("entropy", P, axis=axis, keepdims=True)
    same("entropy", P, Q, base=2, axis=axis)
    same("entropy", np.where(P > 0.5, P, 0), axis=axis)


def test_differential_entropy() -> None:
    x = RNG.normal(size=(2, 20))
    for method in ("vasicek", "van es", "ebrahimi", "correa", "auto"):
        same("differential_entropy", x, axis=1, method=method, base=2)
    same("differential_entropy", x[0, :9], window_length=3)
    same("differential_entropy", RNG.normal(size=1001))
    with pytest.raises(ArgumentError, match="window_length"):
        stats.differential_entropy(x, axis=0)
    with pytest.raises(ArgumentError, match="base"):
        stats.entropy(P, base=-1.0)


def test_distances() -> None:
    u, v = RNG.normal(size=12), RNG.normal(size=9) + 1
    a, b = RNG.uniform(size=12), RNG.uniform(size=9)
    for name in ("wasserstein_distance", "energy_distance"):
        same(name, u, v)
        same(name, u, v, a, b)
        same(name, np.round(u), np.round(v), a)
        same(name, u, u)
    with pytest.raises(ShapeError, match="weights"):
        stats.energy_distance(u, v, b)
    # Moving all of a sample moves the distance as far.
    far = v + 100
    slope = fxflow.grad(stats.wasserstein_distance, 1)(u, far)
    np.testing.assert_allclose(slope, np.full(9, 1 / 9), 1e-5)


@pytest.mark.slow
def test_distances_of_points() -> None:
    rng = np.random.default_rng(8)
    u, v = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)) + 1
    a, b = rng.uniform(size=6), rng.uniform(size=5)
    same("wasserstein_distance_nd", u, v)
    same("wasserstein_distance_nd", u, v[:5], a, b)
    same("wasserstein_distance_nd", u[:, 0], v[:5, 0], a, b)
    distance = stats.wasserstein_distance_nd
    with fxflow.config.override(x64=True):
        points, weights = fxflow.grad(distance, (0, 2))(u, v[:5], a, b)
        for i in (0, 3):
            step = np.eye(6)[i] * 1e-5
            moved = [distance(u, v[:5], a + s * step, b) for s in (1, -1)]
            np.testing.assert_allclose(weights[i], (moved[0] - moved[1]) / 2e-5, 1e-5)
            far = [distance(u + s * step[:, None], v[:5], a, b) for s in (1, -1)]
            np.testing.assert_allclose(points[i].sum(), (far[0] - far[1]) / 2e-5, 1e-5)
        assert np.isnan(distance(u, v[:5], -a, b))


def test_points_that_have_no_distance() -> None:
    with pytest.raises(ShapeError, match="must be points of one space"):
        stats.wasserstein_distance_nd(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(ShapeError, match="one for each of 3 points"):
        stats.wasserstein_distance_nd(np.zeros((3, 2)), np.zeros((4, 2)), np.ones(4))
    found = stats.wasserstein_distance_nd(np.full((2, 2), np.nan), np.zeros((2, 2)))
    assert np.isnan(found)
