"""The controller: steps in flight, errors with names, and no wait without an end."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, lax
from fxflow.dataflow import Cluster, on
from fxflow.dataflow.tasks.session import restored
from fxflow.dataflow.tasks.steps import MOST_STEPS
from fxflow.errors import DistributedError, TaskLostError


def slow(x: Any, rounds: int) -> Any:
    """Takes a while without calling Python."""
    return lax.fori_loop(0, rounds, lambda i, c: fnp.sin(c) @ fnp.ones((64, 64)), x)


def chain(rounds: int) -> Any:
    def f(x: Any) -> Any:
        with on("/task:0"):
            x = slow(x, rounds)
        with on("/task:1"):
            return x + 1

    return f


X = fnp.ones((64, 64))


def test_several_steps_are_under_way(cluster: Cluster) -> None:
    step = dataflow.jit(chain(300), devices=cluster)
    x = step(step(X))
    session = cluster._connected()
    x.block_until_ready()
    worker = cluster._children.pids[0]
    continued = threading.Event()

    def go_on() -> None:
        continued.set()
        os.kill(worker, signal.SIGCONT)

    timer = threading.Timer(0.5, go_on)
    os.kill(worker, signal.SIGSTOP)
    try:
        for under_way in range(1, MOST_STEPS + 1):
            x = step(x)
            assert len(session._steps) == under_way
        timer.start()
        x = step(x)  # waits for the oldest
        assert continued.is_set()
    finally:
        timer.cancel()
        go_on()
    for _ in range(2 * MOST_STEPS - 1):
        x = step(x)
        assert len(session._steps) <= MOST_STEPS
    expected = X
    f = fxflow.jit(chain(300))
    for _ in range(3 * MOST_STEPS + 2):
        expected = f(expected)
    np.testing.assert_allclose(x, expected, rtol=1e-5)


def test_threads_share_a_cluster(cluster: Cluster) -> None:
    step = dataflow.jit(chain(3), devices=cluster)
    expected = np.asarray(fxflow.jit(chain(3))(X))
    right: list[bool] = []

    def work() -> None:
        right.extend(np.array_equal(step(X), expected) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert right == [True] * 40
    assert not any(thread.is_alive() for thread in threads)


def test_a_late_value_is_named_with_what_its_task_does() -> None:
    with dataflow.local_cluster(2, deadline=1.0) as made:
        dataflow.jit(chain(1), devices=made)(X).block_until_ready()
        step = dataflow.jit(chain(1_000_000), devices=made)
        x = step(X)
        begun = time.monotonic()
        with pytest.raises(DistributedError) as found:
            x.fetch()
        assert time.monotonic() < begun + 20
        told = str(found.value)
        assert "fragment 1 of f on task:1 cpu:0, which begins with add" in told
        assert "test_session.py" in told
        assert (
            "has waited 1 s for f32[64,64] of task:0, which has run fragment 0" in told
        )
        assert found.value.seconds == 1.0
        assert found.value.processes == (0,)


def test_a_stopped_task_does_not_hang_the_controller() -> None:
    with dataflow.local_cluster(2, deadline=1.0) as made:
        step = dataflow.jit(chain(1), devices=made)
        x = step(step(X))
        x.block_until_ready()
        os.kill(made._children.pids[0], signal.SIGSTOP)
        y = step(x)
        begun = time.monotonic()
        with pytest.raises(DistributedError, match="task:0, which does not answer"):
            np.asarray(y)
        # The tasks are asked before the deadline, so the error comes in time.
        assert time.monotonic() < begun + 1.0 + 5.0
        # What is in the other task is still there.
        assert x.fetch().shape == (64, 64)
        os.kill(made._children.pids[0], signal.SIGCONT)
        np.testing.assert_array_equal(step(x), fxflow.jit(chain(1))(x))


def test_a_lost_task_ends_every_wait_at_once() -> None:
    with dataflow.local_cluster(2) as made:
        dataflow.jit(chain(1), devices=made)(X).block_until_ready()
        x = dataflow.jit(chain(1_000_000), devices=made)(X)
        errors: list[Any] = []

        def wait() -> None:
            try:
                x.fetch()
            except TaskLostError as error:
                errors.append(error)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        os.kill(made._children.pids[0], signal.SIGKILL)
        for thread in threads:
            thread.join(20)
        assert [error.task for error in errors] == [0, 0, 0]


def test_an_error_in_a_task_names_the_fragment_and_the_line(cluster: Cluster) -> None:
    def f(x: Any) -> Any:
        with on("/task:1"):  # more than an address space has
            x = fnp.sin(fnp.arange(1 << 16) * x[0])
            y = x[:, None, None] * x[:, None] * x
            return fnp.sort(y, axis=0)[3, 2, 1]

    with pytest.raises(DistributedError, match="task:1") as found:
        np.asarray(dataflow.jit(f, devices=cluster)(fnp.ones(3)))
    assert found.value.processes == (1,)
    step = dataflow.jit(chain(1), devices=cluster)
    np.testing.assert_array_equal(step(X), fxflow.jit(chain(1))(X))


def test_an_error_here_stops_the_step(cluster: Cluster) -> None:
    def fails(x: Any) -> Any:
        raise ValueError("this one")

    def f(x: Any) -> Any:
        with on("/task:0"):
            y = x + 1
        with on(fxflow.devices()[0]):
            z = fxflow.pure_callback(fails, y, y)
        with on("/task:1"):
            return z * 2

    with pytest.raises(ValueError, match="this one"):
        dataflow.jit(f, devices=cluster)(X).fetch()
    step = dataflow.jit(chain(1), devices=cluster)
    np.testing.assert_array_equal(step(X), fxflow.jit(chain(1))(X))


def test_a_value_gets_its_own_type_back() -> None:
    keys = fxflow.random.split(fxflow.random.key(0), 3)
    bits = np.asarray(fxflow.random.key_data(keys))
    again = restored(bits, keys.aval)
    assert again.aval is keys.aval
    np.testing.assert_array_equal(fxflow.random.key_data(again), bits)


def test_what_tasks_compute_is_printed_here(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            y = x + 1
            fxflow.debug.print("in the scope {}", y)
        fxflow.debug.print("outside of it {}", y)
        with on("/task:1"):
            return y * 2

    step = dataflow.jit(f, devices=cluster)
    assert [float(step(float(i))) for i in range(2)] == [2.0, 4.0]
    said = sorted(capsys.readouterr().out.splitlines())
    assert said == [
        "in the scope 1.0", "in the scope 2.0", "outside of it 1.0", "outside of it 2.0"
    ]  # fmt: skip
