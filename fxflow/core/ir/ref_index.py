"""Indices into references: which part is read or written.

An index is split into its static part, which is a parameter of the operation, and the
integer arrays in it, which are operands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow._frozen import Frozen
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import table
from fxflow.errors import ShapeError


class Slice(Frozen):
    """A part of an axis of a reference: static length, computed start.

    Elements past the end of the axis read as zero, and writes to them are dropped.

    Attributes:
      start: an int, or a 0-d integer array; None in the static part of an index.
      size: the length.
      clamps: whether the part has to be inside: a start that is an array is moved, as
        `lax.dynamic_slice` does it, and an int is refused.
    """

    start: Any
    size: int
    clamps: bool = False

    def __str__(self) -> str:
        start = OPERAND if self.start is None else self.start
        return f"{start}:+{self.size}"


class Index(Frozen):
    """The static part of an index; arrays in it are operands.

    Attributes:
      items: ints, None, Ellipsis, slices as tuples of three, `Slice`s or `OPERAND`.
    """

    items: tuple[Any, ...]

    def filled(self, operands: Sequence[Any]) -> Any:
        """Returns the index with its arrays."""
        rest = iter(operands)
        return tuple(
            slice(*item)
            if type(item) is tuple
            else next(rest)
            if item is OPERAND
            else item.replace(start=next(rest))
            if type(item) is Slice and item.start is None
            else item
            for item in self.items
        )

    @property
    def is_whole(self) -> bool:
        """Whether it is `[...]`."""
        return self == WHOLE

    def __str__(self) -> str:
        return f"[{', '.join(map(_shown, self.items))}]"


OPERAND = "*"
WHOLE = Index((Ellipsis,))
_FULL = (None, None, None)


def _shown(item: Any) -> str:
    if type(item) is tuple:
        start, stop, step = ("" if part is None else str(part) for part in item)
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return "..." if item is Ellipsis else str(item)


def read_index(index: Any) -> tuple[Index | None, list[Any]]:
    """Splits an index into its static part and its integer arrays.

    Args:
      index: what stands between the brackets.

    Returns:
      Both; None for the first if only a concrete array can be indexed so (by a mask,
      or by a slice with traced bounds).
    """
    items = index if type(index) is tuple else (index,)
    if not items or items == (Ellipsis,):
        return WHOLE, []
    static: list[Any] = []
    operands: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is int or item is None or item is Ellipsis:
            static.append(item)
        elif kind is slice:
            parts = (item.start, item.stop, item.step)
            if any(isinstance(part, Array) for part in parts):
                return None, []
            static.append(
                tuple(None if p is None else operator.index(p) for p in parts)
            )
        elif kind is Slice:
            is_static = isinstance(item.start, int)
            static.append(item if is_static else item.replace(start=None))
            operands += [] if is_static else [item.start]
        elif isinstance(item, np.integer):
            static.append(int(item))
        elif (
            isinstance(item, Array | np.ndarray)
            and not dtypes.is_key(typeof(item).dtype)
            and dtypes.is_integer(typeof(item).dtype)
        ):
            static.append(OPERAND)
            operands.append(item)
        else:
            return None, []
    if all(item == _FULL for item in static):
        return WHOLE, []
    return Index(tuple(static)), operands


def composed(indices: Sequence[Any], shape: Sequence[int]) -> tuple[Any, list[Any]]:
    """Joins an index into a part of a part, and so on, to one into the whole.

    Args:
      indices: one into the whole, one into that part, and so on.
      shape: shape of the whole.

    Returns:
      An index, and the rest of `indices` from the first that cannot be joined (one with
      arrays, steps or new axes).
    """
    windows = [_Window(0, n, n, True) for n in shape]
    for number, index in enumerate(indices):
        new = _narrowed(windows, index)
        if new is None:
            return _joined(windows), list(indices[number:])
        windows = new
    return _joined(windows), []


class _Window(Frozen):
    """The part of an axis of the whole that is left.

    Attributes:
      start: an int, or a 0-d integer array.
      size: the length.
      length: length of the axis.
      seen: whether the part has the axis.
    """

    start: Any
    size: int
    length: int
    seen: bool


def _joined(windows: Sequence[_Window]) -> Any:
    items: list[Any] = []
    for w in windows:
        if not w.seen:
            items.append(w.start)
        elif isinstance(w.start, int) and (w.start, w.size) == (0, w.length):
            items.append(slice(None))
        else:
            items.append(Slice(w.start, w.size))
    return tuple(items) or Ellipsis


def _narrowed(windows: Sequence[_Window], index: Any) -> list[_Window] | None:
    """Returns the part that an index leaves of one; None if it is not such a part."""
    items = list(index) if type(index) is tuple else [index]
    left = [i for i, w in enumerate(windows) if w.seen]
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1 or len(items) - len(dots) > len(left):
        return None
    gap = [slice(None)] * (len(left) - len(items) + len(dots))
    at = dots[0] if dots else len(items)
    items[at : at + len(dots)] = gap
    new = list(windows)
    for i, item in zip(left, items, strict=True):
        found = _within(windows[i], item)
        if found is None:
            return None
        new[i] = found
    return new


def _within(w: _Window, item: Any) -> _Window | None:
    if isinstance(item, slice):
        parts = (item.start, item.stop, item.step)
        if any(isinstance(p, Array) for p in parts):
            return None
        start, stop, step = item.indices(w.size)
        if step != 1 or stop <= start:
            return None
        return w.replace(start=w.start + start, size=stop - start)
    if type(item) is Slice:
        item = _inside(item, w.size)
        start = item.start
        inside = not isinstance(start, int) or start + item.size <= w.size
        if not inside and w.size < w.length:
            return None
        return w.replace(start=_plus(w.start, start), size=item.size)
    if isinstance(item, bool | np.bool_) or item is None:
        return None
    if isinstance(item, int | np.integer):
        if not -w.size <= item < w.size:
            return None
        at = int(item) + (w.size if item < 0 else 0)
        return w.replace(start=w.start + at, size=1, seen=False)
    if (
        isinstance(item, Array)
        and not item.ndim
        and not dtypes.is_key(typeof(item).dtype)
        and dtypes.is_integer(typeof(item).dtype)
    ):
        return w.replace(start=_plus(w.start, item), size=1, seen=False)
    return None


def _plus(start: Any, more: Any) -> Any:
    return more if isinstance(start, int) and start == 0 else start + more


# -- parts of arrays -------------------------------------------------------------------


def taken(whole: Any, index: Any) -> Any:
    """Returns a part of an array, whose index may have `Slice`s."""
    found = _sliced_axis(whole, index)
    if found is None:
        return whole[index]
    axis, item, rest = found
    part, _, _ = _window(whole, axis, item)
    return taken(part, rest)


def updated(whole: Any, index: Any, update: Callable[[Any, Any], Any]) -> Any:
    """Returns an array with a part changed.

    Args:
      whole: the array.
      index: of the part; it may have `Slice`s.
      update: returns an array after the change, given it and an index without `Slice`s.
    """
    found = _sliced_axis(whole, index)
    if found is None:
        return update(whole, index)
    axis, item, rest = found
    part, clamped, shift = _window(whole, axis, item)
    new = updated(part, rest, update)
    # What is past the end of the axis falls off.
    length = clamped.shape[axis]
    new = _update_slice(_padded(clamped, axis, length), new, axis, shift)
    new = _slice(new, axis, 0, length)
    start = _at_most(item.start, whole.shape[axis] - length)
    return _update_slice(whole, new, axis, start)


def _sliced_axis(whole: Any, index: Any) -> tuple[int, Slice, Any] | None:
    """Returns the axis of the first `Slice` of an index, it, and the index without."""
    items = index if type(index) is tuple else (index,)
    at = next((i for i, item in enumerate(items) if type(item) is Slice), None)
    if at is None:
        return None
    before = [item for item in items[:at] if item is not None]
    axis = len(before)
    if Ellipsis in map(_plain, before):
        given = sum(item is not None and item is not Ellipsis for item in items)
        axis += whole.ndim - given - 1
    item = _inside(items[at], whole.shape[axis])
    return axis, item, (*items[:at], slice(None), *items[at + 1 :])


def _inside(item: Slice, length: int) -> Slice:
    """Returns a slice that is inside of an axis, if it has to be.

    Raises:
      ShapeError: it is not, and its start is known.
    """
    most = length - item.size
    if not item.clamps or (isinstance(item.start, int) and 0 <= item.start <= most):
        return item
    if isinstance(item.start, int) or most < 0:
        raise ShapeError(
            f"ds: {item.size} elements from {item.start} on are not inside of an axis "
            f"of length {length}"
        )
    dtype = typeof(item.start).dtype
    zero, end = (arith.constant(n, dtype) for n in (0, length))
    behind = table["add"].bind(item.start, end)
    negative = table["lt"].bind(item.start, zero)
    start = table["select_n"].bind(negative, item.start, behind)
    start = table["clamp"].bind(zero, start, arith.constant(most, dtype))
    return item.replace(start=start)


def _plain(item: Any) -> Any:
    """Returns an item of an index that may be compared with `==`."""
    return item if item is Ellipsis else None


def _window(whole: Any, axis: int, item: Slice) -> tuple[Any, Any, Any]:
    """Returns a slice padded with zeros, the clamped slice, and their distance."""
    length = min(item.size, whole.shape[axis])
    start = _at_most(item.start, whole.shape[axis] - length)
    shift = item.start - start
    clamped = _slice(whole, axis, start, length)
    if type(shift) is int and shift == 0 and length == item.size:
        return clamped, clamped, 0
    return (
        _slice(_padded(clamped, axis, item.size), axis, shift, item.size),
        clamped,
        shift,
    )


def _at_most(start: Any, most: int) -> Any:
    """Returns the smaller of a start, which may be traced, and an int."""
    if isinstance(start, int):
        return min(start, most)
    return table["min"].bind(start, arith.constant(most, start.dtype))


def _starts(ndim: int, axis: int, start: Any) -> list[Any]:
    dtype = np.dtype(np.int32) if isinstance(start, int) else start.dtype
    zero = arith.constant(0, dtype)
    start = arith.constant(start, dtype) if isinstance(start, int) else start
    return [start if i == axis else zero for i in range(ndim)]


def _slice(x: Any, axis: int, start: Any, size: int) -> Any:
    sizes = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    starts = _starts(x.ndim, axis, start)
    return table["dynamic_slice"].bind(x, *starts, slice_sizes=sizes)


def _update_slice(x: Any, update: Any, axis: int, start: Any) -> Any:
    starts = _starts(x.ndim, axis, start)
    return table["dynamic_update_slice"].bind(x, update, *starts)


def _padded(x: Any, axis: int, count: int) -> Any:
    config = tuple((0, count if i == axis else 0, 0) for i in range(x.ndim))
    return table["pad"].bind(x, arith.constant(0, x.dtype), padding_config=config)
