"""Quasi-Monte Carlo beside SciPy's."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc as scipys

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.stats import qmc

KEY = random.key(5)
POINTS = np.random.default_rng(37).uniform(size=(7, 3))


@pytest.mark.parametrize("d", [1, 5, 1111])
def test_sobol_is_scipys(d: int) -> None:
    want = scipys.Sobol(d, scramble=False).random(32)
    got = qmc.Sobol(d, scramble=False).random(32)
    np.testing.assert_array_equal(got, want)
    later = qmc.Sobol(d, scramble=False).random(7, skip=9)
    np.testing.assert_array_equal(later, want[9:16])


def test_scrambled_points_are_as_even() -> None:
    points = np.asarray(qmc.Sobol(4, key=KEY).random_base2(6))
    assert points.min() >= 0 and points.max() < 1
    # Each of 64 intervals of each axis has one point, and each of 8 × 8 squares.
    np.testing.assert_array_equal(
        np.sort(np.floor(64 * points), axis=0), np.repeat(np.arange(64)[:, None], 4, 1)
    )
    squares = np.floor(8 * points[:, :2])
    assert len({tuple(s) for s in squares.tolist()}) == 64
    other = qmc.Sobol(4, key=random.key(6)).random(64)
    assert not np.array_equal(points, other)
    halton = np.asarray(qmc.Halton(2, key=KEY).random(72))
    for axis, base in ((0, 8), (1, 9)):
        count = np.bincount(np.floor(base * halton[:, axis]).astype(int))
        assert count.tolist() == [72 // base] * base


def test_halton_is_scipys() -> None:
    want = scipys.Halton(6, scramble=False).random(50)
    got = qmc.Halton(6, scramble=False).random(50)
    np.testing.assert_allclose(got, want, 1e-5, 1e-7)


def test_latin_and_normal_points() -> None:
    for scramble in (True, False):
        x = np.asarray(qmc.LatinHypercube(3, scramble=scramble, key=KEY).random(9))
        cells = np.sort(np.floor(9 * x), axis=0)
        np.testing.assert_array_equal(cells, np.repeat(np.arange(9)[:, None], 3, 1))
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    z = qmc.MultivariateNormalQMC(np.array([1.0, -1.0]), cov, key=KEY).random(1024)
    np.testing.assert_allclose(np.mean(z, axis=0), [1, -1], atol=0.02)
    np.testing.assert_allclose(np.cov(np.asarray(z).T), cov, atol=0.05)


@pytest.mark.parametrize("method", ["CD", "WD", "MD", "L2-star"])
def test_discrepancies(method: Any) -> None:
    with fxflow.config.override(x64=True):
        for iterative in (False, True):
            want = scipys.discrepancy(POINTS, method=method, iterative=iterative)
            got = qmc.discrepancy(POINTS, method=method, iterative=iterative)
            np.testing.assert_allclose(got, want, 1e-9)


def test_updates_and_boxes() -> None:
    with fxflow.config.override(x64=True):
        first = qmc.discrepancy(POINTS[:-1], iterative=True)
        got = qmc.update_discrepancy(POINTS[-1], POINTS[:-1], first)
        np.testing.assert_allclose(got, scipys.discrepancy(POINTS), 1e-9)
        low, high = [-1.0, 0.0, 2.0], [1.0, 3.0, 5.0]
        box = qmc.scale(POINTS, np.array(low), np.array(high))
        np.testing.assert_allclose(box, scipys.scale(POINTS, low, high), 1e-12)
        back = qmc.scale(box, np.array(low), np.array(high), reverse=True)
        np.testing.assert_allclose(back, POINTS, 1e-9)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="key must be given"):
        qmc.Sobol(2)
    with pytest.raises(ArgumentError, match="at most 1111"):
        qmc.Sobol(1112, scramble=False)
    with pytest.raises(ArgumentError, match="n must be"):
        qmc.Halton(2, scramble=False).random(0)
    with pytest.raises(ShapeError, match="points"):
        qmc.discrepancy(POINTS[0])
    with pytest.raises(ArgumentError, match="method"):
        qmc.discrepancy(POINTS, method="L1")


@pytest.mark.parametrize("method", ["mindist", "mst"])
def test_geometric_discrepancies(method: str) -> None:
    with fxflow.config.override(x64=True):
        for metric in ("euclidean", "cityblock", "chebyshev", "sqeuclidean"):
            want = scipys.geometric_discrepancy(POINTS, method, metric)
            found = qmc.geometric_discrepancy(POINTS, method, metric)
            np.testing.assert_allclose(found, want, 1e-12)
        slope = fxflow.grad(lambda x: qmc.geometric_discrepancy(x, method))(POINTS)
        step = np.zeros_like(POINTS)
        at = np.unravel_index(np.argmax(np.abs(slope)), step.shape)
        step[at] = 1e-6
        moved = [
            scipys.geometric_discrepancy(POINTS + s * step, method) for s in (1, -1)
        ]
        np.testing.assert_allclose(slope[at], (moved[0] - moved[1]) / 2e-6, 1e-6)
    with pytest.raises(ArgumentError, match="metric must be one of"):
        qmc.geometric_discrepancy(POINTS, method, "cosine")
    with pytest.raises(ShapeError, match="at least two points"):
        qmc.geometric_discrepancy(POINTS[:1], method)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["volume", "surface"])
def test_disks_have_their_radius(shell: str) -> None:
    low, high = np.array([0.0, 2.0]), np.array([1.0, 4.0])
    engine = qmc.PoissonDisk(
        2, radius=0.2, hypersphere=shell, l_bounds=low, u_bounds=high, key=KEY
    )
    x = np.asarray(engine.fill_space())
    apart = np.linalg.norm(x[:, None] - x[None], axis=-1)[np.triu_indices(len(x), 1)]
    assert apart.min() >= 0.2 * (1 - 1e-6)
    assert (x >= low).all() and (x <= high).all()
    # Everywhere in the box a point is nearer than two radii: the space is full.
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 20).T), -1).reshape(-1, 2)
    nearest = np.linalg.norm(grid[:, None] - x[None], axis=-1).min(1)
    assert nearest.max() < 0.4
    np.testing.assert_array_equal(engine.random(9), x[:9])
    with pytest.raises(ArgumentError, match="radius must be a positive number"):
        qmc.PoissonDisk(2, radius=0.0, key=KEY)
    with pytest.raises(ArgumentError, match="key must be given"):
        qmc.PoissonDisk(2)


def test_trials_are_evenly_placed() -> None:
    p = np.array([0.25, 0.125, 0.625])
    found = np.asarray(qmc.MultinomialQMC(p, 64, key=KEY).random(3))
    np.testing.assert_array_equal(found.sum(1), 64)
    np.testing.assert_allclose(found, np.broadcast_to(64 * p, (3, 3)), atol=2)
    assert not np.asarray(qmc.MultinomialQMC(p, 0, key=KEY).random(2)).any()
    with pytest.raises(ArgumentError, match="add to 1"):
        qmc.MultinomialQMC(np.array([0.3, 0.3]), 4, key=KEY)
    with pytest.raises(ShapeError, match="the engine must have d=1"):
        qmc.MultinomialQMC(p, 4, engine=qmc.Halton(2, key=KEY))
