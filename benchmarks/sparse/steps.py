"""Times a training step of a table of embeddings beside PyTorch's `sparse=True`.

    python benchmarks/sparse/steps.py --rounds 5
    python benchmarks/sparse/steps.py --alone --only rowwise_adagrad --rows 1e6 1e8

A batch of 2,048 examples names 26 rows each of a table of rows of 8 numbers. In the
model "bag" they are added up and a linear layer follows; in "net" they are the input of
layers of 256, 64 and 1. Ids are uniform, the worst case for caches, or follow Zipf's
law with exponent 1.05, roughly as in Criteo's data. All workers of a case are alive at
once and take turns; times are minima, in ms. The ratio is that of the last size and the
first. 10⁸ rows with `rowwise_adagrad` take 4 GB.
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
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5, 1e7])
    parser.add_argument("--only", nargs="*", help="optimizers")
    parser.add_argument("--models", nargs="*", default=["bag", "net"])
    parser.add_argument("--draws", nargs="*", default=["zipf", "uniform"])
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    given = parser.parse_args()
    sizes = [int(rows) for rows in given.rows]
    heads = [f"{rows:,} rows" for rows in sizes]
    print(f"| model, ids, optimizer | library | {' | '.join(heads)} | ratio |")
    print(f"| --- | --- |{' --: |' * (len(sizes) + 1)}")
    optimizers = given.only or [*PEERS, "rowwise_adagrad", "ftrl"]
    cases = itertools.product(given.models, given.draws, optimizers)
    for model, draw, optimizer in cases:
        libraries = ["fxflow"]
        if optimizer in PEERS and not given.alone:
            libraries.append("torch")
        figures = [
            Figure(library, model, optimizer, rows, draw)
            for library in libraries
            for rows in sizes
        ]
        times = iter(measured(figures, given.rounds, given.steps))
        for library in libraries:
            own = [next(times) for _ in sizes]
            cells = " | ".join(f"{ms:.2f}" for ms in own)
            name = f"{model}, {draw}, {optimizer}"
            ratio = f"{own[-1] / own[0]:.2f}"
            print(f"| {name} | {library} | {cells} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
