"""The body of a kernel as loops in LLVM's IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import AbstractRef, Aval, dtypes
from fxflow.core.ir.graph import Graph, Literal, Node, Var, subgraphs
from fxflow.core.ir.ref_index import OPERAND, Slice
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.control_flow.while_loop import WhileParams
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_parts import RULES as PART_RULES
from fxflow.lax.kernels.llvm_products import packed, product, transposed
from fxflow.lax.kernels.llvm_scalars import (
    CHEAP,
    extremum,
    is_known,
    scalar,
)
from fxflow.lax.kernels.llvm_values import (
    Arena,
    Buffer,
    Lazy,
    Value,
    computed,
    constant,
    row_major,
)
from fxflow.lax.kernels.llvm_writer import (
    Writer,
    is_half,
    literal,
    memory_type,
    register_type,
    rounded,
)
from fxflow.lax.remat import CALLS, inlined

Operand = Value | Buffer
#: Operations that read each element of an operand once, in loops over their own shape.
_ONCE = frozenset(
    {
        *("addupdate", "concatenate", "dynamic_update_slice", "pad", "reduce_and"),
        *("reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum"),
        *("reshape", "rev", "slice", "swap", "transpose"),
    }
)
_EXTREMA = frozenset(("reduce_max", "reduce_min"))
_INDEXING = frozenset(
    ["broadcast_in_dim", "reshape", "transpose", "slice", "rev", "iota"]
)


class BodyWriter:
    """Writes the operations of a graph.

    Args:
      w: where to.
      arena: memory for what is computed.
      lanes: numbers of float32 in a vector of the processor.
    """

    def __init__(self, w: Writer, arena: Arena, lanes: int) -> None:
        self.w, self.arena, self.lanes = w, arena, lanes
        self._read: Mapping[Var, Any] = {}

    def run(self, graph: Graph, given: Sequence[Any]) -> list[Any]:
        """Writes a graph.

        Args:
          graph: of any operations; calls are written out.
          given: values of its inputs; for references the memory that they refer to.

        Returns:
          The values of its outputs.

        Raises:
          UnsupportedError: there is no rule for an operation.
        """
        graph = inlined(graph, CALLS)
        env: dict[Any, Any] = dict(zip(graph.inputs, given, strict=True))
        uses = _uses(graph)
        written = written_refs(graph)
        before, self._read = self._read, uses
        for node in graph.nodes:
            operands = [self._operand(env, a) for a in node.inputs]
            try:
                results = self._node(node, operands, written)
            except UnsupportedError as error:
                # The innermost operation is the one to name.
                error.source = error.source or node.source
                raise
            for var, value in zip(node.outputs, results, strict=True):
                env[var] = self._kept(value, uses.get(var, ()), node)
            self._read = uses
        self._read = before
        return [self._operand(env, a) for a in graph.outputs]

    def _operand(self, env: Mapping[Any, Any], atom: Any) -> Any:
        if type(atom) is Literal:
            value = np.asarray(atom.value)
            if value.ndim:
                raise UnsupportedError("an array as a constant")
            return constant(atom.aval.dtype, literal(value[()], atom.aval.dtype))
        return env[atom]

    def _kept(self, value: Value, uses: Sequence[Any], node: Node) -> Value:
        """Returns a result as its users read it: lazy, or in memory."""
        if not isinstance(value, Lazy):
            return value
        if math.prod(value.shape) == 1:
            register = value.at(self.w, ["0"] * len(value.shape))
            return constant(value.dtype, register, value.shape)
        if value.steps <= 2 and node.primitive.name in _INDEXING:
            return value
        if len(uses) == 0:
            return value
        # LLVM does not vectorize the largest of numbers that a loop computes.
        if value.steps and any(u and u.primitive.name in _EXTREMA for u in uses):
            return self.in_memory(value)
        (user,) = uses[:1]
        once = len(uses) == 1 and (user is None or _reads_once(user, value))
        if once or (value.steps <= 1 and all(u and _is_plain(u) for u in uses)):
            return value
        return self.in_memory(value)

    def in_memory(self, value: Value, *, rows: bool = False) -> Buffer:
        """Returns a value in memory.

        Args:
          value: of any kind.
          rows: whether the elements along the last axis must be adjacent.
        """
        if isinstance(value, Buffer) and not (
            rows and value.shape and value.strides[-1] != 1
        ):
            return value
        return computed(self.w, value, self.arena.buffer(value.shape, value.dtype))

    # -- operations --------------------------------------------------------------------

    def _node(
        self, node: Node, operands: list[Any], written: frozenset[Var]
    ) -> Sequence[Any]:
        name = node.primitive.name
        rule: Callable[..., Any] | None = getattr(self, f"_{name}", None)
        if rule is not None:
            out = rule(node, operands)
        elif name in PART_RULES:
            out = PART_RULES[name](self, node, operands)
        elif name == "get":
            value = self._part(operands[0], node, operands[1:])
            # A later write must not change what was read.
            out = self.copied(value) if node.inputs[0] in written else value
        elif is_known(name):
            out = self._elementwise(node, operands)
        elif name.startswith("reduce_") and "axes" in node.params:
            out = self._reduce(node, operands)
        else:
            raise UnsupportedError(name)
        return out if node.primitive.multi else [out]

    def copied(self, value: Value) -> Value:
        """Returns a value in memory of its own."""
        if math.prod(value.shape) == 1:
            register = value.at(self.w, ["0"] * len(value.shape))
            return constant(value.dtype, register, value.shape)
        return computed(self.w, value, self.arena.buffer(value.shape, value.dtype))

    def _elementwise(self, node: Node, operands: list[Value]) -> Value:
        avals = [a.aval for a in node.inputs]
        out, name, params = node.outputs[0].aval, node.primitive.name, node.params
        memory_type(out.dtype)

        def element(w: Writer, index: Sequence[str]) -> str:
            given = [x.at(w, index if x.shape else []) for x in operands]
            return scalar(w, name, given, avals, out, params)

        steps = sum(x.steps for x in operands) + (1 if name in CHEAP else 10)
        whole = [x for x in operands if x.shape == tuple(out.shape)]
        rest = [x for x in operands if x.shape != tuple(out.shape)]
        aligned = frozenset().union(*(x.aligned for x in whole))
        other = frozenset().union(*(x.other for x in whole), *(x.roots for x in rest))
        return Lazy(out.shape, out.dtype, element, steps, aligned, other)

    def _broadcast_in_dim(self, node: Node, operands: list[Value]) -> Value:
        (x,) = operands[:1]
        out, axes = node.outputs[0].aval, node.params["broadcast_dimensions"]

        def element(w: Writer, index: Sequence[str]) -> str:
            return x.at(
                w,
                [
                    "0" if n == 1 else index[axis]
                    for n, axis in zip(x.shape, axes, strict=True)
                ],
            )

        return Lazy(out.shape, out.dtype, element, x.steps, other=x.roots)

    def _reshape(self, node: Node, operands: list[Value]) -> Value:
        (x,) = operands
        out = node.outputs[0].aval
        old = [n for n in x.shape if n != 1]
        new = [n for n in out.shape if n != 1]
        if old == new:
            places = [i for i, n in enumerate(out.shape) if n != 1]

            def element(w: Writer, index: Sequence[str]) -> str:
                rest = iter(places)
                return x.at(w, ["0" if n == 1 else index[next(rest)] for n in x.shape])

            return Lazy(out.shape, out.dtype, element, x.steps, other=x.roots)
        buffer = self.in_memory(x)
        if not buffer.is_contiguous:
            buffer = self.copied(x)  # type: ignore[assignment]
        strides = row_major(out.shape)
        return Buffer(buffer.pointer, out.shape, strides, out.dtype, buffer.root)

    def _transpose(self, node: Node, operands: list[Value]) -> Value:
        (x,) = operands
        order, out = node.params["permutation"], node.outputs[0].aval
        if x.steps and len(order) == 2:
            x = self.in_memory(x)  # computed along rows
        if isinstance(x, Buffer):
            strides = [x.strides[i] for i in order]
            return Buffer(x.pointer, out.shape, strides, x.dtype, x.root)

        def element(w: Writer, index: Sequence[str]) -> str:
            old = [""] * len(order)
            for new, axis in enumerate(order):
                old[axis] = index[new]
            return x.at(w, old)

        return Lazy(out.shape, out.dtype, element, x.steps, other=x.roots)

    def _slice(self, node: Node, operands: list[Value]) -> Value:
        (x,) = operands
        out, p = node.outputs[0].aval, node.params
        steps = p["strides"] or (1,) * len(out.shape)
        starts = p["start_indices"]

        def element(w: Writer, index: Sequence[str]) -> str:
            return x.at(
                w,
                [
                    w.sum(w.times(i, s), a)
                    for i, s, a in zip(index, steps, starts, strict=True)
                ],
            )

        return Lazy(out.shape, out.dtype, element, x.steps, other=x.roots)

    def _iota(self, node: Node, operands: list[Value]) -> Value:
        out, axis = node.outputs[0].aval, node.params["dimension"]
        kind = register_type(out.dtype)

        def element(w: Writer, index: Sequence[str]) -> str:
            if dtypes.is_floating(out.dtype):
                number = w.op(f"uitofp i64 {index[axis]} to {kind}")
                return rounded(w, number, out.dtype)
            if kind == "i64":
                return w.op(f"add i64 {index[axis]}, 0")
            return w.op(f"trunc i64 {index[axis]} to {kind}")

        return Lazy(out.shape, out.dtype, element, 1)

    def _reduce(self, node: Node, operands: list[Value]) -> Value:
        (x,), axes = operands, tuple(node.params["axes"])
        return self.reduced(node.primitive.name, x, axes, node.outputs[0].aval)

    def reduced(self, name: str, x: Value, axes: Sequence[int], out: Aval) -> Value:
        """Returns a reduction of an array along some axes.

        Args:
          name: of the primitive.
          x: the array.
          axes: of the array.
          out: type of the result.
        """
        start, combine = _reduction(name, x.dtype)
        w, kind = self.w, register_type(x.dtype)
        wide = np.dtype(np.float32) if is_half(x.dtype) else x.dtype
        kept = [i for i in range(len(x.shape)) if i not in axes]
        if not kept or (x.shape and len(x.shape) - 1 in axes):
            slot = w.slot(kind)
            result: Any = None
            if math.prod(out.shape) > 1:
                result = self.arena.buffer(out.shape, out.dtype)
            with w.loops([x.shape[i] for i in kept]) as outer:
                w.do(f"store {kind} {start}, ptr {slot}")
                with w.loops([x.shape[i] for i in axes]) as inner:
                    place = {
                        **dict(zip(kept, outer, strict=True)),
                        **dict(zip(axes, inner, strict=True)),
                    }
                    value = x.at(w, [place[i] for i in range(len(x.shape))])
                    before = w.op(f"load {kind}, ptr {slot}")
                    w.do(f"store {kind} {combine(w, before, value)}, ptr {slot}")
                total = w.op(f"load {kind}, ptr {slot}")
                total = rounded(w, total, out.dtype)
                if result is None:
                    single = total
                else:
                    result.put(w, outer, total)
            return result or constant(out.dtype, single, out.shape)
        sums = self.arena.buffer(out.shape, wide)
        with w.loops(out.shape) as index:
            sums.put(w, index, start)
        with w.loops(x.shape) as index:
            at = [index[i] for i in kept]
            sums.put(w, at, combine(w, sums.at(w, at), x.at(w, index)))
        if wide == out.dtype:
            return sums
        return Lazy(out.shape, out.dtype,
                    lambda w, i: rounded(w, sums.at(w, i), out.dtype), 1)  # fmt: skip

    # -- references --------------------------------------------------------------------

    def _part(self, ref: Buffer, node: Node, arrays: Sequence[Value]) -> Value:
        """Returns the part of a reference that an index names."""
        out = node.primitive.abstract(
            AbstractRef(Aval(ref.shape, ref.dtype)),
            *_index_avals(node),
            index=node.params["index"],
        ) if node.primitive.name == "get" else node.outputs[0].aval  # fmt: skip
        pointer, axes, guards = self._located(ref, node, arrays)
        shape = tuple(out.shape)
        strides = [stride for _, stride in axes]
        view = Buffer(pointer, shape, strides, ref.dtype, ref.root)
        return self._guarded(view, guards) if guards else view

    def _guarded(self, view: Buffer, guards: Sequence[tuple[int, str]]) -> Buffer:
        """Returns a copy of a part, with zeros behind the ends of axes."""
        w = self.w
        room = self.arena.buffer(view.shape, view.dtype)
        counts: list[int | str] = list(view.shape)
        for axis, left in guards:
            w.helper("llvm.smin.i64")
            n = view.shape[axis]
            counts[axis] = w.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {n})")
        # Only what is behind the ends is filled; with one axis, each element is
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
        self, ref: Buffer, node: Node, arrays: Sequence[Value]
    ) -> tuple[str, list[tuple[int, Any]], list[tuple[int, str]]]:
        """Returns the address of a part, its axes with strides, and what bounds it.

        Each axis is a pair of length and stride; a bound is an axis of the part and the
        number of elements along it that are inside.
        """
        w, items = self.w, list(node.params["index"].items)
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
                    at = self.integer(next(rest))
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
                offsets.append(w.times(self._wrapped(value, n), stride))
            else:
                raise UnsupportedError(f"an index {item!r}")
            d += 1
        kind = memory_type(ref.dtype)
        offset = w.sum(*offsets) if offsets else "0"
        if offset == "0":
            return ref.pointer, axes, guards
        pointer = w.op(f"getelementptr {kind}, ptr {ref.pointer}, i64 {offset}")
        return pointer, axes, guards

    def integer(self, value: Value) -> str:
        """Returns a 0-d integer as an i64."""
        return self.wide(value.at(self.w, []), value.dtype)

    def wide(self, register: str, dtype: Any) -> str:
        """Returns an integer as an i64."""
        kind = register_type(dtype)
        if kind == "i64":
            return register
        sign = "zext" if dtypes.is_unsigned(dtype) else "sext"
        return self.w.op(f"{sign} {kind} {register} to i64")

    def _wrapped(self, value: Value, n: int) -> str:
        """Returns an index counted from the front, within the axis."""
        w, at = self.w, self.integer(value)
        negative = w.op(f"icmp slt i64 {at}, 0")
        front = w.op(f"add i64 {at}, {n}")
        at = w.op(f"select i1 {negative}, i64 {front}, i64 {at}")
        for name, bound in (("smax", 0), ("smin", n - 1)):
            w.helper(f"llvm.{name}.i64")
            at = w.op(f"call i64 @llvm.{name}.i64(i64 {at}, i64 {bound})")
        return at

    def _swap(self, node: Node, operands: list[Any]) -> Value:
        ref, _, *arrays = operands
        if node.outputs[0] in self._read:
            old = self.copied(self._part(ref, node, arrays))
        else:
            aval = node.outputs[0].aval
            old = constant(aval.dtype, literal(0, aval.dtype), aval.shape)
        self._write(node, operands, added=False)
        return old

    def _addupdate(self, node: Node, operands: list[Any]) -> list[Value]:
        self._write(node, operands, added=True)
        return []

    def _write(self, node: Node, operands: list[Any], *, added: bool) -> None:
        ref, value, *arrays = operands
        w = self.w
        pointer, axes, guards = self._located(ref, node, arrays)
        outside = self._outside(ref, node, arrays)
        target = Buffer(
            pointer, tuple(n for n, _ in axes), [s for _, s in axes], ref.dtype
        )
        shape = target.shape
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

    def _outside(self, ref: Buffer, node: Node, arrays: Sequence[Value]) -> str | None:
        """Returns an i1: whether a write by computed integers is inside, or None."""
        w = self.w
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
                at, n = self.integer(next(rest)), ref.shape[d]
                low = w.op(f"icmp sge i64 {at}, {-n}")
                high = w.op(f"icmp slt i64 {at}, {n}")
                both = w.op(f"and i1 {low}, {high}")
                found = both if found is None else w.op(f"and i1 {found}, {both}")
            d += 1
        return found

    def _new_ref(self, node: Node, operands: list[Value]) -> Buffer:
        (x,) = operands
        return computed(self.w, x, self.arena.buffer(x.shape, x.dtype))

    # -- control flow ------------------------------------------------------------------

    def _scan(self, node: Node, operands: list[Any]) -> list[Value]:
        p = ScanParams(**node.params)
        w = self.w
        if not isinstance(p.length, int) or p.length < 1:
            raise UnsupportedError("a loop of an unknown number of rounds")
        consts, carry, xs = p.split(operands)
        carry = [self._variable(v) for v in carry]
        y_avals = [a.aval for a in p.graph.outputs[p.num_carry :]]
        ys = [self.arena.buffer((p.length, *a.shape), a.dtype) for a in y_avals]
        consts = self._constants(p.graph, consts)
        xs = [self.in_memory(x) for x in xs]
        with w.loop(p.length) as i:
            if p.reverse:
                i = w.op(f"sub i64 {p.length - 1}, {i}")
            rows = [_row(w, x, i) for x in xs]
            outs = self.run(p.graph, [*consts, *map(_read, carry), *rows])
            for y, value in zip(ys, outs[p.num_carry :], strict=True):
                computed(w, value, _row(w, y, i))
            self._assign(carry, outs[: p.num_carry])
        return [*map(_read, carry), *ys]

    def _while(self, node: Node, operands: list[Any]) -> list[Value]:
        p = WhileParams(**node.params)
        w = self.w
        fixed_c, fixed_b, carry = p.split(operands)
        fixed_c = self._constants(p.condition, fixed_c)
        fixed_b = self._constants(p.body, fixed_b)
        carry = [self._variable(v) for v in carry]
        test, body, end = w.name("test"), w.name("body"), w.name("done")
        w.jump(test)
        (going,) = self.run(p.condition, [*fixed_c, *map(_read, carry)])
        w.do(f"br i1 {going.at(w, [])}, label %{body}, label %{end}")
        w.label(body)
        outs = self.run(p.body, [*fixed_b, *map(_read, carry)])
        self._assign(carry, outs)
        w.do(f"br label %{test}")
        w.label(end)
        return list(map(_read, carry))

    def _cond(self, node: Node, operands: list[Any]) -> list[Value]:
        index, *rest = operands
        graphs = [g for _, g in subgraphs(node.params)]
        w = self.w
        fixed = [c if isinstance(c, Buffer) else self._fixed(c) for c in rest]
        outs = [self._room(v.aval) for v in node.outputs]
        kind = register_type(index.dtype)
        chosen = index.at(w, [])
        if kind == "i1":
            chosen, kind = w.op(f"zext i1 {chosen} to i32"), "i32"
        low = w.op(f"icmp slt {kind} {chosen}, 0")
        chosen = w.op(f"select i1 {low}, {kind} 0, {kind} {chosen}")
        labels = [w.name("case") for _ in graphs]
        end = w.name("joined")
        cases = " ".join(
            f"{kind} {i}, label %{name}" for i, name in enumerate(labels[:-1])
        )
        w.do(f"switch {kind} {chosen}, label %{labels[-1]} [{cases}]")
        for name, graph in zip(labels, graphs, strict=True):
            w.label(name)
            values = self.run(graph, fixed)
            for room, value in zip(outs, values, strict=True):
                computed(w, value, room)
            w.do(f"br label %{end}")
        w.label(end)
        return list(map(_read, outs))

    def _constants(self, graph: Graph, values: Sequence[Any]) -> list[Any]:
        """Returns what no round of a loop changes, computed before the loop."""
        values = packed(self, inlined(graph, CALLS), values)
        return [c if isinstance(c, Buffer) else self._fixed(c) for c in values]

    def _fixed(self, value: Value) -> Value:
        """Returns a value that a loop reads: computed before it."""
        if math.prod(value.shape) == 1:
            register = value.at(self.w, ["0"] * len(value.shape))
            return constant(value.dtype, register, value.shape)
        return value if value.steps <= 1 else self.in_memory(value)

    def _room(self, aval: Aval) -> Buffer:
        """Returns memory for a value; a variable on the stack for one number."""
        kind = memory_type(aval.dtype)
        if math.prod(aval.shape) == 1:
            slot = self.w.slot(kind)
            return Buffer(slot, aval.shape, [0] * len(aval.shape), aval.dtype)
        return self.arena.buffer(aval.shape, aval.dtype)

    def _variable(self, value: Value) -> Buffer:
        """Returns memory of a loop's own with a first value."""
        room = self._room(Aval(value.shape, value.dtype))
        return computed(self.w, value, room)

    def _assign(self, carry: Sequence[Buffer], values: Sequence[Value]) -> None:
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
                ready.append((room, self.copied(value)))
        for room, value in (*ready, *in_place):
            computed(self.w, value, room)

    # -- products ----------------------------------------------------------------------

    def _dot_general(self, node: Node, operands: list[Value]) -> Value:
        return product(self, node, operands)


