"""Parts of arrays in the body of a kernel, and where the largest element is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import Node
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_values import Buffer, Lazy, Value, computed, constant
from fxflow.lax.kernels.llvm_writer import Writer, register_type

if TYPE_CHECKING:
    from fxflow.lax.kernels.llvm_body import BodyWriter


def pad(body: BodyWriter, node: Node, operands: list[Value]) -> Value:
    """Elements around those of an array, but none between them."""
    x, value = operands
    config, out, w = node.params["padding_config"], node.outputs[0].aval, body.w
    if any(interior for _, _, interior in config):
        raise UnsupportedError("padding between elements")
    if any(low < 0 for low, _, _ in config):
        raise UnsupportedError("cropping at the start")
    fill = value.at(w, [])
    room = body.arena.buffer(out.shape, out.dtype)
    computed(w, constant(out.dtype, fill, out.shape), room)
    counts = [
        min(n, length - low)
        for n, length, (low, _, _) in zip(x.shape, out.shape, config, strict=True)
    ]
    with w.loops(counts) as index:
        at = [w.sum(i, low) for i, (low, _, _) in zip(index, config, strict=True)]
        room.put(w, at, x.at(w, index))
    return room


def dynamic_update_slice(body: BodyWriter, node: Node, operands: list[Value]) -> Value:
    """A copy of an array with a part replaced."""
    x, update, *starts = operands
    out, w = node.outputs[0].aval, body.w
    at = _clamped(body, starts, out.shape, update.shape)
    room = computed(w, x, body.arena.buffer(out.shape, out.dtype))
    with w.loops(update.shape) as index:
        moved = [w.sum(i, a) for i, a in zip(index, at, strict=True)]
        room.put(w, moved, update.at(w, index))
    return room


def _clamped(
    body: BodyWriter,
    starts: Sequence[Value],
    shape: Sequence[int],
    sizes: Sequence[int],
) -> list[str]:
    """Returns the starts of a slice, within an array."""
    w = body.w
    found = []
    for start, n, k in zip(starts, shape, sizes, strict=True):
        found.append(_within(w, body.integer(start), n - k))
    return found


def concatenate(body: BodyWriter, node: Node, operands: list[Value]) -> Value:
    """Arrays behind each other along an axis."""
    axis, out, w = node.params["dimension"], node.outputs[0].aval, body.w
    room = body.arena.buffer(out.shape, out.dtype)
    start = 0
    for x in operands:
        with w.loops(x.shape) as index:
            at = list(index)
            at[axis] = w.sum(at[axis], start)
            room.put(w, at, x.at(w, index))
        start += x.shape[axis]
    return room


def dynamic_slice(body: BodyWriter, node: Node, operands: list[Value]) -> Value:
    """A part of an array at a computed start, which is clamped."""
    x, *starts = operands
    out, w = node.outputs[0].aval, body.w
    at = _clamped(body, starts, x.shape, out.shape)
    if isinstance(x, Buffer):
        pointer = x.address(w, at)
        return Buffer(pointer, out.shape, x.strides, x.dtype, x.root)

    def element(w: Writer, index: Sequence[str]) -> str:
        moved = [w.sum(i, a) for i, a in zip(index, at, strict=True)]
        return x.at(w, moved)

    return Lazy(out.shape, out.dtype, element, x.steps, other=x.roots)


def gather(body: BodyWriter, node: Node, operands: list[Value]) -> Value:
    """Slices at computed starts, which are clamped."""
    x, indices = operands
    out, p = node.outputs[0].aval, node.params
    numbers, sizes = p["dimension_numbers"], p["slice_sizes"]
    if numbers.operand_batching_dims or p["mode"].name not in (
        "PROMISE_IN_BOUNDS",
        "CLIP",
    ):
        raise UnsupportedError("gather with batch axes, or with a fill value")
    source = body.in_memory(x)
    starts = body.in_memory(indices)
    window = [d for d in range(len(x.shape)) if d not in numbers.collapsed_slice_dims]
    offsets = dict(zip(numbers.offset_dims, window, strict=True))
    rows = [d for d in range(len(out.shape)) if d not in offsets]

    def element(w: Writer, index: Sequence[str]) -> str:
        at = ["0"] * len(x.shape)
        for d, axis in offsets.items():
            at[axis] = index[d]
        row = [index[d] for d in rows]
        for k, axis in enumerate(numbers.start_index_map):
            start = body.wide(starts.at(w, [*row, str(k)]), starts.dtype)
            most = x.shape[axis] - sizes[axis]
            at[axis] = w.sum(at[axis], _within(w, start, most))
        return source.at(w, at)

    return Lazy(out.shape, out.dtype, element, 12, other=source.roots | starts.roots)


def arg_extremum(body: BodyWriter, node: Node, operands: list[Value]) -> Value:
    """The extremum, then the first element that is like it: LLVM vectorizes both."""
    (x,), w = operands, body.w
    out, axis = node.outputs[0].aval, node.params["axis"]
    values = body.in_memory(x)
    kind, n = register_type(x.dtype), x.shape[axis]
    name = "reduce_max" if node.primitive.name == "argmax" else "reduce_min"
    best = body.reduced(name, values, (axis,), out.update(dtype=x.dtype))
    number = register_type(out.dtype)
    slot = w.slot("i64")
    result = None
    if out.size > 1:
        result = body.arena.buffer(out.shape, out.dtype)
    w.helper("llvm.umin.i64")
    with w.loops(out.shape) as outer:
        w.do(f"store i64 {n}, ptr {slot}")
        top = best.at(w, outer)
        with w.loop(n) as i:
            value = values.at(w, [*outer[:axis], i, *outer[axis:]])
            if dtypes.is_floating(x.dtype):
                same = w.op(f"fcmp ueq {kind} {value}, {top}")
                # Where there is a NaN it is the extremum, and the first one is meant.
                nan = w.op(f"fcmp uno {kind} {value}, {value}")
                clean = w.op(f"fcmp ord {kind} {top}, {top}")
                like = w.op(f"select i1 {clean}, i1 {same}, i1 {nan}")
            else:
                like = w.op(f"icmp eq {kind} {value}, {top}")
            here = w.op(f"select i1 {like}, i64 {i}, i64 {n}")
            before = w.op(f"load i64, ptr {slot}")
            least = w.op(f"call i64 @llvm.umin.i64(i64 {before}, i64 {here})")
            w.do(f"store i64 {least}, ptr {slot}")
        found = w.op(f"load i64, ptr {slot}")
        if number != "i64":
            found = w.op(f"trunc i64 {found} to {number}")
        if result is not None:
            result.put(w, outer, found)
    return result or constant(out.dtype, found, out.shape)


def _within(w: Writer, value: str, most: int) -> str:
    """Returns an i64 bounded by 0 and another number."""
    for name, bound in (("smax", 0), ("smin", most)):
        w.helper(f"llvm.{name}.i64")
        value = w.op(f"call i64 @llvm.{name}.i64(i64 {value}, i64 {bound})")
    return value


#: The rules by primitive.
RULES: dict[str, Any] = {
    "argmax": arg_extremum,
    "argmin": arg_extremum,
    "concatenate": concatenate,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "pad": pad,
}
