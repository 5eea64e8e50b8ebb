"""Slices at computed places.

A start is moved so that the slice lies inside the array, as XLA does; a negative one
counts from the end first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes, promotion
from fxflow.core.arrays.array import Array
from fxflow.core.arrays.aval import Shape
from fxflow.core.arrays.convert import typeof
from fxflow.core.ir import arith
from fxflow.core.runtime.eager import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, canonical_shape, integer
from fxflow.lax.comparison import lt
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.dynamic_slice_primitives import (
    DynamicSlice,
    DynamicUpdateSlice,
    check_integers,
)
from fxflow.lax.elementwise import add
from fxflow.lax.keys import check, is_words, on_words
from fxflow.lax.reshaping import reshape, squeeze
from fxflow.lax.select import select
from fxflow.lax.slicing import index_in_dim


def _starts(
    name: str, shape: Shape, start_indices: Any, allow_negative: Any
) -> list[Any]:
    """Returns start indices as 0-d integers of one dtype, counted from the front."""
    if isinstance(start_indices, Array | np.ndarray):
        aval = typeof(start_indices)
        if aval.ndim != 1:
            raise ShapeError(
                f"{name}: start_indices must be a vector or a sequence of 0-d "
                f"integers, got {aval}"
            )
        starts = [
            index_in_dim(start_indices, i, keepdims=False) for i in range(aval.shape[0])
        ]
    else:
        starts = list(start_indices)
    if len(starts) != len(shape):
        raise ShapeError(
            f"{name}: an operand of shape {shape} needs {len(shape)} start indices, "
            f"one for each axis, got {len(starts)}"
        )
    avals = [typeof(s) for s in starts]
    check_integers(name, avals)
    if isinstance(allow_negative, bool | np.bool_):
        allow_negative = (allow_negative,) * len(starts)
    elif not isinstance(allow_negative, Sequence) or len(allow_negative) != len(starts):
        raise ArgumentError(
            f"{name}: allow_negative_indices must be a bool or one for each of "
            f"{len(starts)} axes, got {allow_negative!r}"
        )
    dtype = np.dtype(np.int32)
    strong = [a.dtype for a in avals if not a.weak_type]
    if strong:
        dtype = promotion.result_type(*strong)
    elif avals:
        dtype = avals[0].dtype
    if dtypes.bits(dtype) < 32 or not dtypes.is_integer(dtype):
        # XLA clamps in the dtype of the index, where a long axis would overflow.
        dtype = np.dtype(np.int32)
    return [
        _start(s, n, dtype, negative)
        for s, n, negative in zip(starts, shape, allow_negative, strict=True)
    ]


def _start(start: Any, length: int, dtype: Any, allow_negative: bool) -> Any:
    if isinstance(start, int | np.integer) and not isinstance(start, bool):
        known = int(start)
        if known < 0 and allow_negative:
            known += length
        # Clamping would do it as well, but the number has to fit the dtype.
        return arith.constant(min(max(known, 0), length), dtype)
    aval = typeof(start)
    if aval.dtype != dtype:
        start = convert_element_type(start, dtype)
    if not allow_negative or dtypes.is_unsigned(aval.dtype):
        return start
    moved = add(start, arith.constant(length, dtype))
    return select(lt(start, arith.constant(0, dtype)), moved, start)


@library("slice_sizes", "allow_negative_indices")
def dynamic_slice(
    operand: Any,
    start_indices: Array | Sequence[Any],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Returns a slice of static lengths at a computed start.

    A start that would make the slice reach over an end is moved until it fits.

    Args:
      operand: array of any dtype.
      start_indices: for each axis an integer (an integer vector, or a sequence of 0-d
        integers).
      slice_sizes: for each axis the length of the slice.
      allow_negative_indices: whether a negative start counts from the end (else it is
        moved to 0); one bool, or one for each axis.

    Returns:
      Array of shape `slice_sizes`.

    Raises:
      ShapeError: not one start and one length for each axis, or a length is larger than
        its axis.
      DtypeError: a start is not an integer.

    Special cases:
      A start beyond the end gives the last slice that fits.

    Example:
      >>> dynamic_slice(np.array([0, 1, 2, 3], "i4"), (3,), (2,))
      Array([2, 3], dtype=int32)

    Source: StableHLO `dynamic_slice`.
    """
    aval = typeof(operand)
    sizes = canonical_shape("dynamic_slice", slice_sizes, "slice_sizes")
    starts = _starts("dynamic_slice", aval.shape, start_indices, allow_negative_indices)
    if is_words(aval):
        inner = aval.dtype.suffix
        keys: Array = on_words(
            lambda w: DynamicSlice.bind(
                w, *starts, *_no_starts(starts, inner), slice_sizes=sizes + inner
            ),
            operand,
        )
        return keys
    result: Array = DynamicSlice.bind(operand, *starts, slice_sizes=sizes)
    return result


def _no_starts(starts: Sequence[Any], inner: Shape) -> list[Any]:
    dtype = typeof(starts[0]).dtype if starts else np.dtype(np.int32)
    return [arith.constant(0, dtype)] * len(inner)


