"""Where items of a graph go in a picture: groups that fold, each in layers.

Every scope is a group. What a group holds is laid out by itself, whatever in it is
folded: first *layers*, so that edges point down, then an order within each layer by the
mean place of the neighbours (Sugiyama, Tagawa and Toda 1981), swept a few times. How
large a child is only moves the layers apart; so the page moves things, and this module
has decided about their order once. A group of too many children is cut into parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fxflow.viz.walk import CONSTANT, Item

#: Children of a group at most: what one can look at, and a browser draw at once.
_MOST = 60
#: Children of a part at least, but for the last.
_LEAST = 20
#: What comes into a group, or leaves it, of which each is drawn; more are counted.
_BRIDGES = 10
_SWEEPS = 4
#: Layers that an edge goes around things in; longer ones are drawn straight.
_LONGEST = 8

Edge = tuple[int, int, list[str]]  # from, to, the types of what flows


@dataclass
class ScopeGroup:
    """A scope, or the whole graph.

    Attributes:
      name: the last part of its path.
      path: of its scope; parts of one that was cut share it.
      children: items by index, groups, and bridges to what is outside.
      rows: for each layer, places in `children`; -1-n is a bend of an edge.
      edges: between places in `children`.
      bends: for each edge the numbers n of its bends.
      items: indices of all items inside.
    """

    name: str
    path: tuple[str, ...]
    children: list[Any] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    bends: list[list[int]] = field(default_factory=list)
    items: list[int] = field(default_factory=list)


@dataclass
class Bridge:
    """What comes into a group, or leaves it.

    Attributes:
      incoming: which of the two.
      item: that gives the value, or the first that takes it; -1 for the rest of many.
      label: what is shown.
    """

    incoming: bool
    item: int
    label: str


def grouped(items: Sequence[Item], name: str) -> ScopeGroup:
    """Returns the groups of a graph, laid out.

    Args:
      items: of the graph, as `walk` lists them.
      name: of the whole.
    """
    root = ScopeGroup(name, ())
    found: dict[tuple[str, ...], ScopeGroup] = {(): root}
    for index, item in enumerate(items):
        if item.operation == CONSTANT:
            continue
        group = root
        for depth in range(1, len(item.path)):
            path = item.path[:depth]
            inner = found.get(path)
            if inner is None:
                inner = found[path] = ScopeGroup(path[-1], path)
                group.children.append(inner)
            group = inner
        group.children.append(index)
    _cut(root)
    _Layout(items, root).run()
    return root


def _cut(group: ScopeGroup) -> None:
    """Puts children of large groups into parts, in the order of the program."""
    for child in group.children:
        if isinstance(child, ScopeGroup):
            _cut(child)
    while len(group.children) > _MOST:
        size = min(_MOST, max(_LEAST, -(-len(group.children) // _MOST)))
        parts: list[Any] = []
        for start in range(0, len(group.children), size):
            part = group.children[start : start + size]
            name = f"part {start // size + 1}"
            parts.append(ScopeGroup(name, group.path, part))
        group.children = parts


class _Layout:
    """Fills in edges, bridges and layers of all groups."""

    def __init__(self, items: Sequence[Item], root: ScopeGroup) -> None:
        self.items, self.root = items, root
        #: For each item the groups around it, the outermost first.
        self.around: dict[int, list[ScopeGroup]] = {}
        self.place: dict[int, dict[int, int]] = {}  # group id -> item -> child
        self.bridges: dict[tuple[int, bool], int] = {}  # how many a group has

    def run(self) -> None:
        self._index(self.root, [])
        self._edges()
        stack = [self.root]
        while stack:
            group = stack.pop()
            _layer(group)
            stack += [
                child for child in group.children if isinstance(child, ScopeGroup)
            ]

    def _index(self, group: ScopeGroup, around: list[ScopeGroup]) -> None:
        inside = [*around, group]
        place = self.place[id(group)] = {}
        for number, child in enumerate(group.children):
            if isinstance(child, ScopeGroup):
                self._index(child, inside)
                within = child.items
            else:
                self.around[child] = inside
                within = [child]
            group.items += within
            place.update(dict.fromkeys(within, number))

    def _edges(self) -> None:
        edges: dict[int, dict[tuple[int, int], list[str]]] = {}
        bridges: dict[tuple[int, bool, int], int] = {}
        for index, item in enumerate(self.items):
            for source, output in item.inputs:
                if source not in self.around or index not in self.around:
                    continue
                label = self.items[source].types[output]
                self._edge(source, index, label, edges, bridges)
        for group in self._groups():
            found = edges.get(id(group), {})
            group.edges = [(a, b, labels) for (a, b), labels in found.items()]

    def _groups(self) -> list[ScopeGroup]:
        found, stack = [], [self.root]
        while stack:
            group = stack.pop()
            found.append(group)
            stack += [
                child for child in group.children if isinstance(child, ScopeGroup)
            ]
        return found

    def _edge(
        self,
        source: int,
        target: int,
        label: str,
        edges: dict[int, dict[tuple[int, int], list[str]]],
        bridges: dict[tuple[int, bool, int], int],
    ) -> None:
        """Adds an edge to the group that holds both, and bridges to those between."""
        above, below = self.around[source], self.around[target]
        shared = 0
        while shared < min(len(above), len(below)) and above[shared] is below[shared]:
            shared += 1

        def add(group: ScopeGroup, start: int, end: int) -> None:
            labels = edges.setdefault(id(group), {}).setdefault((start, end), [])
            labels.append(label)

        common = above[shared - 1]
        place = self.place[id(common)]
        add(common, place[source], place[target])
        for group in below[shared:]:
            bridge = self._bridge(group, True, source, source, bridges)
            add(group, bridge, self.place[id(group)][target])
        for group in above[shared:]:
            bridge = self._bridge(group, False, source, target, bridges)
            add(group, self.place[id(group)][source], bridge)

    def _bridge(
        self,
        group: ScopeGroup,
        incoming: bool,
        source: int,
        shown: int,
        bridges: dict[tuple[int, bool, int], int],
    ) -> int:
        key = id(group), incoming, source
        known = bridges.get(key)
        if known is not None:
            return known
        count = self.bridges[id(group), incoming] = (
            self.bridges.get((id(group), incoming), 0) + 1
        )
        if count > _BRIDGES:  # all further ones are one
            rest = id(group), incoming, -1
            if rest not in bridges:
                group.children.append(Bridge(incoming, -1, "more"))
                bridges[rest] = len(group.children) - 1
            return bridges[rest]
        item = self.items[shown]
        name = item.label or item.path[-1]
        group.children.append(Bridge(incoming, shown, name))
        bridges[key] = len(group.children) - 1
        return bridges[key]


# -- layers ----------------------------------------------------------------------------


def _layer(group: ScopeGroup) -> None:
    """Puts the children of a group in layers and orders them."""
    count = len(group.children)
    edges = [(a, b) for a, b, _ in group.edges if a != b]
    edges = _without_cycles(count, edges)
    level = _levels(group, count, edges)
    rows: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for child in range(count):
        rows[level[child]].append(child)
    # Edges over several layers get a bend in each, and go around what is there.
    group.bends = []
    up: dict[int, list[int]] = {}
    down: dict[int, list[int]] = {}

    def connect(a: int, b: int) -> None:
        down.setdefault(a, []).append(b)
        up.setdefault(b, []).append(a)

    total = 0
    for a, b, _ in group.edges:
        bends: list[int] = []
        first, last = (a, b) if level[a] <= level[b] else (b, a)
        before = first
        near = level[last] - level[first] <= _LONGEST
        for row in range(level[first] + 1, level[last]) if near else ():
            bends.append(total)
            rows[row].append(-1 - total)
            connect(before, -1 - total)
            before = -1 - total
            total += 1
        if a != b:
            connect(before, last)
        group.bends.append(bends if first == a else bends[::-1])
    group.rows = _ordered(rows, up, down)


def _without_cycles(count: int, edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns edges with those reversed that close a cycle (of folded scopes)."""
    after: dict[int, list[int]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    state = [0] * count  # 1: on the way down, 2: done
    kept: list[tuple[int, int]] = []
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(after.get(root, ())))]
        while stack:
            node, rest = stack[-1]
            for other in rest:
                kept.append((other, node) if state[other] == 1 else (node, other))
                if state[other] == 0:
                    state[other] = 1
                    stack.append((other, iter(after.get(other, ()))))
                    break
            else:
                state[node] = 2
                stack.pop()
    return kept