def _reads_once(node: Node, value: Value) -> bool:
    """Returns whether an operation reads each element of an operand once."""
    name = node.primitive.name
    if name == "broadcast_in_dim":
        size = math.prod(node.outputs[0].aval.shape)
        return size == math.prod(value.shape) or value.steps <= 1
    return name in _ONCE or is_known(name)


def _is_plain(node: Node) -> bool:
    return is_known(node.primitive.name) or node.primitive.name in _INDEXING | _ONCE


def _uses(graph: Graph) -> dict[Var, list[Any]]:
    """Returns the users of each variable; None for the graph's outputs."""
    found: dict[Var, list[Any]] = {}
    for node in graph.nodes:
        for atom in node.inputs:
            if type(atom) is Var:
                found.setdefault(atom, []).append(node)
    for atom in graph.outputs:
        if type(atom) is Var:
            found.setdefault(atom, []).append(None)
    return found


def written_refs(graph: Graph) -> frozenset[Var]:
    """Returns the references that a graph writes to, here or in graphs inside."""

    def find() -> frozenset[Var]:
        found: set[Var] = set()
        for node in graph.nodes:
            if node.primitive.name in ("swap", "addupdate"):
                found.add(node.inputs[0])
            for _, inner in subgraphs(node.params):
                # Inputs of the graph are the last operands.
                offset = len(node.inputs) - len(inner.inputs)
                written = written_refs(inlined(inner, CALLS))
                found.update(
                    node.inputs[offset + k]
                    for k, v in enumerate(inner.inputs)
                    if v in written
                )
        return frozenset(found)

    return graph.remembered("written references", find)


