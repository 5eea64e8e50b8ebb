"""Placement by cost: where each operation runs so that a step ends soonest.

Operations become groups (`groups`), groups are assigned to devices (`assignment`), and
consecutive groups of a device become fragments, as long as no other device waits for
the first of them. Scopes are constraints: a whole one pins its operations, a part of a
device's name leaves the devices that it fits.

Cheap operations of arguments alone are not placed here: they follow their uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays.aval import ArrayType
from fxflow.core.ir.graph import Graph, Node, Var, subgraphs
from fxflow.core.source import describe
from fxflow.dataflow.assignment import (
    EFFORT,
    INF,
    Assignment,
    Problem,
    assign,
    lower_bound,
    scheduled,
)
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.groups import Items, grouped
from fxflow.dataflow.placing import (
    Decisions,
    Place,
    Places,
    calls_python,
    here_instead,
    is_sink,
    own_place,
)
from fxflow.dataflow.rates import kind_of, process_of
from fxflow.dataflow.scopes import Beside, DeviceSpec, Where
from fxflow.dataflow.tasks.devices import TaskPlace
from fxflow.dataflow.work import Work
from fxflow.errors import PlacementError
from fxflow.lax.callbacks import PythonCallback

#: Operations of less than this part of all work are not placed alone.
_LEAST = 0.003


class Estimate(NamedTuple):
    """What the model says about a placement.

    Attributes:
      decisions: where the nodes of the graph run.
      groups: how many groups were assigned.
      bound: seconds below which no assignment of the groups can end.
      seconds: of a step, by the groups, with one start of a program.
      alone: seconds on the best device alone, with what scopes pin elsewhere; infinite
        if it does not fit.
      fallback: that placement.
      refusal: the error that says what does not fit, or None.
    """

    decisions: Decisions
    groups: int
    bound: float
    seconds: float
    alone: float
    fallback: Decisions
    refusal: PlacementError | None = None


def decided(
    graph: Graph,
    places: Places,
    arg_types: Sequence[ArrayType],
    costs: Costs,
    effort: int = EFFORT,
) -> Estimate:
    """Decides where the operations of a graph run.

    Args:
      graph: with its calls written out.
      places: the devices, and what labels mean.
      arg_types: of the graph's inputs.
      costs: of operations and transfers.
      effort: of the search; see `assign`.

    Raises:
      PlacementError: a scope names no device.
    """
    model = _Model(graph, places, arg_types, costs)
    best: tuple[tuple[float, float], Problem, Assignment] | None = None
    for busy in model.widths():
        problem = model.problem(busy)
        found = assign(problem, effort)
        if best is None or found.key < best[0]:
            best = found.key, problem, found
    assert best is not None
    _, problem, found = best
    alone = model.alone()
    fits = not alone.overflow
    if fits and found.seconds > alone.seconds * (1 - model.error):
        # The gain may be the model's error.
        found, problem = alone, model.problem(1, every=True)
    # Assignments leave out what starting programs takes; the first has to be started.
    start = min(model.starts)
    bound = min(model.bound(), found.seconds) + start
    decisions = model.decisions(problem, found)
    fallback = model.decisions(model.problem(1, every=True), alone)
    return Estimate(
        decisions,
        len(found.where),
        bound,
        found.seconds + start,
        alone.seconds + start if fits else INF,
        fallback if fits else decisions,
        model.refusal(problem, found) if found.overflow else None,
    )


class _Model:
    """The groups of a graph, and what they take on each place."""

    def __init__(
        self,
        graph: Graph,
        places: Places,
        arg_types: Sequence[ArrayType],
        costs: Costs,
    ) -> None:
        self.graph, self.costs = graph, costs
        # More devices than operations are of no use.
        given = list(dict.fromkeys(places.devices))[: max(32, len(graph.nodes))]
        self.places: list[Place] = [places.of_device(d) for d in given]
        costs.require_rates_of(place.device for place in self.places)
        self._candidates = len(self.places)
        self._has_tasks = any(type(place) is TaskPlace for place in self.places)
        self.error = max(costs.error(p.device) for p in self.places)
        masks, ties = self._constraints(places)
        kinds = list(dict.fromkeys(kind_of(p.device) for p in self.places))
        devices = {kind_of(p.device): p.device for p in reversed(self.places)}
        self.kinds = [kinds.index(kind_of(p.device)) for p in self.places]
        seconds = [costs.node_seconds(graph, devices[kind]) for kind in kinds]
        self.starts = [costs.of(p.device).start for p in self.places]
        self._problems: dict[Any, Problem] = {}
        self._group(masks, ties, seconds, arg_types)

    def _constraints(self, places: Places) -> tuple[list[int], list[int]]:
        """Returns the places of each node as bits, and what must be together."""
        nodes = self.graph.nodes
        every = (1 << len(self.places)) - 1
        number = {place: i for i, place in enumerate(self.places)}
        maker: dict[Any, int] = {}
        ties = _Ties(len(nodes))
        known: dict[Any, Place | int] = {}
        effect = -1
        masks = []
        # Tasks have no Python of the user's.
        here = self._number(number, here_instead()) if self._has_tasks else -1
        partly: list[int] = []
        beside: list[Var] = []

        def resolved(where: Where, node: Node) -> Place | None:
            if isinstance(where, Beside):
                beside.append(where.var)
                return None
            found = known.get(where)
            if found is None:
                try:
                    found = known[where] = self._meaning(where, places, number)
                except PlacementError as error:
                    line = describe(node.source)
                    raise PlacementError(f"{error} ({line})") from None
            if isinstance(found, int):
                partly.append(found)
                return None
            return found

        for i, node in enumerate(nodes):
            mask = every
            beside.clear()
            partly.clear()
            if node.scope or node.primitive.name in _STATING or subgraphs(node.params):
                place = own_place(node, resolved, [], False)
                if place is not None:
                    mask = 1 << self._number(number, place)
                elif partly:
                    mask = partly[-1]
                for var in beside:
                    if var in maker:
                        ties.join(maker[var], i)
            if here >= 0 and (
                (mask == every and calls_python(node))
                or (is_sink(node) and self._in_tasks(mask))
            ):
                mask = 1 << here
            if node.effects:
                if effect >= 0:
                    ties.join(effect, i)
                effect = i
            masks.append(mask)
            for var in node.outputs:
                maker[var] = i
        # What is tied together may be where all of it may be.
        together: dict[int, int] = {}
        for i, mask in enumerate(masks):
            root = ties.root(i)
            if root != i or ties.size[root] > 1:
                together[root] = together.get(root, -1) & mask
        possible = [root for root, mask in together.items() if mask]
        numbers = {root: n for n, root in enumerate(possible)}
        found = []
        for i in range(len(masks)):
            root = ties.root(i)
            if together.get(root):
                masks[i] = together[root]
            found.append(numbers.get(root, -1))
        return masks, found

    def _in_tasks(self, mask: int) -> bool:
        """Returns whether all places of a mask are in tasks."""
        own = (p for d, p in enumerate(self.places) if mask >> d & 1)
        return all(type(place) is TaskPlace for place in own)

    def _number(self, number: dict[Place, int], place: Place) -> int:
        """Returns the number of a place, which becomes one of the places."""
        if place not in number:
            number[place] = len(self.places)
            self.places.append(place)
        return number[place]

    def _meaning(
        self, where: Where, places: Places, number: dict[Place, int]
    ) -> Place | int:
        """Returns the place of a scope, or the places that a part of a name fits."""
        if type(where) is DeviceSpec and where.index is None:
            fitting = [
                p for p in self.places[: self._candidates] if _fits(p.device, where)
            ]
            if fitting:
                return sum(1 << number[p] for p in fitting)
        return places.place(where)

    def _group(
        self,
        masks: list[int],
        ties: list[int],
        seconds: list[list[float]],
        arg_types: Sequence[ArrayType],
    ) -> None:
        graph, nodes = self.graph, self.graph.nodes
        every = (1 << self._candidates) - 1
        total = sum(map(min, zip(*seconds, strict=True)))
        tiny = max(self.starts[0], self._latency(self.places[: self._candidates]))
        least = max(tiny, _LEAST * total)
        followed: dict[Var, float] = {}  # the work that leads to what follows its use
        maker: dict[Var, int] = {}
        items, work = Items([], [], [], [], [], []), Work()
        item_of: list[int] = []
        for i, node in enumerate(nodes):
            own = [s[i] for s in seconds]
            weight = sum(own) / len(own)
            before = {
                item_of[maker[a]]: None
                for a in node.inputs
                if type(a) is Var and a in maker and item_of[maker[a]] >= 0
            }
            behind = weight + sum(
                followed[a] for a in node.inputs if type(a) is Var and a in followed
            )
            follows = (
                not before
                and behind < tiny
                and masks[i] == every
                and ties[i] < 0
                and not subgraphs(node.params)
                and not node.effects
                and node.primitive.name != PythonCallback.name
            )
            for var in node.outputs:
                maker[var] = i
            if follows:
                item_of.append(-1)
                followed.update(dict.fromkeys(node.outputs, behind))
                continue
            item_of.append(len(items.seconds))
            items.seconds.append(weight)
            items.preds.append(list(before))
            items.masks.append(masks[i])
            items.kinds.append(own.index(min(own)))
            items.ties.append(ties[i])
            held = [a for a in node.inputs if type(a) is Var and a not in maker]
            items.nbytes.append(float(work.nbytes(held) + work.nbytes(node.outputs)))
        limits = [self.costs.memory(p.device) for p in self.places]
        self.capacity = [float(m) if m else INF for m in limits]
        number = grouped(items, least, room=min(self.capacity) / 4)
        self.group_of = [-1 if item < 0 else number[item] for item in item_of]
        count = max(self.group_of, default=-1) + 1
        self._masks = [-1] * count
        self._sums = [[0.0] * count for _ in seconds]
        self._calls = [[0.0] * count for _ in seconds]
        tied: dict[int, set[int]] = defaultdict(set)
        values: dict[tuple[Var, int], None] = {}
        self.sizes, self.kept = [0.0] * count, [False] * count
        arguments: dict[Var, dict[int, None]] = {}
        for i, node in enumerate(nodes):
            g = self.group_of[i]
            if g < 0:
                continue
            self._masks[g] &= masks[i]
            sums = (
                self._calls
                if node.primitive.name == PythonCallback.name
                else self._sums
            )
            for row, each in zip(sums, seconds, strict=True):
                row[g] += each[i]
            if ties[i] >= 0:
                tied[ties[i]].add(g)
            for atom in node.inputs:
                if type(atom) is not Var:
                    continue
                if atom not in maker:
                    arguments.setdefault(atom, {})[g] = None
                else:
                    source = self.group_of[maker[atom]]
                    if source >= 0 and source != g:
                        values[atom, g] = None
        leaving = {var for var, _ in values}
        for atom in graph.outputs:
            if type(atom) is Var and atom in maker:
                g = self.group_of[maker[atom]]
                if g >= 0:
                    self.kept[g] = True
                    leaving.add(atom)
        for var in leaving:
            g = self.group_of[maker[var]]
            self.sizes[g] += float(var.aval.nbytes)
        self.values = [
            (self.group_of[maker[var]], g, float(var.aval.nbytes)) for var, g in values
        ]
        self._arguments = arguments
        self.arguments = [
            (float(v.aval.nbytes), list(users)) for v, users in arguments.items()
        ]
        self.tied = [sorted(groups) for groups in tied.values() if len(groups) > 1]
        self.ready = self._ready(arguments, arg_types)

    def _latency(self, places: Sequence[Place]) -> float:
        """Returns the seconds that sending takes at least."""
        if len(places) < 2:
            return 0.0
        return self.costs.transfer_seconds(0, places[0], places[1])

    def _ready(
        self, arguments: dict[Var, dict[int, None]], types: Sequence[ArrayType]
    ) -> list[list[float]]:
        """Returns when the committed arguments of each group are at each place."""
        found = [[0.0] * len(self.places) for _ in self._masks]
        type_of = dict(zip(self.graph.inputs, types, strict=True))
        for var, users in arguments.items():
            given = type_of[var]
            if not given.committed:
                continue
            for d, place in enumerate(self.places):
                if place is given.placement:
                    continue
                at = self.costs.transfer_seconds(
                    var.aval.nbytes, given.placement, place
                )
                for g in users:
                    found[g][d] = max(found[g][d], at)
        return found

    # -- problems ----------------------------------------------------------------------

    def widths(self) -> list[int]:
        """Returns how many devices of a process to try that share its cores."""
        at_once = min(self.costs.of(p.device).at_once for p in self.places)
        sharing: dict[Any, int] = defaultdict(int)
        for place in self.places[: self._candidates]:
            sharing[process_of(place.device), place.platform] += 1
        most = max(sharing.values())
        if at_once >= most:
            return [most]
        return sorted({max(1, int(at_once)), most})

    def problem(self, width: int, *, every: bool = False) -> Problem:
        """Returns the problem with at most `width` devices of a process.

        Args:
          width: number of devices that share the cores of a process.
          every: whether all devices are there, and do not slow each other down: no
            assignment can be better.
        """
        taken: dict[Any, int] = defaultdict(int)
        use, slow = [], []
        for d, place in enumerate(self.places):
            rates = self.costs.of(place.device)
            key = process_of(place.device), place.platform
            taken[key] += 1
            pinned = d >= self._candidates
            shared = rates.at_once < INF
            use.append(every or pinned or not shared or taken[key] <= width)
            slow.append(1.0 if every else rates.slowdown(width))
        known = *use, *slow
        if known not in self._problems:
            self._problems[known] = self._problem_on(use, slow)
        return self._problems[known]

    def _problem_on(self, use: Sequence[bool], slow: Sequence[float]) -> Problem:
        """Returns the problem on some devices, each slowed down by a factor."""
        count = len(self._masks)
        seconds = []
        for g in range(count):
            mask = self._masks[g]
            allowed = [bool(mask >> d & 1) for d in range(len(self.places))]
            narrow = any(a and u for a, u in zip(allowed, use, strict=True))
            row = []
            for d, ok in enumerate(allowed):
                if not ok or (narrow and not use[d]):
                    row.append(INF)
                    continue
                k = self.kinds[d] if d < len(self.kinds) else 0
                share = len(self.places[d].devices)
                work = self._sums[k][g] * slow[d] / share
                row.append(work + self._calls[k][g])
            seconds.append(row)
        devices = range(len(self.places))
        latency = [[self._seconds(0, a, b) for b in devices] for a in devices]
        per_byte = [
            [(self._seconds(1e6, a, b) - latency[a][b]) / 1e6 for b in devices]
            for a in devices
        ]
        return Problem(
            seconds,
            self.values,
            latency,
            per_byte,
            self.sizes,
            self.kept,
            self.arguments,
            self.capacity,
            self.tied,
            self.ready,
        )

    def _seconds(self, nbytes: float, a: int, b: int) -> float:
        if a == b:
            return 0.0
        return self.costs.transfer_seconds(nbytes, self.places[a], self.places[b])

    def alone(self) -> Assignment:
        """Returns the best assignment to one device, but for what scopes pin."""
        problem = self.problem(1, every=True)
        order = problem.order()
        found = []
        for d in range(self._candidates):
            where = []
            for g in range(len(order)):
                allowed = problem.allowed(g)
                where.append(d if d in allowed else allowed[0])
            found.append(scheduled(problem, where, order))
        return min(found, key=lambda a: a.key)

    def bound(self) -> float:
        """Returns seconds below which no assignment of the groups can end."""
        bound = lower_bound(self.problem(1, every=True))
        rates = [self.costs.of(p.device) for p in self.places]
        owners = {process_of(p.device) for p in self.places}
        at_once = min(r.at_once for r in rates)
        if len(owners) == 1 and at_once < len(self.places):
            # The devices share the cores of the process.
            work = sum(map(min, zip(*self._sums, strict=True)))
            bound = max(bound, work / at_once)
        return bound

    def decisions(self, problem: Problem, found: Assignment) -> Decisions:
        """Returns where nodes run by an assignment of their groups."""
        phases = _phases(problem, found, self.starts)
        where = [None if g < 0 else self.places[found.where[g]] for g in self.group_of]
        return Decisions(where, [0 if g < 0 else phases[g] for g in self.group_of])

    def refusal(self, problem: Problem, found: Assignment) -> PlacementError:
        """Returns the error for values that do not fit, which names the largest."""
        need = problem.need(found.where, found.order)
        over = [n - most for n, most in zip(need, problem.capacity, strict=True)]
        d = over.index(max(over))
        groups = {g for g, where in enumerate(found.where) if where == d}
        told: list[tuple[int, str]] = []
        for var, users in self._arguments.items():
            if not groups.isdisjoint(users):
                node = next(n for n in self.graph.nodes if var in n.inputs)
                line = f"the argument {var.aval}, used at {describe(node.source)}"
                told.append((int(var.aval.nbytes), line))
        for node, g in zip(self.graph.nodes, self.group_of, strict=True):
            if g in groups:
                for var in node.outputs:
                    line = f"{node.primitive.name} {var.aval}, {describe(node.source)}"
                    told.append((int(var.aval.nbytes), line))
        nbytes, largest = max(told)
        return PlacementError(
            f"the program does not fit: {self.places[d].device} has "
            f"{int(problem.capacity[d]):,} bytes of memory and would need "
            f"{int(need[d]):,}; its largest value is {largest} ({nbytes:,} bytes). Use "
            "more devices, recompute with fxflow.checkpoint, or divide the value over "
            "a mesh"
        )


#: Operations that say where they run.
_STATING = ("device_put",)


def _fits(device: Any, spec: DeviceSpec) -> bool:
    """Returns whether a device is one that a part of a name means."""
    kind = {"cuda": "gpu", "rocm": "gpu"}.get(spec.kind or "", spec.kind)
    if kind is not None and device.platform != kind:
        return False
    own = getattr(device, "spec", None)
    if own is not None:
        job = spec.job is None or spec.job == own.job
        return job and (spec.task is None or spec.task == own.task)
    if spec.job is not None:
        return False
    return spec.task is None or device.process_index == spec.task


class _Ties:
    """Sets of nodes that must be on one device."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))
        self.size = [1] * count

    def root(self, i: int) -> int:
        while self._above[i] != i:
            self._above[i] = self._above[self._above[i]]
            i = self._above[i]
        return i

    def join(self, i: int, j: int) -> None:
        i, j = self.root(i), self.root(j)
        if i != j:
            self._above[j] = i
            self.size[i] += self.size[j]


