"""Planning by cost: how long it takes, how good plans are, and how far it scales.

    python benchmarks/dataflow/planning.py          # all parts
    python benchmarks/dataflow/planning.py scale

`speed`: gradients of networks of 1,000 and 20,000 operations, placed on eight devices.
`quality`: eight models against the best of 1,000 random placements. `scale`: pipelines
of up to 1,000 devices on the virtual clock, against the law of 1F1B, `m / (m + p - 1)`.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "8")
sys.path.insert(0, str(Path(__file__).parents[2]))

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import Costs, Rates, by_cost
from fxflow.dataflow.assignment import scheduled
from fxflow.dataflow.placing import Places
from fxflow.dataflow.rates import Link
from fxflow.dataflow.schedules import SCHEDULES
from fxflow.lax.remat import CALLS, inlined
from tests.dataflow.models import MODELS, of

ROUNDS = 5


def costs() -> Costs:
    """As if each CPU device had a core of its own."""
    rates = Rates({"dot": 3e10, "elementwise": 2e9}, {"elementwise": 1e10})
    return Costs({"cpu cpu": rates}, {"cpu cpu": Link(1e-5, 1e10)})


def best(run: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The seconds of the fastest of several runs."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def branches(ws: Any, x: Any) -> Any:
    """Four chains of layers that meet at the end."""
    rows = []
    for i in range(4):
        h = x
        for w in ws[i::4]:
            h = fnp.tanh(h @ w + 0.1)
        rows.append(h)
    return fnp.mean(sum(rows[1:], rows[0]) ** 2)


def speed() -> None:
    """Times planning of graphs of two sizes."""
    print("| operations | groups | by scopes | by cost | compiling | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for layers in (140, 2800):
        args = [of(256, 256)] * layers, of(256, 256)
        f = fxflow.value_and_grad(branches)
        placed = dataflow.jit(f, place=costs())
        scoped = dataflow.jit(f)
        plan = placed.plan(*args)
        plain = best(lambda scoped=scoped, args=args: scoped.plan(*args))
        seconds = best(lambda placed=placed, args=args: placed.plan(*args))
        compiled = "-"
        ratio = "-"
        if layers < 1000:
            with fxflow.config.override(cache=False):
                lowered = fxflow.jit(f).lower(*args)
                took = best(lowered.compile, 2)
            compiled, ratio = f"{took:.2f} s", f"{seconds / took:.3f}"
        assert plan.estimate is not None
        print(
            f"| {len(plan.graph.nodes):,} | {plan.estimate.groups} | {plain:.3f} s | "
            f"{seconds:.3f} s | {compiled} | {ratio} |"
        )


def quality() -> None:
    """Compares plans with random ones, by the same model."""
    print("| model | groups | one device | best of 1,000 random | found | bound |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (loss, args) in MODELS.items():
        traced = dataflow.jit(fxflow.value_and_grad(loss)).trace(*args).arrays
        graph, places = inlined(traced.graph, CALLS), Places()
        found = by_cost.decided(graph, places, traced.arg_types, costs())
        model = by_cost._Model(graph, places, traced.arg_types, costs())
        problem = model.problem(model.widths()[-1])
        order, rng = problem.order(), random.Random(0)
        trials = (
            [rng.choice(problem.allowed(g)) for g in range(len(order))]
            for _ in range(1000)
        )
        by_chance = min(scheduled(problem, where, order).seconds for where in trials)
        by_chance += min(model.starts)
        times = (found.alone, by_chance, found.seconds, found.bound)
        row = " | ".join(f"{1e6 * t:,.0f} µs" for t in times)
        print(f"| {name} | {found.groups} | {row} |")


@dataclass(eq=False)
class Work:
    """A fragment of a pipeline."""

    index: int
    place: int
    level: int
    round: int
    kind: str
    after: tuple[int, ...]
    stage: int
    microbatch: int

    def describe(self) -> str:
        """Its action."""
        return f"{self.stage}{self.kind}{self.microbatch}"

    def takes(self, other: Any) -> str:
        """What it takes."""
        return other.describe()


def works(stages: int, rounds: int) -> list[Work]:
    """Forward and backward parts, of one and two seconds."""
    found = []
    for level in range(2 * stages):
        kind = "F" if level < stages else "B"
        stage = level if level < stages else 2 * stages - 1 - level
        for r in range(rounds):
            index = level * rounds + r
            after = [index - rounds] if level else []
            if kind == "B":
                after.append(stage * rounds + r)
            found.append(
                Work(index, stage, level, r, kind, tuple(sorted(set(after))), stage, r)
            )
    return found


def scale() -> None:
    """Orders pipelines of many devices, and compares with the law."""
    print("| devices | rounds | fragments | ordered in | efficiency | law | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rule = SCHEDULES["1f1b"]
    for p, m in ((8, 32), (64, 128), (250, 200), (1000, 50)):
        every = works(p, m)
        begin = time.perf_counter()
        timeline = rule.order(every, lambda w: 1.0 if w.kind == "F" else 2.0)
        took = time.perf_counter() - begin
        efficiency = 1 - timeline.bubble
        law = m / (m + p - 1)
        print(
            f"| {p:,} | {m:,} | {len(every):,} | {took:.2f} s | {efficiency:.4f} | "
            f"{law:.4f} | {efficiency / law:.4f} |"
        )


PARTS = {"speed": speed, "quality": quality, "scale": scale}


def main() -> None:
    """Prints a table for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="default: all")
    for name in parser.parse_args().parts or PARTS:
        PARTS[name]()
        print()


if __name__ == "__main__":
    main()
