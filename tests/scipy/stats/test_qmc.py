"""Quasi-Monte Carlo beside SciPy's."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc as scipys

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, DtypeError, ShapeError
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


def test_bits_of_sobol() -> None:
    for bits in (5, 32):
        want = scipys.Sobol(3, scramble=False, bits=bits).random(32)
        got = qmc.Sobol(3, scramble=False, bits=bits).random(32)
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ArgumentError, match=r"has 2\*\*5 points, and n=32"):
        qmc.Sobol(3, scramble=False, bits=5).random(32, skip=1)
    with pytest.raises(ArgumentError, match=r"bits must be at most 32, or 64 with"):
        qmc.Sobol(3, scramble=False, bits=33)
    with fxflow.config.override(x64=True):
        for bits in (33, 64):
            want = scipys.Sobol(9, scramble=False, bits=bits).random(16)
            got = qmc.Sobol(9, scramble=False, bits=bits).random(16)
            np.testing.assert_array_equal(got, want)
            points = np.asarray(qmc.Sobol(2, bits=bits, key=KEY).random(16))
            cells = np.sort(np.floor(16 * points), axis=0)
            np.testing.assert_array_equal(
                cells, np.repeat(np.arange(16)[:, None], 2, 1)
            )
        with pytest.raises(ArgumentError, match="bits must be at most 64, got 65"):
            qmc.Sobol(2, scramble=False, bits=65)


def test_latin_hypercubes_of_strength_two() -> None:
    for p, d in ((3, 4), (5, 3)):
        for scramble in (True, False):
            made = qmc.LatinHypercube(d, scramble=scramble, strength=2, key=KEY)
            x = np.asarray(made.random(p * p))
            cells = np.sort(np.floor(p * p * x), axis=0)
            np.testing.assert_array_equal(
                cells, np.repeat(np.arange(p * p)[:, None], d, 1)
            )
            for i in range(d):
                for j in range(i):
                    squares = np.floor(p * x[:, [i, j]]).tolist()
                    assert len({tuple(s) for s in squares}) == p * p
    for n in (8, 16, 1):
        with pytest.raises(ArgumentError, match="the square of a prime"):
            qmc.LatinHypercube(2, strength=2, key=KEY).random(n)
    with pytest.raises(ArgumentError, match="at least d - 1 = 4"):
        qmc.LatinHypercube(5, strength=2, key=KEY).random(9)
    with pytest.raises(ArgumentError, match="strength must be 1 or 2"):
        qmc.LatinHypercube(5, strength=3, key=KEY)


def test_coordinates_are_swapped() -> None:
    plain = np.asarray(qmc.LatinHypercube(2, key=KEY).random(20))
    made = qmc.LatinHypercube(2, optimization="random-cd", key=KEY)
    swapped = np.asarray(made.random(20))
    # Coordinates change places only.
    np.testing.assert_allclose(np.sort(swapped, axis=0), np.sort(plain, axis=0), 1e-6)
    better, before = scipys.discrepancy(swapped), scipys.discrepancy(plain)
    assert better < 0.7 * before
    one = qmc.Halton(2, scramble=False, optimization="random-cd", key=KEY).random(1)
    np.testing.assert_array_equal(one, 0)
    with pytest.raises(ArgumentError, match="optimization must be None"):
        qmc.Sobol(2, optimization="best", key=KEY)
    with pytest.raises(ArgumentError, match="key must be given for optimization"):
        qmc.Sobol(2, scramble=False, optimization="random-cd")
    with pytest.raises(ArgumentError, match="moves points in the unit cube"):
        qmc.PoissonDisk(2, u_bounds=2.0, optimization="lloyd", key=KEY)


def test_points_are_moved_to_the_middle_of_cells() -> None:
    halton = np.asarray(qmc.Halton(2, key=KEY).random(16))
    even = np.asarray(qmc.Halton(2, optimization="lloyd", key=KEY).random(16))
    assert even.min() >= 0 and even.max() <= 1
    apart = [scipys.geometric_discrepancy(x) for x in (halton, even)]
    assert apart[1] > 1.1 * apart[0]
    # Each is near the middle of its cell, measured by other points.
    probes = np.random.default_rng(0).uniform(size=(20_000, 2))
    own = np.argmin(((probes[:, None] - even[None]) ** 2).sum(-1), axis=1)
    middles = np.stack([probes[own == k].mean(0) for k in range(16)])
    assert np.abs(middles - even).max() < 0.03
    line = np.asarray(qmc.Sobol(1, optimization="lloyd", key=KEY).random(4))
    want = [0.125, 0.375, 0.625, 0.875]
    np.testing.assert_allclose(np.sort(line[:, 0]), want, 0, 0.1)


def test_integers_of_engines() -> None:
    engine = qmc.Halton(2, scramble=False)
    low, high = np.array([-3, 2]), np.array([3, 9])
    for endpoint in (False, True):
        want = scipys.Halton(2, scramble=False).integers(
            low, u_bounds=high, n=40, endpoint=endpoint
        )
        got = engine.integers(low, u_bounds=high, n=40, endpoint=endpoint)
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, want)
    want = scipys.Halton(2, scramble=False).integers(7, n=9)
    np.testing.assert_array_equal(engine.integers(7, n=9), want)
    with pytest.raises(ArgumentError, match="l_bounds must be below u_bounds"):
        engine.integers(3, u_bounds=3)
    with pytest.raises(DtypeError, match="l_bounds must be integers"):
        engine.integers(0.5, u_bounds=3)


def test_normal_points_of_roots_and_pairs() -> None:
    root = np.array([[1.2, 0.5, 0.1], [0.0, 1.0, -0.4], [0.0, 0.0, 0.7]])
    mean = np.array([1.0, -1.0, 0.5])
    for d, options in ((3, {}), (4, {"inv_transform": False})):
        ours = qmc.MultivariateNormalQMC(
            mean, cov_root=root, engine=qmc.Halton(d, scramble=False), **options
        )
        want = scipys.MultivariateNormalQMC(
            mean, cov_root=root, engine=scipys.Halton(d, scramble=False), **options
        )
        # The first of Halton's points is a corner, which has no normal point.
        with np.errstate(divide="ignore", invalid="ignore"):
            got, known = ours.random(64)[1:], want.random(64)[1:]
        np.testing.assert_allclose(got, known, 1e-4, 1e-5)
    flat = np.array([[1.0, 1.0], [1.0, 1.0]])
    z = np.asarray(qmc.MultivariateNormalQMC(np.zeros(2), flat, key=KEY).random(512))
    np.testing.assert_allclose(z[:, 0], z[:, 1], 0, 1e-5)
    np.testing.assert_allclose(z[:, 0].std(), 1, 0.05)
    wrong = qmc.MultivariateNormalQMC(np.zeros(2), -flat, key=KEY)
    assert np.isnan(wrong.random(2)).all()
    with pytest.raises(ArgumentError, match="takes cov or cov_root, got both"):
        qmc.MultivariateNormalQMC(mean, root, cov_root=root, key=KEY)
    with pytest.raises(ShapeError, match="the engine must have d=4, got 3"):
        qmc.MultivariateNormalQMC(
            mean, inv_transform=False, engine=qmc.Halton(3, key=KEY)
        )


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
