"""Predicted against measured steps, and whether the faster of two plans is known.

    python benchmarks/dataflow/predictions.py

Ten programs, random graphs of operations on random devices, pinned by scopes. Most
operations sleep, so devices need no core each; some multiply matrices. The model is
calibrated, and learns from the measured steps of the first placement; then the step of
that one is predicted, and that of a second placement, which has never run.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "4")

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import on, replanning


def sleeper(seconds: float) -> Callable[[Any], Any]:
    """A host function that takes some seconds."""

    def wait(x: Any) -> Any:
        time.sleep(seconds)
        return np.asarray(x)

    return wait


class Graph:
    """A random program: for each operation what it does, and what it takes."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.count = rng.randint(6, 12)
        self.sleeps = [
            sleeper(rng.uniform(0.005, 0.03)) if rng.random() < 0.8 else None
            for _ in range(self.count)
        ]
        self.takes = [
            sorted({rng.randrange(i) for _ in range(rng.randint(1, 2))}) if i else []
            for i in range(self.count)
        ]

    def placed(self, where: list[int]) -> Callable[[Any], Any]:
        """The program with scopes."""

        def program(x: Any) -> Any:
            made: list[Any] = []
            for i, wait in enumerate(self.sleeps):
                with on(f"/device:cpu:{where[i]}"):
                    value = sum((made[j] for j in self.takes[i]), x)
                    if wait is None:
                        value = fnp.tanh(value @ value / 1000)
                    else:
                        value = fxflow.pure_callback(wait, value, value)
                    made.append(value)
            with on("/device:cpu:0"):
                return sum(made[1:], made[0])

        return program


def measured(step: Any, x: Any, runs: int) -> float:
    """The median seconds of a step."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        fxflow.block_until_ready(step(x))
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    """Prints a table, a program a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=10)
    parser.add_argument("--runs", type=int, default=15)
    args = parser.parse_args()
    dataflow.calibrate()
    print(
        "| program | predicted | measured | ratio | second: predicted | measured |",
        end="",
    )
    print(" ratio | order |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    within = ranked = 0
    for seed in range(args.programs):
        graph, rng = Graph(seed), random.Random(100 + seed)
        x = fnp.asarray(np.random.default_rng(0).normal(size=(96, 96)), "float32")
        costs = dataflow.Costs()
        row = []
        for _ in range(2):
            where = [rng.randrange(4) for _ in range(graph.count)]
            step = dataflow.jit(graph.placed(where), place=costs)
            if row:  # not from measured steps of its own
                predicted = step.plan(x).seconds
            for _ in range(replanning.FIRST[-1] + 1):
                step(x)
            if not row:
                predicted = step.plan(x).seconds
            row.append((predicted, measured(step, x, args.runs)))
        (p1, m1), (p2, m2) = row
        right = (p1 < p2) == (m1 < m2)
        within += abs(p1 / m1 - 1) <= 0.1
        ranked += right
        cells = [f"{seed}"]
        for p, m in row:
            cells += [f"{1e3 * p:.1f} ms", f"{1e3 * m:.1f} ms", f"{p / m:.3f}"]
        print("| " + " | ".join([*cells, "right" if right else "wrong"]) + " |")
    print(f"\nWithin 10 %: {within} of {args.programs}. Order: {ranked} right.")


if __name__ == "__main__":
    main()
