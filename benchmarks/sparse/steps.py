"""Times a training step of a table of embeddings beside PyTorch's `sparse=True`.

    python benchmarks/sparse/steps.py --rounds 5

A batch of 2,048 examples names 26 rows each of a table of rows of 8 numbers. In the
model "bag" they are added up and a linear layer follows; in "net" they are the input of
layers of 256, 64 and 1. Ids are uniform, the worst case for caches, or follow Zipf's
law with exponent 1.05, roughly as in Criteo's data. All workers of a case are alive at
once and take turns; times are minima.
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from run import environment

HERE = Path(__file__).parent
PEERS = {"sgd": "SGD", "adagrad": "Adagrad", "adam": "SparseAdam"}


class Figure(NamedTuple):
    """One worker."""

    library: str
    model: str
    optimizer: str
    rows: int
    draw: str


class Worker:
    """A process that makes steps when it is asked to."""

    def __init__(self, figure: Figure, steps: int) -> None:
        given = [*map(str, figure), str(steps)]
        self._process: Any = subprocess.Popen(
            [environment(figure.library), str(HERE / "steps_worker.py"), *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def answer(self) -> str:
        """Waits for a line."""
        line: str = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args}: failed")
        return line

    def time(self) -> float:
        """Returns the seconds of the fastest of some steps."""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(self.answer())

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


def measured(figures: list[Figure], rounds: int, steps: int) -> list[float]:
    """Returns the fastest step of each figure, in ms."""
    workers = []
    for figure in figures:
        workers.append(Worker(figure, steps))
        workers[-1].answer()
    best = [float("inf")] * len(figures)
    for number in range(rounds):
        order = list(enumerate(workers))
        for i, worker in order if number % 2 else reversed(order):
            best[i] = min(best[i], worker.time())
    for worker in workers:
        worker.close()
    return [seconds * 1e3 for seconds in best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=16, help="of a round")
    parser.add_argument("--rows", type=float, nargs=2, default=[1e5, 1e7])
    parser.add_argument("--only", nargs="*", help="optimizers")
    parser.add_argument("--models", nargs="*", default=["bag", "net"])
    parser.add_argument("--draws", nargs="*", default=["zipf", "uniform"])
    given = parser.parse_args()
    small, large = map(int, given.rows)
    print(f"{'ms a step':26} {small:>10,} {large:>16,} rows   ratio")
    optimizers = given.only or [*PEERS, "rowwise_adagrad", "ftrl"]
    cases = itertools.product(given.models, given.draws, optimizers)
    for model, draw, optimizer in cases:
        libraries = ["fxflow", *["torch"] * (optimizer in PEERS)]
        figures = [
            Figure(library, model, optimizer, rows, draw)
            for library in libraries
            for rows in (small, large)
        ]
        times = measured(figures, given.rounds, given.steps)
        name = f"{model} {draw} {optimizer}"
        print(
            f"{name:26} {times[0]:10.2f} {times[1]:16.2f} {times[1] / times[0]:10.2f}",
            flush=True,
        )
        if len(times) > 2:
            peer = f"  torch {PEERS[optimizer]}"
            print(
                f"{peer:26} {times[2]:10.2f} {times[3]:16.2f} "
                f"{times[3] / times[2]:10.2f}   ours: {times[2] / times[0]:.1f} and "
                f"{times[3] / times[1]:.1f} times as fast",
                flush=True,
            )


if __name__ == "__main__":
    main()
