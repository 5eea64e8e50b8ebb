"""Rearranging elements against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DtypeError,
    OutOfRangeError,
    ShapeError,
)
from tests.numpy.oracle import arrays, check, quick, same

X = np.arange(12, dtype=np.float32).reshape(3, 4)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
V = np.arange(5, dtype=np.int32)


@pytest.mark.parametrize("reps", (2, (2, 1, 3), (2,), (0, 1), ()))
def test_tile(reps: Any) -> None:
    check("tile", X, reps)
    check("tile", np.float32(3), reps, compiled=False)


def test_repeat() -> None:
    check("repeat", X, 2, 1)
    check("repeat", X, 3)
    check("repeat", V, 0)
    check("repeat", X, np.array([1, 0, 2]), 0, compiled=False)
    assert same(np.repeat(X, [1, 0, 2], 0), fnp.repeat(X, [1, 0, 2], 0))
    assert fnp.repeat(V, [1, 0, 2, 1, 1], total_repeat_length=3).tolist() == [0, 2, 2]
    assert fnp.repeat(V[:2], 2, total_repeat_length=6).tolist() == [0, 0, 1, 1, 1, 1]


def test_repeat_with_traced_counts() -> None:
    repeat = fxflow.jit(
        lambda n, k: fnp.repeat(V, n, total_repeat_length=k), static_argnums=1
    )
    counts = np.array([1, 0, 2, 3, 1])
    assert same(np.repeat(V, counts), repeat(counts, 7))
    assert repeat(counts, 4).tolist() == [0, 2, 2, 3]
    assert repeat(counts, 9).tolist() == [0, 2, 2, 3, 3, 3, 4, 4, 4]
    with pytest.raises(ConcretizationError, match="total_repeat_length"):
        fxflow.jit(lambda n: fnp.repeat(V, n))(counts)


@quick
@given(x=arrays(), axis=st.sampled_from((None, 0, -1)))
def test_flip_twice_is_nothing(x: np.ndarray, axis: Any) -> None:
    if x.ndim or axis is None:
        check("flip", x, axis, compiled=False)
        assert same(x, fnp.flip(fnp.flip(x, axis), axis))


def test_flips_and_turns() -> None:
    check("flip", CUBE, (0, 2))
    check("flipud", V)
    check("fliplr", X)
    for k in range(-1, 5):
        check("rot90", X, k)
        check("rot90", CUBE, k, (0, 2), compiled=False)


@pytest.mark.parametrize(
    ("shift", "axis"),
    [(2, None), (-1, 0), ((1, 2), (0, 1)), (1, (0, 1)), ((1, 2), 0), (7, 1), (0, 0)],
)
def test_roll(shift: Any, axis: Any) -> None:
    check("roll", X, shift, axis)
    got = fxflow.jit(lambda x, s: fnp.roll(x, s, axis))(X, shift)
    assert same(np.roll(X, shift, axis), got)


def test_resize_and_trim() -> None:
    for shape in ((3, 5), (2, 2), 0, 7):
        check("resize", V, shape)
    for x in (np.array([0, 0, 1, 2, 0]), np.zeros(3), np.ones(2)):
        for trim in ("f", "b", "fb"):
            assert same(np.trim_zeros(x, trim), fnp.trim_zeros(x, trim))
    with pytest.raises(ArgumentError, match="trim must be"):
        fnp.trim_zeros(V, "x")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.tile(X, -1), ShapeError, "tile: lengths in reps must not be"),
        (lambda: fnp.repeat(X, -1), ShapeError, "must not be negative"),
        (lambda: fnp.repeat(X, 1.5), DtypeError, "repeats must be integers"),
        (lambda: fnp.repeat(X, [1, 2], 0), ShapeError, "do not fit axis 0"),
        (lambda: fnp.flip(X, 2), AxisError, "flip: axis 2 is out of range"),
        (lambda: fnp.fliplr(V), AxisError, "axis 1 is out of range"),
        (lambda: fnp.rot90(X, 1, (0, 0)), AxisError, "repeated axis"),
        (
            lambda: fnp.roll(X, (1, 2, 3), (0, 1)),
            ArgumentError,
            "3 shifts do not fit 2",
        ),
        (lambda: fnp.delete(V, 9), OutOfRangeError, "index 9 is out of range"),
        (lambda: fnp.delete(V, 1.5), DtypeError, "indices must be integers"),
        (lambda: fnp.delete(V, np.array([True])), OutOfRangeError, "boolean mask"),
        (lambda: fnp.insert(V, 9, 1), OutOfRangeError, "index 9 is out of range"),
        (lambda: fnp.insert(V, [1, 2], [1, 2, 3]), ShapeError, "do not broadcast"),
        (lambda: fnp.unravel_index(1.5, (2,)), DtypeError, "takes integers"),
        (
            lambda: fnp.ravel_multi_index((5,), (3,)),
            ArgumentError,
            "an index is out of range for axis 0 of length 3",
        ),
        (
            lambda: fnp.ravel_multi_index((1, 2), (3,)),
            ArgumentError,
            "do not fit 1 axes",
        ),
        (
            lambda: fnp.apply_over_axes(lambda x, d: x.ravel(), CUBE, 0),
            ShapeError,
            "must keep the axis",
        ),
    ],
)
def test_counts_indices_and_axes_that_do_not_fit_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
