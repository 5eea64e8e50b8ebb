"""Which operation of a function an instruction of its compiled program comes from.

Before the function is compiled, each node of its graph gets a scope of its own, `#12`.
XLA keeps the names of operations as metadata through all its passes, so an instruction
of the optimised program, and an event in a profile that is named like it, leads back to
a node: to the user's scope and line.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from fxflow.core import source, tree
from fxflow.core.ir.graph import Graph, Node, subgraphs, with_graphs
from fxflow.errors import ArgumentError
from fxflow.transforms.jit import jit
from fxflow.transforms.stages import Compiled, Traced


class Operation(NamedTuple):
    """A node of the graph, or of a graph inside.

    Attributes:
      name: of the primitive.
      scope: names of the enclosing `named_scope`s.
      line: `train.py:12 (loss)`, with the whole path.
      flops: of one run, estimated.
      bytes: that one run reads and writes, estimated.
    """

    name: str
    scope: tuple[str, ...]
    line: str
    flops: float
    bytes: float


#: What no operation of the user's asked for, such as copies that XLA adds.
OTHER = Operation("copies and others", (), "no line", 0.0, 0.0)


class Instruction(NamedTuple):
    """A line of the optimised program.

    Attributes:
      opcode: such as `fusion`.
      node: number of the operation that it comes from; of a fusion, the one that gives
        its result.
      called: computations it runs.
    """

    opcode: str
    node: int
    called: tuple[str, ...]


_MARK = re.compile(r"/#(\d+)/")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r" ([a-z][a-z0-9\-]*)\(")
_CALLED = re.compile(
    r"(?:calls|to_apply|condition|body|branch_computations|true_computation|"
    r"false_computation)=(?:\{([^}]*)\}|(%?[\w.\-]+))"
)
_NAME = re.compile(r'op_name="([^"]*)"')


class ProfiledProgram:
    """A function compiled so that its instructions can be traced back.

    Args:
      function: to be compiled; one that `jit` made keeps its options.
      args: of the function.
      kwargs: likewise.

    Raises:
      ArgumentError: the function has static arguments.

    Attributes:
      compiled: runs it.
      name: of the function.
      operations: of its graph, and of graphs inside, by number; the last is `OTHER`.
      instructions: of the optimised program, by name.
      members: names of the instructions of each computation.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any
    ) -> None:
        jitted: Any = function if hasattr(function, "trace") else jit(function)
        traced: Traced = jitted.trace(*args, **kwargs)
        self.name: str = traced.name
        if tree.structure((args, kwargs)) != traced.in_tree:
            raise ArgumentError(
                f"report: {self.name} has static arguments: report a function that has "
                "them already, such as lambda x: f(x, 3)"
            )
        self.operations: list[Operation] = []
        graph = self._marked(traced.graph, (), {})
        self.operations.append(OTHER)
        # It runs several times on the same arguments.
        donated = (False,) * len(traced.donated)
        traced = replace(traced, graph=graph, donated=donated)
        self.compiled: Compiled = traced.lower().compile()
        self.instructions: dict[str, Instruction] = {}
        self.members: dict[str, list[str]] = {}
        self._read(self.compiled.as_text())

    def _marked(
        self, graph: Graph, around: tuple[str, ...], known: dict[Graph, Graph]
    ) -> Graph:
        """Returns a graph in which each node has a scope of its own."""
        if graph in known:
            return known[graph]
        nodes: list[Node] = []
        for node in graph.nodes:
            scope = node.scope or around
            mark = f"#{len(self.operations)}"
            self.operations.append(_operation(node, scope))
            mark_inside = functools.partial(self._marked, around=scope, known=known)
            params = with_graphs(node.params, mark_inside)
            nodes.append(node.replace(scope=(*scope, mark), params=params))
        known[graph] = graph.replace(nodes=nodes)
        return known[graph]

    def _read(self, text: str) -> None:
        members: list[str] = []
        for line in text.splitlines():
            begun = _COMPUTATION.match(line)
            if begun:
                members = self.members[begun[1]] = []
                continue
            found = _INSTRUCTION.match(line)
            opcode = _OPCODE.search(found[2]) if found else None
            if found is None or opcode is None:
                continue
            called = [
                name.strip(" %")
                for several, one in _CALLED.findall(found[2])
                for name in (several or one).split(",")
            ]
            members.append(found[1])
            named = _NAME.search(found[2])
            self.instructions[found[1]] = Instruction(
                opcode[1], self._node(named[1] if named else ""), tuple(called)
            )

    def _node(self, name: str) -> int:
        """Returns the number of what a name in a program, `op_name`, belongs to."""
        marks = _MARK.findall(name)
        return int(marks[-1]) if marks else len(self.operations) - 1

    def holds(self, name: str, seen: set[str]) -> bool:
        """Returns whether an instruction runs others that are among those seen.

        Its time is theirs: that of a loop is its body's.
        """
        instruction = self.instructions.get(name)
        if instruction is None or instruction.opcode not in _CONTROL:
            return False
        return any(
            member in seen
            for computation in instruction.called
            for member in self.members.get(computation, ())
        )


_CONTROL = {"while", "conditional", "call", "async-start", "async-done"}


def _operation(node: Node, scope: tuple[str, ...]) -> Operation:
    primitive = node.primitive
    cost: dict[str, float] = {}
    # The work of what is inside is that of the operations there.
    if not subgraphs(node.params):
        # A primitive of a user's need not have one.
        with contextlib.suppress(Exception):
            cost = primitive.cost(*[a.aval for a in node.inputs], **node.params)
    return Operation(
        primitive.name,
        scope,
        source.describe(node.source),
        cost.get("flops", 0.0),
        cost.get("bytes", 0.0),
    )
