"""Clusters: found, started, refused and closed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import Cluster, on, stages
from fxflow.dataflow.tasks import cluster as clusters
from fxflow.dataflow.tasks import session
from fxflow.distributed.messages.keys import new_keys
from fxflow.errors import ArgumentError, DistributedError, TaskLostError
from tests.dataflow.tasks.harness import Tasks


def started(*options: str, **variables: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "fxflow.dataflow.tasks", *options]
    return subprocess.Popen(command, env={**os.environ, **variables})


def twice(x: Any) -> Any:
    with on("/task:0"):
        return x * 2


@pytest.mark.parametrize(
    ("jobs", "options", "match"),
    [
        ([], {}, "jobs gives the addresses"),
        ({"worker": ["/tmp/a", ""]}, {}, "jobs gives the addresses"),
        (["/tmp/a", "/tmp/a"], {}, "two tasks have the address '/tmp/a'"),
        (["/tmp/a"], {"devices": [["cpu"], ["cpu"]]}, "devices of 2 tasks, and 1"),
        (["/tmp/a"], {"deadline": 0}, "the deadline is positive"),
    ],
)
def test_a_description_is_checked(jobs: Any, options: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        Cluster(jobs, **options)


def test_other_machines_need_keys() -> None:
    with pytest.raises(DistributedError, match="needs keys for authentication"):
        Cluster(["10.0.0.1:7000"])
    with pytest.raises(DistributedError, match="host:port"):
        Cluster(["nowhere"])


def test_a_described_cluster_plans_before_it_is_connected() -> None:
    made = Cluster({"worker": ["/tmp/fxflow-nowhere"]}, devices=1)
    plan = dataflow.jit(twice, devices=made).plan(fxflow.ShapeDtypeStruct((2,), "f4"))
    assert str(plan.places) == "[task:0 cpu:0]"
    with pytest.raises(DistributedError, match="task:0 does not answer at /tmp"):
        made.connect(seconds=0.1)


def test_connect_needs_tasks_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(clusters.TASKS, raising=False)
    with pytest.raises(ArgumentError, match="FXFLOW_DATAFLOW_TASKS is not set"):
        dataflow.connect()


@pytest.mark.parametrize("count", [0, True, 1.0])
def test_a_local_cluster_has_tasks(count: Any) -> None:
    with pytest.raises(ArgumentError, match="count is a positive integer"):
        dataflow.local_cluster(count)


def test_a_task_serves_one_controller_after_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = str(tmp_path / "task")
    task = started("--index", "0", "--address", address)
    try:
        monkeypatch.setenv(clusters.TASKS, address)
        for _ in range(2):
            with dataflow.connect() as made:
                step = dataflow.jit(twice, devices=made)
                assert float(step(2.0)) == 4
                with pytest.raises(DistributedError, match="another controller"):
                    Cluster([address]).connect(5)
            with pytest.raises(DistributedError, match="was closed"):
                step(2.0)
        task.terminate()
        assert task.wait(10) == 0
        assert not Path(address).exists()
    finally:
        task.kill()
        task.wait()


def test_a_cluster_over_tcp_has_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = new_keys()
    monkeypatch.setenv("FXFLOW_PS_KEYS", keys.to_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FXFLOW_PS_KEYS")
        found = free_ports(2)
    addresses = [f"127.0.0.1:{port}" for port in found]
    tasks = [
        started("--index", str(i), "--address", address)
        for i, address in enumerate(addresses)
    ]
    try:
        with Cluster(addresses, keys=keys.for_clients()) as made:

            def f(x: Any) -> Any:
                with on("/task:0"):
                    y = x @ x
                with on("/task:1"):
                    return y + 1

            x = np.arange(90_000, dtype="float32").reshape(300, 300) / 1e5
            got = dataflow.jit(f, devices=made)(x)
            np.testing.assert_array_equal(got, fxflow.jit(f)(x))
        with pytest.raises(DistributedError, match="not of this run"):
            Cluster(addresses[:1], keys=new_keys()).connect(5)
    finally:
        for task in tasks:
            task.kill()
            task.wait()


def free_ports(count: int) -> list[int]:
    import socket

    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def test_another_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = str(tmp_path / "task")
    task = started("--index", "0", "--address", address)
    try:
        monkeypatch.setattr(clusters, "__version__", "0.0.1")
        with pytest.raises(DistributedError, match=r"fxflow 0\.0\.1 and jaxlib"):
            Cluster([address]).connect()
        monkeypatch.undo()
        with pytest.raises(DistributedError, match="it is task 0 of job 'worker'"):
            Cluster({"ps": [address]}).connect()
        with pytest.raises(DistributedError, match="described with"):
            Cluster([address], devices=64).connect()
        with Cluster([address]) as made:
            assert len(made.devices) >= 1
    finally:
        task.kill()
        task.wait()


def test_a_killed_task_is_named_in_every_waiting_call() -> None:
    with dataflow.local_cluster(2) as made:

        def f(x: Any, y: Any) -> Any:
            with on("/task:0"):
                x = x + 1
            with on("/task:1"):
                y = y + 1
            return x, y

        step = dataflow.jit(f, devices=made)
        x, y = step(fnp.zeros(10_000), fnp.zeros(10_000))
        assert float(x[0]) == 1
        os.kill(made._children.pids[1], signal.SIGKILL)
        begun = time.monotonic()
        with pytest.raises(TaskLostError, match=r"task:1 is lost: .* signal 9") as e:
            while time.monotonic() < begun + 30:
                x, y = step(x, y)
        assert e.value.task == 1
        assert e.value.processes == (1,)
        with pytest.raises(TaskLostError, match="task:1 is lost"):
            y.fetch()
        assert set(made.lost) == {1}
        pids = made._children.pids
    assert not any(alive(pid) for pid in pids)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_tasks_end_with_the_controller(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "from fxflow import dataflow\n"
        "made = dataflow.local_cluster(1)\n"
        "print(made._children.pids[0], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    pid = int(done.stdout)
    end = time.monotonic() + 10
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    assert not alive(pid)


def spread(x: Any) -> Any:
    for stage in stages(2):
        with on(stage):
            x = x * 2
    return x


def test_connecting_again_keeps_what_the_tasks_that_answer_hold() -> None:
    with dataflow.local_cluster(2) as made:
        step = dataflow.jit(spread, devices=made)
        here, there = dataflow.jit(twice, devices=made), twice_there
        x = step(fnp.ones(5000))
        first, pending = here(fnp.ones(5000)), here(fnp.zeros(5000))
        assert made.reconnect() == [0, 1]
        assert step(x).device.task == 1
        assert made._children is not None
        os.kill(made._children.pids[1], signal.SIGKILL)
        begun = time.monotonic()
        # Ended processes do not return, so they are not awaited.
        with pytest.raises(TaskLostError, match="at least 2 must: task:1: the process"):
            made.reconnect(minimum=2)
        match = "task:1 must answer: task:1: the process was ended by signal 9"
        with pytest.raises(TaskLostError, match=match):
            made.reconnect(needed=[1])
        assert time.monotonic() < begun + 30
        assert made.reconnect() == [0]
        assert made.missing == {1: "task:1: the process was ended by signal 9"}
        assert not made.returned
        assert "; task:1 is lost: the process was ended by signal 9)>" in str(made)
        # What the other task holds is there, and is fed on without moving.
        np.testing.assert_array_equal(here(first), np.full(5000, 4.0))
        np.testing.assert_array_equal(pending, np.zeros(5000))
        match = r"task:1 is lost, and this f32\[5000\] with it: .* signal 9"
        with pytest.raises(TaskLostError, match=match):
            x.fetch()
        found = step(2.0)
        assert (float(found), found.device.task) == (8.0, 0)
        with pytest.raises(TaskLostError, match=r"task:1 is lost: .* signal 9") as lost:
            dataflow.jit(there, devices=made)(2.0)
        assert lost.value.task == 1
        with pytest.raises(ArgumentError, match="2 tasks, numbered from 0"):
            made.reconnect(needed=[2])
    with pytest.raises(DistributedError, match="was closed"):
        made.reconnect()


def test_a_task_that_returns_does_not_have_what_it_held_before() -> None:
    with Tasks(2) as tasks:
        made = tasks.cluster
        step = dataflow.jit(spread, devices=made)
        there = dataflow.jit(twice_there, devices=made)
        x, y = there(fnp.ones(5000)), there(1.0)
        assert float(y) == 2
        tasks.kill(1)
        tasks.start(1)
        assert made.reconnect(needed=[1]) == [0, 1]
        match = r"task:1 was lost, and this f32\[5000\] with it: .* connected again"
        with pytest.raises(TaskLostError, match=match):
            x.fetch()
        with pytest.raises(TaskLostError, match=match):
            there(x)
        with pytest.raises(TaskLostError, match=r"Its value is here: pass fetch\(\)"):
            there(y)
        # Programs are sent again.
        assert float(there(y.fetch())) == 4
        assert float(step(1.0)) == 4


def test_a_task_that_ends_while_it_starts_is_not_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    begun = time.monotonic()
    with pytest.raises(DistributedError, match="task:0: the process ended with status"):
        dataflow.local_cluster(1)
    assert time.monotonic() < begun + 30


def test_a_task_that_is_stopped_before_its_part_is_sent_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "SILENCE", 1.0)
    with dataflow.local_cluster(2) as made:
        assert made._children is not None
        os.kill(made._children.pids[1], signal.SIGSTOP)
        with pytest.raises(TaskLostError, match="task:1 is lost: it has not answered"):
            dataflow.jit(twice_there, devices=made)(2.0)
        os.kill(made._children.pids[1], signal.SIGCONT)
        assert made.reconnect(needed=[1]) == [0, 1]
        assert float(dataflow.jit(twice_there, devices=made)(2.0)) == 4


def twice_there(x: Any) -> Any:
    with on("/task:1"):
        return x * 2
