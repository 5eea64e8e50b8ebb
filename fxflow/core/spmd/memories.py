"""Which memory the values of a program lie in, and where they are moved.

Types say nothing of memory. A program whose arguments lie in host memory, or that names
another memory itself (`device_put`), is rewritten just before it is lowered: from the
memories of its inputs those of all values follow, and where an operation needs a value
in another memory, a move is written.

Operations compute in the device's own memory: what they read from host memory is copied
there first, once in each graph, and their results are there. Only these leave a value
where it is (`Primitive.memories`):

- views of the whole (`reshape`, `name`, `optimization_barrier`);
- `slice` and `dynamic_slice`: of a host array only the part is copied (a `Part`), as of
  what `scan` goes over;
- `dynamic_update_slice`: a host array is written to where it is;
- calls, branches and loops, which are rewritten inside. A carry stays in host memory if
  the body puts it there, or does not read it as a whole.

XLA does not do this by itself: what is left in host memory it computes there, slowly,
or refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow.core.ir.graph import (
    Graph,
    Node,
    Var,
    any_node,
    any_within,
    subgraphs,
    with_graphs,
)
from fxflow.core.ir.primitive import table
from fxflow.devices.shardings import Sharding


class Part(NamedTuple):
    """Where a part of an array in host memory is until it is read."""

    kind: str


Kind = str | Part | None
"""Where a value is: a kind of memory, or None for the device's own."""


class Origin:
    """The memory a moved value came from, which is known when a program is lowered."""


class Back(NamedTuple):
    """The memory that the value of an `Origin` came from."""

    origin: Origin


UNKNOWN = Origin()
"""Source memory unknown (moved outside of a program): assume the device's own."""


class Home(NamedTuple):
    """Where a concrete array was before it was put somewhere else.

    Attributes:
      sharding: there.
      committed: whether it had to stay.
    """

    sharding: Sharding
    committed: bool


class Going(NamedTuple):
    """Where a value is to go.

    Attributes:
      to: kind of memory (None: the device's own).
      back: where its cotangent goes, likewise; an `Origin`, where that is noted; the
        `Home` of a value that was in no program.
    """

    to: str | Back | None
    back: str | Origin | Back | Home | None = UNKNOWN

    def turned(self) -> Going:
        """Returns where the cotangent is to go: for a `Home`, more than a memory."""
        assert not isinstance(self.back, Home)
        if self.back is UNKNOWN:
            return Going(None, self.to)
        back = Back(self.back) if isinstance(self.back, Origin) else self.back
        assert not isinstance(back, Home)  # the way back to devices is another
        return Going(back, self.to)


class Move(NamedTuple):
    """Decided: the value is in another memory, and is copied to this kind."""

    kind: str | None


class Relaid(NamedTuple):
    """The memory wanted for an output that is an input resharded in host memory."""

    kind: str


class _Free:
    """Sentinel: any kind of memory will do."""

    def __repr__(self) -> str:
        return "FREE"


FREE = _Free()
Want = str | Relaid | _Free | None
Wanted = Sequence[Want]


def in_memory(kind: Kind) -> str | None:
    """Returns the kind of memory that a value is read from."""
    return kind.kind if isinstance(kind, Part) else kind


def _names_memory(node: Node) -> bool:
    return node.primitive.names_memory(node.params) or any(
        graph.facts.names_memory for _, graph in subgraphs(node.params)
    )


def laid_out(
    graph: Graph, kinds: Sequence[str | None], wanted: Wanted = ()
) -> tuple[Graph, list[str | None] | None]:
    """Returns a graph with moves between memories, and where its outputs are.

    Args:
      graph: to rewrite.
      kinds: of the memories of its inputs.
      wanted: of those of its outputs; none: they are free.

    Returns:
      The graph itself and None, if there is only the device's own memory.
    """
    if not (
        any(kinds)
        or any(want is not FREE and want is not None for want in wanted)
        or graph.facts.names_memory
    ):
        return graph, None
    found = Layout().lay_out(graph, kinds, wanted or [FREE] * len(graph.outputs))
    return found.graph, [in_memory(kind) for kind in found.outs]