@library("allow_negative_indices")
def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Array | Sequence[Any],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Returns an array with a part replaced at a computed start.

    A start that would make the part reach over an end is moved until it fits.

    Args:
      operand: array of any dtype.
      update: array of that dtype and as many axes, none longer.
      start_indices: for each axis an integer (an integer vector, or a sequence of 0-d
        integers).
      allow_negative_indices: whether a negative start counts from the end (else it is
        moved to 0); one bool, or one for each axis.

    Returns:
      Array of the type of `operand`.

    Raises:
      ShapeError: `update` does not fit, or there is not one start for each axis.
      DtypeError: dtypes differ, or a start is not an integer.

    Special cases:
      A start beyond the end replaces the last part that fits.

    Example:
      >>> dynamic_update_slice(np.zeros(3, "f4"), np.ones(2, "f4"), (5,))
      Array([0., 1., 1.], dtype=float32)

    Source: StableHLO `dynamic_update_slice`.
    """
    aval = typeof(operand)
    starts = _starts(
        "dynamic_update_slice", aval.shape, start_indices, allow_negative_indices
    )
    if is_words(aval):
        check(DynamicUpdateSlice, aval, typeof(update), *map(typeof, starts))
        zeros = _no_starts(starts, aval.dtype.suffix)
        keys: Array = on_words(
            lambda w, u: DynamicUpdateSlice.bind(w, u, *starts, *zeros), operand, update
        )
        return keys
    if isinstance(update, bool | int | float | complex):
        update = arith.constant(update, aval.dtype)
    result: Array = DynamicUpdateSlice.bind(operand, update, *starts)
    return result


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Slices along one axis at a computed start.

    Args:
      operand: array of any dtype.
      start_index: 0-d integer.
      slice_size: length of the slice.
      axis: the axis.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array whose `axis` has length `slice_size`.

    Raises:
      AxisError: there is no such axis.
      ShapeError: `slice_size` is larger than the axis.
      DtypeError: the start is not an integer.

    Example:
      >>> dynamic_slice_in_dim(np.array([0, 1, 2, 3], "i4"), 1, 2)
      Array([1, 2], dtype=int32)

    Source: StableHLO `dynamic_slice`.
    """
    aval = typeof(operand)
    at = canonical_axis("dynamic_slice_in_dim", axis, aval.ndim)
    sizes = list(aval.shape)
    sizes[at] = integer("dynamic_slice_in_dim", "slice_size", slice_size)
    starts: list[Any] = [0] * aval.ndim
    starts[at] = start_index
    return dynamic_slice(
        operand, starts, tuple(sizes), allow_negative_indices=allow_negative_indices
    )


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Returns one computed index along an axis.

    Args:
      operand: array of any dtype.
      index: 0-d integer; out of range, the nearest one is taken.
      axis: the axis.
      keepdims: whether the axis stays, with length 1.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array whose `axis` has length 1 or is gone.

    Raises:
      AxisError: there is no such axis.
      ShapeError: the axis is empty.
      DtypeError: the index is not an integer.

    Example:
      >>> dynamic_index_in_dim(np.array([5, 6], "i4"), 1, keepdims=False)
      Array(6, dtype=int32)

    Source: StableHLO `dynamic_slice`.
    """
    at = canonical_axis("dynamic_index_in_dim", axis, typeof(operand).ndim)
    out = dynamic_slice_in_dim(
        operand, index, 1, at, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else squeeze(out, (at,))


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replaces a part along one axis at a computed start.

    Args:
      operand: array of any dtype.
      update: array of that dtype that fits into `operand`.
      start_index: 0-d integer.
      axis: the axis.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array of the type of `operand`.

    Raises:
      AxisError: there is no such axis.
      ShapeError: `update` does not fit.
      DtypeError: dtypes differ, or the start is not an integer.

    Example:
      >>> x = np.zeros(3, "f4")
      >>> dynamic_update_slice_in_dim(x, np.ones(1, "f4"), 1, axis=0)
      Array([0., 1., 0.], dtype=float32)

    Source: StableHLO `dynamic_update_slice`.
    """
    ndim = typeof(operand).ndim
    starts: list[Any] = [0] * ndim
    starts[canonical_axis("dynamic_update_slice_in_dim", axis, ndim)] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replaces one computed index along an axis.

    Args:
      operand: array of any dtype.
      update: array of that dtype, of the shape of `operand` without `axis` or with
        length 1 there.
      index: 0-d integer; out of range, the nearest one is replaced.
      axis: the axis.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array of the type of `operand`.

    Raises:
      AxisError: there is no such axis.
      ShapeError: `update` does not fit.
      DtypeError: dtypes differ, or the index is not an integer.

    Example:
      >>> dynamic_update_index_in_dim(np.zeros(2, "f4"), np.float32(1), 1, axis=0)
      Array([0., 1.], dtype=float32)

    Source: StableHLO `dynamic_update_slice`.
    """
    ndim = typeof(operand).ndim
    at = canonical_axis("dynamic_update_index_in_dim", axis, ndim)
    shape = typeof(update).shape
    if len(shape) != ndim:
        update = reshape(update, (*shape[:at], 1, *shape[at:]))
    return dynamic_update_slice_in_dim(
        operand, update, index, at, allow_negative_indices=allow_negative_indices
    )
