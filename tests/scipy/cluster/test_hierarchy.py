"""Trees of clusters beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.cluster.hierarchy as want
from scipy.spatial.distance import pdist

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.cluster import hierarchy

RNG = np.random.default_rng(0)
POINTS = {n: RNG.normal(size=(n, 3)) for n in (2, 3, 12)}
METHODS = ["single", "complete", "average", "weighted", "centroid", "median", "ward"]


def close(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_trees_agree_with_scipy(method: str) -> None:
    with fxflow.config.override(x64=True):
        for n in (2, 12):
            expected = want.linkage(POINTS[n], method)
            close(hierarchy.linkage(POINTS[n], method), expected)
            close(getattr(hierarchy, method)(pdist(POINTS[n])), expected)
        y = pdist(POINTS[12], "cityblock")
        close(hierarchy.linkage(y, method), want.linkage(y, method))
        many = fxflow.jit(fxflow.vmap(lambda y: hierarchy.linkage(y, method)))
        close(many(np.stack([y, y[::-1]]))[1], want.linkage(y[::-1], method))


@pytest.mark.parametrize("method", METHODS)
def test_large_trees_agree_with_scipy(method: str) -> None:
    """By kernels, if they are compiled."""
    points = RNG.normal(size=(190, 3))
    y = pdist(points)
    with fxflow.config.override(x64=True):
        close(hierarchy.linkage(points, method), want.linkage(points, method))
        many = fxflow.jit(fxflow.vmap(lambda y: hierarchy.linkage(y, method)))
        found = many(np.stack([y, y[::-1], np.where(y > 5, np.inf, y)]))
        close(found[1], want.linkage(y[::-1], method))
        assert np.isnan(found[2]).all()


def test_large_trees_have_a_derivative_in_forward_mode() -> None:
    y, way = pdist(RNG.normal(size=(182, 3))), RNG.normal(size=182 * 181 // 2)
    with fxflow.config.override(x64=True):
        run = lambda y: hierarchy.linkage(y, "average")[:, 2]
        _, slope = fxflow.jit(lambda y, way: fxflow.jvp(run, (y,), (way,)))(y, way)
        close(slope, (run(y + 1e-7 * way) - run(y - 1e-7 * way)) / 2e-7, 1e-5)


@pytest.mark.parametrize("method", ["single", "centroid", "ward"])
def test_what_is_read_from_trees_agrees_with_scipy(method: str) -> None:
    with fxflow.config.override(x64=True):
        for n, points in POINTS.items():
            Z = want.linkage(points, method)
            close(hierarchy.leaves_list(Z), want.leaves_list(Z))
            close(hierarchy.cophenet(Z), want.cophenet(Z))
            if n > 2:
                got = hierarchy.cophenet(Z, pdist(points))
                close(got[0], want.cophenet(Z, pdist(points))[0])
            close(hierarchy.maxdists(Z), want.maxdists(Z))
            assert bool(hierarchy.is_monotonic(Z)) == want.is_monotonic(Z)
            assert hierarchy.num_obs_linkage(Z) == n
            for depth in (1, 2, 5):
                R = want.inconsistent(Z, depth)
                close(hierarchy.inconsistent(Z, depth), R, 1e-7)
                close(hierarchy.maxinconsts(Z, R), want.maxinconsts(Z, R))
                close(hierarchy.maxRstat(Z, R, 1), want.maxRstat(Z, R, 1))


@pytest.mark.parametrize("method", ["single", "centroid", "ward"])
def test_cuts_agree_with_scipy(method: str) -> None:
    with fxflow.config.override(x64=True):
        for n, points in POINTS.items():
            Z = want.linkage(points, method)
            cases: list[tuple[Any, ...]] = [(t, "distance") for t in (0.1, 1, 2, 9)]
            cases += [(t, "maxclust") for t in range(1, n + 2)]
            cases += [(0.8,), (0.8, "inconsistent", 3)]
            for case in cases:
                close(hierarchy.fcluster(Z, *case), want.fcluster(Z, *case))
            options: dict[str, Any] = {"monocrit": want.maxdists(Z) ** 2}
            for criterion, t in (("monocrit", 2.0), ("maxclust_monocrit", 2)):
                close(
                    hierarchy.fcluster(Z, t, criterion, **options),
                    want.fcluster(Z, t, criterion, **options),
                )
            T = want.fcluster(Z, 1.5, "distance")
            pairs = [
                sorted(zip(*np.asarray(module.leaders(Z, T)), strict=True))
                for module in (hierarchy, want)
            ]
            close(*pairs)
            if method != "centroid":
                close(hierarchy.cut_tree(Z), want.cut_tree(Z))
                close(hierarchy.cut_tree(Z, height=1.5), want.cut_tree(Z, height=1.5))
        close(hierarchy.cut_tree(Z, [2, 5]), want.cut_tree(Z, [2, 5]))
        close(
            hierarchy.fclusterdata(points, 3, "maxclust", method=method),
            want.fclusterdata(points, 3, "maxclust", method=method),
        )


def test_thresholds_and_trees_are_traced() -> None:
    Z = want.linkage(POINTS[12], "average")
    cut = fxflow.jit(lambda Z, t: hierarchy.fcluster(Z, t, "distance"))
    close(cut(Z, 1.5), want.fcluster(Z, 1.5, "distance"))
    with fxflow.config.override(x64=True):
        # Each pair's distance is that of one merge.
        slope = fxflow.grad(lambda Z: fnp.sum(hierarchy.cophenet(Z)))(Z)
        np.testing.assert_allclose(slope[:, 2].sum(), 66)
        close(slope[:, 2] @ Z[:, 2], want.cophenet(Z).sum())


def test_numberings_and_arrays_are_checked() -> None:
    assert bool(hierarchy.is_isomorphic([1, 1, 2], [3, 3, 0]))
    assert not bool(hierarchy.is_isomorphic([1, 1, 2], [3, 0, 0]))
    Z = want.linkage(POINTS[12])
    assert hierarchy.is_valid_linkage(Z)
    for row, column, value in ((0, 0, 30), (5, 3, 1), (2, 2, -1), (3, 1, Z[2, 0])):
        wrong = Z.copy()
        wrong[row, column] = value
        assert not hierarchy.is_valid_linkage(wrong)
        with pytest.raises(ArgumentError, match=f"row {row}"):
            hierarchy.is_valid_linkage(wrong, throw=True)
    with pytest.raises(ArgumentError, match="a flat cluster that the tree"):
        hierarchy.leaders(Z, np.arange(12) % 2)


def test_bad_arguments_are_refused() -> None:
    points = POINTS[12]
    with pytest.raises(ArgumentError, match="method must be one of"):
        hierarchy.linkage(points, "other")
    with pytest.raises(ArgumentError, match="needs metric"):
        hierarchy.linkage(points, "ward", "cityblock")
    with pytest.raises(ArgumentError, match="not finite"):
        hierarchy.linkage(np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ShapeError, match="y must be distances"):
        hierarchy.linkage(np.ones(4))
    with pytest.raises(ShapeError, match="Z must be"):
        hierarchy.leaves_list(np.ones((3, 3)))
    Z = want.linkage(points)
    with pytest.raises(ArgumentError, match="criterion"):
        hierarchy.fcluster(Z, 1.0, "other")
    with pytest.raises(ArgumentError, match="needs monocrit"):
        hierarchy.fcluster(Z, 1.0, "monocrit")
    with pytest.raises(ShapeError, match="R must have"):
        hierarchy.maxinconsts(Z, np.ones((3, 4)))
    with pytest.raises(ArgumentError, match="not both"):
        hierarchy.cut_tree(Z, 2, 1.0)
    with pytest.raises(ConcretizationError, match="outside of jit"):
        fxflow.jit(lambda Z: hierarchy.leaders(Z, np.ones(12, int)))(Z)
