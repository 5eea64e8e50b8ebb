"""How long workers stand still when a process dies.

    python benchmarks/parameter_server/recovery.py --rounds 5

Servers are processes; two workers are clients in threads of this one, which push 4
bytes as fast as they are answered. In each round something is killed (SIGKILL) or
stopped (SIGSTOP), and the longest time between two answers is printed. At the
end the parameters must equal what was acknowledged.
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
import threading
import time
from pathlib import Path

import numpy as np

from fxflow import optim
from fxflow.distributed.parameter_server import asynchronous
from fxflow.distributed.parameter_server.model import make_model
from fxflow.distributed.parameter_server.views import first_view
from fxflow.distributed.parameter_server.worker.client import WorkerClient

ZEROS, ONES = np.zeros(1, np.float32), np.ones(1, np.float32)
MODEL = make_model(["w"], [ZEROS], optim.sgd(-1.0), asynchronous(rate="fixed"))


class Servers:
    """Processes that serve."""

    def __init__(self, folder: str, count: int, copies: int, logs: bool) -> None:
        self.folder, self.copies, self.logs = folder, copies, logs
        self.addresses = [f"ipc://{folder}/{i}" for i in range(count)]
        self.processes = [self.start(i) for i in range(count)]

    def start(self, number: int) -> subprocess.Popen[bytes]:
        command = [
            *(sys.executable, "-m", "fxflow.distributed.parameter_server"),
            *("--servers", ",".join(self.addresses), "--number", str(number)),
            *("--copies", str(self.copies)),
        ]
        if self.logs:
            command += ["--folder", f"{self.folder}/logs-{number}"]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


class Worker(threading.Thread):
    """Pushes ones and notes when it was answered."""

    def __init__(self, addresses: list[str], copies: int) -> None:
        super().__init__(daemon=True)
        self.client = WorkerClient(first_view(addresses, copies), deadline=60.0)
        self.models = [MODEL] * len(addresses)
        self.answers: list[float] = []
        self.end, self.last = False, 0.0

    def run(self) -> None:
        client, shards = self.client, len(self.models)
        client.wait(client.begin(self.models, [[ZEROS]] * shards))
        while not self.end:
            try:
                answer = client.wait(client.push([[ONES]] * shards))
            except RuntimeError:  # killed
                return
            self.answers.append(time.perf_counter())
            self.last = float(answer[0].params[0][0])


def longest(times: list[float], since: float) -> float:
    """Returns the longest time between two answers that ends after a moment."""
    return max(b - a for a, b in itertools.pairwise(times) if b > since)


def one_round(kind: str) -> float:
    """Returns for how many seconds a worker stood still."""
    copies = 1 if kind == "log" else 2
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(folder, 2, copies, logs=kind == "log")
        workers = [Worker(servers.addresses, copies) for _ in range(2)]
        for worker in workers:
            worker.start()
        while not all(len(worker.answers) > 200 for worker in workers):
            time.sleep(0.05)
        began = time.perf_counter()
        victim = servers.processes[0]
        if kind == "worker":
            # It sends nothing more: no other worker waits for it.
            workers[1].client._fail(RuntimeError("killed"))
            workers[1].client._orders.put(("die",))
        elif kind == "stopped server":
            os.kill(victim.pid, signal.SIGSTOP)
        else:
            victim.kill()
            victim.wait()
        if kind == "log":
            servers.processes[0] = servers.start(0)
        time.sleep(5)
        if kind == "stopped server":
            os.kill(victim.pid, signal.SIGCONT)
        alive = workers[:1] if kind == "worker" else workers
        for worker in alive:
            worker.end = True
            worker.join(60)
        gap = max(longest(worker.answers, began) for worker in alive)
        acknowledged = sum(len(worker.answers) for worker in workers)
        if kind != "worker":
            assert max(w.last for w in workers) == acknowledged, acknowledged
        for worker in alive:
            worker.client.close()
        servers.close()
        return gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[2]))
    print("| what dies | seconds, median | longest |\n| --- | --- | --- |")
    for kind in ("worker", "server", "stopped server", "log"):
        gaps = [one_round(kind) for _ in range(options.rounds)]
        print(f"| {kind} | {statistics.median(gaps):.2f} | {max(gaps):.2f} |")


if __name__ == "__main__":
    main()
