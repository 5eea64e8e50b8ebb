"""Solving: the choices of least cost under a limit of memory.

The linear program has a variable for each choice of each decision and for each joint
choice of a table; joint choices agree with the decisions they are about, and bytes in
memory are within the limit. Its optimum is a lower bound, and mostly integral. If it is
not, each decision takes its largest choice, and local search goes on from there; if
that is above the bound, also from the undivided program and from what a search for
integers finds in a second. Memory is counted at the moments at which solutions so far
needed the most.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fxflow.dataflow.sharding.model import Choices, Masks, Model, Table

#: How often the moment of the highest peak is added to those that are limited.
MAX_MOMENTS = 6
#: Where rounding costs more than this fraction of the bound, integers are searched for,
#: with this limit of seconds.
GAP, SEARCH_SECONDS = 0.005, 1.0
#: Passes of local search over all decisions.
MAX_PASSES = 20


@dataclass
class Solution:
    """The choices for a program.

    Attributes:
      masks: the mesh axes of each decision.
      seconds: predicted.
      bound: a lower bound of the seconds of any choice.
      memory: bytes on a device at the peak, predicted.
      moment: the operation at the peak.
      least: of the bytes of any choice, if the limit cannot be kept; else None.
    """

    masks: dict[int, int]
    seconds: float
    bound: float
    memory: float
    moment: int
    least: float | None = None


class _Tables:
    """Tables of joint choices, each within as few others as possible."""

    def __init__(self, tables: Mapping[Choices, Table]) -> None:
        self.tables: dict[Choices, Table] = {}
        for key in sorted(tables, key=len, reverse=True):
            large = next((k for k in self.tables if set(key) <= set(k)), None)
            if large is None:
                self.tables[key] = dict(tables[key])
                continue
            at = [large.index(d) for d in key]
            small, result = tables[key], {}
            for chosen, cost in self.tables[large].items():
                more = small.get(tuple(chosen[i] for i in at))
                if more is not None:
                    result[chosen] = cost + more
            self.tables[large] = result
        self.of: dict[int, list[Choices]] = defaultdict(list)
        for key in self.tables:
            for d in key:
                self.of[d].append(key)

    def within(self, decisions: Choices) -> Choices | None:
        """Returns the key of a table that has all of some decisions."""
        some = self.of.get(decisions[0], ())
        return next((k for k in some if set(decisions) <= set(k)), None)

    def cost(self, masks: Masks, keys: Iterable[Choices] | None = None) -> float:
        """Returns the sum of tables at a choice; infinite if it is impossible."""
        total = 0.0
        for key in self.tables if keys is None else keys:
            total += self.tables[key].get(tuple([masks[d] for d in key]), math.inf)
        return total


@dataclass
class _Memory:
    """The bytes at a moment."""

    constant: float
    tables: dict[Choices, Table]

    def at(self, masks: Masks) -> float:
        total = self.constant
        for key, table in self.tables.items():
            total += table[tuple([masks[d] for d in key])]
        return total


@dataclass
class _Problem:
    model: Model
    costs: _Tables
    limit: float
    moments: list[_Memory] = field(default_factory=list)

    @property
    def free(self) -> list[int]:
        return [d for d, c in self.model.choices.items() if len(c) > 1]

    def add_moment(self, number: int) -> None:
        moment = self.model.moment(number)
        memory = _Memory(*self.model.memory_tables(moment))
        # A linear program needs each table of bytes within one of seconds.
        for key in memory.tables:
            if self.costs.within(key) is None:
                joint = dict.fromkeys(self.model.joint_choices(key, [key]), 0.0)
                self.costs = _Tables({**self.costs.tables, key: joint})
        self.moments.append(memory)

    def excess(self, masks: Masks) -> float:
        """Returns the bytes above the limit at the moments that are counted."""
        most = max((m.at(masks) for m in self.moments), default=0.0)
        return max(0.0, most - self.limit)


def solve(model: Model, limit: float = math.inf) -> Solution:
    """Returns the choices of least predicted seconds.

    Args:
      model: of a program on a mesh.
      limit: of bytes on a device.

    Returns:
      The best solution that was found. If no choice keeps the limit, the one of the
      fewest bytes, with `least` set.
    """
    problem = _Problem(model, _Tables(model.tables), limit)
    seen: set[int] = set()
    while True:
        bound, weights = _relaxed(problem)
        if weights is None:
            return _least(problem)
        masks = _best(problem, weights, bound)
        peak, moment = model.peak(masks)
        if peak <= limit or moment in seen or len(seen) >= MAX_MOMENTS:
            break
        seen.add(moment)
        problem.add_moment(moment)
    if peak > limit * (1 + 1e-9) or problem.excess(masks):
        return _least(problem)
    seconds = model.constant + problem.costs.cost(masks)
    bound = min(model.constant + bound, seconds)
    return Solution(masks, seconds, bound, peak, moment)


def _least(problem: _Problem) -> Solution:
    """Returns the choices of the fewest bytes."""
    model = problem.model
    masks = dict.fromkeys(model.choices, 0) | model.fixed
    for _ in range(MAX_MOMENTS):
        _, moment = model.peak(masks)
        if len(problem.moments) <= MAX_MOMENTS:
            problem.add_moment(moment)
        _, weights = _relaxed(problem, by_bytes=True)
        if weights is None:
            break
        found = _search(problem, _rounded(problem, weights), by_bytes=True)
        if model.peak(found)[0] >= model.peak(masks)[0] * (1 - 1e-6):
            break
        masks = found
    peak, moment = model.peak(masks)
    seconds = model.constant + problem.costs.cost(masks)
    return Solution(masks, seconds, 0.0, peak, moment, peak)


# -- the linear program ----------------------------------------------------------------

Weights = dict[tuple[int, int], float]


def _relaxed(
    problem: _Problem, *, by_bytes: bool = False, integral: bool = False
) -> tuple[float, Weights | None]:
    """Solves the linear program.

    Args:
      problem: the tables, and the limit.
      by_bytes: whether to minimize the bytes in memory instead.
      integral: whether to search for choices that are 0 or 1, for a while.

    Returns:
      Its optimum, and the weight of each choice of each decision. None: there is no
      solution.
    """
    tables, free = problem.costs.tables, problem.free
    if not free:
        ok = not problem.excess(problem.model.fixed)
        return 0.0, {} if ok or by_bytes else None
    columns: dict[tuple[int, int], int] = {}
    for d in free:
        for mask in problem.model.choices[d]:
            columns[d, mask] = len(columns)
    start: dict[Choices, int] = {}
    count = len(columns)
    for key, table in tables.items():
        start[key] = count
        count += len(table)
    peak, count = count, count + 1
    cost = np.zeros(count)
    rows = _Rows()
    for d in free:
        rows.add([(columns[d, mask], 1.0) for mask in problem.model.choices[d]], 1.0)
    # Seconds are scaled to about 1, bytes likewise.
    values = [v for table in tables.values() for v in table.values()]
    scale = max((abs(v) for v in values), default=0.0) or 1.0
    for key, table in tables.items():
        first = start[key]
        sums: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        for i, (chosen, seconds) in enumerate(table.items()):
            cost[first + i] = seconds / scale
            for d, mask in zip(key, chosen, strict=True):
                sums[d, mask].append((first + i, 1.0))
        for d in key:
            for mask in problem.model.choices[d]:
                row = sums.get((d, mask), [])
                rows.add([*row, (columns[d, mask], -1.0)], 0.0)
    limits = _Rows()
    unit = max([1.0, *(m.constant for m in problem.moments)])
    if math.isfinite(problem.limit):
        unit = max(unit, problem.limit)
    for moment in problem.moments:
        entries: dict[int, float] = defaultdict(float)
        for key, table in moment.tables.items():
            large = problem.costs.within(key)
            assert large is not None
            at = [large.index(d) for d in key]
            for i, chosen in enumerate(tables[large]):
                nbytes = table[tuple(chosen[j] for j in at)]
                entries[start[large] + i] += nbytes / unit
        if by_bytes:
            entries[peak] = -1.0
            limits.add(list(entries.items()), -moment.constant / unit)
        else:
            limit = (problem.limit - moment.constant) / unit
            limits.add(list(entries.items()), limit)
    if by_bytes:
        cost[:] *= 1e-9
        cost[peak] = 1.0
    optimize: Any = importlib.import_module("scipy.optimize")
    equal = optimize.LinearConstraint(rows.matrix(count), rows.values, rows.values)
    constraints = [equal]
    if limits.values:
        least = np.full(len(limits.values), -np.inf)
        matrix = limits.matrix(count)
        constraints.append(optimize.LinearConstraint(matrix, least, limits.values))
    kinds = np.zeros(count)
    if integral:
        kinds[list(columns.values())] = 1
    found = optimize.milp(
        cost,
        integrality=kinds,
        bounds=optimize.Bounds(0, np.inf),
        constraints=constraints,
        options={"time_limit": SEARCH_SECONDS} if integral else {},
    )
    if found.x is None:
        return math.inf, None
    weights = {key: float(found.x[column]) for key, column in columns.items()}
    return float(found.fun) * scale, weights


class _Rows:
    """The rows of a sparse matrix, and the right-hand side."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float]] = []
        self.values: list[float] = []

    def add(self, entries: Sequence[tuple[int, float]], value: float) -> None:
        row = len(self.values)
        self._entries += [(row, column, x) for column, x in entries]
        self.values.append(value)

    def matrix(self, columns: int) -> Any:
        if not self.values:
            return None
        sparse: Any = importlib.import_module("scipy.sparse")
        i, j, x = zip(*self._entries, strict=True)
        return sparse.csr_array((x, (i, j)), shape=(len(self.values), columns))


