"""The body of a kernel in Triton's IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph, Literal, Node, Var, subgraphs
from fxflow.core.ir.ref_index import OPERAND, Index
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.control_flow.while_loop import WhileParams
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.triton_parts import RULES as PARTS
from fxflow.lax.kernels.triton_parts import taken
from fxflow.lax.kernels.triton_products import product
from fxflow.lax.kernels.triton_refs import Memory, Reference, Registers
from fxflow.lax.kernels.triton_scalars import converted, elementwise, is_known
from fxflow.lax.kernels.triton_writer import I32, Tile, Writer
from fxflow.lax.kernels.uses import written_refs
from fxflow.lax.remat import CALLS, inlined


class BodyWriter:
    """Writes the operations of a graph.

    Args:
      w: where to.

    Attributes:
      in_loops: bytes of the reads in loops.
    """

    w: Writer
    in_loops: int

    def __init__(self, w: Writer) -> None:
        self.w, self.in_loops, self._depth = w, 0, 0

    def run(self, graph: Graph, given: Sequence[Any]) -> list[Any]:
        """Writes a graph.

        Args:
          graph: of any operations; calls are written out.
          given: values of its inputs.

        Returns:
          The values of its outputs.

        Raises:
          UnsupportedError: there is no rule for an operation.
        """
        graph = inlined(graph, CALLS)
        env: dict[Any, Any] = dict(zip(graph.inputs, given, strict=True))
        read = {a for node in graph.nodes for a in node.inputs if type(a) is Var}
        read.update(a for a in graph.outputs if type(a) is Var)
        for node in graph.nodes:
            operands = [self._operand(env, a) for a in node.inputs]
            try:
                results = self._node(node, operands, read)
            except UnsupportedError as error:
                # The innermost operation is the one to name.
                error.source = error.source or node.source
                raise
            env.update(zip(node.outputs, results, strict=True))
        return [self._operand(env, a) for a in graph.outputs]

    def _operand(self, env: dict[Any, Any], atom: Any) -> Any:
        if type(atom) is not Literal:
            return env[atom]
        value = np.asarray(atom.value)
        if value.ndim:
            raise UnsupportedError("an array as a constant")
        return self.w.constant(value[()], (), atom.aval.dtype)

    def _node(self, node: Node, operands: list[Any], read: set[Any]) -> Sequence[Any]:
        name = node.primitive.name
        rule = getattr(self, f"_{name}", None)
        if rule is not None:
            out = rule(node, operands, read)
        elif name in PARTS:
            out = PARTS[name](self.w, node, operands)
        elif is_known(name):
            out = self._elementwise(node, operands)
        else:
            raise UnsupportedError(name)
        return out if node.primitive.multi else [out]

    def _elementwise(self, node: Node, operands: list[Tile]) -> Tile:
        name, out = node.primitive.name, node.outputs[0].aval
        found = elementwise(self.w, name, operands, out, node.params)
        if name in ("add", "mul", "sub", "convert_element_type"):
            found.ramp = self._ramp(name, operands, out)
        return found

    def _ramp(self, name: str, operands: Sequence[Tile], out: Aval) -> Any:
        """Returns the ramp of a result, if it is one."""
        if out.dtype != I32:
            return None
        x = operands[0]
        if name == "convert_element_type":
            return x.ramp if x.dtype == I32 else None
        if name == "add" and x.ramp is None and not x.shape:
            operands = operands[::-1]
        x, y = operands
        if name != "add" or x.ramp is None or y.shape:
            return None
        start, step = x.ramp
        return self.w.op(f"arith.addi {start}, {y.value} : i32"), step

    def _dot_general(self, node: Node, operands: list[Tile], read: Any) -> Tile:
        return product(self.w, node, operands)

    # -- references --------------------------------------------------------------------

    def _get(self, node: Node, operands: list[Any], read: Any) -> Tile:
        ref, *arrays = operands
        return self._loaded(ref, node, arrays)

    def _loaded(self, ref: Reference, node: Node, arrays: Sequence[Tile]) -> Tile:
        before = self.w.loaded
        value = ref.read(self.w, node.params["index"], arrays)
        if self._depth:
            self.in_loops += self.w.loaded - before
        return value

    def _swap(self, node: Node, operands: list[Any], read: set[Any]) -> Tile:
        ref, value, *arrays = operands
        (out,) = node.outputs
        old = Tile("", out.aval.shape, out.aval.dtype)
        if out in read:
            old = self._loaded(ref, node, arrays)
        ref.write(self.w, node.params["index"], arrays, value, False)
        return old

    def _addupdate(self, node: Node, operands: list[Any], read: Any) -> list[Any]:
        ref, value, *arrays = operands
        ref.write(self.w, node.params["index"], arrays, value, True)
        return []

    def _new_ref(self, node: Node, operands: list[Tile], read: Any) -> Registers:
        return Registers(operands[0])

    # -- control flow ------------------------------------------------------------------

    def _scan(self, node: Node, operands: list[Any], read: Any) -> list[Tile]:
        p, w = ScanParams(**node.params), self.w
        if not isinstance(p.length, int) or p.length < 1:
            raise UnsupportedError("a loop of an unknown number of rounds")
        consts, carry, xs = p.split(operands)
        y_avals = [a.aval for a in p.graph.outputs[p.num_carry :]]
        ys = [w.constant(0, (p.length, *a.shape), a.dtype) for a in y_avals]
        state = State(self, [p.graph], [operands])
        first = [*carry, *ys]

        def body(i: str, values: list[Tile]) -> list[Tile]:
            if p.reverse:
                i = w.op(f"arith.subi {w.number(p.length - 1)}, {i} : i32")
            now, stacked = values[: p.num_carry], values[p.num_carry :]
            rows = [self._row(x, i) for x in xs]
            outs = self.run(p.graph, [*consts, *now, *rows])
            after = [
                self._with_row(y, i, row)
                for y, row in zip(stacked, outs[p.num_carry :], strict=True)
            ]
            return [*outs[: p.num_carry], *after]

        return self.loop(w.number(0), w.number(p.length), state, first, body)

    def loop(
        self, start: str, stop: str, state: State, first: Sequence[Tile], body: Any
    ) -> list[Tile]:
        """Writes a loop that counts.

        Args:
          start: the first i32.
          stop: the i32 at which it ends.
          state: references that the loop may write to.
          first: what it carries, at first.
          body: writes a round, given the count and what is carried.
        """
        w = self.w
        state.enter()
        first = [*first, *state.tiles()]
        i, names = w.name(), [w.name() for _ in first]
        outs = w.results(len(first))
        with w.region() as lines, self._deeper():
            now = _named(names, first)
            count = len(first) - len(state.registers)
            state.set(now[count:])
            after = [*body(i, now[:count]), *state.tiles()]
            after = _same_types(w, after, first)
        head = f"{outs.head}scf.for {i} = {start} to {stop} step {w.number(1)}"
        if first:
            pairs = zip(names, first, strict=True)
            head += f" iter_args({', '.join(f'{n} = {x.value}' for n, x in pairs)})"
            head += f" -> ({_types(w, first)})"
        w.do(f"{head} : i32 {{")
        w.nested(lines)
        if first:
            w.do(f"  scf.yield {_values(after)} : {_types(w, first)}")
        w.do("}")
        found = _named(outs.names, first)
        state.set(found[count:])
        return found[:count]

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _row(self, x: Tile, i: str) -> Tile:
        """Returns a row of an array."""
        w = self.w
        if x.ramp is not None and x.dtype == I32:
            start, step = x.ramp
            if step != 1:
                i = w.op(f"arith.muli {i}, {w.number(step)} : i32")
            if start == w.number(0):
                return Tile(i, (), I32)
            return Tile(w.op(f"arith.addi {start}, {i} : i32"), (), I32)
        shape = x.shape[1:]
        places: list[Any] = [w.splat(i, shape, "i32")] if shape else [i]
        places += [w.iota(shape, d) for d in range(len(shape))]
        return taken(w, x, places, shape)

    def _with_row(self, y: Tile, i: str, row: Tile) -> Tile:
        ref = Registers(y)
        ref.write(self.w, Index((OPERAND,)), [Tile(i, (), I32)], row, False)
        return ref.tile

    def _while(self, node: Node, operands: list[Any], read: Any) -> list[Tile]:
        p, w = WhileParams(**node.params), self.w
        fixed_c, fixed_b, carry = p.split(operands)
        state = State(
            self, [p.condition, p.body], [[*fixed_c, *carry], [*fixed_b, *carry]]
        )
        if _counts(p) and carry[0].dtype == I32:
            return self._counted(p, fixed_b, carry, state)
        state.enter()
        first = [*carry, *state.tiles()]
        outs = w.results(len(first))
        count = len(carry)
        tests, names = [w.name() for _ in first], [w.name() for _ in first]
        with w.region() as test, self._deeper():
            now = _named(tests, first)
            state.set(now[count:])
            (going,) = self.run(p.condition, [*fixed_c, *now[:count]])
        with w.region() as lines, self._deeper():
            now = _named(names, first)
            state.set(now[count:])
            after = [*self.run(p.body, [*fixed_b, *now[:count]]), *state.tiles()]
            after = _same_types(w, after, first)
        types = _types(w, first)
        pairs = ", ".join(f"{n} = {x.value}" for n, x in zip(tests, first, strict=True))
        results = types if len(first) == 1 else f"({types})"
        w.do(f"{outs.head}scf.while ({pairs}) : ({types}) -> {results} {{")
        w.nested(test)
        w.do(f"  scf.condition({going.value}) {', '.join(tests)} : {types}")
        w.do("} do {")
        given = zip(names, first, strict=True)
        w.do(f"^bb0({', '.join(f'{n}: {w.of(x)}' for n, x in given)}):")
        w.nested(lines)
        w.do(f"  scf.yield {_values(after)} : {types}")
        w.do("}")
        found = _named(outs.names, first)
        state.set(found[count:])
        return found[:count]

    def _counted(
        self, p: WhileParams, fixed: Sequence[Any], carry: Sequence[Tile], state: State
    ) -> list[Tile]:
        """A `fori_loop` with computed bounds: i < stop, i + 1, stop."""
        w = self.w
        start, stop, *rest = carry

        def body(i: str, values: list[Tile]) -> list[Tile]:
            outs = self.run(p.body, [*fixed, Tile(i, (), I32), stop, *values])
            return outs[2:]

        found = self.loop(start.value, stop.value, state, rest, body)
        last = w.op(f"arith.maxsi {start.value}, {stop.value} : i32")
        return [Tile(last, (), I32), stop, *found]

    def _cond(self, node: Node, operands: list[Any], read: Any) -> list[Tile]:
        index, *rest = operands
        graphs = [g for _, g in subgraphs(node.params)]
        number = converted(self.w, index, I32)
        state = State(self, graphs, [rest] * len(graphs))
        outs = [Tile("", v.aval.shape, v.aval.dtype) for v in node.outputs]
        return self._branches(number.value, graphs, rest, state, outs)

    def _branches(
        self,
        number: str,
        graphs: Sequence[Graph],
        given: Sequence[Any],
        state: State,
        outs: Sequence[Tile],
    ) -> list[Tile]:
        w = self.w
        if len(graphs) == 1:
            return [*_spread(w, self.run(graphs[0], given), outs)]
        state.enter()
        before = state.tiles()
        kinds = [*outs, *before]
        results = w.results(len(kinds))
        first = w.op(f"arith.cmpi slt, {number}, {w.number(1)} : i32")
        regions = []
        for is_first in (True, False):
            state.set(before)
            with w.region() as lines:
                if is_first:
                    found = _spread(w, self.run(graphs[0], given), outs)
                else:
                    less = number
                    if len(graphs) > 2:
                        less = w.op(f"arith.subi {number}, {w.number(1)} : i32")
                    found = self._branches(less, graphs[1:], given, state, outs)
                after = _same_types(w, [*found, *state.tiles()], kinds)
            regions.append((lines, after))
        types = _types(w, kinds)
        w.do(f"{results.head}scf.if {first}{f' -> ({types})' if kinds else ''} {{")
        for i, (lines, after) in enumerate(regions):
            w.nested(lines)
            if kinds:
                w.do(f"  scf.yield {_values(after)} : {types}")
            w.do("}" if i else "} else {")
        named = _named(results.names, kinds)
        state.set(named[len(outs) :])
        return named[: len(outs)]


class State:
    """References that graphs inside of an operation may write to.

    Args:
      body: writes the kernel.
      graphs: inside of the operation.
      given: their inputs.
    """

    registers: list[Registers]

    def __init__(
        self, body: BodyWriter, graphs: Sequence[Graph], given: Sequence[Sequence[Any]]
    ) -> None:
        found: dict[int, Reference] = {}
        for graph, values in zip(graphs, given, strict=True):
            graph = inlined(graph, CALLS)
            written = written_refs(graph)
            for var, value in zip(graph.inputs, values, strict=True):
                if var in written:
                    found[id(value)] = value
        refs = list(found.values())
        self.registers = [r for r in refs if isinstance(r, Registers)]
        self._memory = [r for r in refs if isinstance(r, Memory)]

    def enter(self) -> None:
        """Says that what is written next may run after itself."""
        for ref in self._memory:
            ref.in_loop()

    def tiles(self) -> list[Tile]:
        """Returns what references in registers hold."""
        return [ref.tile for ref in self.registers]

    def set(self, tiles: Sequence[Tile]) -> None:
        """Replaces what references in registers hold."""
        for ref, tile in zip(self.registers, tiles, strict=True):
            ref.tile = tile


def _named(names: Sequence[str], like: Sequence[Tile]) -> list[Tile]:
    return [Tile(n, x.shape, x.dtype) for n, x in zip(names, like, strict=True)]


def _values(tiles: Sequence[Tile]) -> str:
    return ", ".join(x.value for x in tiles)


def _types(w: Writer, tiles: Sequence[Tile]) -> str:
    return ", ".join(w.of(x) for x in tiles)


def _spread(w: Writer, tiles: Sequence[Tile], like: Sequence[Tile]) -> list[Tile]:
    return [
        Tile(w.spread(x, y.shape), y.shape, x.dtype)
        for x, y in zip(tiles, like, strict=True)
    ]


def _same_types(w: Writer, tiles: Sequence[Tile], like: Sequence[Tile]) -> list[Tile]:
    for x, y in zip(tiles, like, strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise UnsupportedError(
                f"a loop or branch whose value changes from {Aval(y.shape, y.dtype)} "
                f"to {Aval(x.shape, x.dtype)}"
            )
    return list(tiles)


def _counts(p: WhileParams) -> bool:
    """Returns whether a loop is `for i in range(i, stop)`, both of which it carries."""
    if p.num_condition or len(p.condition.nodes) != 1 or len(p.body.outputs) < 2:
        return False
    (test,) = p.condition.nodes
    i, stop = p.condition.inputs[:2]
    if test.primitive.name != "lt" or list(test.inputs) != [i, stop]:
        return False
    if p.condition.outputs[0] is not test.outputs[0]:
        return False
    count, end = p.body.inputs[p.num_body : p.num_body + 2]
    made = next((n for n in p.body.nodes if p.body.outputs[0] in n.outputs), None)
    if p.body.outputs[1] is not end or made is None or made.primitive.name != "add":
        return False
    x, y = made.inputs
    return x is count and type(y) is Literal and int(np.asarray(y.value)) == 1
