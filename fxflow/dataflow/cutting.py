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
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from fxflow.core.ir.graph import Graph, Node, Var, any_node
from fxflow.core.ir.higher_order import graph_cost
from fxflow.core.ir.primitive import ORDERED
from fxflow.core.source import describe
from fxflow.dataflow.placing import Place, Placed, place_name
from fxflow.dataflow.scopes import Stage, where_of
from fxflow.errors import PlacementError
from fxflow.lax.callbacks import PythonCallback

#: The rest of a fragment of less work than this stays with what is waited for: a
#: fragment of its own takes about as long to start.
SPLIT_FLOPS = 50_000.0


@dataclass(eq=False, repr=False)
class Fragment:
    """A part of a program that runs as one program in one place.

    Attributes:
      index: in the order in which fragments are started.
      place: where it runs.
      level: changes of place on the longest path to it.
      round: of the loop that was written out.
      kind: "F", "B", "W" or "O"; see `_kinds`.
      graph: its operations; its variables are those of the whole graph.
      after: indices of the fragments whose results it takes.
      stage: of the pipeline; None outside of loops that are written out.
      microbatch: of the pipeline, from 0; None outside of it.
      origins: the number of each operation in the graph that was cut.
    """

    index: int
    place: Place
    level: int
    round: int
    kind: str
    graph: Graph
    after: tuple[int, ...] = ()
    stage: int | None = None
    microbatch: int | None = None
    origins: tuple[int, ...] = ()

    @property
    def action(self) -> str:
        """A short name: `2B0` in a pipeline, `fragment 3` elsewhere."""
        if self.microbatch is None or self.stage is None:
            return f"fragment {self.index}"
        return f"{self.stage}{self.kind}{self.microbatch}"

    def describe(self) -> str:
        """Returns what it is, for messages: `2B0 on cpu:1 (tanh, model.py:12)`."""
        first = self.graph.nodes[0]
        line = f"{first.primitive.name}, {describe(first.source)}"
        return f"{self.action} on {place_name(self.place)} ({line})"

    def __repr__(self) -> str:
        return f"<Fragment {self.describe().removeprefix('fragment ')}>"

    def takes(self, other: Fragment) -> str:
        """Returns the types of the values that it receives from another fragment."""
        made = set(other.results)
        return " ".join(str(v.aval) for v in self.graph.inputs if v in made)

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
    units, stated = _units(placed)
    if strict:
        _require_no_return(placed)
    levels = levels_of(placed, units)
    _delay(graph, placed, units, levels)
    groups = _split(placed, units, levels)
    if placed.phases:
        groups = _joined(placed, groups)
    kinds = _kinds(placed, groups, stated)
    pairs = zip(groups, kinds, strict=True)
    forward = {g.round for g, k in pairs if k == "F" and g.unit.stage is not None}
    number = {round_: i for i, round_ in enumerate(sorted(forward))}
    parts = [
        Part(
            group.unit.place,
            group.nodes,
            kind,
            group.level,
            group.round,
            group.unit.stage,
            None if kind == "O" else number.get(group.round),
        )
        for group, kind in zip(groups, kinds, strict=True)
    ]
    return assembled(graph, placed, parts)


class Part(NamedTuple):
    """What becomes a fragment; see `Fragment`.

    Attributes:
      place: where it runs.
      nodes: numbers of placed nodes, in order.
      kind: see `Fragment`.
      level: see `Fragment`.
      round: see `Fragment`.
      stage: see `Fragment`.
      microbatch: see `Fragment`.
    """

    place: Place
    nodes: Sequence[int]
    kind: str
    level: int = 0
    round: int = 0
    stage: int | None = None
    microbatch: int | None = None


def assembled(graph: Graph, placed: Placed, parts: Sequence[Part]) -> Fragments:
    """Returns the fragments that parts of a graph make, and the edges between them.

    Args:
      graph: whose inputs and outputs count.
      placed: its nodes.
      parts: each node is in one.
    """
    maker: dict[Var, int] = {}
    fragments: list[Fragment] = []
    for index, part in enumerate(parts):
        nodes = [placed.nodes[i] for i in part.nodes]
        for node in nodes:
            maker.update(dict.fromkeys(node.outputs, index))
        fragments.append(
            Fragment(
                index,
                part.place,
                part.level,
                part.round,
                part.kind,
                Graph([], nodes, []),
                stage=part.stage,
                microbatch=part.microbatch,
                origins=tuple(placed.origins[i] for i in part.nodes),
            )
        )
    _close(graph, fragments, maker)
    return Fragments(fragments, _edges(fragments, maker), placed.notes)


