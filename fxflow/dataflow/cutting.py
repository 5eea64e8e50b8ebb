"""The cut: a placed graph becomes fragments, and edges between them.

XLA starts a program when all its arguments are there, so the fragments must form an
acyclic graph. A node's *level* is the largest number of changes of place on a path to
it; nodes of one place and level form a fragment. A path that leaves a place and comes
back thus makes a second fragment there, and no fragment waits for one that waits for
it.

A fragment whose results other places wait for is split in two: what those results
depend on runs first, and the rest after it. For the backward pass of a pipeline this
is the split of zero-bubble schedules: the gradient of a stage's input first, those of
its weights later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fxflow.core.ir.graph import Graph, Node, Var, any_node
from fxflow.core.ir.higher_order import graph_cost
from fxflow.core.source import describe
from fxflow.dataflow.placing import Place, Placed
from fxflow.errors import PlacementError
from fxflow.lax.callbacks import PythonCallback

#: The rest of a fragment of less work than this stays with what is waited for: a
#: fragment of its own takes about as long to start.
SPLIT_FLOPS = 50_000.0


@dataclass(eq=False)
class Fragment:
    """A part of a program that runs as one program in one place.

    Attributes:
      index: in the order in which fragments are started.
      place: where it runs.
      level: changes of place on the longest path to it.
      round: of the loop that was written out.
      kind: "F", or in the backward half of a round's levels "B", or "W" for what comes
        apart because no other place waits for it.
      graph: its operations; its variables are those of the whole graph.
      after: indices of the fragments whose results it takes.
    """

    index: int
    place: Place
    level: int
    round: int
    kind: str
    graph: Graph
    after: tuple[int, ...] = ()

    @property
    def results(self) -> list[Var]:
        """What other fragments take, and the results of the whole."""
        return [atom for atom in self.graph.outputs if isinstance(atom, Var)]

    @property
    def flops(self) -> float:
        """Its work, estimated from types."""
        return graph_cost(self.graph)["flops"]


@dataclass(frozen=True)
class Edge:
    """A value that one fragment computes and another place needs.

    Attributes:
      var: the value.
      source: index of the fragment that computes it, or None for an argument.
      place: where it is sent.
      users: indices of the fragments there that take it.
    """

    var: Var
    source: int | None
    place: Place
    users: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes that are sent."""
        return int(self.var.aval.nbytes)


@dataclass
class Fragments:
    """A graph in fragments.

    Attributes:
      fragments: in an order that can be run.
      edges: one for each value and place that needs it.
      notes: what was decided and may surprise.
    """

    fragments: list[Fragment]
    edges: list[Edge]
    notes: list[str]


def cut(graph: Graph, placed: Placed, *, strict: bool = False) -> Fragments:
    """Cuts a graph.

    Args:
      graph: whose inputs and outputs count.
      placed: its nodes.
      strict: whether a place that a path leaves and comes back to is an error.

    Raises:
      PlacementError: effects that have an order are in several places; with `strict`, a
        path returns to a place.
    """
    levels = _levels(placed)
    if strict:
        _require_no_return(placed, levels)
    _delay(graph, placed, levels)
    groups = _split(placed, levels)
    maker: dict[Var, int] = {}
    fragments: list[Fragment] = []
    top = max((group.level for group in groups), default=0)
    for index, (level, round_, place, nodes, awaited) in enumerate(groups):
        for node in nodes:
            maker.update(dict.fromkeys(node.outputs, index))
        kind = "W" if not awaited else "F" if 2 * level <= top else "B"
        operations = Graph([], nodes, [])
        fragments.append(Fragment(index, place, level, round_, kind, operations))
    _close(graph, fragments, maker)
    edges = _edges(fragments, maker)
    return Fragments(fragments, edges, placed.notes)


def _levels(placed: Placed) -> list[int]:
    """Returns the level of each node."""
    made: dict[Var, tuple[int, Place]] = {}
    levels: list[int] = []
    last: tuple[int, Place, Node] | None = None  # with an effect
    for node, place in zip(placed.nodes, placed.places, strict=True):
        level = 0
        for atom in node.inputs:
            if type(atom) is Var and atom in made:
                before, source = made[atom]
                level = max(level, before + (source is not place))
        if node.effects:
            if last is not None:
                if last[1] is not place:
                    raise PlacementError(
                        "effects run in order, so they are in one place: "
                        f"{last[2].primitive.name} ({describe(last[2].source)}) is on "
                        f"{last[1]}, {node.primitive.name} ({describe(node.source)}) "
                        f"on {place}"
                    )
                level = max(level, last[0])
            last = level, place, node
        levels.append(level)
        made.update(dict.fromkeys(node.outputs, (level, place)))
    return levels


def _require_no_return(placed: Placed, levels: Sequence[int]) -> None:
    first: dict[Place, tuple[int, Node]] = {}
    for node, place, level in zip(placed.nodes, placed.places, levels, strict=True):
        known = first.setdefault(place, (level, node))
        if known[0] != level:
            raise PlacementError(
                f"strict: the program comes back to {place}: "
                f"{known[1].primitive.name} ({describe(known[1].source)}) runs there "
                f"before, {node.primitive.name} ({describe(node.source)}) after "
                "another place; without strict it is cut in two"
            )


def _delay(graph: Graph, placed: Placed, levels: list[int]) -> None:
    """Moves cheap nodes to the level of their first use, which saves fragments.

    Those of more work stay, to run while the place would wait for others.
    """
    first: dict[Var, int] = {}  # level of the first use; -1: elsewhere
    where = [*zip(placed.places, placed.rounds, strict=True)]
    made = {
        v: at
        for node, at in zip(placed.nodes, where, strict=True)
        for v in node.outputs
    }
    first.update((atom, -1) for atom in graph.outputs if type(atom) is Var)
    for i in reversed(range(len(placed.nodes))):
        node = placed.nodes[i]
        uses = [first[v] for v in node.outputs if v in first]
        if uses and min(uses) > levels[i] and not node.effects:
            levels[i] = min(uses) if is_cheap(Graph([], [node], [])) else levels[i]
        for atom in node.inputs:
            if type(atom) is Var:
                use = levels[i] if made.get(atom) == where[i] else -1
                first[atom] = min(first.get(atom, use), use)


