"""Nearest codes, beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import cluster
from fxflow.scipy.cluster.vq import vq

RNG = np.random.default_rng(0)


def test_codes_and_distances_agree_with_scipy() -> None:
    for shape in ((20, 3), (20,), (20, 7), (4000, 6)):
        x, codes = RNG.normal(size=shape), RNG.normal(size=(5, *shape[1:]))
        want = scipy.cluster.vq.vq(x, codes)
        for function in (vq, fxflow.jit(vq)):
            got = function(x, codes)
            np.testing.assert_array_equal(got[0], want[0])
            np.testing.assert_allclose(got[1], want[1], 1e-5)
    x = np.array([[1.0, 0], [3, 0]])
    slope = fxflow.grad(lambda x: vq(x, np.eye(2))[1].sum())(x)
    np.testing.assert_allclose(slope, [[0, 0], [1, 0]])
    assert np.isnan(vq(np.array([np.nan]), np.ones(2))[1]).all()
    for x, codes in [(np.ones((2, 3)), np.ones((2, 2))), (np.ones(2), np.ones(0))]:
        with pytest.raises(ShapeError):
            vq(x, codes)


def test_codes_of_given_starts_agree_with_scipy() -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 4])
    start = x[[0, 1]]
    with fxflow.config.override(x64=True):
        codes, labels = cluster.vq.kmeans2(x, start, minit="matrix")
        expected = scipy.cluster.vq.kmeans2(x, start, minit="matrix")
        np.testing.assert_allclose(codes, expected[0], 1e-9)
        np.testing.assert_array_equal(labels, expected[1])
        got, mean = cluster.vq.kmeans(x, start)
        expected = scipy.cluster.vq.kmeans(x, start)
        np.testing.assert_allclose(got, expected[0], 1e-9)
        np.testing.assert_allclose(mean, expected[1], 1e-4)
        np.testing.assert_allclose(
            cluster.vq.whiten(x), scipy.cluster.vq.whiten(x), 1e-9
        )
        # A code is the mean of its observations.
        slope = fxflow.grad(
            lambda x: cluster.vq.kmeans2(x, start, minit="matrix")[0][0, 0]
        )(x)
        np.testing.assert_allclose(slope[labels == 0, 0], 1 / (labels == 0).sum())


def test_random_starts_find_the_groups() -> None:
    rng = np.random.default_rng(3)
    middles = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    x = np.concatenate([rng.normal(size=(20, 2)) + m for m in middles])
    key = fxflow.random.key(0)
    best, mean = cluster.vq.kmeans(x, 3, key=key)
    assert mean < 2 and cluster.vq.vq(middles, best)[1].max() < 1
    for start in ("++", "points", "random"):
        codes, labels = fxflow.jit(
            lambda x, key, s=start: cluster.vq.kmeans2(x, 3, minit=s, key=key)
        )(x, key)
        assert codes.shape == (3, 2) and labels.shape == (60,)
    codes, _ = cluster.vq.kmeans2(x, 3, minit="++", key=key)
    assert cluster.vq.vq(middles, codes)[1].max() < 1


def test_bad_codes_are_refused() -> None:
    x = np.ones((5, 2))
    refused: list[tuple[type[Exception], Any, str]] = [
        (ArgumentError, lambda: cluster.vq.kmeans2(x, 2), "give key"),
        (ArgumentError, lambda: cluster.vq.kmeans(x, 2), "give key"),
        (ArgumentError, lambda: cluster.vq.kmeans2(x, 2, minit="no"), "minit must be"),
        (ArgumentError, lambda: cluster.vq.kmeans2(x, 0), "k must be at least 1"),
        (
            ShapeError,
            lambda: cluster.vq.kmeans2(x, np.ones((2, 3)), minit="matrix"),
            "codes",
        ),
        (ShapeError, lambda: cluster.vq.whiten(np.ones((2, 2, 2))), "vectors"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()


def test_codes_without_observations_are_reported() -> None:
    x, start = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 50.0])
    run = lambda x, **more: cluster.vq.kmeans2(x, start, minit="matrix", **more)
    with pytest.warns(UserWarning, match="a code has no observations"):
        codes, _ = run(x)
    np.testing.assert_allclose(codes, [0, 1.5, 50])
    with pytest.raises(ArgumentError, match="a code has no observations"):
        run(x, missing="raise")
    with pytest.raises(ConcretizationError, match="leave out missing"):
        fxflow.jit(lambda x: run(x, missing="raise"))(x)
    np.testing.assert_allclose(fxflow.jit(run)(x)[0], codes)
    with pytest.raises(ArgumentError, match='missing must be "warn" or "raise"'):
        run(x, missing="drop")
