"""Loops that continue when tasks are lost."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import Cluster, on
from fxflow.dataflow.tasks import elastic as elastic_module
from fxflow.dataflow.tasks import session
from fxflow.errors import ArgumentError, DistributedError, TaskLostError
from fxflow.train.checkpoint import Checkpointer
from tests.dataflow.tasks.harness import Tasks, after, initial, trainer

STEPS = 20


def wait_until(is_true: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def run(tasks: Tasks, trouble: dict[int, Callable[[], Any]], **options: Any) -> Any:
    """Runs the loop; calls functions before some steps, once."""
    step = trainer(tasks.cluster)

    def with_trouble(weights: Any, index: int) -> Any:
        trouble.pop(index, lambda: None)()
        return step(weights, index)

    found = dataflow.elastic(
        with_trouble, initial(), STEPS, cluster=tasks.cluster, **options
    )
    assert (found.step, found.preempted) == (STEPS, False)
    for got, expected in zip(found.state, after(STEPS), strict=True):
        np.testing.assert_array_equal(got, expected)
    return found


def test_a_killed_task_is_replaced_by_the_others_and_returns(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Tasks(3) as tasks:
        cluster = tasks.cluster

        def kill() -> None:
            tasks.kill(1)
            wait_until(lambda: 1 in cluster.lost)

        def restart() -> None:
            assert [d.task for d in cluster.devices] == [0, 0, 2, 2]
            tasks.start(1)
            wait_until(lambda: cluster.returned == [1])

        run(tasks, {7: kill, 11: restart}, snapshot_every=5)
        assert not cluster.missing and len(cluster.devices) == 6
    said = capfd.readouterr().err
    assert "fxflow: task:1 is lost: " in said
    assert "; continuing from step 5 with tasks 0, 2\n" in said
    assert "task:1 has returned; continuing from step 15 with tasks 0, 1, 2\n" in said


@pytest.mark.slow
def test_a_stopped_task_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SILENCE", 3.0)
    with Tasks(2) as tasks:
        run(tasks, {7: lambda: tasks.send(0, signal.SIGSTOP)})
        assert tasks.cluster.missing.keys() == {0}
        tasks.send(0, signal.SIGCONT)
        wait_until(lambda: tasks.cluster.returned)
        assert tasks.cluster.reconnect() == [0, 1]


@pytest.mark.slow
def test_too_few_tasks_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_module, "RETURN", 0.5)
    with Tasks(2) as tasks:
        match = "1 of 2 tasks answer, and at least 2 must within 0.5 s: task:1 "
        with pytest.raises(TaskLostError, match=match) as caught:
            run(tasks, {7: lambda: tasks.kill(1)}, minimum=2)
        assert caught.value.task == 1


@pytest.mark.slow
def test_a_task_that_a_scope_names_is_awaited() -> None:
    def add(total: Any, index: Any) -> Any:
        with on("/task:1"):
            return total + index

    with Tasks(2) as tasks:
        step = dataflow.jit(add, devices=tasks.cluster)
        left_out = threading.Event()

        def restart() -> None:
            left_out.wait(60)
            tasks.start(1)

        def with_trouble(total: Any, index: int) -> Any:
            if index == 7 and thread.ident is None:
                tasks.kill(1)
                thread.start()
            elif tasks.cluster.missing:
                left_out.set()
            return step(total, index)

        thread = threading.Thread(target=restart)
        found = dataflow.elastic(
            with_trouble, fnp.zeros(()), 10, cluster=tasks.cluster, snapshot_every=5
        )
        assert left_out.is_set() and float(found.state) == 45
        thread.join()


def test_other_errors_end_the_loop() -> None:
    with Tasks(1) as tasks:
        calls: list[int] = []

        def fails(state: Any, index: int) -> Any:
            calls.append(index)
            raise error

        error: Exception = ValueError("of the user")
        with pytest.raises(ValueError, match="of the user"):
            dataflow.elastic(fails, 0.0, 3, cluster=tasks.cluster)
        assert calls == [0]
        calls.clear()
        error = DistributedError("another one")
        with pytest.raises(DistributedError, match="another one"):
            dataflow.elastic(fails, 0.0, 3, cluster=tasks.cluster)
        assert calls == [0, 0, 0]


def test_checkpoints_are_continued(tmp_path: Path) -> None:
    with Tasks(1) as tasks:
        step = trainer(tasks.cluster)
        indices: list[int] = []

        def counted(weights: Any, index: int) -> Any:
            indices.append(index)
            if index == 9:
                signal.raise_signal(signal.SIGTERM)
            return step(weights, index)

        def loop() -> Any:
            return dataflow.elastic(
                counted,
                initial(),
                STEPS,
                cluster=tasks.cluster,
                checkpointer=Checkpointer(str(tmp_path), every=5),
            )

        found = loop()
        assert (found.step, found.preempted) == (10, True)
        found = loop()
        assert (found.step, found.preempted) == (STEPS, False)
        assert indices == list(range(STEPS))
        for got, expected in zip(found.state, after(STEPS), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"snapshot_every": 0}, "snapshot_every is a positive integer, got 0"),
        ({"minimum": True}, "minimum is a positive integer, got True"),
        ({"cluster": "a"}, "cluster is a dataflow.Cluster, .* got 'a'"),
        ({"num_steps": -1}, "num_steps must not be negative"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], match: str) -> None:
    given = {"num_steps": 1, "cluster": Cluster(["/tmp/none"]), **options}
    with pytest.raises(ArgumentError, match=match):
        dataflow.elastic(lambda state, index: state, 0.0, **given)
