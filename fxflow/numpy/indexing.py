"""`x[index]`: everything that NumPy's indexing does.

An index is read into a *static* part (slices, integers, new axes, where arrays stand)
and the arrays in it, so that an eager call is one plan for each static part. Slices and
integers alone become `lax.slice`, or `dynamic_slice` where an integer is traced; arrays
become one `gather`.

Python integers out of range are errors. Integer arrays, whose values a compiled program
does not know beforehand, are clamped, or as `mode` says. Boolean masks must be
concrete.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow._config import config
from fxflow.core import dtypes
from fxflow.core.array import Array, buffer_of, from_host
from fxflow.core.aval import Aval, Shape
from fxflow.core.convert import as_array, typeof
from fxflow.core.eager import EVAL, HOST_BYTES, library, on_forget
from fxflow.core.errors import (
    ArgumentError,
    ConcretizationError,
    DtypeError,
    FxflowError,
    ShapeError,
)
from fxflow.core.placed import Placed, placed_on
from fxflow.core.trace import Tracer, state
from fxflow.devices import buffers

_new = object.__new__


class BooleanIndexError(ConcretizationError, IndexError):
    """A traced boolean mask was used as an index: its result has no static shape."""


class OutOfRangeError(FxflowError, IndexError):
    """An index is out of range, or there are too many of them."""


# -- the static part ---------------------------------------------------------------

# Items: an int, a slice as a tuple of three, or one of these.
NEW, FILL, SCALAR, ARRAY, TRUE, FALSE = "new", "...", "scalar", "array", "true", "false"


def read(index: Any, name: str = "index") -> tuple[tuple[Any, ...], list[Any]]:
    """Splits an index into its static part and its arrays.

    Args:
      index: what stands between the brackets.
      name: of the operation, for messages.

    Returns:
      The static items, and the integer arrays and tracers in order. A boolean mask is
      replaced by the places where it is true.

    Raises:
      ArgumentError: an item is no index.
      BooleanIndexError: a mask is traced.
    """
    items = index if type(index) is tuple else (index,)
    static: list[Any] = []
    arrays: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is int:
            static.append(item)
        elif kind is slice:
            static.append((_bound(item.start), _bound(item.stop), _bound(item.step)))
        elif item is None:
            static.append(NEW)
        elif item is Ellipsis:
            static.append(FILL)
        elif kind is bool or kind is np.bool_:
            static.append(TRUE if item else FALSE)
        else:
            _read_array(item, static, arrays, name)
    return tuple(static), arrays


def _bound(value: Any) -> int | None:
    """Returns a bound of a slice as a Python int."""
    if value is None or type(value) is int:
        return value
    try:
        return operator.index(value)
    except ConcretizationError as error:
        raise type(error)(
            f"the bounds of a slice must be known when tracing, since they give the "
            f"shape of the result: {error} For a slice of fixed length use "
            "fxflow.lax.dynamic_slice_in_dim(x, start, length)."
        ) from None
    except TypeError:
        raise ArgumentError(
            f"the bounds of a slice must be integers, got {value!r}"
        ) from None


def _read_array(item: Any, static: list[Any], arrays: list[Any], name: str) -> None:
    if isinstance(item, list | tuple):
        raise ArgumentError(
            f"{name}: a {type(item).__name__} is no index: use x[fnp.array({item!r})] "
            "to pick elements, or a tuple x[i, j] to index axes"
            if len(repr(item)) < 60
            else f"{name}: a {type(item).__name__} is no index: make it an array"
        )
    if not isinstance(item, Array | np.ndarray | np.generic):
        if hasattr(item, "__fxflow_array__"):
            item = item.__fxflow_array__()
        else:
            try:
                static.append(operator.index(item))
            except TypeError:
                raise ArgumentError(
                    f"{name}: an index must be an integer, slice, None, Ellipsis, or "
                    "an "
                    f"array of integers or bools, got {item!r} of type "
                    f"{type(item).__name__}"
                ) from None
            return
    if isinstance(item, np.generic) and item.dtype.kind in "iu":
        static.append(int(item))
        return
    aval = typeof(item)
    if dtypes.is_bool(aval.dtype):
        _read_mask(item, aval, static, arrays, name)
    elif not dtypes.is_integer(aval.dtype):
        raise DtypeError(
            f"{name}: an index must be of integers or bools, got {aval}: convert it "
            "with .astype(int)"
        )
    else:
        static.append(ARRAY if aval.ndim else SCALAR)
        arrays.append(item)


def _read_mask(
    item: Any, aval: Aval, static: list[Any], arrays: list[Any], name: str
) -> None:
    if isinstance(item, Tracer):
        raise BooleanIndexError(
            f"{name}: a boolean mask must be concrete, because the shape of the result "
            f"depends on its values, but {aval} is traced. {item.origin()} Use "
            "fnp.where(mask, x, other), x.at[mask].set(number), or "
            "fnp.nonzero(mask, size=...)."
        )
    mask = np.asarray(item)
    if not mask.ndim:
        static.append(TRUE if mask else FALSE)
        return
    for axis, places in enumerate(mask.nonzero()):
        # The mask's own lengths are kept, to be compared with the array's.
        static.append((ARRAY, mask.shape[axis]))
        arrays.append(places.astype(np.int32))


# -- against a shape ---------------------------------------------------------------


class Axis(NamedTuple):
    """What an index does along one axis of the operand.

    Attributes:
      kind: "slice", "int", "scalar" or "array".
      start: of a slice; the place of an int.
      length: of a slice.
      step: of a slice.
      array: position among the arrays, for "scalar" and "array".
    """

    kind: str
    start: int = 0
    length: int = 0
    step: int = 1
    array: int = -1


class Plan(NamedTuple):
    """An index read against a shape.

    Attributes:
      shape: of the operand, with an axis of length 1 for each boolean scalar.
      axes: one for each axis of that shape.
      layout: axes of the result: the number of a sliced axis, -1 for a new one, -2
        where the axes of the arrays go.
      advanced: whether arrays take part (then ints are broadcast with them).
      constants: lengths of the arrays (of zeros) that stand for boolean scalars.
    """

    shape: Shape
    axes: tuple[Axis, ...]
    layout: tuple[int, ...]
    advanced: bool
    constants: tuple[int, ...]


_plans: dict[Any, Plan] = {}
ADVANCED = -2


def plan_of(static: tuple[Any, ...], aval: Aval, name: str) -> Plan:
    """Reads the static part of an index against the type of the operand.

    Args:
      static: from `read`.
      aval: of the operand.
      name: of the operation, for messages.

    Raises:
      OutOfRangeError: too many indices, or an integer out of range.
    """
    key = (static, aval.shape)
    known = _plans.get(key)
    if known is None:
        if len(_plans) > 8192:
            _plans.clear()
        known = _plans[key] = _plan(static, aval, name)
    return known


def _plan(static: tuple[Any, ...], aval: Aval, name: str) -> Plan:
    consumed = sum(item not in (NEW, FILL, TRUE, FALSE) for item in static)
    if consumed > aval.ndim:
        raise OutOfRangeError(
            f"{name}: {consumed} indices for {aval}, which has {aval.ndim} "
            f"ax{'i' if aval.ndim == 1 else 'e'}s"
        )
    if static.count(FILL) > 1:
        raise OutOfRangeError(f"{name}: an index may hold one Ellipsis ('...') only")
    missing = aval.ndim - consumed
    whole = [(None, None, None)] * missing
    if FILL in static:
        at = static.index(FILL)
        # The Ellipsis itself stays as a mark: it separates arrays even if it is empty.
        items = [*static[:at], FILL, *whole, *static[at + 1 :]]
    else:
        items = [*static, *whole]
    advanced = any(
        item in (ARRAY, TRUE, FALSE) or (type(item) is tuple and item[0] == ARRAY)
        for item in items
    )
    shape: list[int] = []
    axes: list[Axis] = []
    layout: list[int] = []
    constants: list[int] = []
    runs = 0  # groups of neighbouring arrays
    first = 0
    inside = False
    taken = arrays = 0
    for item in items:
        picks = type(item) is int or item in (SCALAR, ARRAY, TRUE, FALSE)
        picks = picks or (type(item) is tuple and item[0] == ARRAY)
        if picks and advanced:
            if not inside:
                runs += 1
                if runs == 1:
                    first = len(layout)
            inside = True
        else:
            inside = False
        if item == FILL:
            continue
        if item == NEW:
            layout.append(-1)
            continue
        if item in (TRUE, FALSE):
            axes.append(Axis("array", array=-1 - len(constants)))
            constants.append(int(item == TRUE))
            shape.append(1)
            continue
        length = aval.shape[taken]
        axis = len(axes)
        shape.append(length)
        if type(item) is int:
            if not -length <= item < length:
                raise OutOfRangeError(
                    f"{name}: index {item} is out of range for axis {taken} of {aval}, "
                    f"whose length is {length}"
                )
            axes.append(Axis("int", item + length if item < 0 else item))
        elif item == SCALAR:
            axes.append(Axis("scalar", array=arrays))
            arrays += 1
        elif item == ARRAY:
            axes.append(Axis("array", array=arrays))
            arrays += 1
        elif item[0] == ARRAY:
            if item[1] != length:
                raise OutOfRangeError(
                    f"{name}: a boolean mask has length {item[1]} along axis {taken} "
                    "of "
                    f"{aval}, whose length is {length}; they must be equal"
                )
            axes.append(Axis("array", array=arrays))
            arrays += 1
        else:
            if item[2] == 0:
                raise ArgumentError(f"{name}: the step of a slice must not be 0")
            start, stop, step = slice(*item).indices(length)
            count = len(range(start, stop, step))
            axes.append(Axis("slice", start, count, step))
            layout.append(axis)
        taken += 1
    if advanced:
        layout.insert(first if runs == 1 else 0, ADVANCED)
    return Plan(tuple(shape), tuple(axes), tuple(layout), advanced, tuple(constants))


# -- reading -----------------------------------------------------------------------

_shapes: dict[Any, Placed] = {}
on_forget(_shapes.clear)
_FREE = (int, slice)


def getitem(x: Any, index: Any) -> Any:
    """Returns `x[index]`; the method of arrays.

    Args:
      x: array or tracer.
      index: see the module.

    Returns:
      Array.

    Raises:
      OutOfRangeError: (an IndexError) an integer is out of range, or too many indices.
      ArgumentError: an item is no index.
      BooleanIndexError: a mask is traced.
    """
    if state.trace is EVAL and type(x) is Array:
        kind = type(index)
        if (
            kind is int
            or kind is slice
            or (kind is tuple and _BASIC.issuperset(map(type, index)))
        ):
            try:
                host = x._host
            except AttributeError:
                host = None
            if host is not None:
                view = _host_view(x, host, index)
                if view is not None:
                    return view
            if kind is int and not x._placed.placement.is_single:
                part = _device_slice(x, index)
                if part is not None:
                    return part
        if kind is Array:
            picked = _host_rows(x, index)
            if picked is not None:
                return picked
        static, arrays = read(index)
        return _get_eager(x, arrays, static)
    static, arrays = read(index)
    return get(x, arrays, static)


_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def _host_view(x: Array, host: np.ndarray[Any, Any], index: Any) -> Array | None:
    """Returns `x[index]` as a view of host memory, or None to go the general way."""
    placed = x._placed
    try:
        view = host[index]
    except (IndexError, TypeError, ValueError):
        return None
    if type(view) is not np.ndarray:
        view = np.asarray(view, host.dtype)
    elif host.nbytes > 4096 and host.nbytes > 4 * view.nbytes:
        view = view.copy()  # it would keep the large array alive
    key = (placed, view.shape)
    known = _shapes.get(key)
    if known is None:
        aval = placed.aval
        if (
            not placed.placement.is_host
            or config.eager != "auto"
            or dtypes.is_key(aval.dtype)
        ):
            return None
        if len(_shapes) > 8192:
            _shapes.clear()
        known = _shapes[key] = placed_on(
            Aval(view.shape, aval.dtype, aval.weak_type),
            placed.placement,
            placed.committed,
        )
    made: Array = _new(Array)
    made._host = view
    made._placed = known
    return made


def _device_slice(x: Array, index: int) -> Array | None:
    """Returns `x[index]` if one device of this process holds just that, or None.

    So looking at the result of a `pmap` costs one part of it, and no program.
    """
    placed = x._placed
    aval, placement = placed.aval, placed.placement
    key = ("slices", aval.physical.shape)
    where = placement.table.get(key)
    if where is None:
        where = placement.table[key] = _slices(aval.physical.shape, placement)
    if not -aval.shape[0] <= index < aval.shape[0]:
        return None  # the general way says it in words
    at = where.get(index % aval.shape[0])
    if at is None:
        return None
    part = buffers.parts(buffer_of(x))[at]
    rest = aval.shape[1:]
    if placement.platform == "cpu" and buffers.default_placement().is_host:
        return from_host(buffers.to_host(part)[0], placed_on(aval.update(shape=rest)))
    there = buffers.placement(placement.local[at])
    one: Array = Array(part, placed_on(aval.update(shape=(1, *rest)), there))[0]
    return one


def _slices(shape: tuple[int, ...], placement: Any) -> dict[int, int]:
    """Returns for each place on axis 0 the local device that holds just that slice."""
    if not shape or placement.sharding.shard_shape(shape) != (1, *shape[1:]):
        return {}
    return {
        (index[0].start or 0): at for at, index in enumerate(placement.indices(shape))
    }


def _host_rows(x: Array, index: Array) -> Array | None:
    """Returns `x[index]` for integers along the first axis, or None.

    The general way, with NumPy: negative integers are counted back, and all are
    clipped.
    """
    try:
        host, at = x._host, index._host
    except AttributeError:
        return None
    if at.dtype != np.int32 or not host.ndim or not host.shape[0]:
        return None
    if index._placed.committed:
        return None
    if at.nbytes + host[0].nbytes * at.size > HOST_BYTES:
        return None
    placed = x._placed
    shape = at.shape + host.shape[1:]
    known = _shapes.get((placed, shape))
    if known is None:
        # `_host_view` knows the conditions; they are those of any view.
        if _host_view(x, host, Ellipsis) is None:
            return None
        aval = placed.aval
        known = _shapes[placed, shape] = placed_on(
            Aval(shape, aval.dtype, aval.weak_type), placed.placement, placed.committed
        )
    length = host.shape[0]
    made: Array = _new(Array)
    made._host = np.asarray(
        host.take(at + length * (at < 0), 0, mode="clip"), host.dtype
    )
    made._placed = known
    return made


@library("static", "mode", "fill_value", "unique", "sorted_", "wrap")
def _get_eager(
    x: Any,
    arrays: Sequence[Any],
    static: tuple[Any, ...],
    mode: Any = None,
    fill_value: Any = None,
    unique: bool = False,
    sorted_: bool = False,
    wrap: bool = True,
) -> Any:
    return get(x, arrays, static, mode, fill_value, unique, sorted_, wrap)


def get(
    x: Any,
    arrays: Sequence[Any],
    static: tuple[Any, ...],
    mode: Any = None,
    fill_value: Any = None,
    unique: bool = False,
    sorted_: bool = False,
    wrap: bool = True,
) -> Any:
    """Returns the elements that an index names.

    Args:
      x: array or tracer.
      arrays: from `read`.
      static: from `read`.
      mode: what integers in arrays do that are out of range: "clip", "fill", or
        "promise_in_bounds" (the default, which clips in practice).
      fill_value: for mode "fill"; None is nan, or the extreme integer.
      unique: a promise that no element is named twice.
      sorted_: a promise that the arrays are sorted.
      wrap: whether negative integers in arrays count from the end.

    Returns:
      Array.
    """
    aval = x.aval
    plan = plan_of(static, aval, "index")
    if not plan.advanced and not any(a.kind == "scalar" for a in plan.axes):
        x = _sliced(x, plan)
        return _laid_out(x, plan, ())
    if not plan.advanced and mode in (None, "clip", "promise_in_bounds"):
        x = _dynamically_sliced(x, arrays, plan, wrap)
        return _laid_out(x, plan, ())
    return _gathered(x, arrays, plan, mode, fill_value, unique, sorted_, wrap)


def _reshaped(x: Any, shape: Shape) -> Any:
    return x if x.aval.shape == shape else lax.reshape(x, shape)


def _sliced(x: Any, plan: Plan) -> Any:
    """Returns `x` cut by the slices and ints; an int leaves an axis of length 1."""
    starts, limits, strides, reverse = [], [], [], []
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
        else:
            last = axis.start + (axis.length - 1) * axis.step
            starts.append(min(axis.start, last))
            limits.append(max(axis.start, last) + 1)
            strides.append(abs(axis.step) if axis.length > 1 else 1)
            if axis.step < 0 and axis.length > 1:
                reverse.append(d)
    if any(starts) or tuple(limits) != plan.shape or any(s != 1 for s in strides):
        x = lax.slice(x, starts, limits, None if max(strides) == 1 else strides)
    return lax.rev(x, reverse) if reverse else x


def _laid_out(x: Any, plan: Plan, middle: Shape) -> Any:
    """Returns `x`, of sliced axes and axes of length 1, as the layout says."""
    out: list[int] = []
    for d in plan.layout:
        if d == ADVANCED:
            out.extend(middle)
        else:
            out.append(1 if d == -1 else plan.axes[d].length)
    return _reshaped(x, tuple(out))


def index_operand(value: Any, length: int, wrap: bool = True) -> Any:
    """Returns an integer array as an index: i32 at least, negative ones counted back.

    Args:
      value: array, tracer or NumPy array of integers.
      length: of the axis.
      wrap: whether negative ones count from the end.
    """
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.itemsize < 4 or (
            value.dtype.kind == "i" and value.itemsize == 8
        ):
            value = value.astype(np.int64)
        if wrap and value.dtype.kind == "i":
            value = np.where(value < 0, value + length, value)
        if value.dtype == np.int64 and length < 2**31:
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


def _dynamically_sliced(x: Any, arrays: Sequence[Any], plan: Plan, wrap: bool) -> Any:
    """Returns `x` cut by slices, ints and traced integers, which are clamped."""
    strided = any(a.kind == "slice" and a.step != 1 and a.length > 1 for a in plan.axes)
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


def _refuse_empty(aval: Aval, plan: Plan) -> None:
    for d, axis in enumerate(plan.axes):
        if axis.kind != "slice" and not plan.shape[d]:
            raise OutOfRangeError(
                f"index: axis {d} of {aval} is empty, so it has nothing to pick from"
            )


class Vectors(NamedTuple):
    """Index vectors for a gather or scatter.

    Attributes:
      indices: `int[..., n]`.
      axes: for each component the axis it is for.
      shape: of the arrays, broadcast.
    """

    indices: Any
    axes: tuple[int, ...]
    shape: Shape


def array_values(arrays: Sequence[Any], plan: Plan, wrap: bool) -> dict[int, Any]:
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
    plan: Plan,
    mode: Any,
    fill_value: Any,
    unique: bool,
    sorted_: bool,
    wrap: bool,
) -> Any:
    """Returns `x` picked by arrays, after it was cut by slices and ints."""
    middle = joint_index_shape(
        [
            (plan.constants[-1 - a.array],)
            if a.array < 0
            else typeof(arrays[a.array]).shape
            for a in plan.axes
            if a.kind in ("array", "scalar")
        ],
        "index",
    )
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
    if mode is None:
        mode = "promise_in_bounds"
    out = lax.gather(
        x,
        vectors,
        lax.GatherDimensionNumbers(
            offset_dims=tuple(offset),
            collapsed_slice_dims=tuple(sorted((*picked, *ints))),
            start_index_map=tuple(picked),
        ),
        sizes,
        mode=mode,
        fill_value=fill_value,
        unique_indices=unique,
        indices_are_sorted=sorted_,
    )
    return _laid_out(out, plan, middle)


def _nothing(x: Any, plan: Plan, middle: Shape) -> Any:
    """Returns the empty result of picking nothing."""
    flat = (
        lax.reshape(x, (0,))
        if not x.aval.size
        else lax.slice(lax.reshape(x, (x.aval.size,)), (0,), (0,))
    )
    return _laid_out(flat, plan, middle)
