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
    for kind in (_Before, _After):
        change = kind(graph, placed)
        for source, target in list(change.sent):
            found = change.apply(source, target)
            if found is not change.placed:
                change = kind(graph, found)
        placed = change.placed
    return placed


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


class _Change:
    """Cheap nodes on one side of the cuts.

    Args:
      graph: whose outputs stay where they are.
      placed: its nodes.
    """

    def __init__(self, graph: Graph, placed: Placed) -> None:
        self.placed = placed
        self.outputs = {atom for atom in graph.outputs if type(atom) is Var}
        self.maker: dict[Var, int] = {}
        self.users: dict[Var, list[int]] = defaultdict(list)
        for i, node in enumerate(placed.nodes):
            for var in node.outputs:
                self.maker[var] = i
            for atom in node.inputs:
                if type(atom) is Var:
                    row = self.users[atom]
                    if not row or row[-1] != i:
                        row.append(i)
        #: What passes from a place to another.
        self.sent: dict[tuple[Place, Place], list[Var]] = {}
        for var, i in self.maker.items():
            source = placed.places[i]
            others = [placed.places[u] for u in self.users.get(var, ())]
            for target in dict.fromkeys(p for p in others if p is not source):
                if source.is_single and target.is_single:
                    self.sent.setdefault((source, target), []).append(var)

    def apply(self, source: Place, target: Place) -> Placed:
        """Returns the nodes with less sent from a place to another."""
        raise NotImplementedError

    def inputs(self, i: int) -> list[Var]:
        """Returns the variables that a node takes."""
        return [a for a in self.placed.nodes[i].inputs if type(a) is Var]

    def is_cheap(self, i: int) -> bool:
        """Returns whether a node may run elsewhere."""
        node = self.placed.nodes[i]
        primitive = node.primitive
        cheap = isinstance(primitive, _FAMILIES) or primitive.name in _OTHERS
        return cheap and not node.effects

    def flops(self, numbers: Iterable[int]) -> float:
        """Returns the work of nodes."""
        found = 0.0
        for i in numbers:
            node = self.placed.nodes[i]
            cost = node.primitive.cost(*[a.aval for a in node.inputs], **node.params)
            found += cost.get("flops", 0.0)
        return found

    def groups(self, variables: Sequence[Var], cone: Set[int]) -> list[list[Var]]:
        """Returns variables by the connected parts of a cone that they touch."""
        parent: dict[Any, Any] = {}

        def find(key: Any) -> Any:
            while parent.setdefault(key, key) is not key:
                parent[key] = parent[parent[key]]
                key = parent[key]
            return key

        for i in cone:
            for var in (*self.inputs(i), *self.placed.nodes[i].outputs):
                parent[find(var)] = find(self.placed.nodes[i].outputs[0])
        found: dict[Any, list[Var]] = defaultdict(list)
        for var in variables:
            found[find(var)].append(var)
        return list(found.values())


def _unscoped(node: Node) -> Node:
    """Returns a node without the part of its scope that says where it runs."""
    scope = tuple(name for name in node.scope if type(name) is not PlaceScope)
    return node if scope == node.scope else node.replace(scope=scope)


def _note(count: int, where: Place, saved: int) -> str:
    what = "cheap operation runs" if count == 1 else "cheap operations run"
    return f"{count} {what} on {place_name(where)}, which saves {saved:,} bytes sent"


class _Before(_Change):
    """Computes cheap values where they are taken, instead of sending them."""

    def apply(self, source: Place, target: Place) -> Placed:
        """Returns the nodes with copies at the target."""
        sent = self.sent[source, target]
        cone = self._cone(sent, source)
        copied: dict[int, None] = {}
        saved = 0
        for group in self.groups(sent, cone):
            kept = self._kept(group, cone)
            nodes = self._between(group, kept, cone)
            gain = _nbytes(group) - _nbytes(kept)
            if gain >= SAVED and self.flops(nodes) <= FLOPS_PER_BYTE * gain:
                copied.update(dict.fromkeys(nodes))
                saved += gain
        return self._with(copied, target, saved) if copied else self.placed

    def _cone(self, sent: Sequence[Var], source: Place) -> set[int]:
        """Returns the cheap nodes at the source that lead to what is sent."""
        cone: set[int] = set()
        waiting = [self.maker[var] for var in sent]
        while waiting and len(cone) < _MOST:
            i = waiting.pop()
            if i in cone or not self.is_cheap(i):
                continue
            if self.placed.places[i] is source:
                cone.add(i)
                waiting += [self.maker[v] for v in self.inputs(i) if v in self.maker]
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
            i = self.maker.get(var)
            before = self.inputs(i) if i in cone and i is not None else []
            if not before:
                sources.add(var)
            arcs += [(v, var) for v in before]
            waiting += before
        return minimum_cut(weights, arcs, sources, set(group), late=True).vertices

    def _between(
        self, group: Sequence[Var], kept: Set[Var], cone: Set[int]
    ) -> dict[int, None]:
        """Returns the nodes that compute a group from what is sent."""
        found: dict[int, None] = {}
        waiting = [var for var in group if var not in kept]
        while waiting:
            i = self.maker.get(waiting.pop())
            if i in cone and i is not None and i not in found:
                found[i] = None
                waiting += [v for v in self.inputs(i) if v not in kept]
        return found

    def _with(self, copied: Mapping[int, None], target: Place, saved: int) -> Placed:
        placed = self.placed
        names: dict[Var, Var] = {}  # at the target
        for i in copied:
            names.update((v, Var(v.aval)) for v in placed.nodes[i].outputs)
        used = set(self.outputs)
        rows: list[tuple[Node, Place, int]] = []  # and the number of the original
        for i, (node, place) in enumerate(
            zip(placed.nodes, placed.places, strict=True)
        ):
            there = node
            if (place is target or i in copied) and not names.keys().isdisjoint(
                a for a in node.inputs if type(a) is Var
            ):
                inputs = [names.get(a, a) for a in node.inputs]
                there = node.replace(inputs=inputs)
            rows.append((there if place is target else node, place, i))
            if i in copied:
                copy = there.replace(outputs=[names[v] for v in node.outputs])
                rows.append((_unscoped(copy), target, i))
        # What only the target took is computed there alone.
        live: list[tuple[Node, Place, int]] = []
        originals = {id(placed.nodes[i]) for i in copied}
        for row in reversed(rows):
            node = row[0]
            if id(node) in originals and used.isdisjoint(node.outputs):
                continue
            used.update(a for a in node.inputs if type(a) is Var)
            live.append(row)
        made = {v: row[1] for row in live for v in row[0].outputs}
        live.reverse()
        numbers = [i for *_, i in live]
        return replace(
            placed,
            nodes=[node for node, *_ in live],
            places=[place for _, place, _ in live],
            rounds=[placed.rounds[i] for i in numbers],
            origins=[placed.origins[i] for i in numbers],
            phases=[placed.phases[i] for i in numbers] if placed.phases else [],
            made=made,
            notes=[*placed.notes, _note(len(copied), target, saved)],
        )


