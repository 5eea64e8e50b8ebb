"""Tasks are killed and stopped at random moments.

In every case, a loop ends with the numbers of one process, or the waiting call fails in
time with an error that names the task; no process and no file of a socket is left.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

from fxflow import dataflow
from fxflow.dataflow.tasks import session
from fxflow.errors import DistributedError
from tests.dataflow.tasks.harness import Tasks, after, batch, initial, trainer, update

STEPS = 120
#: Seconds after which a task that is stopped counts as lost.
SILENCE = 4.0


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SILENCE", SILENCE)


def seeds(count: int) -> list[Any]:
    """Returns seeds: one for every run, two more for slow ones, the rest for soaks."""
    slow, soak = [pytest.mark.slow], [pytest.mark.soak]
    marks = [[], slow, slow, *[soak] * (count - 3)]
    return [pytest.param(seed, marks=m) for seed, m in enumerate(marks)]


class Trouble(threading.Thread):
    """Kills, stops, continues and restarts tasks.

    Args:
      tasks: to harm.
      draw: decides what and when.
    """

    def __init__(self, tasks: Tasks, draw: random.Random) -> None:
        super().__init__()
        self._tasks, self._draw = tasks, draw
        self.begins, self.ends = threading.Event(), threading.Event()
        self.left = draw.randint(1, 3)
        self.said: list[str] = []

    def run(self) -> None:
        """Harms one task after another; each returns, or another one stays."""
        tasks, draw = self._tasks, self._draw
        numbers = list(range(len(tasks.addresses)))
        self.begins.wait()
        gone: set[int] = set()
        while self.left and not self.ends.is_set():
            self.left -= 1
            self.ends.wait(draw.uniform(0, 1.5) ** 2)
            number = draw.choice([n for n in numbers if n not in gone])
            what = draw.choice(["kill", "kill", "stop"])
            self.said.append(f"{what} {number}")
            if what == "kill":
                tasks.kill(number)
            else:
                tasks.send(number, signal.SIGSTOP)
            last = len(gone) == len(numbers) - 1
            if not last and draw.random() < 0.4:
                gone.add(number)
                continue
            self.ends.wait(draw.uniform(0, 1.5))
            self.said.append(f"return {number}")
            if what == "kill":
                tasks.start(number)
            else:
                tasks.send(number, signal.SIGCONT)
        self.ends.wait()


@pytest.mark.parametrize("seed", seeds(60))
def test_a_loop_ends_with_the_right_numbers(seed: int) -> None:
    draw = random.Random(seed)
    begun = time.monotonic()
    with Tasks(draw.randint(2, 4)) as tasks:
        trouble = Trouble(tasks, draw)
        first = draw.randrange(STEPS // 2)
        step = trainer(tasks.cluster)

        def with_trouble(weights: Any, index: int) -> Any:
            if index == first:
                trouble.begins.set()
            if trouble.left:
                time.sleep(0.005)
            return step(weights, index)

        trouble.start()
        try:
            found = dataflow.elastic(
                with_trouble,
                initial(),
                STEPS,
                cluster=tasks.cluster,
                snapshot_every=draw.choice([1, 5, 20]),
            )
        finally:
            trouble.begins.set()
            trouble.ends.set()
            trouble.join()
            print(f"seed {seed}: {time.monotonic() - begun:.1f} s, {trouble.said}")
        assert found.step == STEPS
        for got, expected in zip(found.state, after(STEPS), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("seed", seeds(40))
def test_a_waiting_call_names_the_task(seed: int) -> None:
    draw = random.Random(seed)
    stops = bool(seed % 2)
    with Tasks(draw.randint(2, 4)) as tasks:
        step = dataflow.jit(update, devices=tasks.cluster)
        victim = draw.randrange(len(tasks.addresses))
        when = draw.randrange(STEPS // 2)
        harmed: list[float] = []

        def harm() -> None:
            time.sleep(draw.uniform(0, 0.02))
            harmed.append(time.monotonic())
            if stops:
                tasks.send(victim, signal.SIGSTOP)
            else:
                tasks.kill(victim)

        thread = threading.Thread(target=harm)
        weights: Any = initial()
        with pytest.raises(DistributedError, match=f"task:{victim}") as caught:
            for index in range(1_000_000):
                if index == when:
                    thread.start()
                weights = step(weights, batch(index))
        took = time.monotonic() - harmed[0]
        print(f"seed {seed}: {took:.2f} s, {caught.value}")
        assert victim in caught.value.processes
        assert took < SILENCE + 5
        thread.join()
        # The others are unharmed.
        alive = [n for n in range(len(tasks.addresses)) if n != victim]
        assert tasks.cluster.reconnect() == alive
        weights = initial()
        for index in range(3):
            weights = step(weights, batch(index))
        for got, expected in zip(dataflow.fetch(weights), after(3), strict=True):
            np.testing.assert_array_equal(got, expected)