def _levels(group: ScopeGroup, count: int, edges: list[tuple[int, int]]) -> list[int]:
    """Returns the layer of each child: below all that it reads, and no deeper."""
    after: dict[int, list[int]] = {}
    waiting = [0] * count
    for a, b in edges:
        after.setdefault(a, []).append(b)
        waiting[b] += 1
    level = [0] * count
    ready = [child for child in range(count) if not waiting[child]]
    order = []
    while ready:
        child = ready.pop()
        order.append(child)
        for other in after.get(child, ()):
            level[other] = max(level[other], level[child] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    # What reads nothing comes just before its reader, not all in the first layer.
    reads = {b for _, b in edges}
    for child in reversed(order):
        below = after.get(child)
        if below and child not in reads:
            level[child] = min(level[other] for other in below) - 1
    last = max(level, default=0)
    for child, what in enumerate(group.children):
        if isinstance(what, Bridge) and not what.incoming:
            level[child] = max(last, level[child])
    return level


def _ordered(
    rows: list[list[int]], up: dict[int, list[int]], down: dict[int, list[int]]
) -> list[list[int]]:
    place = {child: float(i) for row in rows for i, child in enumerate(row)}

    def sweep(row: list[int], neighbours: dict[int, list[int]]) -> None:
        def middle(child: int) -> float:
            near = neighbours.get(child)
            return sum(place[n] for n in near) / len(near) if near else place[child]

        row.sort(key=middle)
        # From 0 to 1, so that a short row is centred under a long one.
        for i, child in enumerate(row):
            place[child] = (i + 0.5) / len(row)

    for number in range(_SWEEPS):
        if number % 2:
            for row in reversed(rows):
                sweep(row, down)
        else:
            for row in rows:
                sweep(row, up)
    return rows
