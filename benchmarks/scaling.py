"""How training steps scale over host devices, and sums over processes.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --rounds 3

The step is that of the perceptron of `examples/mnist.py` with Adam, the batch is NumPy
arrays. *Strong*: one batch for all devices together. *Weak*: one batch for each device.
All devices share the cores of this machine: perfect scaling is a strong row that does
not grow, and a weak row that grows as the work does. The libraries take turns.

Sums over two processes are compared with those of PyTorch, which calls gloo directly.
"""

import argparse
import os
import sys
from pathlib import Path
from statistics import median

from cases.many_devices import DEVICES, Aside
from cases.two_processes import SIZES, Pair
from run import environment, number

HERE = Path(__file__).parent.resolve()
COUNTS = [1, 2, 4, 8]
STRONG, WEAK = 1024, 128
WAYS = {
    "fxflow `pmap`": ("fxflow", "pmap_step {devices} {batch}"),
    "fxflow `jit`": ("fxflow", "jit_step {devices} {batch}"),
    "fxflow server": ("fxflow", "sharded_step {devices} {batch} f32"),
    "fxflow server, int8": ("fxflow", "sharded_step {devices} {batch} int8"),
    "jax `pmap`": ("jax", "pmap_step {devices} {batch}"),
    "jax `jit`": ("jax", "jit_step {devices} {batch}"),
}
SUMS = {
    **{size: f"all_reduce {count}" for size, count in SIZES.items()},
    "6 arrays, 0.9 MB": "all_reduce_tree",
}
SUMMING = {
    "fxflow `psum`": ("fxflow", ""),
    "jax `psum`": ("jax", ""),
    "torch gloo, in place": ("torch", ""),
    "torch gloo, of a copy": ("torch", " copy"),
}


def measured(rounds: int) -> dict[tuple[str, int, str], list[float]]:
    """Milliseconds of each kind, number of devices and way."""
    workers = {name: Aside(name, environment(name)) for name in ("fxflow", "jax")}
    found: dict[tuple[str, int, str], list[float]] = {}
    plan = [
        (kind, count, way)
        for kind in ("strong", "weak")
        for count in COUNTS
        for way in WAYS
    ]
    for turn in range(rounds):
        for kind, count, way in plan:
            batch = STRONG if kind == "strong" else WEAK * count
            library, name = WAYS[way]
            taken = workers[library].measure(name.format(devices=count, batch=batch))
            found.setdefault((kind, count, way), []).append(taken * 1e3)
        print(f"round {turn + 1} of {rounds}", file=sys.stderr)
    for worker in workers.values():
        worker.stop()
    return found


def sums(rounds: int) -> dict[tuple[str, str], list[float]]:
    """Milliseconds of each sum over two processes and way."""
    pairs = {name: Pair(name, environment(name)) for name in ("fxflow", "jax", "torch")}
    found: dict[tuple[str, str], list[float]] = {}
    for turn in range(rounds):
        for what, name in SUMS.items():
            for way, (library, how) in SUMMING.items():
                taken = pairs[library].measure(name + how)
                found.setdefault((what, way), []).append(taken * 1e3)
        print(f"sums: round {turn + 1} of {rounds}", file=sys.stderr)
    for pair in pairs.values():
        pair.stop()
    return found


def sums_table(found: dict[tuple[str, str], list[float]]) -> list[str]:
    """Minimum and median of each way, one row for each sum."""
    lines = [["sum of", *SUMMING], ["---"] * (1 + len(SUMMING))]
    for what in SUMS:
        values = [found[what, way] for way in SUMMING]
        cells = [f"{number(min(v))} / {number(median(v))}" for v in values]
        lines.append([what, *cells])
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def table(found: dict[tuple[str, int, str], list[float]], kind: str) -> list[str]:
    """Minimum and median of each way, one row for each number of devices."""
    lines = [["devices", "batch", *WAYS], ["---"] * (2 + len(WAYS))]
    for count in COUNTS:
        batch = STRONG if kind == "strong" else WEAK * count
        cells = [str(count), str(batch)]
        for way in WAYS:
            values = found[kind, count, way]
            cells.append(f"{number(min(values))} / {number(median(values))}")
        lines.append(cells)
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def report(
    found: dict[tuple[str, int, str], list[float]],
    summed: dict[tuple[str, str], list[float]],
    rounds: int,
) -> str:
    """What is printed at the end, as Markdown."""
    lines = [f"- {DEVICES} host devices, {rounds} interleaved rounds"]
    titles = {
        "strong": f"Strong: a batch of {STRONG} for all devices together",
        "weak": f"Weak: a batch of {WEAK} for each device",
    }
    for kind, title in titles.items():
        lines += ["", f"## {title}", "", *table(found, kind)]
    lines += ["", "## Sums over two processes, in ms", "", *sums_table(summed)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {given.rounds}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    steps, summed = measured(given.rounds), sums(given.rounds)
    print(report(steps, summed, given.rounds))


if __name__ == "__main__":
    main()
