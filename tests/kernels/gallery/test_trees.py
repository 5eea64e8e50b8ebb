"""The nearest of points by a tree: against all distances, and the checker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.kernels.gallery.trees import tree_neighbours

RNG = np.random.default_rng(0)


def distances(x: Any, y: Any, p: float) -> Any:
    return np.linalg.norm(x[:, None] - y, p, axis=-1)


def plain(k: int, p: float) -> Any:
    def run(x: Any, y: Any) -> Any:
        far = fnp.linalg.norm(x[:, None] - y, p, axis=-1)
        return fnp.argsort(far, axis=1, stable=True)[:, :k].astype("int32")

    return run


@pytest.mark.parametrize(("d", "k", "p"), [(2, 3, 2), (1, 1, np.inf), (3, 2, 1)])
def test_the_nearest_are_those_of_all_distances(d: int, k: int, p: float) -> None:
    x = RNG.normal(size=(5, d)).astype("float32")
    y = RNG.normal(size=(37, d)).astype("float32")
    run = lambda x, y: tree_neighbours(x, y, k, p, reference=plain(k, p))
    found = np.asarray(kernels.check(run, x, y))
    far = distances(x, y, p)
    np.testing.assert_array_equal(found, np.argsort(far, axis=1)[:, :k])


def test_of_equally_near_points_the_first_ones_are_found() -> None:
    y = np.repeat(np.array([[1.0], [0.0], [2.0]], "float32"), 20, axis=0)
    RNG.shuffle(y)
    x = np.array([[0.1], [1.4]], "float32")
    run = lambda x, y: tree_neighbours(x, y, 25, 2, reference=plain(25, 2))
    found = fxflow.jit(run)(x, y)
    want = np.argsort(distances(x, y, 2), axis=1, kind="stable")[:, :25]
    np.testing.assert_array_equal(found, want)


def test_points_at_nan_are_not_found() -> None:
    y = RNG.normal(size=(30, 2)).astype("float32")
    y[[3, 17]] = np.nan
    x = np.array([[0.0, 0.0], [np.nan, 0.0]], "float32")

    def run(x: Any, y: Any) -> Any:
        return tree_neighbours(x, y, 29, 2, reference=plain(29, 2))

    found = np.asarray(fxflow.jit(run)(x, y))
    if found.max() < 30:
        pytest.skip("kernels are not compiled here")
    good = np.setdiff1d(np.arange(30), [3, 17])
    order = good[np.argsort(distances(x[:1], y[good], 2)[0])]
    assert found[0].tolist() == [*order, 30]
    assert found[1].tolist() == [30] * 29


def test_batches_have_trees_of_their_own() -> None:
    x = RNG.normal(size=(3, 130, 2)).astype("float32")
    y = RNG.normal(size=(3, 50, 2)).astype("float32")
    run = lambda x, y: tree_neighbours(x, y, 1, 2, reference=plain(1, 2))
    found = fxflow.jit(fxflow.vmap(run))(x, y)
    want = [np.argmin(distances(a, b, 2), axis=1) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(found[..., 0], want)
