"""Neighbours of points beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.spatial as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.spatial import KDTree

RNG = np.random.default_rng(0)
P, Q = RNG.random((100, 3)), RNG.random((4, 5, 3))


@pytest.mark.parametrize("p", [1, 2, 3.0, np.inf])
def test_neighbours_agree_with_scipy(p: float) -> None:
    with fxflow.config.override(x64=True):
        ours, theirs = KDTree(P), want.KDTree(P)
        for k, bound in ((1, np.inf), (3, 0.2), (120, np.inf)):
            got = ours.query(Q, k, p=p, distance_upper_bound=bound)
            expected = theirs.query(Q, k, p=p, distance_upper_bound=bound)
            np.testing.assert_allclose(got[0], expected[0], 1e-9)
            np.testing.assert_array_equal(got[1], expected[1])
        pairs = sorted(theirs.query_pairs(0.15, p))
        np.testing.assert_array_equal(ours.query_pairs(0.15, p), pairs)
        limits = np.array([0.1, 0.3])
        counts = ours.count_neighbors(KDTree(P[:50]), limits, p)
        expected = theirs.count_neighbors(want.KDTree(P[:50]), limits, p)
        np.testing.assert_array_equal(counts, expected)


def test_neighbours_have_derivatives_and_compile() -> None:
    with fxflow.config.override(x64=True):
        total = lambda p: (KDTree(p).query(Q, 2)[0] ** 3).sum()
        way = RNG.normal(size=P.shape)
        rise = float(total(P + 1e-6 * way) - total(P - 1e-6 * way)) / 2e-6
        slope = fxflow.jit(fxflow.grad(total))(P)
        assert float((slope * way).sum()) == pytest.approx(rise, 1e-5)
        pairs = fxflow.jit(lambda p: KDTree(p).query_pairs(0.15, size=200))(P)
        expected = sorted(want.KDTree(P).query_pairs(0.15))
        np.testing.assert_array_equal(pairs[: len(expected)], expected)
        assert (pairs[len(expected) :] == 100).all()


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_balls_agree_with_scipy(p: float) -> None:
    with fxflow.config.override(x64=True):
        ours, theirs = KDTree(P), want.KDTree(P)
        for r in (0.2, RNG.random((4, 5)) - 0.1, 0.0):
            got = ours.query_ball_point(Q, r, p)
            expected = theirs.query_ball_point(Q, r, p)
            assert got.tolist() == [[sorted(v) for v in row] for row in expected]
            counts = theirs.query_ball_point(Q, r, p, return_length=True)
            run = fxflow.jit(
                lambda q, r=r: ours.query_ball_point(q, r, p, return_length=True)
            )
            np.testing.assert_array_equal(run(Q), counts)
        one = theirs.query_ball_point(Q[0, 0], 0.4, p)
        assert ours.query_ball_point(Q[0, 0], 0.4, p) == sorted(one)
        both = ours.query_ball_tree(KDTree(P[:50]), 0.2, p)
        expected = theirs.query_ball_tree(want.KDTree(P[:50]), 0.2, p)
        assert both == [sorted(row) for row in expected]


def test_bad_questions_are_refused() -> None:
    tree = KDTree(P)
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: KDTree(P[0]), "points"),
        (ShapeError, lambda: tree.query(Q[..., :2]), "3 coordinates"),
        (ArgumentError, lambda: tree.query(Q, 0), "k must be at least 1"),
        (ArgumentError, lambda: tree.query(Q, p=0.5), "p must be at least 1"),
        (ShapeError, lambda: tree.query_ball_point(Q[0], np.ones(3)), "broadcast"),
        (ShapeError, lambda: tree.query_ball_point(Q[..., :2], 1), "3 coordinates"),
        (
            ConcretizationError,
            lambda: fxflow.jit(lambda q: tree.query_ball_point(q, 1))(Q),
            "return_length",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(ConcretizationError, match="give size"):
        fxflow.jit(lambda p: KDTree(p).query_pairs(0.1))(P)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_sparse_distances_are_those_of_scipy(p: float) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(9, 2)), rng.normal(size=(7, 2))
    y[0] = x[0]
    theirs = want.KDTree(x).sparse_distance_matrix(
        want.KDTree(y), 1.0, p, output_type="coo_matrix"
    )
    found = KDTree(x).sparse_distance_matrix(KDTree(y), 1.0, p)
    np.testing.assert_allclose(found.todense(), theirs.toarray(), rtol=1e-5)
    assert found.nnz == theirs.nnz and found.shape == (9, 7)
    np.testing.assert_allclose(KDTree(x).maxes, x.max(0), rtol=1e-6)
    np.testing.assert_allclose(KDTree(x).mins, x.min(0), rtol=1e-6)


def test_sparse_distances_have_derivatives() -> None:
    points = fnp.array([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]])

    def total(x: Any) -> Any:
        return KDTree(x).sparse_distance_matrix(KDTree(points), 6.0).sum()

    # A distance of 0 has the derivative 0; the others are unit vectors.
    slopes = [[-0.6, -0.8], [0.6, 0.8], [0.0, 0.0]]
    np.testing.assert_allclose(fxflow.grad(total)(points), slopes, rtol=1e-6)
    with pytest.raises(ConcretizationError):
        fxflow.jit(total)(points)
    tree = KDTree(points)
    with pytest.raises(ArgumentError, match="output_type must be"):
        tree.sparse_distance_matrix(tree, 1.0, output_type="dict")
    with pytest.raises(ArgumentError, match="2 and 1 coordinates"):
        tree.sparse_distance_matrix(KDTree(points[:, :1]), 1.0)


@pytest.mark.parametrize("box", [1.0, [1.0, 0.0, 2.0]])
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_periodic_boxes_agree_with_scipy(box: Any, p: float) -> None:
    # Only SciPy's other methods take points outside of a box.
    places, limits = 3 * Q - 1, np.array([0.1, 0.3])
    with fxflow.config.override(x64=True):
        ours, theirs = KDTree(P, boxsize=box), want.KDTree(P, boxsize=box)
        np.testing.assert_array_equal(ours.boxsize, np.broadcast_to(box, 3))
        got, expected = ours.query(places, 3, p=p), theirs.query(places, 3, p=p)
        np.testing.assert_allclose(got[0], expected[0], 1e-9, 1e-12)
        np.testing.assert_array_equal(got[1], expected[1])
        balls = ours.query_ball_point(Q, 0.3, p)
        expected = theirs.query_ball_point(Q, 0.3, p)
        assert balls.tolist() == [[sorted(v) for v in row] for row in expected]
        pairs = ours.query_pairs(0.2, p, output_type="set")
        assert pairs == theirs.query_pairs(0.2, p)
        half = KDTree(P[:50], boxsize=box), want.KDTree(P[:50], boxsize=box)
        counts = ours.count_neighbors(half[0], limits, p)
        expected = theirs.count_neighbors(half[1], limits, p)
        np.testing.assert_array_equal(counts, expected)
        near = ours.sparse_distance_matrix(half[0], 0.2, p).todense()
        expected = theirs.sparse_distance_matrix(half[1], 0.2, p).toarray()
        np.testing.assert_allclose(near, expected, 1e-9, 1e-12)


def test_periodic_boxes_have_derivatives_and_are_checked() -> None:
    tree = KDTree(np.array([[0.1], [0.5]]), boxsize=1.0)
    near = fxflow.jit(fxflow.grad(lambda tree, x: tree.query(x)[0], (0, 1)))
    by_tree, by_x = near(tree, np.array([0.9]))
    assert by_tree.data.tolist() == [[1], [0]] and by_x.tolist() == [-1]
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, {"boxsize": 0.5}, r"data\[\d+, 0\] is .* outside"),
        (ArgumentError, {"boxsize": -1}, "boxsize must not be negative"),
        (ShapeError, {"boxsize": [1.0, 1.0]}, "boxsize must be a number or 3"),
    ]
    for error, options, words in refused:
        with pytest.raises(error, match=words):
            KDTree(P, **options)
    with pytest.raises(ArgumentError, match="the same boxsize"):
        tree.query_ball_tree(KDTree(np.ones((2, 1))), 1.0)
    with pytest.raises(ConcretizationError, match="boxsize is traced"):
        fxflow.jit(lambda box: KDTree(P, boxsize=box).query(Q))(1.0)


def test_weights_bins_and_numbers_of_neighbours() -> None:
    rng = np.random.default_rng(1)
    v, w = rng.random(100), rng.random(50)
    limits = np.array([0.05, 0.1, 0.2, 0.5, 0.5])
    with fxflow.config.override(x64=True):
        ours, theirs = KDTree(P), want.KDTree(P)
        half = KDTree(P[:50]), want.KDTree(P[:50])
        for weights in ((v, w), (None, w)):
            for cumulative in (True, False):
                got = ours.count_neighbors(half[0], limits, 2, weights, cumulative)
                expected = theirs.count_neighbors(
                    half[1], limits, 2, weights, cumulative
                )
                np.testing.assert_allclose(got, expected, 1e-9, 1e-12)
        counts = ours.count_neighbors(half[0], limits, cumulative=False)
        expected = theirs.count_neighbors(half[1], limits, cumulative=False)
        np.testing.assert_array_equal(counts, expected)
        slope = fxflow.grad(lambda v: ours.count_neighbors(half[0], 0.2, 2, (v, w)))(v)
        expected = theirs.count_neighbors(half[1], 0.2, 2, (v, w))
        np.testing.assert_allclose(slope @ v, expected)
        for k in ([2], [1, 3], [120]):
            got, expected = ours.query(Q, k), theirs.query(Q, k)
            np.testing.assert_allclose(got[0], expected[0], 1e-9)
            np.testing.assert_array_equal(got[1], expected[1])
    # SciPy counts pairs within the square of a negative distance.
    assert ours.count_neighbors(half[0], [-1.0, 0.0]).tolist() == [0, 50]
    with pytest.raises(ShapeError, match="weights must have the shape"):
        ours.count_neighbors(half[0], 0.1, 2, (v, v))
    with pytest.raises(ShapeError, match="must be a vector with cumulative"):
        ours.count_neighbors(half[0], 0.1, cumulative=False)
    with pytest.raises(ArgumentError, match='output_type must be "ndarray" or "set"'):
        ours.query_pairs(0.1, output_type="list")
    with pytest.raises(ArgumentError, match="k must be at least 1"):
        ours.query(Q, [0])


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_many_points_have_the_neighbours_that_scipy_finds(p: float) -> None:
    rng = np.random.default_rng(11)
    # Clusters of different sizes, and a grid, whose distances are often equal.
    points = rng.normal(size=(600, 3)) * rng.choice([0.01, 1, 100], (600, 1))
    points[:125] = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), -1).reshape(-1, 3)
    places = np.concatenate([rng.normal(size=(300, 3)) * 10, points[:150]])
    far, found = KDTree(points.astype("f4")).query(places.astype("f4"), 4, p=p)
    exact = want.KDTree(points.astype("f4")).query(places.astype("f4"), 4, p=p)[0]
    np.testing.assert_allclose(far, exact, 1e-5, 1e-6)
    apart = places[:, None] - points[np.asarray(found)]
    again = np.linalg.norm(apart.astype("f4"), p, axis=-1)
    np.testing.assert_allclose(again, exact, 1e-4, 1e-5)
    assert all(len(set(row)) == 4 for row in np.asarray(found).tolist())