class _Unit(NamedTuple):
    """What a fragment never crosses the border of.

    Attributes:
      place: where it runs.
      stage: of the pipeline; None outside of loops that are written out.
    """

    place: Place
    stage: int | None = None


def _units(placed: Placed) -> tuple[list[_Unit], list[bool]]:
    """Returns the unit of each node, and whether its scope states the stage.

    A schedule orders stages, also those that share a place. A node without a stage
    belongs to that of its operands, or else of its first user, in the same place.
    """
    nodes, places = placed.nodes, placed.places
    if not any(placed.rounds):
        return [_Unit(place) for place in places], [False] * len(nodes)
    stages: list[int | None] = []
    made: dict[Var, tuple[Place, int]] = {}
    stated = []
    for node, place in zip(nodes, places, strict=True):
        where = where_of(node.scope)
        stage = where.index if isinstance(where, Stage) else None
        stated.append(stage is not None)
        if stage is None:
            for atom in node.inputs:
                if type(atom) is Var and atom in made and made[atom][0] is place:
                    stage = made[atom][1]
        stages.append(stage)
        if stage is not None:
            made.update(dict.fromkeys(node.outputs, (place, stage)))
    used: dict[Var, tuple[Place, int]] = {}
    for i in reversed(range(len(nodes))):
        stage = stages[i]
        if stage is None:
            users = [used[v] for v in nodes[i].outputs if v in used]
            stage = next((s for place, s in users if place is places[i]), None)
            stages[i] = stage
        if stage is not None:
            inputs = [a for a in nodes[i].inputs if type(a) is Var]
            used.update(dict.fromkeys(inputs, (places[i], stage)))
    return [_Unit(*pair) for pair in zip(places, stages, strict=True)], stated


def _kinds(
    placed: Placed, groups: Sequence[_Group], stated: Sequence[bool]
) -> list[str]:
    """Returns the kind of each fragment.

    In a round whose stages depend on each other, a microbatch, a stage's first level
    is forward ("F") and the others are backward ("B"); what comes apart because no
    other unit waits for it are the gradients of weights ("W"). What no stage's scope
    holds, and what is in other rounds, is "O": slices before a loop, updates after it.
    Without stages, the places of a loop that is written out count as such.
    """
    made: dict[Var, tuple[int, _Unit]] = {}
    first: dict[tuple[int, _Unit], int] = {}
    linked: set[int] = set()
    holds = []
    staged = any(group.unit.stage is not None for group in groups)
    for group in groups:
        held = any(stated[i] for i in group.nodes) if staged else group.round > 0
        holds.append(held)
        if held and (group.unit.stage is not None or not staged):
            key = group.round, group.unit
            first[key] = min(first.get(key, group.level), group.level)
            for node in (placed.nodes[i] for i in group.nodes):
                for atom in node.inputs:
                    if type(atom) is Var and atom in made:
                        round_, source = made[atom]
                        if round_ == group.round and source != group.unit:
                            linked.add(round_)
                made.update(dict.fromkeys(node.outputs, (group.round, group.unit)))
    kinds = []
    for group, held in zip(groups, holds, strict=True):
        key = group.round, group.unit
        if not held or group.round not in linked or key not in first:
            kinds.append("O")
            continue
        forward = group.level == first[key]
        kinds.append("W" if not group.awaited else "F" if forward else "B")
    return kinds


def levels_of(placed: Placed, units: Sequence[Any]) -> list[int]:
    """Returns the level of each node.

    Args:
      placed: the nodes.
      units: of the nodes; the number of changes of unit on a path counts, and of steps
        back to an earlier round.
    """
    made: dict[Var, tuple[int, Any, int]] = {}
    levels: list[int] = []
    last: tuple[int, Place, Node] | None = None  # with an ordered effect
    phases = placed.phases or [0] * len(placed.nodes)
    numbered = zip(
        placed.nodes, placed.places, units, placed.rounds, phases, strict=True
    )
    for node, place, unit, round_, level in numbered:
        for atom in node.inputs:
            if type(atom) is Var and atom in made:
                before, source, made_in = made[atom]
                # Rounds of a level run in order, or fragments would need each other.
                apart = source != unit or made_in > round_
                level = max(level, before + apart)
        if ORDERED in node.effects:
            if last is not None:
                if last[1] is not place:
                    raise PlacementError(
                        "ordered effects run in order, so they are in one place: "
                        f"{last[2].primitive.name} ({describe(last[2].source)}) is on "
                        f"{last[1]}, {node.primitive.name} ({describe(node.source)}) "
                        f"on {place}"
                    )
                level = max(level, last[0])
            last = level, place, node
        levels.append(level)
        made.update(dict.fromkeys(node.outputs, (level, unit, round_)))
    return levels


