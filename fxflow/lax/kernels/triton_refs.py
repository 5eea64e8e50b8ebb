"""References in the body of a kernel in Triton's IR: blocks in memory, or in registers.

Operands are read where they are, only the parts that the body reads. Results that the
body only writes, and large ones, are written where they are; other references are
arrays in registers, which loops carry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.core.ir.ref_index import OPERAND, Index, Slice
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.triton_parts import clamped, reshaped, taken
from fxflow.lax.kernels.triton_scalars import converted, elementwise
from fxflow.lax.kernels.triton_writer import (
    BOOL,
    BYTE,
    I32,
    I64,
    Tile,
    Writer,
    element_type,
    memory_type,
)


class Place:
    """Where the elements of a part are along one axis of a reference.

    Attributes:
      base: a number, or the name of one.
      axis: axis of the part along which the elements go on, or None.
      step: between elements.
      size: how many there are along `axis`.
      array: an i32 array of the part's shape that is added, or empty.
    """

    base: Any
    axis: int | None
    step: int
    size: int
    array: str

    def __init__(
        self,
        base: Any,
        axis: int | None = None,
        step: int = 1,
        size: int = 1,
        array: str = "",
    ) -> None:
        self.base, self.axis, self.step = base, axis, step
        self.size, self.array = size, array


class Part:
    """A part of a reference.

    Attributes:
      shape: shape of the part.
      places: one for each axis of the reference.
      mask: where the part's elements are inside of the reference; empty: all.
      inside: an i1, whether computed numbers are inside; empty: they are.
    """

    mask: str
    inside: str
    shape: tuple[int, ...]
    places: list[Place]

    def __init__(self, w: Writer, index: Index, shape: Sequence[int], arrays: Any):
        self._w, self._ref = w, tuple(shape)
        self.mask = self.inside = ""
        items, rest = list(index.items), list(arrays)
        given = sum(i is not None and i is not Ellipsis for i in items)
        if not any(i is Ellipsis for i in items):
            items.append(Ellipsis)
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = [(None, None, None)] * (len(shape) - given)
        tiles = [x for x in rest if x.shape]
        self._fan: tuple[int, ...] = ()
        if tiles:
            self._fan = np.broadcast_shapes(*(x.shape for x in tiles))
            _require_adjacent(items, rest)
        self.shape = self._shape(items, rest)
        self.places = self._places(items, rest)

    def _shape(self, items: Sequence[Any], arrays: Sequence[Tile]) -> tuple[int, ...]:
        found: list[int] = []
        self._axes: list[int | None] = []
        self._front = -1
        given, d = iter(arrays), 0
        for item in items:
            if item is None:
                found.append(1)
                continue
            axis: int | None = None
            if type(item) is tuple:
                size = len(range(*slice(*item).indices(self._ref[d])))
                axis = len(found)
                found.append(size)
            elif type(item) is Slice:
                axis = len(found)
                found.append(item.size)
                if item.start is None:
                    next(given)
            elif item is OPERAND:
                if next(given).shape and self._front < 0:
                    self._front = len(found)
                    found += self._fan
            elif type(item) is not int:
                raise UnsupportedError(f"an index {item!r}")
            self._axes.append(axis)
            d += 1
        return tuple(found)

    def _places(self, items: Sequence[Any], arrays: Sequence[Tile]) -> list[Place]:
        w, given = self._w, iter(arrays)
        found: list[Place] = []
        for item in items:
            if item is None:
                continue
            d = len(found)
            n, axis = self._ref[d], self._axes[d]
            if type(item) is int:
                found.append(Place(item % n))
            elif type(item) is tuple:
                start, stop, step = slice(*item).indices(n)
                size = len(range(start, stop, step))
                found.append(Place(start, axis, step, size))
            elif type(item) is Slice:
                at = item.start
                if at is None:
                    at = clamped(w, w.integer(next(given)).value, n)
                    self._bound(axis, w.op(f"arith.subi {w.number(n)}, {at} : i32"))
                elif at + item.size > n:
                    self._bound(axis, w.number(n - at))
                found.append(Place(at, axis, 1, item.size))
            else:
                found.append(self._computed(w.integer(next(given)), n))
        return found

    def _bound(self, axis: Any, left: str) -> None:
        """Keeps elements along an axis of the part up to a number."""
        w, shape = self._w, self.shape
        bound = w.splat(left, shape, "i32")
        here = w.op(
            f"arith.cmpi slt, {w.iota(shape, axis)}, {bound} : {w.type(shape, I32)}"
        )
        self.mask = w.both(self.mask, here, shape)

    def _computed(self, index: Tile, n: int) -> Place:
        """An index counted from either end; reads take the nearest element."""
        w, shape = self._w, index.shape
        kind = w.type(shape, I32)
        zero = w.full(0, shape, I32)
        low = w.op(f"arith.cmpi slt, {index.value}, {zero} : {kind}")
        front = w.op(f"arith.addi {index.value}, {w.full(n, shape, I32)} : {kind}")
        at = w.select(low, front, index.value, kind)
        least = w.op(f"arith.maxsi {at}, {zero} : {kind}")
        safe = w.op(f"arith.minsi {least}, {w.full(n - 1, shape, I32)} : {kind}")
        same = w.op(f"arith.cmpi eq, {safe}, {at} : {kind}")
        if not shape:
            self.inside = w.both(self.inside, same, ())
            return Place(safe)
        thin = [1] * len(self.shape)
        first = self._front + len(self._fan) - len(shape)
        thin[first : first + len(shape)] = shape
        wide = reshaped(w, Tile(safe, shape, I32), thin)
        return Place(0, array=w.spread(wide, self.shape))

    def tensor(self, place: Place, stride: int = 1) -> str:
        """Returns the part of a place that is an array, times a number; or empty."""
        w, shape = self._w, self.shape
        value = place.array
        step = stride
        if place.axis is not None and place.size > 1:
            value, step = w.iota(shape, place.axis), stride * place.step
        if not value or step == 1:
            return value
        kind = w.type(shape, I32)
        return w.op(f"arith.muli {value}, {w.full(step, shape, I32)} : {kind}")

    def along(self, place: Place) -> str:
        """Returns where the elements are along an axis, as i32 of the part's shape."""
        w, shape = self._w, self.shape
        value = self.tensor(place)
        if place.base == 0 and value:
            return value
        base = (
            w.full(place.base, shape, I32)
            if isinstance(place.base, int)
            else w.splat(place.base, shape, "i32")
        )
        if not value:
            return base
        return w.op(f"arith.addi {value}, {base} : {w.type(shape, I32)}")