def wanted_of(
    graph: Graph, placements: Sequence[Any], out_shardings: Sequence[Any]
) -> Wanted:
    """Returns where the outputs of a program are wanted.

    Args:
      graph: of the program.
      placements: of its inputs.
      out_shardings: of its outputs, None where they are free; none: all are.
    """
    wanted: list[Want] = []
    if not out_shardings:
        return wanted
    given = dict(zip(graph.inputs, placements, strict=True))
    for atom, sharding in zip(graph.outputs, out_shardings, strict=False):
        if sharding is None:
            wanted.append(FREE)
            continue
        kind = sharding.offloaded
        source = given.get(atom) if type(atom) is Var else None
        moved = source is not None and source.sharding != sharding
        # The partitioner would move the parts within host memory.
        wanted.append(Relaid(kind) if kind and moved else kind)
    return wanted


class LaidOut(NamedTuple):
    """A rewritten graph.

    Attributes:
      graph: with moves.
      outs: where the outputs are.
      fetched: which inputs it copies to the device's own memory as a whole.
      noted: where values of `Origin`s came from.
    """

    graph: Graph
    outs: list[Kind]
    fetched: list[bool]
    noted: dict[Origin, str | None]


class Rewritten(NamedTuple):
    """What `Primitive.memories` says about an operation.

    Attributes:
      wanted: where its operands are to be.
      outs: where its results are, then.
      params: its parameters.
    """

    wanted: Sequence[Kind]
    outs: Sequence[Kind]
    params: dict[str, Any]


# -- across programs -------------------------------------------------------------------


def settled(primal: Graph, tangent: Graph, primals: Sequence[Any]) -> Graph:
    """Returns the tangent graph of an eager call, with its `Origin`s resolved.

    Within one program an `Origin` is noted before it is asked for. Here the values and
    the cotangents are computed by two.

    Args:
      primal: computes the values, where `Origin`s are noted.
      tangent: asks for them.
      primals: what the call is given.
    """
    if not _asks(tangent):
        return tangent
    arg_types = [getattr(value, "_type", None) for value in primals]
    if None in arg_types:  # traced: all will be one program
        return tangent
    kinds = [array_type.placement.offloaded for array_type in arg_types if array_type]

    def settle() -> Graph:
        layout = Layout()
        layout.lay_out(primal, kinds, [FREE] * len(primal.outputs))
        return _settle(tangent, layout.origins)

    return tangent.remembered(("settled", primal, *kinds), settle)


def _goes_back(node: Node) -> bool:
    memory = node.params.get("memory")
    return isinstance(memory, Going) and any(type(part) is Back for part in memory)


def _asks(graph: Graph) -> bool:
    """Returns whether values of a graph go, or cotangents will, where others were."""
    return any_node(graph, "asks_memories", _goes_back)


def _settle(graph: Graph, origins: dict[Origin, str | None]) -> Graph:
    def settle(value: Any) -> Any:
        if isinstance(value, Graph):
            return _settle(value, origins) if _asks(value) else value
        if isinstance(value, Going):
            to, back = value
            if type(to) is Back:
                to = origins.get(to.origin)
            if type(back) is Back:
                back = origins.get(back.origin)
            return Going(to, back)
        if type(value) is tuple:
            return tuple(map(settle, value))
        return value

    nodes = [
        node.replace(params={k: settle(v) for k, v in node.params.items()})
        if any_within(node, "asks_memories", _goes_back)
        else node
        for node in graph.nodes
    ]
    return graph.replace(nodes=nodes)


# -- what operations say ---------------------------------------------------------------


def kept(node: Node, kinds: Sequence[Kind]) -> Rewritten:
    """Returns the rule of an operation whose results are where its operands are."""
    return Rewritten(kinds, kinds, node.params)


def part(node: Node, kinds: Sequence[Kind]) -> Rewritten:
    """Returns the rule of an operation that reads a part of its first operand."""
    first, *others = kinds
    nowhere: list[Kind] = [None] * len(others)
    out = Part(first) if isinstance(first, str) else first
    return Rewritten([first, *nowhere], [out], node.params)


