"""References in the body of a kernel: parts that are read, and writes to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fxflow.core.arrays import AbstractRef, Aval, dtypes
from fxflow.core.ir.graph import Node, Var
from fxflow.core.ir.ref_index import OPERAND, Slice
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_functions import PREFETCH
from fxflow.lax.kernels.llvm_products import transposed
from fxflow.lax.kernels.llvm_values import Buffer, Value, computed, constant
from fxflow.lax.kernels.llvm_writer import (
    Writer,
    literal,
    memory_type,
    register_type,
    rounded,
)

if TYPE_CHECKING:
    from fxflow.lax.kernels.llvm_body import BodyWriter

#: Number of rounds by which rows are read in advance: 8 to 32 take equal time.
_AHEAD = 16
#: Bytes of an array that is worth it: smaller ones stay in the cache.
_LARGE = 1 << 18
#: Bytes of a line of the cache, and of a row of which lines are asked for.
_LINE, _MOST = 64, 256


def part(body: BodyWriter, ref: Buffer, node: Node, arrays: Sequence[Value]) -> Value:
    """Returns the part of a reference that an index names.

    Args:
      body: writes the kernel.
      ref: the memory.
      node: of a read or a write.
      arrays: what the index has computed.
    """
    out = node.primitive.abstract(
        AbstractRef(Aval(ref.shape, ref.dtype)),
        *_index_avals(node),
        index=node.params["index"],
    ) if node.primitive.name == "get" else node.outputs[0].aval  # fmt: skip
    pointer, axes, guards = _located(body, ref, node, arrays)
    shape = tuple(out.shape)
    strides = [stride for _, stride in axes]
    view = Buffer(pointer, shape, strides, ref.dtype, ref.root)
    return _guarded(body, view, guards) if guards else view


def prefetch(
    body: BodyWriter, node: Node, operands: Sequence[Any], is_written: bool
) -> None:
    """Asks for the rows of a large array that the next rounds of a loop read.

    That is for loops whose round `i` reads the row that `list[i]` names: it asks for
    that of `list[i + _AHEAD]`. The processor reads in advance by itself, but only as
    far as a few rounds.

    Args:
      body: writes the kernel.
      node: a read.
      operands: its operands.
      is_written: whether the graph also writes to the array.
    """
    items, (ref, *arrays) = node.params["index"].items, operands
    if not items or items[0] is not OPERAND or arrays[0].shape:
        return
    index = node.inputs[1]
    if type(index) is not Var:
        return
    if len(items) == len(ref.shape) == 1 and ref.dtype == np.int32:
        if index in body.inputs:
            body.listed[node.outputs[0]] = ref, arrays[0]
        return
    row = dtypes.dtype(ref.dtype).itemsize * math.prod(ref.shape[1:])
    if index not in body.listed or ref.shape[0] * row < _LARGE:
        return
    w, (numbers, i) = body.w, body.listed[index]
    ahead = w.sum(body.integer(i), _AHEAD)
    w.helper("llvm.smin.i64")
    last = numbers.shape[0] - 1
    ahead = w.op(f"call i64 @llvm.smin.i64(i64 {ahead}, i64 {last})")
    # Any number will do: asking for memory that is not there has no effect.
    start = w.times(body.wide(numbers.at(w, [ahead]), numbers.dtype), ref.strides[0])
    kind = memory_type(ref.dtype)
    pointer = w.op(f"getelementptr {kind}, ptr {ref.pointer}, i64 {start}")
    w.helper(PREFETCH)
    for at in range(0, min(row, _MOST), _LINE):
        line = w.op(f"getelementptr i8, ptr {pointer}, i64 {at}") if at else pointer
        # 3: keep it in all caches; 1: data, not instructions.
        w.do(f"call void @{PREFETCH}(ptr {line}, i32 {int(is_written)}, i32 3, i32 1)")


def _guarded(
    body: BodyWriter, view: Buffer, guards: Sequence[tuple[int, str]]
) -> Buffer:
    """Returns a copy of a part, with zeros past the ends of axes."""
    w = body.w
    room = body.arena.buffer(view.shape, view.dtype)
    counts: list[int | str] = list(view.shape)
    for axis, left in guards:
        w.helper("llvm.smin.i64")
        n = view.shape[axis]
        counts[axis] = w.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {n})")
    # Only what is past the ends is filled; with one axis, each element is
    # written once.
    zero = literal(0, view.dtype)
    if len(guards) > 1:
        with w.loops(view.shape) as index:
            room.put(w, index, zero)
    with w.loops(counts) as index:
        room.put(w, index, view.at(w, index))
    if len(guards) == 1:
        ((axis, _),) = guards
        count = counts[axis]
        rest = list(counts)
        rest[axis] = w.op(f"sub i64 {view.shape[axis]}, {count}")
        with w.loops(rest) as index:
            index = list(index)
            index[axis] = w.sum(index[axis], count)
            room.put(w, index, zero)
    return room


def _located(
    body: BodyWriter, ref: Buffer, node: Node, arrays: Sequence[Value]
) -> tuple[str, list[tuple[int, Any]], list[tuple[int, str]]]:
    """Returns the address of a part, its axes with strides, and what bounds it.

    Each axis is a pair of length and stride; a bound is an axis of the part and the
    number of elements along it that are inside.
    """
    w, items = body.w, list(node.params["index"].items)
    given = sum(i is not None and i is not Ellipsis for i in items)
    if Ellipsis not in [i for i in items if i is Ellipsis]:
        items.append(Ellipsis)
    rest = iter(arrays)
    axes: list[tuple[int, Any]] = []
    guards: list[tuple[int, str]] = []
    offsets: list[Any] = []
    d = 0
    for item in items:
        if item is None:
            axes.append((1, 0))
            continue
        if item is Ellipsis:
            for _ in range(len(ref.shape) - given):
                axes.append((ref.shape[d], ref.strides[d]))
                d += 1
            continue
        n, stride = ref.shape[d], ref.strides[d]
        if type(item) is int:
            offsets.append(w.times(item % n, stride))
        elif type(item) is tuple:
            start, stop, step = slice(*item).indices(n)
            length = len(range(start, stop, step))
            if step <= 0 or not length:
                raise UnsupportedError("a slice backwards, or of no elements")
            offsets.append(w.times(start, stride))
            axes.append((length, w.times(step, stride)))
        elif type(item) is Slice:
            at: Any = item.start
            if at is None:
                at = body.integer(next(rest))
                least = w.op(f"call i64 @llvm.smax.i64(i64 {at}, i64 0)")
                w.helper("llvm.smax.i64")
                w.helper("llvm.smin.i64")
                at = w.op(f"call i64 @llvm.smin.i64(i64 {least}, i64 {n})")
                known = item.size == 1 or n % item.size == 0
            else:
                known = at + item.size <= n
            offsets.append(w.times(at, stride))
            if not known or item.start is None:
                left = w.op(f"sub i64 {n}, {at}")
                guards.append((len(axes), left))
            axes.append((item.size, stride))
        elif item is OPERAND:
            value = next(rest)
            if math.prod(value.shape) != 1 or value.shape:
                raise UnsupportedError("an array of indices")
            offsets.append(w.times(_wrapped(body, value, n), stride))
        else:
            raise UnsupportedError(f"an index {item!r}")
        d += 1
    kind = memory_type(ref.dtype)
    offset = w.sum(*offsets) if offsets else "0"
    if offset == "0":
        return ref.pointer, axes, guards
    pointer = w.op(f"getelementptr {kind}, ptr {ref.pointer}, i64 {offset}")
    return pointer, axes, guards


def _wrapped(body: BodyWriter, value: Value, n: int) -> str:
    """Returns an index counted from the front, within the axis."""
    w, at = body.w, body.integer(value)
    negative = w.op(f"icmp slt i64 {at}, 0")
    front = w.op(f"add i64 {at}, {n}")
    at = w.op(f"select i1 {negative}, i64 {front}, i64 {at}")
    for name, bound in (("smax", 0), ("smin", n - 1)):
        w.helper(f"llvm.{name}.i64")
        at = w.op(f"call i64 @llvm.{name}.i64(i64 {at}, i64 {bound})")
    return at


def swap(body: BodyWriter, node: Node, operands: list[Any]) -> Value:
    """A write; what was there before is read if it is used."""
    ref, _, *arrays = operands
    if node.outputs[0] in body.read:
        old = body.copied(part(body, ref, node, arrays))
    else:
        aval = node.outputs[0].aval
        old = constant(aval.dtype, literal(0, aval.dtype), aval.shape)
    _write(body, node, operands, added=False)
    return old


def addupdate(body: BodyWriter, node: Node, operands: list[Any]) -> list[Value]:
    """An addition to what is there."""
    _write(body, node, operands, added=True)
    return []


def _write(body: BodyWriter, node: Node, operands: list[Any], *, added: bool) -> None:
    ref, value, *arrays = operands
    w = body.w
    pointer, axes, guards = _located(body, ref, node, arrays)
    outside = _outside(body, ref, node, arrays)
    target = Buffer(pointer, tuple(n for n, _ in axes), [s for _, s in axes], ref.dtype)
    shape = target.shape
    if ref.root in value.other:
        value = body.copied(value)
    if value.shape and len(value.shape) != len(shape):
        raise UnsupportedError("a write of another rank")

    def element(index: Sequence[str]) -> None:
        new = value.at(w, index if value.shape else [])
        if added:
            kind = register_type(ref.dtype)
            op = "fadd" if dtypes.is_floating(ref.dtype) else "add"
            old = target.at(w, index)
            new = w.op(f"{op} {kind} {old}, {new}")
            new = rounded(w, new, ref.dtype)
        target.put(w, index, new)

    def all_elements() -> None:
        if not (added or guards) and transposed(w, value, target):
            return
        with w.loops(shape) as index:
            if guards:
                with w.when(_inside(w, guards, index)):
                    element(index)
            else:
                element(index)

    if outside is None:
        all_elements()
    else:
        with w.when(outside):
            all_elements()


def _outside(
    body: BodyWriter, ref: Buffer, node: Node, arrays: Sequence[Value]
) -> str | None:
    """Returns an i1: whether a write by computed integers is inside, or None."""
    w = body.w
    rest = iter(arrays)
    items = list(node.params["index"].items)
    given = sum(i is not None and i is not Ellipsis for i in items)
    found: str | None = None
    d = 0
    for item in items:
        if item is None:
            continue
        if item is Ellipsis:
            d += len(ref.shape) - given
            continue
        if type(item) is Slice and item.start is None:
            next(rest)
        if item is OPERAND:
            at, n = body.integer(next(rest)), ref.shape[d]
            low = w.op(f"icmp sge i64 {at}, {-n}")
            high = w.op(f"icmp slt i64 {at}, {n}")
            both = w.op(f"and i1 {low}, {high}")
            found = both if found is None else w.op(f"and i1 {found}, {both}")
        d += 1
    return found


def new_ref(body: BodyWriter, node: Node, operands: list[Value]) -> Buffer:
    """Memory of a program's own."""
    (x,) = operands
    return computed(body.w, x, body.arena.buffer(x.shape, x.dtype))


def _inside(w: Writer, guards: Sequence[tuple[int, str]], index: Sequence[str]) -> str:
    found = ""
    for axis, left in guards:
        here = w.op(f"icmp slt i64 {index[axis]}, {left}")
        found = w.op(f"and i1 {found}, {here}") if found else here
    return found


def _index_avals(node: Node) -> list[Aval]:
    return [a.aval for a in node.inputs[1:]]


#: The rules by primitive; `part` reads.
RULES: dict[str, Any] = {"addupdate": addupdate, "new_ref": new_ref, "swap": swap}
