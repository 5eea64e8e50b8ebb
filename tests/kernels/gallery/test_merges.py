"""Merges of clusters in place: against whole arrays, and the checker."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from fxflow import kernels
from fxflow.kernels.gallery import merges
from fxflow.scipy.cluster import _trees

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(9, 2))
DISTANCES = np.linalg.norm(POINTS[:, None] - POINTS, axis=-1).astype("float32")


def test_spanning_trees() -> None:
    run = lambda D: merges.spanning_tree(D, reference=_trees._spanning)
    _, y, d = kernels.check(run, DISTANCES)
    assert sorted([0, *y.tolist()]) == list(range(9))
    np.testing.assert_allclose(
        d, [DISTANCES[y[k], [0, *y[:k]]].min() for k in range(8)]
    )


def test_numbers_of_clusters() -> None:
    x, y = np.array([0, 3, 1], "int32"), np.array([2, 1, 0], "int32")
    run = lambda x, y: merges.numbered(x, y, reference=_trees._numbered)
    low, high, size = (v.tolist() for v in kernels.check(run, x, y))
    assert (low, high, size) == ([0, 1, 4], [2, 3, 5], [2, 2, 4])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["complete", "average", "ward"])
def test_merges_of_nearest_neighbours(method: str) -> None:
    union = functools.partial(_trees._united, method)
    plain = functools.partial(_trees._chained, method=method)

    def run(D: Any) -> Any:
        return merges.neighbour_merges(D, union, reference=plain)

    x, y, _ = kernels.check(run, DISTANCES)
    assert (np.asarray(x) < np.asarray(y)).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["centroid", "median"])
def test_merges_of_the_nearest_clusters(method: str) -> None:
    union = functools.partial(_trees._united, method)
    plain = functools.partial(_trees._closest_first, method=method)

    def run(D: Any) -> Any:
        return merges.nearest_merges(D, union, reference=plain)

    tree = kernels.check(run, DISTANCES)
    assert float(tree[-1, 3]) == 9
