"""What an index says, before any array is touched.

`read` splits it into its static part and its arrays; `plan_of` reads the static part
against the shape of the operand, and finds the mistakes.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.arrays.protocol import array_method
from fxflow.core.caches import Cache
from fxflow.core.ir.trace import Tracer
from fxflow.core.sizes import (
    Size,
    is_at_least,
    is_symbolic,
    larger,
    smaller,
)
from fxflow.errors import (
    ArgumentError,
    BooleanIndexError,
    ConcretizationError,
    DtypeError,
    OutOfRangeError,
)
from fxflow.lax.gather_scatter.dimension_numbers import GatherScatterMode
from fxflow.numpy.creation import asarray

# Items: an int, a slice as a tuple of three, or one of these.
NEW, FILL, SCALAR, ARRAY, TRUE, FALSE = "new", "...", "scalar", "array", "true", "false"


def read(index: Any, name: str = "index") -> tuple[tuple[Any, ...], list[Any]]:
    """Splits an index into its static part and its arrays.

    Args:
      index: what stands between the brackets. In a tuple, a list is an array.
      name: of the operation, for messages.

    Returns:
      The static items, and the integer arrays and tracers in order. A boolean mask is
      replaced by the indices where it is true.

    Raises:
      ArgumentError: an item is not an index.
      BooleanIndexError: a mask is traced.
    """
    if isinstance(index, list):
        # NumPy once read such a list as a tuple of indices: which is meant is unclear.
        raise _no_index(index, name)
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


def _range(item: tuple[Any, Any, Any], length: Any) -> tuple[Any, Any, int]:
    """Returns the first index, the number of indices and the step of a slice."""
    if not is_symbolic((*item[:2], length)):
        start, stop, step = slice(*item).indices(length)
        return start, len(range(start, stop, step)), step
    # What `slice.indices` does, for sizes.
    step = 1 if item[2] is None else item[2]
    low, high = (0, length) if step > 0 else (-1, length - 1)

    def inside(bound: Any, default: Any) -> Any:
        if bound is None:
            return default
        if bound < 0:
            return larger(bound + length, low)
        return smaller(bound, high)

    start = inside(item[0], low if step > 0 else high)
    stop = inside(item[1], high if step > 0 else low)
    over = stop - start if step > 0 else start - stop
    return start, larger(0, (over + abs(step) - 1) // abs(step)), step


def _bound(value: Any) -> Any:
    """Returns a bound of a slice as a Python int, or the size that it is."""
    if value is None or type(value) is int or type(value) is Size:
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


def _no_index(item: Any, name: str) -> ArgumentError:
    shown = repr(item)
    return ArgumentError(
        f"{name}: a list is not an index: use x[fnp.array({shown})] to pick elements, "
        "or a tuple x[i, j] to index axes"
        if len(shown) < 60
        else f"{name}: a list is not an index: make it an array with fnp.array"
    )


def _read_array(item: Any, static: list[Any], arrays: list[Any], name: str) -> None:
    if isinstance(item, list | tuple):
        # An empty one would be of floats.
        item = asarray(item, None if _holds_something(item) else dtypes.int32)
    if not isinstance(item, Array | np.ndarray | np.generic):
        convert = array_method(item)
        if convert is not None:
            item = convert()
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


def _holds_something(items: Any) -> bool:
    return not isinstance(items, list | tuple) or any(map(_holds_something, items))


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
    for axis, positions in enumerate(mask.nonzero()):
        # The mask's own lengths are kept, to be compared with the array's.
        static.append((ARRAY, mask.shape[axis]))
        arrays.append(positions.astype(np.int32))


class IndexedAxis(NamedTuple):
    """What an index does along one axis of the operand.

    Attributes:
      kind: "slice", "int", "scalar" or "array".
      start: of a slice; the index of an int.
      length: length of a slice.
      step: of a slice.
      array: position among the arrays, for "scalar" and "array".
    """

    kind: str
    start: int = 0
    length: int = 0
    step: int = 1
    array: int = -1

    @property
    def is_strided(self) -> bool:
        """Whether it is a slice that leaves elements out, as far as is known."""
        return (
            self.kind == "slice" and self.step != 1 and not is_at_least(1, self.length)
        )


class IndexPlan(NamedTuple):
    """An index read against a shape.

    Attributes:
      shape: shape of the operand, with an axis of length 1 for each boolean scalar.
      axes: one for each axis of that shape.
      layout: axes of the result: the number of a sliced axis, -1 for a new one, -2
        where the axes of the arrays go.
      advanced: whether arrays take part (then ints are broadcast with them).
      constants: lengths of the arrays (of zeros) that stand for boolean scalars.
      outside: whether an int is out of range, and `mode` says to fill or drop.
    """

    shape: Shape
    axes: tuple[IndexedAxis, ...]
    layout: tuple[int, ...]
    advanced: bool
    constants: tuple[int, ...]
    outside: bool


_plans: Cache[Any, IndexPlan] = Cache("indices", by_options=True)


ADVANCED = -2
_TOLERANT = (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP)


def plan_of(
    static: tuple[Any, ...],
    aval: Aval,
    name: str,
    mode: GatherScatterMode | None = None,
    wrap: bool = True,
) -> IndexPlan:
    """Reads the static part of an index against the type of the operand.

    Args:
      static: from `read`.
      aval: of the operand.
      name: of the operation, for messages.
      mode: what a Python integer that is out of range does. None and the promise that
        there is none make it an error.
      wrap: whether negative integers count from the end.

    Raises:
      OutOfRangeError: too many indices, or an integer out of range.
    """
    key = (static, aval.shape, mode, wrap)
    known = _plans.get(key)
    if known is None:
        known = _plans.keep(key, _plan(static, aval, name, mode, wrap))
    return known


def _plan(
    static: tuple[Any, ...],
    aval: Aval,
    name: str,
    mode: GatherScatterMode | None,
    wrap: bool,
) -> IndexPlan:
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
    axes: list[IndexedAxis] = []
    layout: list[int] = []
    constants: list[int] = []
    runs = 0  # groups of neighbouring arrays
    first = 0
    inside = outside = False
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
            axes.append(IndexedAxis("array", array=-1 - len(constants)))
            constants.append(int(item == TRUE))
            shape.append(1)
            continue
        length = aval.shape[taken]
        axis = len(axes)
        shape.append(length)
        if type(item) is int:
            index = item + length if item < 0 and wrap else item
            if not 0 <= index < length:
                if mode not in _TOLERANT or not length:
                    raise OutOfRangeError(
                        f"{name}: index {item} is out of range for axis {taken} of "
                        f"{aval}, whose length is {length}"
                    )
                outside = outside or mode is not GatherScatterMode.CLIP
                index = min(max(index, 0), length - 1)
            axes.append(IndexedAxis("int", index))
        elif item == SCALAR:
            axes.append(IndexedAxis("scalar", array=arrays))
            arrays += 1
        elif item == ARRAY:
            axes.append(IndexedAxis("array", array=arrays))
            arrays += 1
        elif item[0] == ARRAY:
            # As in NumPy, a mask of no elements fits everywhere.
            if item[1] not in (0, length):
                raise OutOfRangeError(
                    f"{name}: a boolean mask has length {item[1]} along axis {taken} "
                    "of "
                    f"{aval}, whose length is {length}; they must be equal"
                )
            axes.append(IndexedAxis("array", array=arrays))
            arrays += 1
        else:
            if item[2] == 0:
                raise ArgumentError(f"{name}: the step of a slice must not be 0")
            start, count, step = _range(item, length)
            axes.append(IndexedAxis("slice", start, count, step))
            layout.append(axis)
        taken += 1
    if advanced:
        # As in NumPy: the axes of arrays that do not stand together come first.
        layout.insert(first if runs == 1 else 0, ADVANCED)
    return IndexPlan(
        tuple(shape),
        tuple(axes),
        tuple(layout),
        advanced,
        tuple(constants),
        outside,
    )
