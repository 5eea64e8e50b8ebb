"""Shapes and axes as users give them."""

import numpy as np
import pytest

from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import ArgumentError, AxisError, ConcretizationError, ShapeError
from fxflow.lax.arguments import (
    all_weak,
    axis_index,
    axis_indices,
    int_tuple,
    is_words,
    listed,
    shape_tuple,
)

F32 = np.dtype("f4")


def test_integers_become_python_ints() -> None:
    found = int_tuple("f", "sizes", [np.int8(1), 2])
    assert found == (1, 2)
    assert all(type(n) is int for n in found)


@pytest.mark.parametrize("bad", [3, (1.0,), ("1",), None])
def test_not_integers(bad: object) -> None:
    with pytest.raises(ArgumentError, match="f: sizes must be a sequence of integers"):
        int_tuple("f", "sizes", bad)


def test_negative_length() -> None:
    with pytest.raises(ShapeError, match=r"f: lengths in shape may not be .*\(2, -1\)"):
        shape_tuple("f", (2, -1))


def test_traced_length_says_what_to_do() -> None:
    with pytest.raises(ConcretizationError, match="static"):
        trace_flat(lambda n: [n, shape_tuple("f", (n,))], [Aval((), np.dtype("i4"))])


def test_axis_from_the_end() -> None:
    assert [axis_index("f", a, 3) for a in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert axis_indices("f", (-1, 0), 3) == (2, 0)


def test_axis_out_of_range() -> None:
    with pytest.raises(
        AxisError, match="axis 3 is out of range for 2 axes: expected -2 to 1"
    ):
        axis_index("f", 3, 2)
    with pytest.raises(AxisError, match="a 0-d array has no axes"):
        axis_index("f", 0, 0)
    with pytest.raises(ArgumentError, match=r"f: axis must be an integer, got 1\.5"):
        axis_index("f", 1.5, 2)


def test_axis_named_twice() -> None:
    with pytest.raises(AxisError, match=r"f: dimensions \(0, -2\) name an axis twice"):
        axis_indices("f", (0, -2), 2)


def test_small_helpers() -> None:
    assert listed((0, 1)) == "[0, 1]"
    assert listed(()) == "[]"
    assert all_weak([Aval((), F32, True)])
    assert not all_weak([Aval((), F32, True), Aval((), F32)])
    assert not is_words(Aval((2,), F32))
