"""Axes and shapes as users give them."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.numpy import axes


@pytest.mark.parametrize("shape", (-1, (2, -3)))
def test_negative_lengths(shape: Any) -> None:
    with pytest.raises(ShapeError, match="zeros: lengths must not be negative"):
        fnp.zeros(shape)


def test_lengths_that_are_not_integers() -> None:
    with pytest.raises(ArgumentError, match="zeros: lengths must be integers"):
        fnp.zeros((2.5,))
    with pytest.raises(fxflow.errors.TracerIntegerConversionError):
        fxflow.jit(lambda n: fnp.zeros((n,)))(2)


def test_axes_are_counted_from_the_front() -> None:
    assert axes.canonical_axis("f", np.int8(-1), 3) == 2
    assert axes.canonical_axes("f", None, 2) == (0, 1)
    assert axes.canonical_axes("f", -1, 2) == (1,)
    assert axes.canonical_axes("f", [-1, 0], 2) == (1, 0)
    assert axes.hashable([1, 2]) == axes.hashable(range(1, 3)) == (1, 2)


@pytest.mark.parametrize(
    ("axis", "error", "text"),
    [
        (1, AxisError, "f: axis 1 is out of range for an array of 1 axis"),
        ((0, -1), AxisError, r"f: axis \(0, -1\) names an axis twice"),
        ("x", ArgumentError, "f: axis must be an integer, got 'x'"),
    ],
)
def test_mistakes(axis: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        axes.canonical_axes("f", axis, 1)