def _require_no_return(placed: Placed) -> None:
    """Checks that no path leaves a place and comes back to it."""
    maker: dict[Var, int] = {}
    left: list[set[Place]] = []  # by the paths to each node
    for i, (node, place) in enumerate(zip(placed.nodes, placed.places, strict=True)):
        makers = [maker[a] for a in node.inputs if type(a) is Var and a in maker]
        gone = {placed.places[m] for m in makers if placed.places[m] is not place}
        left.append(gone.union(*(left[m] for m in makers)))
        if place in left[i]:
            raise PlacementError(
                f"strict: a path leaves {place_name(place)} and comes back: "
                f"{_path_back(placed, maker, left, i)}; without strict it is cut in two"
            )
        maker.update(dict.fromkeys(node.outputs, i))


def _path_back(
    placed: Placed, maker: dict[Var, int], left: Sequence[set[Place]], last: int
) -> str:
    """Returns the operations at the ends of a path that comes back to its place."""
    place, path = placed.places[last], [last]
    while len(path) == 1 or placed.places[path[-1]] is not place:
        here = path[-1]
        makers = (maker.get(a) for a in placed.nodes[here].inputs if type(a) is Var)
        before = [m for m in makers if m is not None]
        from_there = [m for m in before if placed.places[m] is place]
        if len(path) > 1 and from_there:
            path.append(from_there[0])
        else:
            path.append(next(m for m in before if place in left[m]))
    path.reverse()
    # The last of those that run in one place one after the other.
    kept = [
        n
        for n, after in zip(path, (*path[1:], None), strict=True)
        if after is None or placed.places[n] is not placed.places[after]
    ]
    return " → ".join(
        f"{placed.nodes[n].primitive.name} on {place_name(placed.places[n])} "
        f"({describe(placed.nodes[n].source)})"
        for n in kept
    )


def _delay(
    graph: Graph, placed: Placed, units: Sequence[_Unit], levels: list[int]
) -> None:
    """Moves cheap nodes to the level of their first use, which saves fragments.

    Those of more work stay, to run while the place would wait for others.
    """
    first: dict[Var, int] = {}  # level of the first use; -1: elsewhere
    where = [*zip(units, placed.rounds, strict=True)]
    made = {
        v: at
        for node, at in zip(placed.nodes, where, strict=True)
        for v in node.outputs
    }
    first.update((atom, -1) for atom in graph.outputs if type(atom) is Var)
    for i in reversed(range(len(placed.nodes))):
        node = placed.nodes[i]
        uses = [first[v] for v in node.outputs if v in first]
        if uses and min(uses) > levels[i] and not node.effects and _is_cheap_node(node):
            levels[i] = min(uses)
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


def _is_cheap_node(node: Node) -> bool:
    """Returns what `is_cheap` does for a graph of one operation."""
    if node.params:  # which may be graphs or a host callback
        return is_cheap(Graph([], [node], []))
    cost = node.primitive.cost(*[a.aval for a in node.inputs])
    return cost.get("flops", 0.0) < SPLIT_FLOPS


class _Group(NamedTuple):
    """The nodes of a fragment.

    Attributes:
      level: changes of unit on the longest path to it.
      round: of the loop that was written out.
      unit: where it runs, and of which stage it is.
      nodes: numbers of nodes, in order.
      awaited: False for what comes apart because no other unit waits for it.
    """

    level: int
    round: int
    unit: _Unit
    nodes: list[int]
    awaited: bool = True


def _split(
    placed: Placed, units: Sequence[_Unit], levels: Sequence[int]
) -> list[_Group]:
    """Returns nodes by level, round and unit; what others wait for comes first."""
    groups: dict[tuple[int, int, _Unit], list[int]] = defaultdict(list)
    for i, key in enumerate(zip(levels, placed.rounds, units, strict=True)):
        groups[key].append(i)
    awaited = _awaited(placed, units)
    found: list[_Group] = []
    for key, nodes in sorted(groups.items(), key=lambda item: item[0][:2]):
        urgent, rest = _by_urgency(placed.nodes, nodes, awaited)
        if (
            urgent
            and rest
            and not is_cheap(Graph([], [placed.nodes[i] for i in rest], []))
        ):
            found += [_Group(*key, urgent), _Group(*key, rest, False)]
        else:
            found.append(_Group(*key, nodes))
    return found


