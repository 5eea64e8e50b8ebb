"""The best assignment there is, by mixed-integer programming: an oracle for tests."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from fxflow.dataflow.assignment import Problem


def random_problem(seed: int, most: int = 12, devices: int = 3) -> Problem:
    """A random acyclic graph of groups; the ratio of sending to working varies."""
    rng = random.Random(seed)
    count = rng.randint(3, most)
    ratio = rng.choice([0.1, 0.3, 1.0, 3.0])
    unlike = rng.random() < 0.5
    seconds = []
    for _ in range(count):
        base = rng.uniform(0.2, 2.0)
        seconds.append(
            [base * (rng.uniform(0.5, 2.0) if unlike else 1.0) for _ in range(devices)]
        )
    density = rng.uniform(0.15, 0.5)
    values = [
        (u, v, rng.uniform(0.2, 2.0) * ratio)
        for u, v in itertools.combinations(range(count), 2)
        if rng.random() < density
    ]
    apart = [[float(a != b) for b in range(devices)] for a in range(devices)]
    latency = [[0.05 * x for x in row] for row in apart]
    if rng.random() < 0.3:  # a group that a scope pins
        row = seconds[rng.randrange(count)]
        only = rng.randrange(devices)
        row[:] = [s if d == only else float("inf") for d, s in enumerate(row)]
    return Problem(seconds, values, latency, apart)


def optimum(problem: Problem, seconds: float = 60.0) -> tuple[float, float]:
    """The seconds of the best assignment found, and a proved lower bound.

    Links are taken to be equal between all devices.
    """
    count, devices = len(problem.seconds), problem.count
    between: dict[tuple[int, int], float] = {}
    for u, v, nbytes in problem.values:
        between[u, v] = between.get((u, v), 0.0) + nbytes
    sent = {
        (u, v): problem.latency[0][1] + n * problem.per_byte[0][1]
        for (u, v), n in between.items()
    }
    ahead = _descendants(count, between)
    pairs = [
        (u, v)
        for u, v in itertools.combinations(range(count), 2)
        if v not in ahead[u] and u not in ahead[v]
    ]
    number = itertools.count()
    x = [[next(number) for _ in range(devices)] for _ in range(count)]
    start = [next(number) for _ in range(count)]
    apart = {edge: next(number) for edge in sent}
    before = {pair: next(number) for pair in pairs}
    whole = next(number)
    total = next(number)
    rows: list[dict[int, float]] = []
    low: list[float] = []

    def at_least(row: dict[int, float], value: float) -> None:
        rows.append(row)
        low.append(value)

    finite = [[s if np.isfinite(s) else 0.0 for s in r] for r in problem.seconds]
    horizon = sum(max(r) for r in finite) + sum(sent.values())
    for g in range(count):
        at_least(dict.fromkeys(x[g], 1.0), 1.0)
        at_least(dict.fromkeys(x[g], -1.0), -1.0)
        ends = {whole: 1.0, start[g]: -1.0}
        at_least(ends | {x[g][d]: -finite[g][d] for d in range(devices)}, 0.0)
    for (u, v), c in sent.items():
        row = {start[v]: 1.0, start[u]: -1.0, apart[u, v]: -c}
        at_least(row | {x[u][d]: -finite[u][d] for d in range(devices)}, 0.0)
        for d in range(devices):
            at_least({apart[u, v]: 1.0, x[u][d]: -1.0, x[v][d]: 1.0}, 0.0)
    for (u, v), y in before.items():
        for d in range(devices):
            # On one device one comes before the other.
            for a, b, order in ((u, v, -horizon), (v, u, horizon)):
                row = {start[b]: 1.0, start[a]: -1.0, y: order}
                row |= {x[a][d]: -finite[a][d] - horizon, x[b][d]: -horizon}
                at_least(row, -2 * horizon - (horizon if a == u else 0.0))
    for d in range(devices):
        row = {whole: 1.0}
        at_least(row | {x[g][d]: -finite[g][d] for g in range(count)}, 0.0)
    matrix = np.zeros((len(rows), total))
    for i, row in enumerate(rows):
        for j, value in row.items():
            matrix[i, j] += value
    upper = np.ones(total)
    upper[start] = upper[whole] = horizon
    for g, d in itertools.product(range(count), range(devices)):
        if not np.isfinite(problem.seconds[g][d]):
            upper[x[g][d]] = 0
    integral = np.ones(total)
    integral[start] = integral[whole] = 0
    cost = np.zeros(total)
    cost[whole] = 1.0
    found: Any = milp(
        cost,
        constraints=LinearConstraint(matrix, lb=np.array(low)),
        integrality=integral,
        bounds=Bounds(np.zeros(total), upper),
        options={"time_limit": seconds},
    )
    best = float("inf") if found.x is None else float(found.fun)
    return best, float(found.mip_dual_bound)


def _descendants(count: int, edges: Any) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(count)]
    for u in reversed(range(count)):
        for a, b in edges:
            if a == u:
                found[u] |= {b} | found[b]
    return found
