"""The body of a kernel as loops in LLVM's IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.core.ir.graph import Graph, Literal, Node, Var
from fxflow.core.ir.ref_index import WHOLE
from fxflow.lax.kernels import llvm_control, llvm_parts, llvm_refs
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_products import product
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
from fxflow.lax.kernels.uses import written_refs
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
_RULES: dict[str, Callable[..., Any]] = {
    "dot_general": product,
    **llvm_control.RULES,
    **llvm_parts.RULES,
    **llvm_refs.RULES,
}


class BodyWriter:
    """Writes the operations of a graph.

    Args:
      w: where to.
      arena: memory for what is computed.
      lanes: numbers of float32 in a vector of the processor.

    Attributes:
      read: the users of each variable of the graph that is being written.
      inputs: the inputs of that graph.
      listed: a variable that was read from a list of integers → the list, and where.
    """

    w: Writer
    arena: Arena
    lanes: int
    inputs: Collection[Any]
    listed: dict[Any, tuple[Any, Any]]

    def __init__(self, w: Writer, arena: Arena, lanes: int) -> None:
        self.w, self.arena, self.lanes = w, arena, lanes
        self.read: Mapping[Var, Any] = {}
        self.inputs, self.listed = (), {}

    def run(
        self, graph: Graph, given: Sequence[Any], last: Collection[int] = ()
    ) -> list[Any]:
        """Writes a graph.

        Args:
          graph: of any operations; calls are written out.
          given: values of its inputs; for references the memory that they refer to.
          last: positions of references that are written once; where the last operation
            does, what is read from them before is not copied.

        Returns:
          The values of its outputs.

        Raises:
          UnsupportedError: there is no rule for an operation.
        """
        graph = inlined(graph, CALLS)
        env: dict[Any, Any] = dict(zip(graph.inputs, given, strict=True))
        uses = _uses(graph)
        written = written_refs(graph)
        final = _last_written(graph, last)
        before = self.read, self.inputs
        self.read, self.inputs = uses, frozenset(graph.inputs)
        for node in graph.nodes:
            operands = [self._operand(env, a) for a in node.inputs]
            try:
                results = self._node(node, operands, written, final)
            except UnsupportedError as error:
                # The innermost operation is the one to name.
                error.source = error.source or node.source
                raise
            for var, value in zip(node.outputs, results, strict=True):
                kept = node.primitive.name == "get" and node.inputs[0] is final
                env[var] = value if kept else self._kept(value, uses.get(var, ()), node)
            self.read, self.inputs = uses, frozenset(graph.inputs)
        self.read, self.inputs = before
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
        self,
        node: Node,
        operands: list[Any],
        written: frozenset[Var],
        final: Var | None,
    ) -> Sequence[Any]:
        name = node.primitive.name
        rule: Callable[..., Any] | None = getattr(self, f"_{name}", None)
        if rule is not None:
            out = rule(node, operands)
        elif name in _RULES:
            out = _RULES[name](self, node, operands)
        elif name == "get":
            llvm_refs.prefetch(self, node, operands, node.inputs[0] in written)
            value = llvm_refs.part(self, operands[0], node, operands[1:])
            # A later write must not change what was read.
            if node.inputs[0] is final and node.params["index"] == WHOLE:
                out = _elements(value)
            else:
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

    def _rev(self, node: Node, operands: list[Value]) -> Value:
        (x,) = operands
        out, axes = node.outputs[0].aval, node.params["dimensions"]

        def element(w: Writer, index: Sequence[str]) -> str:
            ends = enumerate(zip(index, out.shape, strict=True))
            return x.at(
                w,
                [
                    w.op(f"sub i64 {n - 1}, {i}") if d in axes else i
                    for d, (i, n) in ends
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
          axes: axes of the array.
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

    # -- integers ----------------------------------------------------------------------

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


def _last_written(graph: Graph, positions: Collection[int]) -> Var | None:
    """Returns which of some inputs the last operation of a graph writes."""
    if not (positions and graph.nodes and graph.nodes[-1].primitive.name == "swap"):
        return None
    ref = graph.nodes[-1].inputs[0]
    return next((v for v in map(graph.inputs.__getitem__, positions) if v is ref), None)


def _elements(x: Value) -> Lazy:
    """Returns an array whose memory the last operation writes, element by element."""
    return Lazy(x.shape, x.dtype, x.at, 0, aligned=x.aligned)


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