def _awaited(placed: Placed, units: Sequence[Any]) -> set[Var]:
    """Returns the variables that other units than their own take."""
    made: dict[Var, Any] = {}
    found: set[Var] = set()
    for node, unit in zip(placed.nodes, units, strict=True):
        for atom in node.inputs:
            if type(atom) is Var and made.get(atom, unit) != unit:
                found.add(atom)
        made.update(dict.fromkeys(node.outputs, unit))
    return found


def _joined(placed: Placed, groups: Sequence[_Group]) -> list[_Group]:
    """Joins groups of one place where no other place would wait for longer.

    Placement by cost decides which operations are in one fragment, but for those that
    follow their uses; they should not be in a fragment of their own.
    """
    maker: dict[Var, int] = {}
    awaited = _awaited(placed, placed.places)
    found: list[_Group] = []
    before: list[int] = []  # what each waits for, directly or not, as bits
    elsewhere: list[bool] = []  # whether another place takes results of each
    phases: list[set[int]] = []
    last: dict[Place, int] = {}
    for group in groups:
        place, nodes = group.unit.place, [placed.nodes[i] for i in group.nodes]
        inputs = (a for node in nodes for a in node.inputs if type(a) is Var)
        sources = {maker[a] for a in inputs if a in maker}
        sent = any(v in awaited for node in nodes for v in node.outputs)
        own = {placed.phases[i] for i in group.nodes} - {0}
        number = last.get(place)
        joins = (
            number is not None
            and all(n == number or before[number] >> n & 1 for n in sources)
            and len(own | phases[number]) <= 1
            and (not elsewhere[number] or is_cheap(Graph([], nodes, [])))
        )
        if number is not None and joins:
            known = found[number]
            found[number] = known._replace(
                nodes=sorted([*known.nodes, *group.nodes]),
                awaited=known.awaited or group.awaited,
            )
            phases[number] |= own
            elsewhere[number] |= sent
        else:
            number = last[place] = len(found)
            found.append(group)
            masks = (before[n] | 1 << n for n in sources)
            before.append(reduce(or_, masks, 0))
            elsewhere.append(sent)
            phases.append(own)
        for node in nodes:
            maker.update(dict.fromkeys(node.outputs, number))
    return found


def _by_urgency(
    nodes: Sequence[Node], numbers: Sequence[int], awaited: set[Var]
) -> tuple[list[int], list[int]]:
    """Returns the nodes that awaited values depend on, and the others, in order."""
    needed = set(awaited)
    urgent: set[int] = set()
    effects = False
    for i in reversed(numbers):
        node = nodes[i]
        ordered = ORDERED in node.effects
        # What comes before an ordered effect that is urgent is urgent, if it has one.
        if not needed.isdisjoint(node.outputs) or (effects and ordered):
            urgent.add(i)
            effects = effects or ordered
            needed.update(a for a in node.inputs if type(a) is Var)
    return [i for i in numbers if i in urgent], [i for i in numbers if i not in urgent]


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
    # Ordered effects stay in the order of the program, whatever that of the rest.
    first = {
        f.index: origin
        for f in fragments
        for node, origin in zip(f.graph.nodes[::-1], f.origins[::-1], strict=True)
        if ORDERED in node.effects
    }
    effects = sorted(first, key=lambda index: first[index])
    for fragment, inputs in zip(fragments, taken, strict=True):
        name = f"{graph.name}_{fragment.index}"
        outputs = list(wanted[fragment.index])
        fragment.graph = Graph(list(inputs), fragment.graph.nodes, outputs, name)
        after = {maker[var] for var in inputs if var in maker}
        if fragment.index in effects:
            after.update(effects[: effects.index(fragment.index)][-1:])
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
    # By the first fragment that takes the value, as when they were found.
    place = {
        (f.index, var): i for f in fragments for i, var in enumerate(f.graph.inputs)
    }
    edges.sort(key=lambda e: (e.users[0], place[e.users[0], e.var]))
    return Fragments(fragments, edges, made.notes)