class _After(_Change):
    """Computes cheap values before they are sent, where they are smaller."""

    def apply(self, source: Place, target: Place) -> Placed:
        """Returns the nodes, some of which move to the source."""
        sent = self.sent[source, target]
        cone = self._cone(sent, source, target)
        moved: dict[int, None] = {}
        saved = 0
        for group in self.groups(sent, cone):
            nodes, gain = self._before(group, cone, target)
            if gain >= SAVED and self.flops(nodes) <= FLOPS_PER_BYTE * gain:
                moved.update(dict.fromkeys(nodes))
                saved += gain
        if not moved:
            return self.placed
        placed = self.placed
        nodes_, places = list(placed.nodes), list(placed.places)
        made = dict(placed.made)
        for i in moved:
            nodes_[i], places[i] = _unscoped(nodes_[i]), source
            made.update(dict.fromkeys(nodes_[i].outputs, source))
        notes = [*placed.notes, _note(len(moved), source, saved)]
        return replace(placed, nodes=nodes_, places=places, made=made, notes=notes)

    def _cone(self, sent: Sequence[Var], source: Place, target: Place) -> set[int]:
        """Returns the cheap nodes at the target that take only what is sent."""
        there = set(sent)
        cone: set[int] = set()
        origins = {
            o
            for o, place in zip(self.placed.origins, self.placed.places, strict=True)
            if place is source
        }
        for i in sorted({user for var in sent for user in self._reach(var, target)}):
            node = self.placed.nodes[i]
            if (
                len(cone) < _MOST
                and self.inputs(i)
                and there.issuperset(self.inputs(i))
                and self.is_cheap(i)
                and self.outputs.isdisjoint(node.outputs)
                and self.placed.origins[i] not in origins
            ):
                cone.add(i)
                there.update(node.outputs)
        return cone

    def _reach(self, var: Var, target: Place) -> set[int]:
        """Returns the cheap nodes at the target that a variable leads to."""
        found: set[int] = set()
        waiting = list(self.users[var])
        while waiting and len(found) < _MOST:
            i = waiting.pop()
            if i in found or self.placed.places[i] is not target:
                continue
            if self.is_cheap(i):
                found.add(i)
                waiting += [
                    u for v in self.placed.nodes[i].outputs for u in self.users[v]
                ]
        return found

    def _before(
        self, group: Sequence[Var], cone: Set[int], target: Place
    ) -> tuple[set[int], int]:
        """Returns the nodes to run before sending, and the bytes that this saves."""
        weights: dict[Var, int] = {}
        arcs: list[tuple[Var, Var]] = []
        sinks: set[Var] = set()
        waiting = list(group)
        while waiting:
            var = waiting.pop()
            if var in weights:
                continue
            weights[var] = int(var.aval.nbytes)
            for user in self.users[var]:
                if user in cone:
                    after = self.placed.nodes[user].outputs
                    arcs += [(var, v) for v in after]
                    waiting += after
                elif self.placed.places[user] is target or var not in group:
                    sinks.add(var)
        # A node that moves takes all that it needs with it, and gives all its results.
        implied = []
        for i in cone:
            outputs = self.placed.nodes[i].outputs
            if outputs[0] in weights:
                implied += [(outputs[0], v) for v in (*outputs[1:], *self.inputs(i))]
                implied += [(v, outputs[0]) for v in outputs[1:]]
        found = minimum_cut(
            weights, arcs, set(group), sinks, late=False, implied=implied
        )
        moved = {i for i in cone if self.placed.nodes[i].outputs[0] in found.before}
        return moved, _nbytes(group) - _nbytes(found.vertices)


def _nbytes(variables: Iterable[Var]) -> int:
    return sum(int(var.aval.nbytes) for var in variables)