# -- from weights to choices -----------------------------------------------------------


def _rounded(problem: _Problem, weights: Weights) -> dict[int, int]:
    """Returns a possible choice near the weights: the largest first."""
    masks = dict(problem.model.fixed)
    left = set(problem.free)
    order = sorted(weights.items(), key=lambda item: -item[1])
    for (d, mask), _ in order:
        if d in left and _fits(problem, masks, d, mask):
            masks[d] = mask
            left.discard(d)
    for d in left:
        masks[d] = 0
    return masks


def _fits(problem: _Problem, masks: Masks, decision: int, mask: int) -> bool:
    """Returns whether a choice goes with those that are made."""
    for key in problem.costs.of.get(decision, ()):
        known = [
            (i, mask if d == decision else masks[d])
            for i, d in enumerate(key)
            if d == decision or d in masks
        ]
        table = problem.costs.tables[key]
        if not any(all(c[i] == m for i, m in known) for c in table):
            return False
    return True


def _best(problem: _Problem, weights: Weights, bound: float) -> dict[int, int]:
    """Returns the best of several local searches.

    Args:
      problem: the tables, and the limit.
      weights: that solve the linear program.
      bound: its optimum.
    """
    found = _search(problem, _rounded(problem, weights))
    constant = problem.model.constant
    excess, seconds = _rank(problem, found)
    if excess or seconds + constant > (bound + constant) * (1 + GAP):
        starts = [dict.fromkeys(problem.model.choices, 0) | problem.model.fixed]
        _, whole = _relaxed(problem, integral=True)
        if whole is not None:
            starts.append(_rounded(problem, whole))
        others = [_search(problem, start) for start in starts]
        found = min([found, *others], key=lambda masks: _rank(problem, masks))
    return found


