"""How long workers stand still while servers join and leave, and what shards cost.

    python benchmarks/parameter_server/moving.py --megabytes 100

Two servers (processes) hold 8 shards of float32 parameters, `--megabytes` together.
A worker pushes nothing and gets all of them, as fast as it is answered. Then a third
server joins, and afterwards the first one leaves: printed are the time until every
shard is in its place, and the longest step meanwhile. At the end: a step of 4 bytes a
shard, with 2 to 32 shards on two servers.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fxflow import optim
from fxflow.distributed.parameter_server import asynchronous
from fxflow.distributed.parameter_server.model import make_model
from fxflow.distributed.parameter_server.views import View, first_view
from fxflow.distributed.parameter_server.worker.client import WorkerClient


class Run:
    """Two servers and a worker."""

    def __init__(self, folder: str, shards: int, nbytes: int, copies: int) -> None:
        self.folder = folder
        self.first = [f"ipc://{folder}/{i}" for i in range(2)]
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        plan = ("--shards", str(shards), "--copies", str(copies))
        for number in range(2):
            self.start(number, "--number", str(number), *plan)
        self.client = WorkerClient(
            first_view(self.first, copies, shards), deadline=60.0
        )
        zeros = np.zeros(nbytes // shards // 4, np.float32)
        rule = asynchronous(rate="fixed")
        self.models = [make_model(["w"], [zeros], optim.sgd(-1.0), rule)] * shards
        self.client.wait(self.client.begin(self.models, [[zeros]] * shards))

    def start(self, number: int, *options: str) -> None:
        command = [sys.executable, "-m", "fxflow.distributed.parameter_server"]
        command += ["--servers", ",".join(self.first), *options]
        self.processes[number] = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def steps(self, until: Callable[[View], bool]) -> list[float]:
        """Returns when steps were answered, until the view is such."""
        times = [time.perf_counter()]
        while not until(self.client.view):
            self.client.wait(self.client.push(None, "empty"))
            times.append(time.perf_counter())
        return times

    def close(self) -> None:
        self.client.close()
        for process in self.processes.values():
            process.kill()
            process.wait()


def placed(view: View, *members: int) -> bool:
    return view.members == members and view.holders == view.places


def moves(megabytes: int, copies: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, 8, megabytes << 20, copies)
        end = time.perf_counter() + 2
        usual = run.steps(lambda _: time.perf_counter() > end)
        usually = statistics.median(b - a for a, b in itertools.pairwise(usual))
        run.start(2, "--join", f"ipc://{folder}/2")
        run.steps(lambda view: len(view.members) == 3)
        joined = run.steps(lambda view: placed(view, 0, 1, 2))
        run.processes[0].send_signal(signal.SIGTERM)
        left = run.steps(lambda view: placed(view, 1, 2))
        for what, times in (("joins", joined), ("leaves", left)):
            longest = max(b - a for a, b in itertools.pairwise(times))
            took = f"{longest * 1e3:.0f} | {times[-1] - times[0]:.2f} |"
            kept = f"{megabytes} MB, {copies} copies"
            step = f"{usually * 1e3:.2f}"
            print(f"| {kept}, one {what} | {step} | {took}", flush=True)
        run.close()


def cost(shards: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, shards, 4 * shards, 1)
        ones, times = np.ones(1, np.float32), []
        for _ in range(1000):
            begun = time.perf_counter()
            run.client.wait(run.client.push([[ones]] * shards))
            times.append(time.perf_counter() - begun)
        print(f"| {shards} | {statistics.median(times) * 1e3:.2f} |", flush=True)
        run.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[2]))
    print("| run | step, ms | longest while shards move, ms | until placed, s |")
    print("| --- | --- | --- | --- |")
    for copies in (1, 2):
        moves(options.megabytes, copies)
    print("\n| shards on two servers | step of 4 bytes each, ms |\n| --- | --- |")
    for shards in (2, 4, 8, 16, 32):
        cost(shards)


if __name__ == "__main__":
    main()
