"""Indices into references: what is static, and slices with a computed start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.ir.ref_index import OPERAND, Index, Slice, composed, read_index
from fxflow.errors import ShapeError


def test_an_index_is_split_into_static_items_and_arrays() -> None:
    at = fnp.array(2)
    index, operands = read_index((1, slice(0, 3), at, None, Slice(at, 4), Slice(1, 2)))
    assert index is not None
    assert index.items == (
        1, (0, 3, None), OPERAND, None, Slice(None, 4), Slice(1, 2),
    )  # fmt: skip
    assert operands == [at, at]
    filled = index.filled(operands)
    assert filled[:2] == (1, slice(0, 3, None))
    assert filled[4] == Slice(at, 4)
    assert str(Index((Slice(None, 4), Slice(1, 2)))) == "[*:+4, 1:+2]"


@pytest.mark.parametrize("start", [0, 1, 3, 4, 5, 9])
@pytest.mark.parametrize("jitted", [False, True])
def test_a_slice_reads_zeros_behind_the_end(start: int, jitted: bool) -> None:
    x = np.arange(10.0, dtype=np.float32).reshape(5, 2) + 1
    padded = np.concatenate([x, np.zeros((20, 2), np.float32)])

    def read(x: Any, start: Any) -> Any:
        ref = fxflow.new_ref(x)
        return ref[Slice(start, 3)], ref[Slice(start, 7), 1], ref[..., Slice(start, 2)]

    found = (fxflow.jit(read) if jitted else read)(x, np.int32(start))
    np.testing.assert_array_equal(found[0], padded[start : start + 3])
    np.testing.assert_array_equal(found[1], padded[start : start + 7, 1])
    wide = np.concatenate([x, np.zeros((5, 20), np.float32)], 1)
    np.testing.assert_array_equal(found[2], wide[:, start : start + 2])


@pytest.mark.parametrize("start", [0, 2, 3, 4, 6])
@pytest.mark.parametrize("static", [False, True])
def test_a_slice_drops_what_is_written_behind_the_end(start: int, static: bool) -> None:
    x = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    value = np.float32([[10, 20], [30, 40], [50, 60]])
    expected, added = x.copy(), x.copy()
    for i, row in enumerate(value):
        if start + i < 5:
            expected[start + i] = row
            added[start + i] += row

    def write(x: Any, at: Any) -> Any:
        one, other = fxflow.new_ref(x), fxflow.new_ref(x)
        at = start if static else at
        one[Slice(at, 3)] = value
        fxflow.ref.addupdate(other, Slice(at, 3), value)
        return one[...], other[...]

    found = fxflow.jit(write)(x, np.int32(start))
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], added)


def test_two_slices_and_an_integer() -> None:
    x = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
    ref = fxflow.new_ref(x)
    np.testing.assert_array_equal(ref[Slice(1, 2), 2, Slice(3, 2)], x[1:3, 2, 3:5])
    ref[Slice(1, 2), 2, Slice(3, 2)] = 0
    x[1:3, 2, 3:5] = 0
    np.testing.assert_array_equal(ref[...], x)


def test_the_derivative_of_a_slice() -> None:
    def f(x: Any, start: Any) -> Any:
        return fnp.sum(fxflow.new_ref(x)[Slice(start, 4)] ** 2)

    found = fxflow.grad(f)(fnp.arange(5.0), np.int32(3))
    np.testing.assert_array_equal(found, [0, 0, 0, 6, 8])


@pytest.mark.parametrize(
    "indices, value",
    [
        ((slice(1, 4), 1), [6, 7, 8]),
        ((Slice(1, 2), (1, slice(1, 3))), [7, 8]),
        ((..., (slice(1, 4), 2), Slice(1, 2)), [8, 11]),
        ((fnp.array(2), slice(0, 2), -1), 7),
        ((2, slice(None, None, 2), slice(1, 2)), [8]),
        ((slice(0, 2), None), [[[0, 1, 2], [3, 4, 5]]]),
    ],
)
def test_a_part_of_a_part_is_read_and_written_as_one_part(indices, value):
    whole = np.arange(12).reshape(4, 3)
    ref = fxflow.new_ref(fnp.array(whole))
    view = ref
    for index in indices:
        view = view.at[index]
    np.testing.assert_array_equal(view[...], value)
    assert view.shape == np.shape(value)
    view[...] = -1
    hit = np.isin(whole, value)
    np.testing.assert_array_equal(ref[...], np.where(hit, -1, whole))


def test_parts_that_are_ranges_of_axes_are_joined():
    index, rest = composed(((slice(1, 4), 0), Slice(1, 2)), (4, 3))
    assert (index, rest) == ((Slice(2, 2), 0), [])
    steps = slice(None, None, 2)
    assert composed((1, steps), (4, 3)) == ((1, slice(None)), [steps])
    # Behind the end of a part there is nothing, behind that of the array zeros.
    assert composed((slice(0, 2), Slice(1, 2)), (4,))[1] == [Slice(1, 2)]
    assert composed((Slice(3, 2),), (4,)) == ((Slice(3, 2),), [])


@pytest.mark.parametrize(
    ("start", "first"), [(0, 0), (2, 2), (4, 2), (9, 2), (-1, 2), (-4, 1), (-9, 0)]
)
def test_a_slice_that_has_to_be_inside_is_moved(start: int, first: int) -> None:
    # As JAX reads and writes `ref[jax.ds(start, 3)]` outside of kernels.
    def index_of(start: Any) -> Slice:
        return Slice(start, 3, clamps=True)

    def both(start: Any) -> Any:
        ref = fxflow.new_ref(fnp.arange(5.0))
        index = index_of(start)
        part = ref[index]
        ref[index] = fnp.full(3, 9.0)
        return part, ref[...]

    def of_a_part(start: Any) -> Any:
        return fxflow.new_ref(fnp.array(want)).at[1:4][index_of(start)]

    want = np.arange(5.0)
    want[first : first + 3] = 9
    for function in (both, fxflow.jit(both)):
        part, whole = function(fnp.array(start))
        np.testing.assert_array_equal(part, np.arange(first, first + 3.0))
        np.testing.assert_array_equal(whole, want)
    np.testing.assert_array_equal(fxflow.jit(of_a_part)(start), want[1:4])
    if 0 <= start <= 2:
        np.testing.assert_array_equal(both(start)[1], want)
    else:
        with pytest.raises(ShapeError, match="not inside of an axis of length 5"):
            both(start)
