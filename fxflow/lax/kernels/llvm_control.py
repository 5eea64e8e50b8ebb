"""Loops and branches in the body of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph, Node, subgraphs
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.control_flow.while_loop import WhileParams
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_products import packed
from fxflow.lax.kernels.llvm_values import Buffer, Value, computed, constant
from fxflow.lax.kernels.llvm_writer import Writer, memory_type, register_type
from fxflow.lax.remat import CALLS, inlined

if TYPE_CHECKING:
    from fxflow.lax.kernels.llvm_body import BodyWriter


def scan(body: BodyWriter, node: Node, operands: list[Any]) -> list[Value]:
    """A loop of a known number of rounds."""
    p = ScanParams(**node.params)
    w = body.w
    if not isinstance(p.length, int) or p.length < 1:
        raise UnsupportedError("a loop of an unknown number of rounds")
    consts, carry, xs = p.split(operands)
    carry = [_variable(body, v) for v in carry]
    y_avals = [a.aval for a in p.graph.outputs[p.num_carry :]]
    ys = [body.arena.buffer((p.length, *a.shape), a.dtype) for a in y_avals]
    consts = _constants(body, p.graph, consts)
    xs = [body.in_memory(x) for x in xs]
    with w.loop(p.length) as i:
        if p.reverse:
            i = w.op(f"sub i64 {p.length - 1}, {i}")
        rows = [_row(w, x, i) for x in xs]
        outs = body.run(p.graph, [*consts, *map(_read, carry), *rows])
        for y, value in zip(ys, outs[p.num_carry :], strict=True):
            computed(w, value, _row(w, y, i))
        _assign(body, carry, outs[: p.num_carry])
    return [*map(_read, carry), *ys]


def while_loop(body: BodyWriter, node: Node, operands: list[Any]) -> list[Value]:
    """A loop that runs while a condition holds."""
    p = WhileParams(**node.params)
    w = body.w
    fixed_c, fixed_b, carry = p.split(operands)
    fixed_c = _constants(body, p.condition, fixed_c)
    fixed_b = _constants(body, p.body, fixed_b)
    carry = [_variable(body, v) for v in carry]
    test, inside, end = w.name("test"), w.name("body"), w.name("done")
    w.jump(test)
    (going,) = body.run(p.condition, [*fixed_c, *map(_read, carry)])
    w.do(f"br i1 {going.at(w, [])}, label %{inside}, label %{end}")
    w.label(inside)
    outs = body.run(p.body, [*fixed_b, *map(_read, carry)])
    _assign(body, carry, outs)
    w.do(f"br label %{test}")
    w.label(end)
    return list(map(_read, carry))


def cond(body: BodyWriter, node: Node, operands: list[Any]) -> list[Value]:
    """One of several graphs."""
    index, *rest = operands
    graphs = [g for _, g in subgraphs(node.params)]
    w = body.w
    fixed = [c if isinstance(c, Buffer) else _fixed(body, c) for c in rest]
    outs = [_room(body, v.aval) for v in node.outputs]
    kind = register_type(index.dtype)
    chosen = index.at(w, [])
    if kind == "i1":
        chosen, kind = w.op(f"zext i1 {chosen} to i32"), "i32"
    low = w.op(f"icmp slt {kind} {chosen}, 0")
    chosen = w.op(f"select i1 {low}, {kind} 0, {kind} {chosen}")
    labels = [w.name("case") for _ in graphs]
    end = w.name("joined")
    cases = " ".join(f"{kind} {i}, label %{name}" for i, name in enumerate(labels[:-1]))
    w.do(f"switch {kind} {chosen}, label %{labels[-1]} [{cases}]")
    for name, graph in zip(labels, graphs, strict=True):
        w.label(name)
        values = body.run(graph, fixed)
        for room, value in zip(outs, values, strict=True):
            computed(w, value, room)
        w.do(f"br label %{end}")
    w.label(end)
    return list(map(_read, outs))


def _constants(body: BodyWriter, graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Returns what no round of a loop changes, computed before the loop."""
    values = packed(body, inlined(graph, CALLS), values)
    return [c if isinstance(c, Buffer) else _fixed(body, c) for c in values]


def _fixed(body: BodyWriter, value: Value) -> Value:
    """Returns a value that a loop reads: computed before it."""
    if math.prod(value.shape) == 1:
        register = value.at(body.w, ["0"] * len(value.shape))
        return constant(value.dtype, register, value.shape)
    return value if value.steps <= 1 else body.in_memory(value)


def _room(body: BodyWriter, aval: Aval) -> Buffer:
    """Returns memory for a value; a variable on the stack for one number."""
    kind = memory_type(aval.dtype)
    if math.prod(aval.shape) == 1:
        slot = body.w.slot(kind)
        return Buffer(slot, aval.shape, [0] * len(aval.shape), aval.dtype)
    return body.arena.buffer(aval.shape, aval.dtype)


def _variable(body: BodyWriter, value: Value) -> Buffer:
    """Returns memory of a loop's own with a first value."""
    room = _room(body, Aval(value.shape, value.dtype))
    return computed(body.w, value, room)


def _assign(body: BodyWriter, carry: Sequence[Buffer], values: Sequence[Value]) -> None:
    """Replaces what a loop carries; new values may read the old ones."""
    roots = {room.root for room in carry}
    ready: list[tuple[Buffer, Value]] = []
    in_place: list[tuple[Buffer, Value]] = []
    for room, value in zip(carry, values, strict=True):
        if getattr(value, "pointer", None) == room.pointer:
            continue
        if roots.isdisjoint(value.roots - {room.root}) and not (
            room.root in value.other or isinstance(value, Buffer)
        ):
            in_place.append((room, value))
        elif isinstance(value, Buffer) and value.root not in roots:
            ready.append((room, value))
        else:
            ready.append((room, body.copied(value)))
    for room, value in (*ready, *in_place):
        computed(body.w, value, room)


def _row(w: Writer, x: Buffer, i: str) -> Buffer:
    pointer = x.address(w, [i, *["0"] * (len(x.shape) - 1)])
    return Buffer(pointer, x.shape[1:], x.strides[1:], x.dtype, x.root)


def _read(room: Buffer) -> Value:
    return room


#: The rules by primitive.
RULES: dict[str, Any] = {"cond": cond, "scan": scan, "while": while_loop}
