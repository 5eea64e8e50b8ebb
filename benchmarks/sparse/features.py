"""Times features of raw columns beside pandas and PyTorch, pyarrow, and grain.

    python benchmarks/sparse/features.py --rounds 7

All read one Parquet file and make the same seven features in batches: ids of sites by
a vocabulary, of users and ads by a hash, of sites and ads together, of lists of tags,
buckets of ages, and normalized prices. "pandas, torch" computes with columns of pandas
and makes tensors, in an `IterableDataset` read by a `DataLoader`; "pyarrow" is a loop
over `iter_batches` with `index_in`, `dictionary_encode`, and CRC-32 of each distinct
string; "grain" maps rows, as its users do. "reading" only decodes the columns.
Processes are alive at once and take turns; rows a second are those of the fastest pass.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from run import environment

HERE = Path(__file__).parent
#: The programs, and the environment of each.
PROGRAMS = {
    "fxflow": "fxflow",
    "reading": "fxflow",
    "pandas, torch": "pandas",
    "pyarrow": "pandas",
    "grain": "pandas",
}


class Worker:
    """A process that passes over the file when it is asked to."""

    def __init__(self, program: str, path: Path, size: int) -> None:
        self._process: Any = subprocess.Popen(
            [
                environment(PROGRAMS[program]),
                str(HERE / "features_worker.py"),
                *(program, str(path), str(size)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer()

    def answer(self) -> list[float]:
        """Waits for a line of numbers."""
        line: str = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args}: failed")
        return [*map(float, line.split())]

    def time(self) -> list[float]:
        """Returns rows a second, by the clock and by the time of the CPU."""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[8192, 65_536])
    parser.add_argument("--only", nargs="*", default=[*PROGRAMS])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.parquet"
        subprocess.run(
            [
                environment("fxflow"),
                str(HERE / "features_worker.py"),
                *("write", str(path), str(given.rows)),
            ],
            check=True,
        )
        print("| rows of a batch | program | rows/s | rows/s of CPU time | of fxflow |")
        print("| ---: | --- | ---: | ---: | ---: |")
        for size in given.sizes:
            workers = {name: Worker(name, path, size) for name in given.only}
            best = {name: [0.0, 0.0] for name in workers}
            for number in range(given.rounds):
                order = list(workers.items())
                for name, worker in order if number % 2 else reversed(order):
                    best[name] = [*map(max, best[name], worker.time())]
            for name, worker in workers.items():
                worker.close()
                clock, cpu = best[name]
                ratio = cpu / best["fxflow"][1] if "fxflow" in best else 0.0
                rates = f"{clock:,.0f} | {cpu:,.0f} | {ratio:.2f} ×"
                print(f"| {size:,} | {name} | {rates} |", flush=True)


if __name__ == "__main__":
    main()