def _rank(
    problem: _Problem, masks: Masks, *, by_bytes: bool = False
) -> tuple[float, float]:
    excess = problem.excess(masks)
    if by_bytes:
        excess = max((m.at(masks) for m in problem.moments), default=0.0)
    return excess, problem.costs.cost(masks)


def _search(
    problem: _Problem, masks: dict[int, int], *, by_bytes: bool = False
) -> dict[int, int]:
    """Changes one decision, or two that are used together, while that helps."""
    masks = dict(masks)
    best = _rank(problem, masks, by_bytes=by_bytes)
    tables = problem.costs
    pairs = {pair for key in tables.tables for pair in itertools.combinations(key, 2)}
    moves: list[Choices] = [*((d,) for d in problem.free), *sorted(pairs)]
    for _ in range(MAX_PASSES):
        improved = False
        for move in moves:
            keys = {key for d in move for key in tables.of.get(d, ())}
            old = tuple(masks[d] for d in move)
            before = tables.cost(masks, keys)
            for new in itertools.product(*(problem.model.choices[d] for d in move)):
                if new == old:
                    continue
                masks.update(zip(move, new, strict=True))
                after = tables.cost(masks, keys)
                seconds = best[1] - before + after
                if math.isfinite(after) and not math.isfinite(best[1]):
                    seconds = tables.cost(masks)
                rank = best
                if math.isfinite(after):
                    rank = _rank_after(problem, masks, seconds, by_bytes)
                if rank[0] < best[0] * (1 - 1e-12) or (
                    rank[0] <= best[0] and seconds < best[1] * (1 - 1e-9)
                ):
                    best, old, before, improved = rank, new, after, True
                masks.update(zip(move, old, strict=True))
        if not improved:
            break
    return masks


def _rank_after(
    problem: _Problem, masks: Masks, seconds: float, by_bytes: bool
) -> tuple[float, float]:
    if by_bytes:
        return max((m.at(masks) for m in problem.moments), default=0.0), seconds
    return problem.excess(masks), seconds