def _index_avals(node: Node) -> list[Aval]:
    return [a.aval for a in node.inputs[1:]]


def _inside(w: Writer, guards: Sequence[tuple[int, str]], index: Sequence[str]) -> str:
    found = ""
    for axis, left in guards:
        here = w.op(f"icmp slt i64 {index[axis]}, {left}")
        found = w.op(f"and i1 {found}, {here}") if found else here
    return found


def _row(w: Writer, x: Buffer, i: str) -> Buffer:
    pointer = x.address(w, [i, *["0"] * (len(x.shape) - 1)])
    return Buffer(pointer, x.shape[1:], x.strides[1:], x.dtype, x.root)


def _read(room: Buffer) -> Value:
    return room


def _reduction(name: str, dtype: Any) -> tuple[str, Callable[[Writer, str, str], str]]:
    """Returns what a reduction starts with, and how it combines two numbers."""
    kind = register_type(dtype)
    floating, boolean = dtypes.is_floating(dtype), dtypes.is_bool(dtype)
    if name in ("reduce_max", "reduce_min"):
        largest = name == "reduce_max"
        if floating:
            start: Any = -np.inf if largest else np.inf
        elif boolean:
            start = not largest
        else:
            info = np.iinfo(dtype)
            start = info.min if largest else info.max
        return literal(start, dtype), lambda w, a, b: extremum(w, largest, a, b, dtype)
    ops = {
        "reduce_sum": (0, "fadd reassoc", "add", "xor"),
        "reduce_prod": (1, "fmul reassoc", "mul", "and"),
        "reduce_and": (-1, "", "and", "and"),
        "reduce_or": (0, "", "or", "or"),
        "reduce_xor": (0, "", "xor", "xor"),
    }
    if name not in ops:
        raise UnsupportedError(name)
    number, of_floats, of_integers, of_bools = ops[name]
    op = of_floats if floating else of_bools if boolean else of_integers
    if not op:
        raise UnsupportedError(f"{name} of {dtype}")
    text = literal(bool(number), dtype) if boolean else literal(number, dtype)
    return text, lambda w, a, b: w.op(f"{op} {kind} {a}, {b}")
