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