def _require_adjacent(items: Sequence[Any], arrays: Sequence[Tile]) -> None:
    given = iter(arrays)
    kinds: list[bool | None] = []
    for item in items:
        if item is OPERAND:
            kinds.append(bool(next(given).shape))
        elif type(item) is int:
            kinds.append(False)
        else:
            if type(item) is Slice and item.start is None:
                next(given)
            kinds.append(None)
    arrays_at = [i for i, k in enumerate(kinds) if k is not None]
    if arrays_at[-1] - arrays_at[0] + 1 != len(arrays_at):
        raise UnsupportedError("arrays of indices with a slice between them")


class Registers:
    """A reference to an array in registers.

    Attributes:
      tile: what it holds.
    """

    tile: Tile

    def __init__(self, tile: Tile) -> None:
        self.tile = tile

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the reference."""
        return self.tile.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the reference."""
        return self.tile.dtype

    def read(self, w: Writer, index: Index, arrays: Sequence[Tile]) -> Tile:
        """Returns the part that an index names."""
        if index.is_whole:
            return self.tile
        part = Part(w, index, self.shape, arrays)
        value = taken(w, self.tile, [part.along(p) for p in part.places], part.shape)
        if part.mask:
            other = w.full(0, part.shape, self.dtype)
            kind = w.type(part.shape, self.dtype)
            value = Tile(
                w.select(part.mask, value.value, other, kind), part.shape, self.dtype
            )
        return value

    def write(
        self, w: Writer, index: Index, arrays: Sequence[Tile], value: Tile, added: bool
    ) -> None:
        """Replaces a part, or adds to it."""
        shape, kind = self.shape, w.of(self.tile)
        if index.is_whole:
            new = Tile(w.spread(value, shape), shape, self.dtype)
            self.tile = self._sum(w, new) if added else new
            return
        if any(x.shape for x in arrays):
            raise UnsupportedError("a write by an array of indices")
        part = Part(w, index, shape, arrays)
        value = Tile(w.spread(value, part.shape), part.shape, value.dtype)
        # Where each element of the reference is in the part.
        places: list[Any] = [0] * len(part.shape)
        mask, moves = "", False
        for d, place in enumerate(part.places):
            at = w.iota(shape, d)
            whole = isinstance(place.base, int)
            if whole and (place.base, place.step, place.size) == (0, 1, shape[d]):
                places[place.axis or 0] = at
                continue
            base = (
                w.full(place.base, shape, I32)
                if whole
                else w.splat(place.base, shape, "i32")
            )
            ints = w.type(shape, I32)
            at = w.op(f"arith.subi {at}, {base} : {ints}")
            mask = w.both(mask, self._within(w, at, place), shape)
            if place.axis is None:
                continue
            moves = True
            if place.step != 1:
                at = w.op(
                    f"arith.divsi {at}, {w.full(place.step, shape, I32)} : {ints}"
                )
            places[place.axis] = at
        thin = [
            1 if p.axis is None else n for p, n in zip(part.places, shape, strict=True)
        ]
        if not moves:
            new = reshaped(w, value, thin)
            new = Tile(w.spread(new, shape), shape, value.dtype)
        else:
            new = taken(w, value, places, shape)
        if added:
            new = self._sum(w, new)
        if part.inside:
            mask = w.both(mask, w.splat(part.inside, shape, "i1"), shape)
        kept = w.select(mask, new.value, self.tile.value, kind) if mask else new.value
        self.tile = Tile(kept, shape, self.dtype)

    def _within(self, w: Writer, at: str, place: Place) -> str:
        """Returns a mask of the elements that a place has, by their distance."""
        shape = self.shape
        kind = w.type(shape, I32)
        if place.axis is None:
            zero = w.full(0, shape, I32)
            return w.op(f"arith.cmpi eq, {at}, {zero} : {kind}")
        if place.step < 0:
            raise UnsupportedError("a write to a slice backwards")
        end = w.full((place.size - 1) * place.step, shape, I32)
        # As unsigned numbers, negative ones are large.
        mask = w.op(f"arith.cmpi ule, {at}, {end} : {kind}")
        if place.step == 1:
            return mask
        step = w.full(place.step, shape, I32)
        rest = w.op(f"arith.remsi {at}, {step} : {kind}")
        every = w.op(f"arith.cmpi eq, {rest}, {w.full(0, shape, I32)} : {kind}")
        return w.both(mask, every, shape)

    def _sum(self, w: Writer, value: Tile) -> Tile:
        from_ = self.tile
        return elementwise(w, "add", [from_, value], _aval(from_), {})


