"""Programs: a graph as one list of operations, with calls, loops and branches inside.

The operations of a loop's body are listed once, with the number of times that they run.
A loop's carry is a copy of its first value and of what each round makes of it, and the
slices of what it goes over are copies of parts; so is a branch's result of the whole's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fxflow.core.arrays import Aval
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir.graph import Graph, Literal, Node, subgraphs
from fxflow.dataflow.sharding.rules import (
    Rule,
    identity_rule,
    rule_of,
    sliced_rule,
)
from fxflow.dataflow.work import FUSED, family_of, work_of
from fxflow.lax.control_flow.cond import Branching
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.control_flow.while_loop import WhileParams
from fxflow.lax.families import Structural
from fxflow.lax.remat import CALLS, inlined

#: In place of a value: a constant that is written in the graph.
LITERAL = -1

Path = tuple[Any, ...]
"""Where a node is: its number in the graph, and for one inside of another the number of
that one, the number of the graph among its parameters, and so on inwards."""


class Kind(NamedTuple):
    """What equal operations have in common.

    Attributes:
      number: one for each kind.
      name: of the operation.
      rule: its dimensions.
      work: family of its work, flops and bytes of one run on one device.
      is_copy: whether it is not an operation, but how a loop or branch passes values.
      is_fused: whether it is computed as part of what reads its result.
    """

    number: int
    name: str
    rule: Rule
    work: tuple[str, float, float]
    is_copy: bool
    is_fused: bool


class Op(NamedTuple):
    """An operation of a program.

    Attributes:
      kind: what it does.
      inputs: numbers of values, or `LITERAL`.
      outputs: numbers of values.
      runs: how often it runs.
      path: of its node.
      node: of the graph; None for a copy.
      in_branch: whether it runs only if a branch is taken.
    """

    kind: Kind
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    runs: float
    path: Path
    node: Node | None
    in_branch: bool


@dataclass
class Program:
    """A graph as a list of operations.

    Attributes:
      avals: types of the values.
      ops: in an order that can be run.
      inputs: the graph's, values.
      outputs: the graph's, values or `LITERAL`.
      vars: the value that each variable of the graph is; not of graphs inside.
    """

    avals: list[Aval] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    vars: dict[Any, int] = field(default_factory=dict)


def program_of(graph: Graph) -> Program:
    """Returns a graph as one list of operations.

    Args:
      graph: whose inputs and outputs are the program's.
    """
    writer = _Writer()
    program = writer.program
    program.inputs = [writer.value(v.aval) for v in graph.inputs]
    program.outputs, program.vars = writer.run(graph, program.inputs, 1.0, ())
    return program


class _Writer:
    def __init__(self) -> None:
        self.program = Program()
        self._kinds: dict[Any, Kind] = {}
        self._branches_around = 0

    def value(self, aval: Aval) -> int:
        self.program.avals.append(aval)
        return len(self.program.avals) - 1

    def run(
        self, graph: Graph, inputs: Sequence[int], count: float, path: Path
    ) -> tuple[list[int], dict[Any, int]]:
        """Writes a graph's operations; returns its outputs and all its values."""
        graph = inlined(graph, CALLS)
        values: dict[Any, int] = dict(zip(graph.inputs, inputs, strict=True))

        def read(atoms: Sequence[Any]) -> list[int]:
            return [LITERAL if type(a) is Literal else values[a] for a in atoms]

        for number, node in enumerate(graph.nodes):
            given, here = read(node.inputs), (*path, number)
            name = node.primitive.name
            if isinstance(node.primitive, GraphCall):
                outs, _ = self.run(node.params["graph"], given, count, (*here, 0))
            elif name == "scan":
                outs = self._scan(ScanParams(**node.params), given, count, here)
            elif name == "while":
                outs = self._while(WhileParams(**node.params), given, count, here)
            elif isinstance(node.primitive, Branching):
                outs = self._branches(node.params["branches"], given, count, here)
            else:
                outs = self._operation(node, given, count, here)
            values.update(zip(node.outputs, outs, strict=True))
        return read(graph.outputs), values

    def _operation(
        self, node: Node, given: Sequence[int], count: float, path: Path
    ) -> list[int]:
        outs = [self.value(v.aval) for v in node.outputs]
        kind = self._kind(node)
        op = Op(
            kind,
            tuple(given),
            tuple(outs),
            count,
            path,
            node,
            self._branches_around > 0,
        )
        self.program.ops.append(op)
        return outs

    def _kind(self, node: Node) -> Kind:
        primitive = node.primitive
        avals = [a.aval for a in node.inputs]
        key: Any = (primitive.name, *avals, *sorted(node.params.items()))
        try:
            known = self._kinds.get(key)
        except TypeError:  # a parameter that cannot be hashed
            known, key = None, object()
        if known is None:
            rule = rule_of(
                primitive, avals, [v.aval for v in node.outputs], node.params
            )
            moves = isinstance(primitive, Structural)
            work = ("elementwise", 0.0, 0.0) if moves else work_of(node)
            fused = moves or family_of(primitive) in FUSED
            number = len(self._kinds)
            known = Kind(number, primitive.name, rule, work, False, fused)
            self._kinds[key] = known
        return known

    def _copy(
        self, name: str, rule: Rule, given: int, out: int, count: float, path: Path
    ) -> None:
        """Writes that a value is passed on."""
        if given == LITERAL:
            return
        key = (name, rule, self.program.avals[out])
        kind = self._kinds.get(key)
        if kind is None:
            number = len(self._kinds)
            fused = name != "stack"
            kind = Kind(number, name, rule, ("elementwise", 0.0, 0.0), True, fused)
            self._kinds[key] = kind
        inside = self._branches_around > 0
        self.program.ops.append(Op(kind, (given,), (out,), count, path, None, inside))

    def _same(self, given: int, out: int, count: float, path: Path) -> None:
        rule = identity_rule(self.program.avals[out].shape)
        self._copy("copy", rule, given, out, count, path)

    def _scan(
        self, p: ScanParams, given: Sequence[int], count: float, path: Path
    ) -> list[int]:
        consts, first, xs = p.split(list(given))
        types = p.graph.in_avals
        rounds = count * p.length
        carry = [
            self.value(a) for a in types[p.num_consts : p.num_consts + p.num_carry]
        ]
        for init, each in zip(first, carry, strict=True):
            self._same(init, each, count, path)
        slices = []
        for x, aval in zip(xs, types[p.num_consts + p.num_carry :], strict=True):
            part = self.value(aval)
            self._copy(
                "slice", sliced_rule(self.program.avals[x].shape), x, part, count, path
            )
            slices.append(part)
        outs, _ = self.run(p.graph, [*consts, *carry, *slices], rounds, (*path, 0))
        for out, each in zip(outs, carry, strict=False):
            self._same(out, each, rounds, path)
        stacked = []
        for out, aval in zip(
            outs[p.num_carry :], p.out_avals()[p.num_carry :], strict=True
        ):
            whole = self.value(aval)
            rule = sliced_rule(aval.shape, stacks=True)
            self._copy("stack", rule, out, whole, count, path)
            stacked.append(whole)
        return [*carry, *stacked]

    def _while(
        self, p: WhileParams, given: Sequence[int], count: float, path: Path
    ) -> list[int]:
        fixed, rest = list(given[: p.num_condition]), list(given[p.num_condition :])
        consts, first = rest[: p.num_body], rest[p.num_body :]
        carry = [self.value(a) for a in p.body.in_avals[p.num_body :]]
        for init, each in zip(first, carry, strict=True):
            self._same(init, each, count, path)
        graphs = [graph for _, graph in subgraphs({"c": p.condition, "b": p.body})]
        self.run(graphs[0], [*fixed, *carry], count, (*path, 0))
        outs, _ = self.run(graphs[1], [*consts, *carry], count, (*path, 1))
        for out, each in zip(outs, carry, strict=True):
            self._same(out, each, count, path)
        return carry

    def _branches(
        self, branches: Sequence[Graph], given: Sequence[int], count: float, path: Path
    ) -> list[int]:
        results = [self.value(a) for a in branches[0].out_avals]
        self._branches_around += 1
        for number, branch in enumerate(branches):
            outs, _ = self.run(branch, given[1:], count, (*path, number))
            for out, result in zip(outs, results, strict=True):
                self._same(out, result, count, path)
        self._branches_around -= 1
        return results


def uses(program: Program) -> Iterator[tuple[int, int, Op]]:
    """Yields each operand of each operation: its value, its position, the operation."""
    for op in program.ops:
        for position, value in enumerate(op.inputs):
            if value != LITERAL:
                yield value, position, op
