"""Fewer bytes between places: cheap operations at a cut run on the other side of it.

Where one device sends `gelu(x)` and its slope to another, it is enough to send `x`;
where it sends `x` and the other only takes a sum of it, the sum is enough. Between two
places the cheap operations before and after the cut form a graph; which of its values
to send is a minimum cut of it, by bytes.

Operations that were before the cut are computed on both sides if both need them, those
after it move. The results of the whole, and what depends on effects, stay.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.dataflow.placing import Place, Placed, place_name
from fxflow.dataflow.scopes import PlaceScope
from fxflow.lax.concatenation import Concatenate
from fxflow.lax.conversion import ConvertElementType
from fxflow.lax.families import Elementwise, Structural
from fxflow.lax.reduction import Reduction
from fxflow.lax.select import SelectN

#: Bytes that must be saved, and flops that a saved byte may cost: a core computes about
#: ten in the time in which a byte passes.
SAVED, FLOPS_PER_BYTE = 4096, 10
#: Cheap operations between two places that are looked at together; more stay.
_MOST = 500
_FAMILIES = (Elementwise, Structural, Reduction)
_OTHERS = {ConvertElementType.name, SelectN.name, Concatenate.name}


def with_fewer_bytes(graph: Graph, placed: Placed) -> Placed:
    """Returns nodes placed so that cheap operations do not add to what is sent.

    Args:
      graph: whose outputs stay where they are.
      placed: its nodes.
    """
    table = _Table(graph, placed)
    for kind in (_Before, _After):
        for source, target in list(table.sent):
            kind(table, source, target).apply()
    return table.placed()


class Cut(NamedTuple):
    """A cut of a graph.

    Attributes:
      vertices: that were cut.
      before: vertices whose entrance is on the side of the sources, the cut ones among
        them.
    """

    vertices: set[Any]
    before: set[Any]


def minimum_cut(
    weights: Mapping[Any, int],
    arcs: Iterable[tuple[Any, Any]],
    sources: Set[Any],
    sinks: Set[Any],
    *,
    late: bool,
    implied: Iterable[tuple[Any, Any]] = (),
) -> Cut:
    """Returns vertices of the least weight that every path from a source to a sink has.

    Args:
      weights: of the vertices.
      arcs: pairs of vertices.
      sources: where paths begin; they may be cut.
      sinks: where paths end; they may be cut.
      late: which of several least cuts: the one nearest to the sinks, or the sources.
      implied: pairs of vertices: if the entrance of the first is on the side of the
        sources, so is that of the second.

    Source: Ford and Fulkerson (1956), with shortest paths (Edmonds and Karp, 1972).
    """
    # A vertex is an arc from its entrance to its exit with its weight.
    room: dict[Hashable, dict[Hashable, float]] = defaultdict(dict)

    def arc(a: Hashable, b: Hashable, weight: float) -> None:
        room[a][b] = room[a].get(b, 0.0) + weight
        room[b].setdefault(a, 0.0)

    first, last = "source", "sink"
    for vertex, weight in weights.items():
        arc(("in", vertex), ("out", vertex), weight)
    for a, b in arcs:
        arc(("out", a), ("in", b), float("inf"))
    for a, b in implied:
        arc(("in", a), ("in", b), float("inf"))
    for vertex in sources:
        arc(first, ("in", vertex), float("inf"))
    for vertex in sinks:
        arc(("out", vertex), last, float("inf"))

    def reached(start: Hashable, forward: bool) -> dict[Hashable, Hashable]:
        before: dict[Hashable, Hashable] = {start: start}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for there, left in room[here].items():
                free = left if forward else room[there][here]
                if free > 0 and there not in before:
                    before[there] = here
                    waiting.append(there)
        return before

    while last in (before := reached(first, True)):
        path = [last]
        while path[-1] is not first:
            path.append(before[path[-1]])  # type: ignore[arg-type]
        pairs = list(zip(path[1:], path, strict=False))
        flow = min(room[a][b] for a, b in pairs)
        for a, b in pairs:
            room[a][b] -= flow
            room[b][a] += flow
    side: Set[Hashable] = before.keys()
    if late:
        side = room.keys() - reached(last, False).keys()
    entered = {v for v in weights if ("in", v) in side}
    return Cut({v for v in entered if ("out", v) not in side}, entered)


class _Table:
    """Placed nodes, which makes what, and what is sent; kept up to date by changes.

    Args:
      graph: whose outputs stay where they are.
      placed: its nodes.

    Attributes:
      nodes: by number, which they keep; None where one was removed.
      places: of the nodes.
      outputs: of the graph.
      maker: number of the node that computes a variable.
      users: numbers of the nodes that take it.
      sent: what passes from a place to another.
      notes: what was changed.
    """

    def __init__(self, graph: Graph, placed: Placed) -> None:
        self._given = placed
        self.nodes: list[Node | None] = list(placed.nodes)
        self.places = list(placed.places)
        self.outputs = {atom for atom in graph.outputs if type(atom) is Var}
        self.maker: dict[Var, int] = {}
        self.users: dict[Var, dict[int, None]] = defaultdict(dict)
        self.sent: dict[tuple[Place, Place], dict[Var, None]] = {}
        self.notes: list[str] = []
        #: The node that each one is, or is a copy of, and the copies of each.
        self._original = list(range(len(placed.nodes)))
        self._copies: dict[int, list[int]] = {}
        self._at: dict[int, list[int]] = defaultdict(list)  # nodes by origin
        for i, (node, origin) in enumerate(
            zip(placed.nodes, placed.origins, strict=True)
        ):
            self._at[origin].append(i)
            for var in node.outputs:
                self.maker[var] = i
            for atom in node.inputs:
                if type(atom) is Var:
                    self.users[atom][i] = None
        for var in self.maker:
            self._send(var)

    def _targets(self, var: Var) -> Iterable[tuple[Place, Place]]:
        """Returns the pairs of places between which a variable is sent."""
        source, places = self.places[self.maker[var]], self.places
        if source.is_single and var in self.users:
            for target in {places[u]: None for u in self.users[var]}:
                if target is not source and target.is_single:
                    yield source, target

    def _send(self, var: Var) -> None:
        for pair in self._targets(var):
            self.sent.setdefault(pair, {})[var] = None

    def _unsend(self, variables: Iterable[Var]) -> None:
        for var in variables:
            for pair in self._targets(var):
                self.sent[pair].pop(var, None)

    def node(self, i: int) -> Node:
        """Returns a node, by its number."""
        node = self.nodes[i]
        assert node is not None
        return node

    def inputs(self, i: int) -> list[Var]:
        """Returns the variables that a node takes."""
        return [a for a in self.node(i).inputs if type(a) is Var]

    def rank(self, i: int) -> tuple[int, int]:
        """Returns what orders nodes: a copy comes after its original."""
        return self._original[i], i

    def is_at(self, i: int, place: Place) -> bool:
        """Returns whether a node, or a copy of it, runs in a place."""
        origin = self._given.origins[self._original[i]]
        return any(
            self.places[j] is place and self.nodes[j] is not None
            for j in self._at[origin]
        )

    def move(self, numbers: Iterable[int], place: Place) -> None:
        """Moves nodes to another place."""
        numbers = list(numbers)
        touched = [v for i in numbers for v in (*self.inputs(i), *self.node(i).outputs)]
        made = [v for v in dict.fromkeys(touched) if v in self.maker]
        self._unsend(made)
        for i in numbers:
            self.nodes[i], self.places[i] = _unscoped(self.node(i)), place
        for var in made:
            self._send(var)

    def copy(self, numbers: Iterable[int], place: Place) -> None:
        """Copies nodes to a place; those that only it needs remain there alone."""
        numbers = sorted(numbers, key=self.rank)
        touched = [v for i in numbers for v in (*self.inputs(i), *self.node(i).outputs)]
        made = [v for v in dict.fromkeys(touched) if v in self.maker]
        self._unsend(made)
        names: dict[Var, Var] = {}  # at the place
        for i in numbers:
            node, number = self.node(i), len(self.nodes)
            names.update((v, Var(v.aval)) for v in node.outputs)
            taken = [names.get(a, a) if type(a) is Var else a for a in node.inputs]
            outputs = [names[v] for v in node.outputs]
            self.nodes.append(_unscoped(node.replace(inputs=taken, outputs=outputs)))
            self.places.append(place)
            self._original.append(self._original[i])
            self._copies.setdefault(self._original[i], []).append(number)
            self._at[self._given.origins[self._original[i]]].append(number)
            self.maker.update(dict.fromkeys(outputs, number))
            for var in self.inputs(number):
                self.users[var][number] = None
        renamed = {
            u: None
            for var in names
            for u in self.users.get(var, ())
            if self.places[u] is place
        }
        for u in renamed:
            node = self.node(u)
            for var in self.inputs(u):
                if var in names:
                    self.users[var].pop(u, None)
                    self.users[names[var]][u] = None
            taken = [names.get(a, a) if type(a) is Var else a for a in node.inputs]
            self.nodes[u] = node.replace(inputs=taken)
        for i in reversed(numbers):
            results = self.node(i).outputs
            if not any(v in self.outputs or self.users.get(v) for v in results):
                for var in self.inputs(i):
                    self.users[var].pop(i, None)
                for var in results:
                    del self.maker[var]
                self.nodes[i] = None
        for var in (*made, *names.values()):
            if var in self.maker:
                self._send(var)

    def placed(self) -> Placed:
        """Returns the nodes as they are now."""
        given = self._given
        if not self.notes:
            return given
        order = []
        for i in range(len(given.nodes)):
            order += [i, *self._copies.get(i, ())]
        order = [i for i in order if self.nodes[i] is not None]
        first = [self._original[i] for i in order]
        nodes, places = [self.node(i) for i in order], [self.places[i] for i in order]
        made = zip(nodes, places, strict=True)
        return replace(
            given,
            nodes=nodes,
            places=places,
            rounds=[given.rounds[i] for i in first],
            origins=[given.origins[i] for i in first],
            phases=[given.phases[i] for i in first] if given.phases else [],
            made={v: place for node, place in made for v in node.outputs},
            notes=[*given.notes, *self.notes],
        )


class _Change:
    """Cheap nodes on one side of a cut.

    Args:
      table: of all nodes; a change is made there.
      source: from where values are sent.
      target: to where.
    """

    def __init__(self, table: _Table, source: Place, target: Place) -> None:
        self.table, self.source, self.target = table, source, target
        self.sent = list(table.sent[source, target])

    def apply(self) -> None:
        """Changes the table so that less is sent."""
        raise NotImplementedError

    def is_cheap(self, i: int) -> bool:
        """Returns whether a node may run elsewhere."""
        node = self.table.node(i)
        primitive = node.primitive
        cheap = isinstance(primitive, _FAMILIES) or primitive.name in _OTHERS
        return cheap and not node.effects

    def pays(self, gain: int, nodes: Iterable[int]) -> bool:
        """Returns whether nodes are worth the bytes that they save."""
        return gain >= SAVED and self.flops(nodes) <= FLOPS_PER_BYTE * gain

    def flops(self, numbers: Iterable[int]) -> float:
        """Returns the work of nodes."""
        found = 0.0
        for node in map(self.table.node, numbers):
            cost = node.primitive.cost(*[a.aval for a in node.inputs], **node.params)
            found += cost.get("flops", 0.0)
        return found

    def groups(self, cone: Set[int]) -> list[list[Var]]:
        """Returns what is sent by the connected parts of a cone that it touches.

        Values that the cone does not touch, and groups too small to be worth a change,
        are left out.
        """
        parent: dict[Any, Any] = {}

        def find(key: Any) -> Any:
            while parent.setdefault(key, key) is not key:
                parent[key] = parent[parent[key]]
                key = parent[key]
            return key

        for i in cone:
            outputs = self.table.node(i).outputs
            for var in (*self.table.inputs(i), *outputs):
                parent[find(var)] = find(outputs[0])
        found: dict[Any, list[Var]] = defaultdict(list)
        for var in self.sent:
            if var in parent:
                found[find(var)].append(var)
        return [group for group in found.values() if _nbytes(group) >= SAVED]


def _unscoped(node: Node) -> Node:
    """Returns a node without the part of its scope that says where it runs."""
    scope = tuple(name for name in node.scope if type(name) is not PlaceScope)
    return node if scope == node.scope else node.replace(scope=scope)


def _note(count: int, where: Place, saved: int) -> str:
    what = "cheap operation runs" if count == 1 else "cheap operations run"
    return f"{count} {what} on {place_name(where)}, which saves {saved:,} bytes sent"


class _Before(_Change):
    """Computes cheap values where they are taken, instead of sending them."""

    def apply(self) -> None:
        """Copies nodes to the target."""
        cone = self._cone()
        copied: dict[int, None] = {}
        saved = 0
        for group in self.groups(cone):
            kept = self._kept(group, cone)
            nodes = self._between(group, kept, cone)
            gain = _nbytes(group) - _nbytes(kept)
            if self.pays(gain, nodes):
                copied.update(dict.fromkeys(nodes))
                saved += gain
        if copied:
            self.table.copy(copied, self.target)
            self.table.notes.append(_note(len(copied), self.target, saved))

    def _cone(self) -> set[int]:
        """Returns the cheap nodes at the source that lead to what is sent."""
        table, cone = self.table, set[int]()
        waiting = [table.maker[var] for var in self.sent]
        while waiting and len(cone) < _MOST:
            i = waiting.pop()
            if i in cone or table.places[i] is not self.source or not self.is_cheap(i):
                continue
            if not table.is_at(i, self.target):
                cone.add(i)
                makers = (table.maker.get(v) for v in table.inputs(i))
                waiting += [m for m in makers if m is not None]
        return cone

    def _kept(self, group: Sequence[Var], cone: Set[int]) -> set[Var]:
        """Returns what to send instead of a group."""
        weights: dict[Var, int] = {}
        arcs: list[tuple[Var, Var]] = []
        sources: set[Var] = set()
        waiting = list(group)
        while waiting:
            var = waiting.pop()
            if var in weights:
                continue
            weights[var] = int(var.aval.nbytes)
            i = self.table.maker.get(var)
            before = []
            if i is not None and i in cone:  # without inputs, nothing need be sent
                before = self.table.inputs(i)
            else:
                sources.add(var)
            arcs += [(v, var) for v in before]
            waiting += before
        if sources and _nbytes(group) - min(weights.values()) < SAVED:
            return set(group)  # no cut could save more
        return minimum_cut(weights, arcs, sources, set(group), late=True).vertices

    def _between(
        self, group: Sequence[Var], kept: Set[Var], cone: Set[int]
    ) -> dict[int, None]:
        """Returns the nodes that compute a group from what is sent."""
        found: dict[int, None] = {}
        waiting = [var for var in group if var not in kept]
        while waiting:
            i = self.table.maker.get(waiting.pop())
            if i in cone and i is not None and i not in found:
                found[i] = None
                waiting += [v for v in self.table.inputs(i) if v not in kept]
        return found


class _After(_Change):
    """Computes cheap values before they are sent, where they are smaller."""

    def apply(self) -> None:
        """Moves nodes to the source."""
        cone = self._cone()
        moved: dict[int, None] = {}
        saved = 0
        for group in self.groups(cone):
            nodes, gain = self._before(group, cone)
            if self.pays(gain, nodes):
                moved.update(dict.fromkeys(nodes))
                saved += gain
        if moved:
            self.table.move(moved, self.source)
            self.table.notes.append(_note(len(moved), self.source, saved))

    def _cone(self) -> set[int]:
        """Returns the cheap nodes at the target that take only what is sent."""
        table, there, cone = self.table, set(self.sent), set[int]()
        reached = {user for var in self.sent for user in self._reach(var)}
        for i in sorted(reached, key=table.rank):
            if (
                len(cone) < _MOST
                and table.inputs(i)
                and there.issuperset(table.inputs(i))
                and self.is_cheap(i)
                and table.outputs.isdisjoint(table.node(i).outputs)
                and not table.is_at(i, self.source)
            ):
                cone.add(i)
                there.update(table.node(i).outputs)
        return cone

    def _reach(self, var: Var) -> set[int]:
        """Returns the cheap nodes at the target that a variable leads to."""
        table, found = self.table, set[int]()
        waiting = list(table.users[var])
        while waiting and len(found) < _MOST:
            i = waiting.pop()
            if i in found or table.places[i] is not self.target:
                continue
            if self.is_cheap(i):
                found.add(i)
                outputs = table.node(i).outputs
                waiting += [u for v in outputs for u in table.users.get(v, ())]
        return found

    def _before(self, group: Sequence[Var], cone: Set[int]) -> tuple[set[int], int]:
        """Returns the nodes to run before sending, and the bytes that this saves."""
        table, sources = self.table, set(group)
        weights: dict[Var, int] = {}
        arcs: list[tuple[Var, Var]] = []
        sinks: set[Var] = set()
        found: dict[int, None] = {}  # of the cone, that the group leads to
        waiting = list(group)
        while waiting:
            var = waiting.pop()
            if var in weights:
                continue
            weights[var] = int(var.aval.nbytes)
            for user in table.users.get(var, ()):
                if user in cone:
                    found[user] = None
                    after = table.node(user).outputs
                    arcs += [(var, v) for v in after]
                    waiting += after
                elif table.places[user] is self.target or var not in sources:
                    sinks.add(var)
        if sinks and _nbytes(group) - min(weights.values()) < SAVED:
            return set(), 0  # no cut could save more
        # A node that moves takes all that it needs with it, and gives all its results.
        implied = []
        for i in found:
            outputs = table.node(i).outputs
            implied += [(outputs[0], v) for v in (*outputs[1:], *table.inputs(i))]
            implied += [(v, outputs[0]) for v in outputs[1:]]
        least = minimum_cut(weights, arcs, sources, sinks, late=False, implied=implied)
        moved = {i for i in found if table.node(i).outputs[0] in least.before}
        return moved, _nbytes(group) - _nbytes(least.vertices)


def _nbytes(variables: Iterable[Var]) -> int:
    return sum(int(var.aval.nbytes) for var in variables)