def is_cheap(graph: Graph) -> bool:
    """Returns whether operations take less than a fragment takes to start."""
    # A host callback may take any time.
    if any_node(
        graph, "calls_python", lambda n: n.primitive.name == PythonCallback.name
    ):
        return False
    return graph_cost(graph)["flops"] < SPLIT_FLOPS


class _Group(NamedTuple):
    """The nodes of a fragment.

    Attributes:
      level: changes of place on the longest path to it.
      round: of the loop that was written out.
      place: where it runs.
      nodes: in order.
      awaited: False for what comes apart because no other place waits for it.
    """

    level: int
    round: int
    place: Place
    nodes: list[Node]
    awaited: bool = True


def _split(placed: Placed, levels: Sequence[int]) -> list[_Group]:
    """Returns nodes by level, round and place; what others wait for comes first."""
    groups: dict[tuple[int, int, Place], list[Node]] = defaultdict(list)
    made: dict[Var, Place] = {}
    keys = zip(placed.nodes, levels, placed.rounds, placed.places, strict=True)
    for node, level, round_, place in keys:
        groups[level, round_, place].append(node)
        made.update(dict.fromkeys(node.outputs, place))
    awaited: set[Var] = set()
    for node, place in zip(placed.nodes, placed.places, strict=True):
        for atom in node.inputs:
            if type(atom) is Var and made.get(atom, place) is not place:
                awaited.add(atom)
    found: list[_Group] = []
    for key, nodes in sorted(groups.items(), key=lambda item: item[0][:2]):
        urgent, rest = _by_urgency(nodes, awaited)
        if urgent and rest and not is_cheap(Graph([], rest, [])):
            found += [_Group(*key, urgent), _Group(*key, rest, False)]
        else:
            found.append(_Group(*key, nodes))
    return found


def _by_urgency(
    nodes: Sequence[Node], awaited: set[Var]
) -> tuple[list[Node], list[Node]]:
    """Returns the nodes that awaited values depend on, and the others, in order."""
    needed = set(awaited)
    urgent: set[int] = set()
    effects = False
    for i in reversed(range(len(nodes))):
        node = nodes[i]
        # What comes before an effect that is urgent is urgent, if it has one, too.
        if not needed.isdisjoint(node.outputs) or (effects and node.effects):
            urgent.add(i)
            effects = effects or bool(node.effects)
            needed.update(a for a in node.inputs if type(a) is Var)
    first = [node for i, node in enumerate(nodes) if i in urgent]
    return first, [node for i, node in enumerate(nodes) if i not in urgent]


def _close(graph: Graph, fragments: list[Fragment], maker: dict[Var, int]) -> None:
    """Gives each fragment the inputs and outputs that its nodes make necessary."""
    wanted: dict[int, dict[Var, None]] = defaultdict(dict)
    taken: list[dict[Var, None]] = []
    for fragment in fragments:
        inputs: dict[Var, None] = {}
        for node in fragment.graph.nodes:
            for atom in node.inputs:
                if type(atom) is Var and maker.get(atom) != fragment.index:
                    inputs[atom] = None
                    if atom in maker:
                        wanted[maker[atom]][atom] = None
        taken.append(inputs)
    for atom in graph.outputs:
        if type(atom) is Var and atom in maker:
            wanted[maker[atom]][atom] = None
    for fragment, inputs in zip(fragments, taken, strict=True):
        name = f"{graph.name}_{fragment.index}"
        outputs = list(wanted[fragment.index])
        fragment.graph = Graph(list(inputs), fragment.graph.nodes, outputs, name)
        after = {maker[var] for var in inputs if var in maker}
        fragment.after = tuple(sorted(after))


def _edges(fragments: Sequence[Fragment], maker: dict[Var, int]) -> list[Edge]:
    users: dict[tuple[Var, Place], list[int]] = defaultdict(list)
    for fragment in fragments:
        for var in fragment.graph.inputs:
            source = maker.get(var)
            if source is None or fragments[source].place is not fragment.place:
                users[var, fragment.place].append(fragment.index)
    return [
        Edge(var, maker.get(var), place, tuple(indices))
        for (var, place), indices in users.items()
    ]


def in_order(made: Fragments, order: Sequence[int]) -> Fragments:
    """Returns fragments in another order, numbered anew.

    Args:
      made: to reorder.
      order: indices of its fragments, in an order that can be run.
    """
    new = {old: number for number, old in enumerate(order)}
    fragments = [
        replace(
            made.fragments[old],
            index=number,
            after=tuple(sorted(new[i] for i in made.fragments[old].after)),
        )
        for number, old in enumerate(order)
    ]
    edges = [
        replace(
            edge,
            source=None if edge.source is None else new[edge.source],
            users=tuple(sorted(new[i] for i in edge.users)),
        )
        for edge in made.edges
    ]
    return Fragments(fragments, edges, made.notes)


def check(fragments: Sequence[Fragment]) -> None:
    """Checks that the fragments can be run in their order.

    Raises:
      PlacementError: one takes a result of a later one; the message shows the cycle.
    """
    for fragment in fragments:
        late = [i for i in fragment.after if i >= fragment.index]
        if late:
            raise PlacementError(
                f"fragment {fragment.index} waits for fragment {late[0]}, which comes "
                "after it"
            )
