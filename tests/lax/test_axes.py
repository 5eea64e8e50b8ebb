"""Axes, shapes and integers as users give them."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import ArgumentError, AxisError, ConcretizationError, ShapeError
from fxflow.lax.axes import (
    canonical_axes,
    canonical_axis,
    canonical_shape,
    distinct_axes,
    hashable,
    int_tuple,
    kept_axes,
    shape_or_length,
    without,
)


def test_integers_become_python_ints() -> None:
    found = int_tuple("f", "sizes", [np.int8(1), 2])
    assert found == (1, 2)
    assert all(type(n) is int for n in found)


@pytest.mark.parametrize("bad", [3, (1.0,), ("1",), None])
def test_not_integers(bad: object) -> None:
    with pytest.raises(ArgumentError, match="f: sizes must be a sequence of integers"):
        int_tuple("f", "sizes", bad)


def test_negative_length() -> None:
    with pytest.raises(
        ShapeError, match=r"f: lengths in shape must not be .*\(2, -1\)"
    ):
        canonical_shape("f", (2, -1))


def test_traced_length_says_what_to_do() -> None:
    with pytest.raises(ConcretizationError, match="static"):
        trace_flat(
            lambda n: [n, canonical_shape("f", (n,))], [Aval((), np.dtype("i4"))]
        )


def test_axis_from_the_end() -> None:
    assert [canonical_axis("f", a, 3) for a in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert distinct_axes("f", (-1, 0), 3) == (2, 0)


def test_axis_out_of_range() -> None:
    with pytest.raises(
        AxisError, match="axis 3 is out of range for 2 axes: expected -2 to 1"
    ):
        canonical_axis("f", 3, 2)
    with pytest.raises(AxisError, match="a 0-d array has no axes"):
        canonical_axis("f", 0, 0)
    with pytest.raises(ArgumentError, match=r"f: axis must be an integer, got 1\.5"):
        canonical_axis("f", 1.5, 2)


def test_axis_named_twice() -> None:
    with pytest.raises(AxisError, match=r"f: repeated axis in dimensions \(0, -2\)"):
        distinct_axes("f", (0, -2), 2)


@pytest.mark.parametrize("shape", (-1, (2, -3)))
def test_negative_lengths(shape: Any) -> None:
    with pytest.raises(
        ShapeError, match="zeros: lengths in shape must not be negative"
    ):
        fnp.zeros(shape)


def test_lengths_that_are_not_integers() -> None:
    assert shape_or_length("f", np.int8(3)) == (3,)
    assert shape_or_length("f", fnp.array([2, 3])) == (2, 3)
    with pytest.raises(ArgumentError, match="f: shape must be an integer or a seq"):
        shape_or_length("f", 2.5)
    with pytest.raises(ArgumentError, match="zeros: shape must be a sequence of"):
        fnp.zeros((2.5,))
    with pytest.raises(fxflow.errors.TracerIntegerConversionError):
        fxflow.jit(lambda n: fnp.zeros((n,)))(2)


def test_axes_are_counted_from_the_front() -> None:
    assert canonical_axis("f", np.int8(-1), 3) == 2
    assert canonical_axes("f", None, 2) == (0, 1)
    assert canonical_axes("f", -1, 2) == (1,)
    assert canonical_axes("f", [-1, 0], 2) == (1, 0)
    assert hashable([1, 2]) == hashable(range(1, 3)) == (1, 2)


@pytest.mark.parametrize(
    ("axis", "error", "text"),
    [
        (1, AxisError, "f: axis 1 is out of range for 1 axis"),
        ((0, -1), AxisError, r"f: repeated axis in axis \(0, -1\)"),
        ("x", ArgumentError, "f: axis must be an integer, got 'x'"),
    ],
)
def test_axes_that_are_out_of_range_or_repeated_are_refused(
    axis: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        canonical_axes("f", axis, 1)


def test_axes_that_are_reduced_and_kept() -> None:
    assert without((2, 3, 4), (1,)) == (2, 4)
    assert kept_axes(3, (0, 2)) == (1,)
