"""Hulls and triangulations beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.spatial as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.spatial import ConvexHull, Delaunay, tsearch

RNG = np.random.default_rng(0)
SETS = {d: RNG.normal(size=(15, d)) for d in (2, 3, 4)}


def rows(simplices: Any) -> set[tuple[int, ...]]:
    return {tuple(sorted(row)) for row in np.asarray(simplices).tolist()}


@pytest.mark.parametrize("d", [2, pytest.param(3, marks=pytest.mark.slow), 4])
def test_hulls_and_meshes_agree_with_scipy(d: int) -> None:
    with fxflow.config.override(x64=True):
        points = SETS[d]
        hull, theirs = ConvexHull(points), want.ConvexHull(points)
        np.testing.assert_allclose(hull.volume, theirs.volume)
        np.testing.assert_allclose(hull.area, theirs.area)
        np.testing.assert_allclose(hull.equations, theirs.equations, 1e-8, 1e-9)
        for name in ("vertices", "simplices", "neighbors"):
            np.testing.assert_array_equal(getattr(hull, name), getattr(theirs, name))
        mesh, beside = Delaunay(points), want.Delaunay(points)
        at = RNG.normal(size=(5, 4, d))
        np.testing.assert_array_equal(mesh.find_simplex(at), beside.find_simplex(at))
        # SciPy's `tsearch` does the same; 1.18 warns of it.
        np.testing.assert_array_equal(tsearch(mesh, at), beside.find_simplex(at))
        np.testing.assert_allclose(mesh.transform, beside.transform, 1e-6, 1e-8)
        assert rows(mesh.convex_hull) == rows(beside.convex_hull)
        starts, found = mesh.vertex_neighbor_vertices
        first, second = beside.vertex_neighbor_vertices
        np.testing.assert_array_equal(starts, first)
        for k in range(len(points)):
            part = slice(first[k], first[k + 1])
            assert sorted(second[part]) == found[part].tolist()
        for k, simplex in enumerate(mesh.vertex_to_simplex):
            assert k in beside.simplices[simplex]
        where, shares = mesh.barycentric(at)
        corners = points[beside.simplices[where]]
        np.testing.assert_allclose(np.einsum("abk,abkd->abd", shares, corners), at)


@pytest.mark.parametrize("d", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_sizes_have_derivatives(d: int) -> None:
    with fxflow.config.override(x64=True):
        points = SETS[d]
        way = RNG.normal(size=points.shape)

        def total(p: Any) -> Any:
            hull = ConvexHull(p)
            return hull.volume**2 + hull.area + hull.equations[0].sum()

        ends = [float(total(points + e * way)) for e in (1e-6, -1e-6)]
        slope = float((fxflow.grad(total)(points) * way).sum())
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, 1e-5)
        hull = ConvexHull(points)
        volume = lambda p: hull.with_points(p).volume
        run = fxflow.jit(fxflow.vmap(fxflow.value_and_grad(volume)))
        got = run(np.stack([points, 2 * points]))
        np.testing.assert_allclose(got[0], hull.volume * np.array([1, 2.0**d]))
        # The volume is homogeneous: the product with the points is d times the value.
        euler = (got[1] * np.stack([points, 2 * points])).sum((1, 2))
        np.testing.assert_allclose(euler, d * got[0])


def test_flat_parts_and_options() -> None:
    with fxflow.config.override(x64=True):
        grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), -1).reshape(-1, 3)
        hull, theirs = ConvexHull(grid), want.ConvexHull(grid)
        assert float(hull.volume) == pytest.approx(8)
        assert float(hull.area) == pytest.approx(24)
        np.testing.assert_allclose(hull.equations, theirs.equations, atol=1e-12)
        assert bool(np.isfinite(fxflow.grad(lambda p: ConvexHull(p).area)(grid)).all())
        seen = ConvexHull(SETS[2], qhull_options="QG4")
        np.testing.assert_array_equal(
            seen.good, want.ConvexHull(SETS[2], qhull_options="QG4").good
        )
        far, beside = Delaunay(SETS[2], True), want.Delaunay(SETS[2], True)
        assert rows(far.simplices) == rows(beside.simplices)
        mesh = Delaunay(grid)
        assert bool((mesh.find_simplex(grid) >= 0).all())
        assert mesh.find_simplex(grid[0] - 0.1) == -1
        assert mesh.find_simplex(grid[0] - 0.1, tol=1.0) >= 0


def test_objects_pass_through_jit() -> None:
    hull, mesh = ConvexHull(SETS[2]), Delaunay(SETS[2])
    got = fxflow.jit(lambda h, m: (h.volume, m.find_simplex(SETS[2][:3])))(hull, mesh)
    np.testing.assert_allclose(got[0], hull.volume, 1e-6)
    assert (got[1] >= 0).all()
    assert (mesh.npoints, mesh.ndim, mesh.nsimplex) == (15, 2, len(mesh.simplices))
    np.testing.assert_allclose(mesh.max_bound - mesh.min_bound, np.ptp(SETS[2], 0))
    with pytest.raises(ConcretizationError, match="close over it"):
        fxflow.jit(lambda m: m.convex_hull)(mesh)


def test_bad_points_are_refused() -> None:
    hull, mesh = ConvexHull(SETS[2]), Delaunay(SETS[2])
    line = np.stack([np.arange(5.0)] * 2, -1)
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: ConvexHull(np.arange(5.0)), "d > 1"),
        (TypeError, lambda: ConvexHull(SETS[2] * 1j), "real"),
        (ArgumentError, lambda: ConvexHull(line), "Qhull refuses"),
        (ArgumentError, lambda: Delaunay(np.zeros((0, 2))), "Qhull refuses"),
        (ArgumentError, lambda: Delaunay(SETS[2], incremental=True), "immutable"),
        (ShapeError, lambda: hull.with_points(SETS[3]), "shape of these"),
        (ShapeError, lambda: mesh.find_simplex(SETS[3]), "2 coordinates"),
        (ArgumentError, lambda: tsearch(3, SETS[2]), "Delaunay"),  # type: ignore[arg-type]
        (ConcretizationError, lambda: fxflow.jit(Delaunay)(SETS[2]), "with_points"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize(
    "kind",
    [
        "grid",
        pytest.param("random", marks=pytest.mark.slow),
        pytest.param("space", marks=pytest.mark.slow),
    ],
)
def test_walks_end_where_comparisons_do(kind: str) -> None:
    rng = np.random.default_rng(4)
    d = 3 if kind == "space" else 2
    points = rng.random((300, d))
    if kind == "grid":
        points = np.stack(np.meshgrid(np.arange(18.0), np.arange(17.0)), -1)
        points = points.reshape(-1, 2) / 17
    at = np.concatenate([1.4 * rng.random((250, d)) - 0.2, points[:50]])
    with fxflow.config.override(x64=True):
        tri = Delaunay(points)
        find = fxflow.jit(lambda tri, x: (tri.find_simplex(x), tri.barycentric(x)[1]))
        found, shares = map(np.asarray, find(tri, at))
        # The simplices of other points, even of the same ones, are all compared.
        compared = np.asarray(tri.with_points(points).find_simplex(at))
        np.testing.assert_array_equal(found >= 0, compared >= 0)
        theirs = want.Delaunay(points).find_simplex(at)
        np.testing.assert_array_equal(found >= 0, theirs >= 0)
        inside = found >= 0
        corners = points[np.asarray(tri.simplices)[found]]
        placed = np.sum(corners * shares[..., None], 1)
        np.testing.assert_allclose(placed[inside], at[inside], atol=1e-12)
        assert np.all(shares[inside] >= -1e-12) and inside.sum() > 100
        if kind == "random":
            at[3] = np.nan
            many = fxflow.vmap(find, (None, 0))(tri, np.stack([at, at[::-1]]))
            np.testing.assert_array_equal(many[0][0][4:], found[4:])
            assert int(many[0][0][3]) == -1
