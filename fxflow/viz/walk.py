"""The one walk over a graph for pictures of it: named operations and what they read.

Operations are named by the scopes they stand in: the `named_scope`s, jitted functions,
and the operations that run loops and branches, which hold their bodies. TensorBoard's
graphs (`train.logs`) and those of `viz.graph` are written from this list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import Aval
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir.graph import Graph, Literal, Node, subgraphs
from fxflow.core.source import Source

ARGUMENT, CONSTANT, RESULT = "argument", "constant", "result"
#: What leaves a device for another, in pictures of plans.
SEND, RECV = "send", "recv"
#: The light colours of devices; those that follow each other differ most.
_COLORS = (
    "#cfe6f7", "#fde3c8", "#d3f0e3", "#f6dcea", "#fff3b8", "#ded9f3", "#e6e6e6",
)  # fmt: skip
Value = tuple[int, int]  # an item, and which of its results


class Item(NamedTuple):
    """An operation, an argument, a constant or a result.

    Attributes:
      path: its scopes and its name, which no other item has.
      operation: name of the primitive, or `ARGUMENT`, `CONSTANT`, `RESULT`.
      label: what it is called beside that: an argument's name, a constant's value.
      inputs: what it reads.
      avals: types of its results.
      params: of the operation, as text.
      source: the user's line.
      flops: of one run, estimated.
      bytes: that one run reads and writes, estimated.
      runs: how often it is run, as far as that is known: in a `scan`, its length.
      place: the name of the device, if it is known.
    """

    path: tuple[str, ...]
    operation: str
    label: str
    inputs: tuple[Value, ...]
    avals: tuple[Aval, ...]
    params: tuple[tuple[str, str], ...] = ()
    source: Source | None = None
    flops: float = 0.0
    bytes: float = 0.0
    runs: int = 1
    place: str = ""

    @property
    def types(self) -> list[str]:
        """The types of its results as text; of what is sent, with its bytes."""
        if self.operation != SEND:
            return [str(aval) for aval in self.avals]
        return [f"{aval} {int(aval.nbytes):,} bytes" for aval in self.avals]


def colors(items: Sequence[Item]) -> dict[str, str]:
    """Returns a colour for each device of a graph, none if it has no devices.

    Args:
      items: of the graph.
    """
    places = dict.fromkeys(item.place for item in items if item.place)
    return {place: _COLORS[i % len(_COLORS)] for i, place in enumerate(places)}


def place_of(items: Sequence[Item], inside: Sequence[int]) -> str:
    """Returns the device of a group, or an empty text if there are several.

    Args:
      items: of the graph.
      inside: numbers of those in the group.
    """
    found = {items[i].place for i in inside if items[i].operation != CONSTANT}
    return found.pop() if len(found) == 1 else ""


#: Letters of a parameter's text; a table of thousands of numbers is no help.
_LONGEST = 200


class Walk:
    """Collects the items of graphs."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        #: The device of what is added.
        self.place = ""
        self._used: Counter[tuple[str, ...]] = Counter()

    def path(self, scope: tuple[str, ...], last: str) -> tuple[str, ...]:
        """Returns a path that no other item has."""
        path = (*(part.replace("/", "_") or "_" for part in scope), last)
        self._used[path] += 1
        count = self._used[path]
        return path if count == 1 else (*path[:-1], f"{last}_{count - 1}")

    def add(self, item: Item) -> int:
        """Adds an item; returns its number."""
        self.items.append(item._replace(place=self.place) if self.place else item)
        return len(self.items) - 1

    def end(
        self, scope: tuple[str, ...], kind: str, number: int, label: str, aval: Aval,
        inputs: tuple[Value, ...] = (),
    ) -> Value:  # fmt: skip
        """Adds an argument or a result of a graph."""
        path = self.path(scope, f"{kind}_{number}")
        return self.add(Item(path, kind, label, inputs, (aval,))), 0

    def inside(
        self,
        graph: Graph,
        values: Sequence[Value],
        scope: tuple[str, ...],
        around: tuple[str, ...],
        runs: int,
    ) -> list[Value]:
        """Adds the nodes of a graph; returns its results.

        Args:
          graph: whose nodes to add.
          values: of its inputs.
          scope: where they stand.
          around: the named scopes that are part of `scope` already.
          runs: how often it is run.
        """
        known: dict[Any, Value] = dict(zip(graph.inputs, values, strict=True))

        def value(atom: Any, place: tuple[str, ...]) -> Value:
            if not isinstance(atom, Literal):
                return known[atom]
            path = self.path(place, CONSTANT)
            return self.add(Item(path, CONSTANT, str(atom.value), (), (atom.aval,))), 0

        for node in graph.nodes:
            named = node.scope or around
            shared = named[: len(around)] == around
            place = (*scope, *(named[len(around) :] if shared else named))
            inputs = tuple(value(atom, place) for atom in node.inputs)
            outputs = self.node(node, inputs, place, named, runs)
            known.update(zip(node.outputs, outputs, strict=True))
        return [value(atom, scope) for atom in graph.outputs]

    def node(
        self,
        node: Node,
        inputs: tuple[Value, ...],
        scope: tuple[str, ...],
        named: tuple[str, ...],
        runs: int,
    ) -> list[Value]:
        """Adds a node; returns its results."""
        primitive = node.primitive
        bodies = subgraphs(node.params)
        if isinstance(primitive, GraphCall):
            inner = node.params["graph"]
            return self.inside(inner, inputs, self.path(scope, inner.name), named, runs)
        path = self.path(scope, primitive.name)
        if bodies:
            # The operation stands in the scope of its bodies.
            length = node.params.get("length", 1)
            for label, graph in bodies:
                place = self.path(path, label)
                arguments = [
                    self.end(place, ARGUMENT, number, "", aval)
                    for number, aval in enumerate(graph.in_avals)
                ]
                results = self.inside(graph, arguments, place, named, runs * length)
                for number, result in enumerate(results):
                    aval = graph.out_avals[number]
                    self.end(place, RESULT, number, "", aval, (result,))
            path = self.path(path, primitive.name)
        shown = primitive.show(node.params)
        held = {name for name, _ in bodies}
        flops, moved = (0.0, 0.0) if bodies else _cost(node)
        index = self.add(
            Item(
                path,
                primitive.name,
                "",
                inputs,
                tuple(variable.aval for variable in node.outputs),
                tuple((k, _text(v)) for k, v in shown.items() if k not in held),
                node.source,
                flops,
                moved,
                runs,
            )
        )
        return [(index, number) for number in range(len(node.outputs))]


def _cost(node: Node) -> tuple[float, float]:
    try:
        found = node.primitive.cost(*[a.aval for a in node.inputs], **node.params)
    except Exception:  # a primitive of a user's need not have one
        return 0.0, 0.0
    return found.get("flops", 0.0), found.get("bytes", 0.0)


def _text(value: Any) -> str:
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, type):
        return str(value.__name__)
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def walk(graph: Graph, labels: Sequence[str] = ()) -> list[Item]:
    """Lists what a picture of a graph shows.

    Args:
      graph: of a function; captured values are its first inputs.
      labels: names of its arguments, captured values left out.

    Returns:
      Items in an order in which they can be run, inputs before what reads them. Bodies
      of loops and branches stand beside the operation that runs them, with arguments
      and results of their own.
    """
    found = Walk()
    captured = [f"captured {i}" for i in range(graph.num_consts)]
    names = [*captured, *labels]
    values = [
        found.end((), ARGUMENT, i, names[i] if i < len(names) else "", aval)
        for i, aval in enumerate(graph.in_avals)
    ]
    for i, value in enumerate(found.inside(graph, values, (), (), 1)):
        found.end((), RESULT, i, "", graph.out_avals[i], (value,))
    return found.items
