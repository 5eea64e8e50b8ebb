"""Pipelines of two stages on two cores: fxflow's, JAX's, PyTorch's, and one program.

    python benchmarks/dataflow/pipelines.py
    python benchmarks/dataflow/pipelines.py --models mlp --rounds 3

Two processes, pinned to a core each, compute the gradients of a batch in eight
microbatches. A pipeline of p = 2 stages and m = 8 microbatches takes at least
(m + p − 1) / (m p) of the time of one process on one core: 1.78 times as fast. The
systems take turns within each round; ratios are those of the minima.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent.resolve()
sys.path.insert(0, str(HERE.parent))

from pipeline_models import MICROBATCHES, SHAPES, STAGES  # noqa: E402
from run import environment, number  # noqa: E402

#: How many times as fast as one process two stages can be.
IDEAL = MICROBATCHES * STAGES / (MICROBATCHES + STAGES - 1)


class System(NamedTuple):
    """What is compared.

    Attributes:
      title: in the table.
      library: whose environment it runs in.
      cores: of each process.
    """

    title: str
    library: str
    cores: list[set[int]]


#: By name of the worker's system; the first is the one process.
SYSTEMS = {
    "whole": System("one process", "fxflow", [{0}]),
    "tasks": System("fxflow dataflow", "fxflow", [{0, 1}]),
    "spmd": System("fxflow `shard_map`", "fxflow", [{0}, {1}]),
    "jax": System("JAX `device_put`", "jax", [{0, 1}]),
    "torch": System("torch pipelining", "torch", [{0}, {1}]),
}
#: The least ratio to others.
BARS = {"ideal": 0.85, "spmd": 1.1, "jax": 1.2, "torch": 1.2}


class Workers:
    """The processes of a system, which make the same calls."""

    def __init__(self, name: str, system: System) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FXFLOW_NUM")}
        if system.library == "fxflow":
            kept["PYTHONPATH"] = str(HERE.parent.parent)
        if name == "jax":
            kept["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={STAGES}"
        self.processes = []
        for rank, cores in enumerate(system.cores):
            command = [environment(system.library), str(HERE / "pipelines_worker.py")]
            pinned = ["taskset", "-c", ",".join(map(str, sorted(cores)))]
            process = subprocess.Popen(
                [*pinned, *command, name, str(rank), address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=kept,
            )
            self.processes.append(process)

    def measure(self, model: str) -> tuple[float, float]:
        """Returns the seconds of a step, and the loss."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(model) + "\n")
            process.stdin.flush()
        answers: list[Any] = []
        for process in self.processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"a worker ended with exit status {process.wait()}")
            answers.append(json.loads(line))
        return max(a[0] for a in answers), max(a[1] for a in answers)

    def stop(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            process.wait()


def measured(
    names: list[str], chosen: list[str], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Returns seconds by model and system."""
    workers = {name: Workers(name, SYSTEMS[name]) for name in chosen}
    found: dict[str, dict[str, list[float]]] = {
        n: {s: [] for s in chosen} for n in names
    }
    losses: dict[str, dict[str, float]] = {n: {} for n in names}
    for turn in range(rounds):
        for model in names:
            # Each round begins with another system.
            start = turn % len(chosen)
            for name in chosen[start:] + chosen[:start]:
                seconds, losses[model][name] = workers[name].measure(model)
                found[model][name].append(seconds)
                print(f"{model}, {name}: {seconds * 1e3:.0f} ms", file=sys.stderr)
        print(f"round {turn + 1} of {rounds}", file=sys.stderr)
    for worker in workers.values():
        worker.stop()
    for model, of in losses.items():
        if max(of.values()) - min(of.values()) > 1e-3 * abs(max(of.values())):
            raise SystemExit(f"{model}: the losses differ: {of}")
    return found


def table(found: dict[str, dict[str, list[float]]]) -> list[str]:
    """Returns the results as a Markdown table."""
    chosen = list(next(iter(found.values())))
    head = ["model, ms", *(SYSTEMS[name].title for name in chosen)]
    lines = [head, ["---", *["--:"] * len(chosen)]]
    for model, of in found.items():
        cells = [number(min(of[name]) * 1e3) for name in chosen]
        lines.append([model, *cells])
    return [f"| {' | '.join(line)} |" for line in lines]


def ratios(found: dict[str, dict[str, list[float]]]) -> list[str]:
    """Returns how many times as fast the dataflow is as the others."""
    names = [n for n in BARS if n == "ideal" or n in next(iter(found.values()))]
    titles = ["of the ideal", *(f"to {SYSTEMS[n].title}" for n in names[1:])]
    lines = [["fxflow dataflow", *titles], ["---", *["--:"] * len(names)]]
    lines.append(["at least", *(str(BARS[name]) for name in names)])
    for model, of in found.items():
        ours = min(of["tasks"])
        best = {name: min(values) for name, values in of.items()}
        best["ideal"] = best["whole"] / IDEAL
        lines.append([model, *(f"{best[name] / ours:.2f}" for name in names)])
    return [f"| {' | '.join(line)} |" for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    names, chosen = given.models.split(","), given.systems.split(",")
    if unknown := (set(names) - SHAPES.keys()) | (set(chosen) - SYSTEMS.keys()):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if given.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {given.rounds}")
    found = measured(names, chosen, given.rounds)
    print(f"- {MICROBATCHES} microbatches, {given.rounds} interleaved rounds\n")
    print("\n".join(table(found)))
    if {"whole", "tasks"} <= set(chosen):
        print("\n" + "\n".join(ratios(found)))


if __name__ == "__main__":
    main()
