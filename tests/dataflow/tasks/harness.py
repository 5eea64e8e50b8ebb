"""Task processes that tests kill, stop and start again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, train
from fxflow.dataflow import Cluster, on, stages
from fxflow.distributed.processes import Process


class Tasks:
    """Tasks of this machine, each with two CPU devices.

    Args:
      count: of the tasks.
      deadline: of the cluster.

    Attributes:
      cluster: over all tasks.
    """

    def __init__(self, count: int, deadline: float = 60.0) -> None:
        self._folder = tempfile.mkdtemp(prefix="fxflow-")
        self.addresses = [f"{self._folder}/task-{i}" for i in range(count)]
        self._processes: dict[int, Process] = {}
        # Linux ends a child with the thread that started it: this one stays.
        self._starter = ThreadPoolExecutor(1)
        for number in range(count):
            self.start(number)
        self.cluster = Cluster(self.addresses, devices=2, deadline=deadline)

    def start(self, number: int) -> None:
        """Starts a task, which must not run."""
        command = [sys.executable, "-m", "fxflow.dataflow.tasks"]
        command += ["--index", str(number), "--address", self.addresses[number]]
        variables = {"FXFLOW_NUM_CPU_DEVICES": "2"}
        started = self._starter.submit(Process, command, variables)
        self._processes[number] = started.result()

    def send(self, number: int, signal_number: int) -> None:
        """Sends a signal to a task."""
        os.kill(self._processes[number].pid, signal_number)

    def kill(self, number: int) -> None:
        """Kills a task."""
        self._processes[number].kill()
        self._processes[number].wait(10)

    def __enter__(self) -> Self:
        self.cluster.connect()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all tasks; those that run must end by themselves."""
        self.cluster.close()
        try:
            for number, process in self._processes.items():
                if process.poll() is None:
                    self.send(number, signal.SIGCONT)
                    self.send(number, signal.SIGTERM)
            for number, process in self._processes.items():
                # SIGTERM itself ends one that has just been started.
                expected = (0, -signal.SIGKILL, -signal.SIGTERM)
                assert process.wait(20) in expected, f"task {number}: {process.poll()}"
            left = [a for n, a in enumerate(self.addresses) if self._ended_well(n, a)]
            assert not left, f"socket files are left: {left}"
        finally:
            for process in self._processes.values():
                process.kill()
            self._starter.shutdown()
            shutil.rmtree(self._folder)

    def _ended_well(self, number: int, address: str) -> bool:
        """Returns whether a task that was not killed has left its socket's file."""
        return not self._processes[number].poll() and Path(address).exists()


# -- a training step whose numbers are exact -------------------------------------------

STAGES, WIDTH, ROWS = 4, 8, 8


def loss(weights: Any, x: Any) -> Any:
    """Returns a loss that is linear in each weight."""
    for stage, w in zip(stages(STAGES), weights, strict=True):
        with on(stage):
            x = x + fnp.roll(x, 1, axis=1) * w
    return fnp.mean(x)


def update(weights: Any, x: Any) -> Any:
    """Returns the next weights: small multiples of powers of two, so sums are exact."""
    _, gradients = train.accumulate_gradients(loss, 2)(weights, x)
    return [
        fnp.round((w - g) * 16) / 16 for w, g in zip(weights, gradients, strict=True)
    ]


def batch(index: int) -> np.ndarray[Any, Any]:
    """Returns the batch of a step."""
    draw = np.random.default_rng(index)
    return draw.integers(-4, 5, (ROWS, WIDTH)).astype(np.float32)


def initial() -> list[Any]:
    """Returns the first weights."""
    return [np.full(WIDTH, 0.25 * i, np.float32) for i in range(STAGES)]


def after(steps: int) -> list[np.ndarray[Any, Any]]:
    """Returns the weights after some steps of one process."""
    step, weights = fxflow.jit(update), initial()
    for index in range(steps):
        weights = step(weights, batch(index))
    return [np.asarray(w) for w in weights]


def trainer(cluster: Cluster) -> Any:
    """Returns the step for `elastic`."""
    step = dataflow.jit(update, devices=cluster)
    return lambda weights, index: step(weights, batch(index))
