"""The nearest center of each point: against distances in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.kernels.gallery import nearest as module
from fxflow.kernels.gallery.nearest import nearest

RNG = np.random.default_rng(0)


def of_numpy(points: Any, centers: Any) -> Any:
    apart = points[:, None].astype(np.float64) - centers.astype(np.float64)
    return np.argmin(np.sum(apart**2, -1), 1)


@pytest.mark.parametrize("sizes", [(1000, 20, 8), (1000, 17, 5), (10, 3, 6)])
@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_the_nearest_center(sizes: Any, shift: float) -> None:
    n, k, d = sizes
    points = (RNG.normal(size=(n, d)) + shift).astype(np.float32)
    centers = (RNG.normal(size=(k, d)) + shift).astype(np.float32)
    expected = of_numpy(points, centers)
    for f in (nearest, fxflow.jit(nearest)):
        np.testing.assert_array_equal(f(points, centers), expected)


@pytest.mark.parametrize("least", [0, 1 << 30])
def test_infinite_centers_are_never_nearest(
    monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    monkeypatch.setattr(module, "_LEAST", least)
    points = RNG.normal(size=(9, 6)).astype(np.float32)
    centers = RNG.normal(size=(5, 6)).astype(np.float32)
    centers[0, 1], centers[3] = np.inf, -np.inf
    found = nearest(points, centers)
    kept = np.array([1, 2, 4])
    np.testing.assert_array_equal(found, kept[of_numpy(points, centers[kept])])
    twice = np.concatenate([centers[1:2], centers[1:2]])
    np.testing.assert_array_equal(nearest(points, twice), np.zeros(9))


def test_the_kernel_agrees_with_its_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST", 0)
    points = fnp.asarray(RNG.normal(size=(70, 5)).astype(np.float32))
    kernels.check(nearest, points, points[:4])
    assert "nearest: 2 programs (2 parallel)" in kernels.explain(
        nearest, points, points[:4]
    )
