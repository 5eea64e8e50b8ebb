"""Erosions and dilations beside SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.ndimage as want

import fxflow
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(0)
SHAPE = RNG.random((12, 13)) < 0.6
MASK = RNG.random((12, 13)) < 0.7
GREY = RNG.integers(0, 99, (9, 11)).astype(np.int32)
CROSS = np.array([[0, 1, 0, 1], [1, 1, 1, 0], [0, 1, 0, 0]])
HEIGHTS = np.array([[0, 1, 2, 1], [3, 1, 0, 0], [0, 1, 0, 0]])
BINARY = ["binary_erosion", "binary_dilation", "binary_opening", "binary_closing"]
LEVELS = [
    *("grey_erosion", "grey_dilation", "grey_opening", "grey_closing"),
    *("morphological_gradient", "morphological_laplace"),
    *("white_tophat", "black_tophat"),
]


@pytest.mark.parametrize(
    "name", [BINARY[0], *(pytest.param(n, marks=pytest.mark.slow) for n in BINARY[1:])]
)
def test_shapes_agree_with_scipy(name: str) -> None:
    structures = (None, np.ones((2, 3)), CROSS)
    settings = [(None, 0), (MASK, (0, -1)), (None, (0, -1))]
    for structure, border, count, (mask, origin) in itertools.product(
        structures, (0, 1), (1, 2, -1), settings
    ):
        if structure is not None and (border, count) in ((0, 2), (1, 1)):
            continue
        s = {"border_value": border, "mask": mask, "origin": origin}
        got = getattr(ndimage, name)(SHAPE, structure, count, **s)
        expected = getattr(want, name)(SHAPE, structure, count, **s)
        np.testing.assert_array_equal(got, expected, f"{structure} {count} {s}")
    got = getattr(ndimage, name)(SHAPE, axes=(1,), output=np.uint8)
    expected = getattr(want, name)(SHAPE, axes=(1,), output=np.uint8)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "name",
    [*LEVELS[:2], *(pytest.param(n, marks=pytest.mark.slow) for n in LEVELS[2:])],
)
def test_grey_levels_agree_with_scipy(name: str) -> None:
    around: list[dict[str, Any]] = [
        {"size": 3, "origin": (1, -1)},
        {"size": (2, 5)},
        {"footprint": CROSS},
        {"structure": HEIGHTS},
        {"structure": HEIGHTS, "footprint": CROSS, "origin": (0, 1)},
    ]
    with fxflow.config.override(x64=True):
        for x, s, mode in itertools.product(
            (GREY, GREY / 7), around, ("wrap", "reflect")
        ):
            got = getattr(ndimage, name)(x, mode=mode, **s)
            expected = getattr(want, name)(x, mode=mode, **s)
            np.testing.assert_allclose(got, expected, 1e-12, err_msg=f"{s} {mode}")


def test_holes_are_filled_and_seeds_grow() -> None:
    shape = RNG.random((40, 41)) < 0.55
    seeds = shape & (RNG.random(shape.shape) < 0.02)
    got = fxflow.jit(ndimage.binary_fill_holes)(shape)
    np.testing.assert_array_equal(got, want.binary_fill_holes(shape))
    got = ndimage.binary_propagation(seeds, mask=shape)
    np.testing.assert_array_equal(got, want.binary_propagation(seeds, mask=shape))
    both = fxflow.vmap(ndimage.binary_fill_holes)(np.stack([shape, shape[::-1]]))
    np.testing.assert_array_equal(both[1], want.binary_fill_holes(shape[::-1]))


def test_patterns_are_found() -> None:
    hit, miss = np.array([[0, 1, 0], [0, 1, 1]]), np.array([[1, 0, 0], [0, 0, 0]])
    for args in ((), (hit,), (hit, miss)):
        for origin in ((0, 0), (0, 1)):
            got = ndimage.binary_hit_or_miss(SHAPE, *args, origin1=origin)
            expected = want.binary_hit_or_miss(SHAPE, *args, origin1=origin)
            np.testing.assert_array_equal(got, expected)


def test_structures_agree_with_scipy() -> None:
    for rank, near in ((0, 1), (1, 1), (2, 1), (3, 2), (2, 5)):
        got = ndimage.generate_binary_structure(rank, near)
        np.testing.assert_array_equal(got, want.generate_binary_structure(rank, near))
    for count in (1, 2, 3):
        got = ndimage.iterate_structure(CROSS, count)
        np.testing.assert_array_equal(got, want.iterate_structure(CROSS, count))
    _, origin = ndimage.iterate_structure(CROSS, 2, 1)
    assert origin == [2, 2]


def test_grey_levels_have_derivatives() -> None:
    x = np.array([1.0, 5.0, 2.0, 4.0], np.float32)
    heights = np.array([0.5, 0.0, 0.25], np.float32)
    run = lambda x, h: ndimage.grey_dilation(x, structure=h)[2]
    slopes = fxflow.jit(fxflow.grad(run, (0, 1)))(x, heights)
    # The neighbour on the left, 5, plus what stands on the right of the structure.
    assert slopes[0].tolist() == [0, 1, 0, 0] and slopes[1].tolist() == [0, 0, 1]


def test_bad_structures_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: ndimage.binary_erosion(SHAPE, np.ones(3)), "2 axes"),
        (ShapeError, lambda: ndimage.binary_erosion(SHAPE, mask=MASK[1:]), "mask must"),
        (ArgumentError, lambda: ndimage.binary_erosion(SHAPE, None, 1.5), "iterations"),
        (DtypeError, lambda: ndimage.binary_erosion(SHAPE * 1j), "no order"),
        (ArgumentError, lambda: ndimage.grey_erosion(GREY), "size, footprint or"),
        (
            ShapeError,
            lambda: ndimage.grey_erosion(GREY, structure=np.ones(3)),
            "2 axes",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(ArgumentError, match="structure must be known"):
        fxflow.jit(lambda s: ndimage.binary_erosion(SHAPE, s))(CROSS)
