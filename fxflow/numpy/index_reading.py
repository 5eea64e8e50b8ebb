"""Reading what an index names, as operations.

Slices and integers are one `slice`, or one `dynamic_slice` where an integer is traced;
arrays are one `gather`. The parts that turn index arrays into vectors serve `x.at` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, Aval, Shape, as_array, dtypes, typeof
from fxflow.core.sizes import is_at_least, is_symbolic
from fxflow.errors import OutOfRangeError, ShapeError
from fxflow.lax.gather_scatter.dimension_numbers import GatherScatterMode
from fxflow.lax.gather_scatter.gather import fill_param, fill_scalar
from fxflow.numpy.index_plans import ADVANCED, IndexPlan, plan_of


def get(
    x: Any,
    arrays: Sequence[Any],
    static: tuple[Any, ...],
    mode: Any = None,
    fill_value: Any = None,
    unique: bool = False,
    sorted_: bool = False,
    wrap: bool = True,
) -> Array:
    """Returns the elements that an index names.

    Args:
      x: array or tracer.
      arrays: from `read`.
      static: from `read`.
      mode: what integers do that are out of range: "clip", "fill", or
        "promise_in_bounds" (the default, which clips in practice, and for which a
        Python integer out of range is an error).
      fill_value: for mode "fill"; None is nan, or the extreme integer.
      unique: a promise that no element is named twice.
      sorted_: a promise that the arrays are sorted.
      wrap: whether negative integers in arrays count from the end.

    Returns:
      Array.
    """
    mode = mode_of(mode)
    plan = plan_of(static, x.aval, "index", mode, wrap)
    if plan.outside:
        dtype = x.aval.dtype
        number = fill_param(fill_value, x.aval, GatherScatterMode.FILL_OR_DROP)
        fill = fill_scalar(number, dtype.base if dtypes.is_key(dtype) else dtype)
        shape = result_shape(plan, index_shape(arrays, plan, "index"))
        return lax.full(shape, fill, dtype)
    if not plan.advanced and not any(a.kind == "scalar" for a in plan.axes):
        x = _sliced(x, plan)
        return _laid_out(x, plan, ())
    # A dynamic slice is clamped, which cannot be distinguished from an index in bounds.
    if not plan.advanced and mode is not GatherScatterMode.FILL_OR_DROP:
        x = _dynamically_sliced(x, arrays, plan, wrap)
        return _laid_out(x, plan, ())
    return _gathered(x, arrays, plan, mode, fill_value, unique, sorted_, wrap)


def mode_of(mode: Any) -> GatherScatterMode | None:
    """Returns a mode by its name; None stays None.

    Raises:
      ArgumentError: unknown mode.
    """
    return None if mode is None else GatherScatterMode.from_any(mode)


def index_shape(arrays: Sequence[Any], plan: IndexPlan, name: str) -> Shape:
    """Returns the shape that the arrays of an index have together."""
    if not plan.advanced:
        return ()
    return joint_index_shape(
        [
            (plan.constants[-1 - a.array],)
            if a.array < 0
            else typeof(arrays[a.array]).shape
            for a in plan.axes
            if a.kind in ("array", "scalar")
        ],
        name,
    )


def result_shape(plan: IndexPlan, middle: Shape) -> Shape:
    """Returns the shape of the result, of which arrays have `middle`."""
    out: list[int] = []
    for d in plan.layout:
        if d == ADVANCED:
            out.extend(middle)
        else:
            out.append(1 if d == -1 else plan.axes[d].length)
    return tuple(out)


def _reshaped(x: Any, shape: Shape) -> Array:
    return x if x.aval.shape == shape else lax.reshape(x, shape)


def _sliced(x: Any, plan: IndexPlan) -> Array:
    """Returns `x` cut by the slices and ints; an int leaves an axis of length 1."""
    starts, limits, strides, reverse = [], [], [], []
    behind = [0] * len(plan.shape)
    for d, (axis, length) in enumerate(zip(plan.axes, plan.shape, strict=True)):
        if axis.kind == "int":
            starts.append(axis.start)
            limits.append(axis.start + 1)
            strides.append(1)
        elif axis.kind != "slice":
            starts.append(0)
            limits.append(length)
            strides.append(1)
        elif not axis.length:
            starts.append(0)
            limits.append(0)
            strides.append(1)
        elif axis.step > 1 and is_symbolic((axis.length,)):
            # Where a call has none, or few: these bounds hold past the end.
            behind[d] = axis.step - 1
            starts.append(axis.start)
            limits.append(axis.start + axis.length * axis.step)
            strides.append(axis.step)
        else:
            last = axis.start + (axis.length - 1) * axis.step
            ends = (axis.start, last) if axis.step > 0 else (last, axis.start)
            starts.append(ends[0])
            limits.append(ends[1] + 1)
            strides.append(abs(axis.step) if axis.length != 1 else 1)
            if axis.step < 0 and axis.length != 1:
                reverse.append(d)
    if any(behind):
        x = lax.pad(x, 0, [(0, n, 0) for n in behind])
    if any(starts) or tuple(limits) != plan.shape or any(s != 1 for s in strides):
        x = lax.slice(x, starts, limits, None if max(strides) == 1 else strides)
    return lax.rev(x, reverse) if reverse else x


def _laid_out(x: Any, plan: IndexPlan, middle: Shape) -> Array:
    """Returns `x`, of sliced axes and axes of length 1, as the layout says."""
    return _reshaped(x, result_shape(plan, middle))


def index_operand(value: Any, length: int, wrap: bool = True) -> Any:
    """Returns an integer array as an index: i32 at least, negative ones counted back.

    Args:
      value: array, tracer or NumPy array of integers.
      length: length of the axis.
      wrap: whether negative ones count from the end.
    """
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.itemsize < 4 or (
            value.dtype.kind == "i" and value.itemsize == 8
        ):
            value = value.astype(np.int64)
        if wrap and value.dtype.kind == "i":
            value = np.where(value < 0, value + length, value)
        if value.dtype == np.int64 and not is_at_least(length, 2**31):
            # Far outside stays outside.
            value = np.clip(value, -(2**31), 2**31 - 1).astype(np.int32)
        return as_array(value)
    aval = value.aval
    if aval.weak_type or dtypes.bits(aval.dtype) < 32:
        unsigned = dtypes.is_unsigned(aval.dtype)
        value = lax.convert_element_type(
            value, dtypes.uint32 if unsigned else dtypes.int32
        )
        aval = value.aval
    if wrap and dtypes.is_signed(aval.dtype):
        value = lax.select(lax.lt(value, 0), lax.add(value, length), value)
    return value


def _dynamically_sliced(
    x: Any, arrays: Sequence[Any], plan: IndexPlan, wrap: bool
) -> Array:
    """Returns `x` cut by slices, ints and traced integers, which are clamped."""
    strided = any(a.is_strided for a in plan.axes)
    # A dynamic slice has no strides: what is static is cut off before.
    if strided:
        x = _sliced(x, plan)
    starts: list[Any] = []
    sizes: list[int] = []
    for axis, length in zip(plan.axes, plan.shape, strict=True):
        if axis.kind == "scalar":
            starts.append(index_operand(arrays[axis.array], length, wrap))
            sizes.append(1)
        elif axis.kind == "int":
            starts.append(0 if strided else axis.start)
            sizes.append(1)
        else:
            starts.append(0 if strided or not axis.length else axis.start)
            sizes.append(axis.length)
    known = {str(s.aval.dtype) for s in starts if not isinstance(s, int)}
    if len(known) > 1:
        starts = [
            s if isinstance(s, int) else lax.convert_element_type(s, dtypes.int32)
            for s in starts
        ]
    if not any(n for n in x.aval.shape) and x.aval.ndim:
        _refuse_empty(x.aval, plan)
    return lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)


def _refuse_empty(aval: Aval, plan: IndexPlan) -> None:
    for d, axis in enumerate(plan.axes):
        if axis.kind != "slice" and not plan.shape[d]:
            raise OutOfRangeError(
                f"index: cannot index axis {d} of {aval}: its length is 0"
            )


def array_values(arrays: Sequence[Any], plan: IndexPlan, wrap: bool) -> dict[int, Any]:
    """Returns for each axis picked by an array or integer its indices."""
    found: dict[int, Any] = {}
    for d, axis in enumerate(plan.axes):
        if axis.kind == "int":
            found[d] = as_array(np.int32(axis.start))
        elif axis.kind != "slice":
            if axis.array < 0:
                count = plan.constants[-1 - axis.array]
                found[d] = as_array(np.zeros(count, np.int32))
            else:
                found[d] = index_operand(arrays[axis.array], plan.shape[d], wrap)
    return found


def common_index_dtype(values: Sequence[Any]) -> Any:
    """Returns the dtype that holds all of several index arrays."""
    known = {v.aval.dtype for v in values}
    if len(known) == 1:
        return known.pop()
    wide = any(dtypes.is_wide(d) for d in known)
    return dtypes.int64 if wide else dtypes.int32


def joint_index_shape(shapes: Sequence[Shape], name: str) -> Shape:
    """Returns the shape that index arrays broadcast to."""
    try:
        return lax.broadcast_shapes(*shapes)
    except ShapeError:
        listed = ", ".join(map(str, shapes))
        raise OutOfRangeError(
            f"{name}: index arrays of shapes {listed} do not broadcast together"
        ) from None


def stack_columns(columns: Sequence[Any], shape: Shape) -> Any:
    """Returns index arrays, broadcast to a shape, as the columns of index vectors."""
    dtype = common_index_dtype(columns)
    wide = []
    for column in columns:
        if column.aval.dtype != dtype:
            column = lax.convert_element_type(column, dtype)
        lead = len(shape) - column.aval.ndim
        wide.append(
            lax.broadcast_in_dim(column, (*shape, 1), tuple(range(lead, len(shape))))
        )
    return wide[0] if len(wide) == 1 else lax.concatenate(wide, len(shape))


def _gathered(
    x: Any,
    arrays: Sequence[Any],
    plan: IndexPlan,
    mode: Any,
    fill_value: Any,
    unique: bool,
    sorted_: bool,
    wrap: bool,
) -> Array:
    """Returns `x` picked by arrays, after it was cut by slices and ints."""
    middle = index_shape(arrays, plan, "index")
    x = _reshaped(x, plan.shape)
    x = _sliced(x, plan)
    # Ints are cut off already; the others are picked by vectors.
    picked = [d for d, a in enumerate(plan.axes) if a.kind in ("array", "scalar")]
    values = array_values(arrays, plan, wrap)
    if any(not plan.shape[d] for d in picked):
        if all(middle):
            _refuse_empty(x.aval, plan)
        return _nothing(x, plan, middle)
    vectors = stack_columns([values[d] for d in picked], middle)
    layout = plan.layout if plan.advanced else (*plan.layout, ADVANCED)
    offset: list[int] = []
    position = 0
    for d in layout:
        if d == ADVANCED:
            position += len(middle)
        elif d >= 0:
            offset.append(position)
            position += 1
    ints = [d for d, a in enumerate(plan.axes) if a.kind == "int"]
    sizes = tuple(a.length if a.kind == "slice" else 1 for a in plan.axes)
    out = lax.gather(
        x,
        vectors,
        lax.GatherDimensionNumbers(
            offset_dims=tuple(offset),
            collapsed_slice_dims=tuple(sorted((*picked, *ints))),
            start_index_map=tuple(picked),
        ),
        sizes,
        # Nothing need be written: XLA's gather clamps by itself.
        mode=GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else mode,
        fill_value=fill_value,
        unique_indices=unique,
        indices_are_sorted=sorted_,
    )
    return _laid_out(out, plan, middle)


def _nothing(x: Any, plan: IndexPlan, middle: Shape) -> Array:
    """Returns the empty result of picking nothing."""
    flat = (
        lax.reshape(x, (0,))
        if not x.aval.size
        else lax.slice(lax.reshape(x, (x.aval.size,)), (0,), (0,))
    )
    return _laid_out(flat, plan, middle)