def written(node: Node, kinds: Sequence[Kind]) -> Rewritten | None:
    """Returns the rule of an operation that writes its second operand to its first."""
    first, _, *others = kinds
    if type(first) is not str:
        return None
    nowhere: list[Kind] = [None] * len(others)
    return Rewritten([first, first, *nowhere], [first], node.params)


class Layout:
    """Rewrites the graphs of one program.

    Attributes:
      origins: where the values of `Origin`s were found.
    """

    def __init__(self) -> None:
        self.origins: dict[Origin, str | None] = {}
        self._noted: dict[Origin, str | None] = {}
        self._done: dict[Any, LaidOut] = {}

    def note(self, origin: Origin, kind: Kind) -> None:
        """Says where a value came from."""
        if origin is not UNKNOWN:
            self.origins[origin] = self._noted[origin] = in_memory(kind)

    def note_all(self, noted: dict[Origin, str | None]) -> None:
        """Says where values of a graph came from."""
        self.origins.update(noted)
        self._noted.update(noted)

    def lay_out(self, graph: Graph, kinds: Sequence[Kind], wanted: Wanted) -> LaidOut:
        """Returns a graph with moves, for inputs in these memories.

        Args:
          graph: to rewrite.
          kinds: where its inputs are.
          wanted: where its outputs are to be.
        """
        key = (graph, tuple((type(k), k) for k in kinds), tuple(wanted))
        known = self._done.get(key)
        if known is None:
            # What is noted within this graph is kept with it, for the next call of it.
            outer, self._noted = self._noted, {}
            known = _Rewriting(self, graph, kinds).write(wanted, self._noted)
            self._done[key], self._noted = known, outer
        self.note_all(known.noted)
        return known

    # -- for the rules of operations ---------------------------------------------------

    def call(
        self, graph: Graph, kinds: Sequence[Kind], wanted: Wanted | None = None
    ) -> tuple[Graph, list[Kind], list[Kind]]:
        """Rewrites the graph of a call: what it would copy whole, the caller copies.

        Args:
          graph: that is called.
          kinds: where the operands are.
          wanted: where the results are to be (None: free).

        Returns:
          The graph, where its operands are to be, and where its results are.
        """
        kinds = list(kinds)
        goals: Wanted = wanted or [FREE] * len(graph.outputs)
        laid = first = self.lay_out(graph, kinds, goals)
        # Each round turns kinds of memory into None, so it ends.
        while any(laid.fetched):
            kinds = [None if f else k for k, f in zip(kinds, laid.fetched, strict=True)]
            laid = self.lay_out(graph, kinds, goals)
        self.note_all(first.noted)
        return laid.graph, kinds, laid.outs

    def loop(
        self, graph: Graph, kinds: Sequence[Kind], start: int, count: int
    ) -> tuple[Graph, list[Kind], list[Kind]]:
        """Rewrites the body of a loop, so that its carry stays in one memory.

        Args:
          graph: of the body; its first `count` outputs are the next carry.
          kinds: where the operands are.
          start: position of the carry among the inputs.
          count: length of the carry.

        Returns:
          As `call`.
        """
        stop = start + count
        rest = [FREE] * (len(graph.outputs) - count)
        # A part is read before the loop, not in each round; those that the loop goes
        # over are parts of their own.
        kinds = [
            None if type(kind) is Part and i < stop else kind
            for i, kind in enumerate(kinds)
        ]
        # The memory that the body leaves each part of the carry in; if that is not
        # where it must have been for that, the device's own.
        _, _, outs = self.call(graph, kinds)
        first = [*kinds[:start], *outs[:count], *kinds[stop:]]
        _, _, outs = self.call(graph, first)
        carry = [
            in_memory(k) if k == out else None
            for k, out in zip(first[start:stop], outs, strict=False)
        ]
        there = [*kinds[:start], *carry, *kinds[stop:]]
        body, kept, outs = self.call(graph, there, [*carry, *rest])
        # What the body would read whole in each round is read before the loop, but for
        # the carry.
        back = [*kept[:start], *carry, *kept[stop:]]
        if back != kept:
            laid = self.lay_out(graph, back, [*carry, *rest])
            body, kept, outs = laid.graph, back, laid.outs
        return body, kept, outs


