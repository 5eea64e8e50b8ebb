"""Values other than numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.train import logs
from fxflow.train.logs.values import counted, finite, pixels


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 5), (4, 5, 1)),
        ((4, 5, 1), (4, 5, 1)),
        ((4, 5, 3), (4, 5, 3)),
        ((4, 5, 4), (4, 5, 4)),
        ((1, 4, 5, 3), (4, 5, 3)),
        ((5, 4, 5, 3), (8, 15, 3)),
    ],
)
def test_images_have_several_shapes(
    shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    for dtype in (np.uint8, np.float32, fnp.bfloat16):
        found = pixels("a", logs.Image(fnp.ones(shape, dtype)))
        assert (found.shape, found.dtype) == (expected, np.uint8)


def test_pixels_are_clipped_and_scaled() -> None:
    given = np.array([[0.0, 0.5, 1.0, 2.0, -1.0, np.nan, np.inf]])
    found = pixels("a", logs.Image(given))
    assert found.ravel().tolist() == [0, 128, 255, 255, 0, 0, 255]


def test_several_images_are_arranged_in_a_grid() -> None:
    numbers = np.arange(5, dtype=np.uint8).reshape(5, 1, 1, 1)
    found = pixels("a", logs.Image(numbers))
    assert found[..., 0].tolist() == [[0, 1, 2], [3, 4, 0]]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.ones(3), r"a must be an image .* its shape is \(3,\)"),
        (np.ones((2, 2, 2)), "a must be an image"),
        (np.ones((0, 2)), "a must be an image"),
        (np.ones((2, 2), int), "the pixels of a must be floats"),
    ],
)
def test_values_that_are_not_images_are_refused(image: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        pixels("a", logs.Image(image))


def test_finite_numbers_are_separated_and_counted() -> None:
    good, bad = finite("a", fnp.array([[1.0, fnp.nan], [-fnp.inf, 2.0]]))
    assert (good.tolist(), bad) == ([1.0, 2.0], 2)
    for values in (np.array([True, False]), np.array([2**63 - 1]), fnp.int8(3), []):
        good, bad = finite("a", values)
        assert (good.tolist(), bad) == (np.ravel(values).astype(float).tolist(), 0)
    with pytest.raises(ArgumentError, match=r"a must be real .* log their absolute"):
        finite("a", fnp.array([1j]))


LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("bins", [1, 7, 64])
@pytest.mark.parametrize(
    "values",
    [
        [1e20] * 4,
        [1, np.nextafter(1, 2)],
        [0, 5e-324],
        [-5e-324, 5e-324],
        [-1e-310, 0],
        [-1.7e308, 1.7e308],
        [1e308, LARGEST],
        [LARGEST],
        [-LARGEST, -LARGEST],
        [0.0],
        [-3, 2, 2],
    ],
    ids=str,
)
def test_histograms_of_close_and_distant_values(values: list[float], bins: int) -> None:
    good = np.array(values, np.float64)
    counts, edges = counted(good, bins)
    assert (counts.sum(), len(counts)) == (len(values), bins)
    assert np.isfinite(edges).all() and (np.diff(edges / 2) >= 0).all()
    assert edges[0] <= good.min() and good.max() <= edges[-1]


def test_histograms_are_those_of_numpy() -> None:
    good = np.random.default_rng(0).normal(size=999)
    for found, expected in zip(counted(good, 64), np.histogram(good, 64), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_graphs_of_functions_from_arrays_or_types() -> None:
    shape = fxflow.ShapeDtypeStruct((2,), np.float32)
    by_type = logs.Graph(fnp.sin, shape).graph
    assert str(by_type) == str(logs.Graph(fxflow.make_graph(fnp.sin)(shape)).graph)