def _phases(problem: Problem, found: Assignment, starts: Sequence[float]) -> list[int]:
    """Returns the fragment of each group, numbered in an order that can be run.

    A group goes into the fragment that runs before it on its device if all that it
    takes from other devices is there when the fragment starts, and no other device
    needs a result of the fragment before the group ends, or sooner than another program
    could be started.
    """
    where, start = found.where, found.start
    end = [s + problem.seconds[g][where[g]] for g, s in enumerate(start)]
    # The latest value from another device.
    arrives = [row[d] for row, d in zip(problem.ready, where, strict=True)]
    needed = [INF] * len(where)  # the first use of a result elsewhere
    for u, v, nbytes in problem.values:
        a, b = where[u], where[v]
        if a != b:
            sent = problem.latency[a][b] + nbytes * problem.per_byte[a][b]
            arrives[v] = max(arrives[v], end[u] + sent)
            needed[u] = min(needed[u], start[v] - sent)
    begun: dict[int, tuple[int, float, float]] = {}  # fragment, its start, first use
    fragment_of = [0] * len(where)
    first: list[tuple[float, int]] = []
    for position, g in enumerate(found.order):
        d = where[g]
        if d in begun:
            number, at, use = begun[d]
            tolerance = starts[d] if d < len(starts) else 0.0
            if arrives[g] <= at and end[g] <= use + tolerance:
                fragment_of[g] = number
                begun[d] = number, at, min(use, needed[g])
                continue
        number = len(first)
        first.append((start[g], position))
        begun[d] = number, start[g], needed[g]
        fragment_of[g] = number
    order = sorted(range(len(first)), key=first.__getitem__)
    new = {old: rank + 1 for rank, old in enumerate(order)}
    return [new[f] for f in fragment_of]