class _Rewriting:
    """Writes one graph anew."""

    def __init__(self, layout: Layout, graph: Graph, kinds: Sequence[Kind]) -> None:
        self.layout, self.graph = layout, graph
        self.where: dict[Var, Kind] = {
            v: k for v, k in zip(graph.inputs, kinds, strict=True) if k is not None
        }
        self.nodes: list[Node] = []
        self.moved: dict[tuple[Any, str | None], Var] = {}

    def kind(self, atom: Any) -> Kind:
        """Returns where a value is."""
        return self.where.get(atom) if type(atom) is Var else None

    def at(self, atom: Any, kind: str | None, node: Node | None = None) -> Any:
        """Returns the value in a kind of memory, moved there if it must be.

        Args:
          atom: the value.
          kind: of the memory.
          node: for whose sake.
        """
        found = self.kind(atom)
        if found == kind:
            return atom
        if found is not None and kind is not None:
            # There is no way between other memories but through the device's own.
            atom = self.at(atom, None, node)
        known = self.moved.get((atom, kind))
        if known is None:
            known = self.moved[atom, kind] = Var(atom.aval)
            params = {"to": None, "memory": Move(kind)}
            source, scope = (node.source, node.scope) if node else (None, ())
            self.nodes.append(
                Node(table["device_put"], [atom], [known], params, source, scope)
            )
            if kind is not None:
                self.where[known] = kind
        return known

    def write(self, wanted: Wanted, noted: dict[Origin, str | None]) -> LaidOut:
        """Writes the graph; see `Layout.lay_out`."""
        for node in self.graph.nodes:
            kinds = [self.kind(a) for a in node.inputs]
            if any(kinds) or _names_memory(node):
                self.rewrite(node, kinds)
            else:
                self.nodes.append(node)
        outputs = []
        for atom, want in zip(self.graph.outputs, wanted, strict=True):
            kind = self.kind(atom)
            if isinstance(want, _Free):
                outputs.append(self.at(atom, None) if type(kind) is Part else atom)
            elif isinstance(want, Relaid):
                outputs.append(self.at(self.at(atom, None), want.kind))
            else:
                outputs.append(self.at(atom, want))
        graph = self.graph
        fetched = [
            type(self.where.get(v)) is str and (v, None) in self.moved
            for v in graph.inputs
        ]
        return LaidOut(
            graph.replace(nodes=self.nodes, outputs=outputs),
            [self.kind(atom) for atom in outputs],
            fetched,
            noted,
        )

    def rewrite(self, node: Node, kinds: Sequence[Kind]) -> None:
        """Writes a node that has to do with another memory."""
        rule = node.primitive.memories(node, kinds, self.layout)
        wanted, outs, params = rule or self.usual(node)
        inputs = [
            atom if self.kind(atom) == want else self.at(atom, in_memory(want), node)
            for atom, want in zip(node.inputs, wanted, strict=True)
        ]
        self.nodes.append(node.replace(inputs=inputs, params=params))
        self.where.update(
            (v, kind)
            for v, kind in zip(node.outputs, outs, strict=True)
            if kind is not None
        )

    def usual(self, node: Node) -> Rewritten:
        """The default rule: all in the device's own memory, nested graphs included."""
        params = with_graphs(node.params, self.inner)
        nowhere: list[Kind] = [None]
        return Rewritten(
            nowhere * len(node.inputs), nowhere * len(node.outputs), params
        )

    def inner(self, graph: Graph) -> Graph:
        """Returns a graph that only touches other memories inside."""
        if not graph.facts.names_memory:
            return graph
        kinds = [None] * len(graph.inputs)
        return self.layout.lay_out(graph, kinds, [None] * len(graph.outputs)).graph
