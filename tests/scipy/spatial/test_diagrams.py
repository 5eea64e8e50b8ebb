"""Voronoi's diagrams and intersections of halfspaces beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.spatial as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.spatial import HalfspaceIntersection, SphericalVoronoi, Voronoi

RNG = np.random.default_rng(1)
P = RNG.normal(size=(12, 2))
BALL = RNG.normal(size=(12, 3))
BALL /= np.linalg.norm(BALL, axis=1)[:, None]
HALVES = np.array([[-1, 0, 0], [0, -1, 0], [1, 0, -1], [0, 1, -1], [1, 1, -1.5]])
INSIDE = np.array([0.4, 0.4])


def slope_of(run: Any, at: np.ndarray, way: np.ndarray) -> float:
    return float(run(at + 1e-6 * way) - run(at - 1e-6 * way)) / 2e-6


@pytest.mark.parametrize("furthest", [False, True])
def test_diagrams_agree_with_scipy(furthest: bool) -> None:
    with fxflow.config.override(x64=True):
        for points in (
            P,
            BALL * RNG.random((12, 1)),
            np.indices((3, 3)).reshape(2, 9).T,
        ):
            ours, theirs = (s(points, furthest) for s in (Voronoi, want.Voronoi))
            np.testing.assert_allclose(ours.vertices, theirs.vertices, 1e-7, 1e-8)
            np.testing.assert_array_equal(ours.ridge_points, theirs.ridge_points)
            np.testing.assert_array_equal(ours.point_region, theirs.point_region)
            assert ours.regions == theirs.regions
            assert ours.ridge_vertices == theirs.ridge_vertices
            assert ours.ridge_dict == theirs.ridge_dict


def test_vertices_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        way = RNG.normal(size=P.shape)
        total = lambda p: (Voronoi(p).vertices[2:4] ** 2).sum()
        expected = slope_of(total, P, way)
        assert float((fxflow.grad(total)(P) * way).sum()) == pytest.approx(
            expected, 1e-5
        )
        cells = Voronoi(P)
        moved = lambda p: (cells.with_points(p).vertices[2:4] ** 2).sum()
        got = fxflow.jit(fxflow.grad(moved))(P)
        assert float((got * way).sum()) == pytest.approx(expected, 1e-5)


def test_intersections_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        cube = np.concatenate([np.eye(3), -np.eye(3), [[0.5, 0.6, 0.7]]])
        cube = np.concatenate([cube, -np.ones((7, 1))], 1)
        for halves, inside in ((HALVES, INSIDE), (cube, np.zeros(3))):
            ours = HalfspaceIntersection(halves, inside)
            theirs = want.HalfspaceIntersection(halves, inside)
            for name in (
                *("intersections", "dual_points", "dual_equations", "dual_volume"),
                *("dual_area", "dual_vertices"),
            ):
                np.testing.assert_allclose(
                    getattr(ours, name), getattr(theirs, name), 1e-9, 1e-12
                )
            assert ours.dual_facets == theirs.dual_facets
            assert (ours.ndim, ours.nineq) == (inside.size, len(halves))
        quarter = HalfspaceIntersection(HALVES[:3], INSIDE)
        known = np.isfinite(np.asarray(quarter.intersections)).all(1)
        assert known.sum() == 2
        way = RNG.normal(size=HALVES.shape)
        total = lambda h: (HalfspaceIntersection(h, INSIDE).intersections ** 2).sum()
        expected = slope_of(total, HALVES, way)
        meet = HalfspaceIntersection(HALVES, INSIDE)
        moved = lambda h: (meet.with_halfspaces(h).intersections ** 2).sum()
        for slope in (fxflow.grad(total), fxflow.jit(fxflow.grad(moved))):
            assert float((slope(HALVES) * way).sum()) == pytest.approx(expected, 1e-5)
        same = fxflow.jit(lambda m: m.dual_volume)(meet)
        np.testing.assert_allclose(same, meet.dual_volume)


def test_spheres_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        ring = P / np.linalg.norm(P, axis=1)[:, None]
        for args in ((BALL,), (2 * BALL + 1, 2, np.ones(3)), (ring,)):
            ours, theirs = SphericalVoronoi(*args), want.SphericalVoronoi(*args)
            np.testing.assert_allclose(
                ours.calculate_areas(), theirs.calculate_areas(), 1e-9
            )
            np.testing.assert_allclose(ours.vertices, theirs.vertices, 1e-8, 1e-9)
            assert [*map(sorted, ours.regions)] == [*map(sorted, theirs.regions)]
        cells = SphericalVoronoi(BALL)
        cells.sort_vertices_of_regions()
        theirs = want.SphericalVoronoi(BALL)
        theirs.sort_vertices_of_regions()
        for one, other in zip(cells.regions, theirs.regions, strict=True):
            turned = [
                np.roll(r, k).tolist() for r in (one, one[::-1]) for k in range(9)
            ]
            assert list(other) in turned
        unit = lambda p: p / ((p**2).sum(1) ** 0.5)[:, None]
        total = lambda p: (cells.with_points(unit(p)).calculate_areas() ** 2).sum()
        way = RNG.normal(size=BALL.shape)
        slope = fxflow.jit(fxflow.grad(lambda p: total(p)))
        host = lambda p: (want.SphericalVoronoi(unit(p)).calculate_areas() ** 2).sum()
        assert float((slope(BALL) * way).sum()) == pytest.approx(
            slope_of(host, BALL, way), 1e-5
        )


def test_bad_arrays_are_refused() -> None:
    traced = lambda f, *args: lambda: fxflow.jit(f)(*args)
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: Voronoi(P[0]), "d > 1"),
        (ArgumentError, lambda: Voronoi(P, incremental=True), "immutable"),
        (ArgumentError, lambda: Voronoi(P[:2]), "Qhull refuses"),
        (ConcretizationError, traced(lambda p: Voronoi(p).vertices, P), "with_points"),
        (ShapeError, lambda: HalfspaceIntersection(HALVES, BALL[0]), "halfspaces"),
        (
            ArgumentError,
            lambda: HalfspaceIntersection(HALVES, INSIDE + 9),
            "Qhull refuses",
        ),
        (
            ConcretizationError,
            traced(lambda h: HalfspaceIntersection(h, INSIDE), HALVES),
            "with_halfspaces",
        ),
        (ArgumentError, lambda: SphericalVoronoi(2 * BALL), "on the sphere"),
        (ArgumentError, lambda: SphericalVoronoi(BALL[[0, 1, 2, 3, 4, 4]]), "same"),
        (ArgumentError, lambda: SphericalVoronoi(BALL * [1, 1, 0]), "plane"),
        (ShapeError, lambda: SphericalVoronoi(BALL, 1, np.ones(2)), "center"),
        (
            ArgumentError,
            lambda: SphericalVoronoi(
                P[:5] / np.hypot(*P[:5].T)[:, None]
            ).sort_vertices_of_regions(),
            "three",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