def _aval(x: Tile) -> Aval:
    return Aval(x.shape, x.dtype)


class Memory:
    """A reference to a program's block in memory.

    Args:
      pointer: to the array, the name of it.
      shape: shape of the array.
      dtype: dtype of its elements.
      starts: of the block along each axis of the array, numbers or names.
      fits: for each axis whether blocks never reach over an end.
      seen: the axes that the program sees.
      lengths: of the block, along all axes of the array.
      may_precede: whether a block may start before the array.

    Attributes:
      is_shared: whether the body reads what it writes, or writes several times.
    """

    dtype: Any
    shape: tuple[int, ...]
    is_shared: bool

    def __init__(
        self,
        pointer: str,
        shape: Sequence[int],
        dtype: Any,
        starts: Sequence[Any],
        fits: Sequence[bool],
        seen: Sequence[int],
        lengths: Sequence[int],
        may_precede: bool = False,
    ) -> None:
        self._may_precede = may_precede
        self._pointer, self._array, self.dtype = pointer, tuple(shape), dtype
        self._starts, self._fits, self._seen = starts, fits, seen
        self._lengths = lengths
        self.shape = tuple(lengths[d] for d in seen)
        self.is_shared, self._accessed = False, False

    @property
    def is_whole(self) -> bool:
        """Whether blocks never reach over an end of the array."""
        return all(self._fits)

    def with_axis_in_front(self, n: int, start: Any) -> Memory:
        """Returns the same block in an array with one more axis in front.

        Args:
          n: the length of the axis.
          start: where the block is along it; the program does not see it.
        """
        return Memory(
            self._pointer,
            (n, *self._array),
            self.dtype,
            [start, *self._starts],
            [True, *self._fits],
            [d + 1 for d in self._seen],
            [1, *self._lengths],
        )

    def in_loop(self) -> None:
        """Says that a loop follows, whose rounds see what those before wrote."""
        self._accessed = True

    def _wait(self, w: Writer) -> None:
        # Other threads of the program may not have written, or read, yet.
        if self.is_shared and self._accessed:
            w.do("gpu.barrier")
        self._accessed = True

    def read(self, w: Writer, index: Index, arrays: Sequence[Tile]) -> Tile:
        """Returns the part that an index names."""
        part = Part(w, index, self.shape, arrays)
        self._wait(w)
        pointers, mask = self._addresses(w, part)
        shape, kind = part.shape, memory_type(self.dtype)
        pointer_type = w.typed(shape, f"!tt.ptr<{kind}>")
        given = pointers
        if mask:
            stored = BYTE if dtypes.is_bool(self.dtype) else self.dtype
            given = f"{pointers}, {mask}, {w.full(0, shape, stored)}"
        value = w.op(f"tt.load {given} : {pointer_type}")
        w.loaded += math.prod(w.padded(shape)) * self.dtype.itemsize
        if dtypes.is_bool(self.dtype):
            return converted(w, Tile(value, shape, BYTE), BOOL)
        return Tile(value, shape, self.dtype)

    def write(
        self, w: Writer, index: Index, arrays: Sequence[Tile], value: Tile, added: bool
    ) -> None:
        """Replaces a part, or adds to it."""
        if any(x.shape for x in arrays):
            raise UnsupportedError("a write by an array of indices")
        part = Part(w, index, self.shape, arrays)
        value = Tile(w.spread(value, part.shape), part.shape, value.dtype)
        if added:
            old = self.read(w, index, arrays)
            value = elementwise(w, "add", [old, value], _aval(old), {})
        self._wait(w)
        pointers, mask = self._addresses(w, part)
        if part.inside:
            mask = w.both(mask, w.splat(part.inside, part.shape, "i1"), part.shape)
        kind = memory_type(self.dtype)
        if dtypes.is_bool(self.dtype):
            value = converted(w, value, BYTE)
        given = f"{pointers}, {value.value}" + (f", {mask}" if mask else "")
        w.do(f"tt.store {given} : {w.typed(part.shape, f'!tt.ptr<{kind}>')}")

    def _addresses(self, w: Writer, part: Part) -> tuple[str, str]:
        """Returns pointers to the elements of a part, and a mask; empty: all."""
        shape, kind = part.shape, memory_type(self.dtype)
        pointer_type = f"!tt.ptr<{kind}>"
        large = math.prod(self._array) >= 2**31 - 2**17
        offset_type = "i64" if large else "i32"
        mask = w.both(part.mask, w.inside(shape), shape) if shape else part.mask
        scalar, tensor = "", ""
        places = dict(zip(self._seen, part.places, strict=True))
        for d, n in enumerate(self._array):
            stride = math.prod(self._array[d + 1 :])
            place = places.get(d, Place(0))
            base = _plus(w, self._starts[d], place.base)
            if not self._fits[d]:
                mask = w.both(mask, self._outside(w, part, base, place, n), shape)
            if base != 0:
                scalar = _added(w, scalar, _times(w, base, stride, large), offset_type)
            if large:
                along = part.tensor(place)
                if along:
                    wide = w.type(shape, I64)
                    along = w.op(
                        f"arith.extsi {along} : {w.type(shape, I32)} to {wide}"
                    )
                    if stride != 1:
                        times = w.full(stride, shape, I64)
                        along = w.op(f"arith.muli {along}, {times} : {wide}")
            else:
                along = part.tensor(place, stride)
            if along:
                tensor = _added(w, tensor, along, w.typed(shape, offset_type))
        pointer = self._pointer
        if scalar:
            pointer = w.op(
                f"tt.addptr {pointer}, {scalar} : {pointer_type}, {offset_type}"
            )
        pointer = w.splat(pointer, shape, pointer_type)
        if tensor:
            pointer = w.op(
                f"tt.addptr {pointer}, {tensor} : {w.typed(shape, pointer_type)}, "
                f"{w.typed(shape, offset_type)}"
            )
        return pointer, mask

    def _outside(self, w: Writer, part: Part, base: Any, place: Place, n: int) -> str:
        """Returns a mask of the elements inside of the array along an axis."""
        shape = part.shape
        moved = Place(base, place.axis, place.step, place.size, place.array)
        at, mask = part.along(moved), ""
        kind = w.type(shape, I32)
        for test, bound in (("sge", 0), ("slt", n)):
            if test == "sge" and not self._may_precede:
                continue
            here = w.op(
                f"arith.cmpi {test}, {at}, {w.full(bound, shape, I32)} : {kind}"
            )
            mask = w.both(mask, here, shape)
        return mask


Reference = Memory | Registers


def _plus(w: Writer, x: Any, y: Any) -> Any:
    """Returns the sum of two numbers, or their names."""
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    if x == 0 or y == 0:
        return y if x == 0 else x
    x, y = (w.number(v) if isinstance(v, int) else v for v in (x, y))
    return w.op(f"arith.addi {x}, {y} : i32")


def _times(w: Writer, x: Any, stride: int, large: bool) -> str:
    dtype = I64 if large else I32
    if isinstance(x, int):
        return w.number(x * stride, dtype)
    if large:
        x = w.op(f"arith.extsi {x} : i32 to i64")
    if stride == 1:
        return str(x)
    kind = element_type(dtype)
    return w.op(f"arith.muli {x}, {w.number(stride, dtype)} : {kind}")


def _added(w: Writer, x: str, y: str, kind: str) -> str:
    return w.op(f"arith.addi {x}, {y} : {kind}") if x else y
