"""Distances in many metrics beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.spatial import distance

RNG = np.random.default_rng(0)
A, B, W = RNG.normal(size=(9, 4)), RNG.normal(size=(7, 4)), np.array([0.5, 0, 2, 1])
BITS_A, BITS_B = RNG.random((9, 12)) < 0.5, RNG.random((7, 12)) < 0.5
BITWISE = ["dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule", "jaccard"]
METRICS = [
    *("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine"),
    *("euclidean", "hamming", "jensenshannon", "mahalanobis", "minkowski"),
    *("seuclidean", "sqeuclidean", *BITWISE),
]


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_agree_with_scipy(metric: str) -> None:
    x, y, w = (BITS_A, BITS_B, RNG.random(12)) if metric in BITWISE else (A, B, W)
    if metric == "jensenshannon":
        x, y = abs(x), abs(y)
    with fxflow.config.override(x64=True):
        got = distance.cdist(x * 1.0, y * 1.0, metric)
        np.testing.assert_allclose(got, want.cdist(x, y, metric), 1e-9, 1e-12)
        got = distance.pdist(x * 1.0, metric)
        np.testing.assert_allclose(got, want.pdist(x, metric), 1e-9, 1e-12)
        if metric not in ("jensenshannon", "mahalanobis", "seuclidean"):
            got = distance.cdist(x * 1.0, y * 1.0, metric, w=w)
            np.testing.assert_allclose(got, want.cdist(x, y, metric, w=w), 1e-9, 1e-12)


def test_options_agree_with_scipy() -> None:
    inverse = np.eye(4) + 0.1
    options: list[tuple[Any, dict[str, Any]]] = [
        *(("minkowski", {"p": p}) for p in (1, 1.5, 3, np.inf)),
        ("seuclidean", {"V": W + 0.1}),
        ("mahalanobis", {"VI": inverse}),
        (lambda u, v: abs(u - v).max(), {}),
        ("e", {}),
    ]
    with fxflow.config.override(x64=True):
        for metric, s in options:
            got = distance.cdist(A, B, metric, **s)
            np.testing.assert_allclose(got, want.cdist(A, B, metric, **s), 1e-9)


def test_squares_of_pairs_agree_with_scipy() -> None:
    pairs = want.pdist(A)
    np.testing.assert_array_equal(
        distance.squareform(pairs.astype(np.float32)),
        want.squareform(pairs.astype(np.float32)),
    )
    again = distance.squareform(want.squareform(pairs).astype(np.float32))
    np.testing.assert_allclose(again, pairs, 1e-6)
    assert distance.squareform(np.zeros(0)).shape == (1, 1)
    got, expected = distance.directed_hausdorff(A, B), want.directed_hausdorff(A, B)
    np.testing.assert_allclose([float(x) for x in got], expected, 1e-6)


def test_distances_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        for metric in ("euclidean", "cosine", "minkowski", "canberra"):
            total = lambda x, m=metric: (distance.cdist(x, B, m) ** 2).sum()
            way = RNG.normal(size=A.shape)
            rise = float(total(A + 1e-6 * way) - total(A - 1e-6 * way)) / 2e-6
            slope = fxflow.jit(fxflow.grad(total))(A)
            assert float((slope * way).sum()) == pytest.approx(rise, 1e-5)
        same = fxflow.grad(lambda x: distance.pdist(x).sum())(np.ones((3, 2)))
        assert (same == 0).all()
        each = fxflow.vmap(lambda x: distance.pdist(x))(np.stack([A, 2 * A]))
        np.testing.assert_allclose(each[1], 2 * each[0])


def test_bad_vectors_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: distance.cdist(A[0], B), "vectors"),
        (ShapeError, lambda: distance.cdist(A, B[:, :2]), "one length"),
        (ArgumentError, lambda: distance.cdist(A, B, "no"), "metric must be"),
        (ArgumentError, lambda: distance.cdist(A, B, p=3), "takes"),
        (ArgumentError, lambda: distance.cdist(A, B, "minkowski", p=0), "positive"),
        (ArgumentError, lambda: distance.cdist(A, B, w=-W), "negative"),
        (ShapeError, lambda: distance.cdist(A, B, w=W[:2]), "w must have"),
        (ArgumentError, lambda: distance.pdist(A[:3], "mahalanobis"), "give VI"),
        (ShapeError, lambda: distance.squareform(np.ones(4)), "elements"),
        (ArgumentError, lambda: distance.squareform(np.ones((2, 2))), "symmetric"),
        (ShapeError, lambda: distance.directed_hausdorff(A[:0], B), "points"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()


WEIGHED = [
    *("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine"),
    *("euclidean", "minkowski", "sqeuclidean"),
]
TRUTH = [*BITWISE, "hamming"]


@pytest.mark.parametrize("name", [*WEIGHED, *TRUTH])
def test_distances_of_two_vectors_agree_with_scipy(name: str) -> None:
    rng = np.random.default_rng(7)
    u, v, w = rng.normal(size=(3, 6))
    if name in TRUTH:
        u, v = u > 0, v > 0
    w = np.abs(w)
    ours, theirs = getattr(distance, name), getattr(want, name)
    with fxflow.config.override(x64=True):
        # Truth values become float32.
        near = 1e-6 if name in TRUTH else 1e-12
        np.testing.assert_allclose(ours(u, v), theirs(u, v), near)
        np.testing.assert_allclose(ours(u, v, w=w), theirs(u, v, w=w), near)
    with pytest.raises(ShapeError, match="one length"):
        ours(u, v[:3])
    with pytest.raises(ShapeError, match="must be a vector"):
        ours(u[None], v)


def test_distances_with_parameters_agree_with_scipy() -> None:
    rng = np.random.default_rng(8)
    u, v, variance = np.abs(rng.normal(size=(3, 4)))
    root = rng.normal(size=(4, 4))
    with fxflow.config.override(x64=True):
        for name, more in (
            ("mahalanobis", (root @ root.T,)),
            ("seuclidean", (variance,)),
            ("minkowski", (3,)),
            ("jensenshannon", (2.0,)),
            ("jensenshannon", ()),
        ):
            got = getattr(distance, name)(u, v, *more)
            np.testing.assert_allclose(got, getattr(want, name)(u, v, *more), 1e-10)
        p, q = np.abs(rng.normal(size=(2, 3, 4)))
        np.testing.assert_allclose(
            distance.jensenshannon(p, q, axis=1, keepdims=True),
            want.jensenshannon(p, q, axis=1, keepdims=True),
            1e-10,
        )
        got = distance.correlation(u, v, centered=False)
        np.testing.assert_allclose(got, want.correlation(u, v, centered=False), 1e-10)
