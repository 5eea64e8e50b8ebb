"""Runs of tasks that a cluster manager starts, here with torchrun's variables."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fxflow.distributed import protocol
from fxflow.distributed.allocation import TaskRegistry, allocation_member
from fxflow.distributed.messages.channel import Channel, dial
from fxflow.errors import DistributedError

from .conftest import Run
from .tasks_harness import CONTROLLER, IDLE_TASK, LAUNCH

pytest.importorskip("zmq")

Start = Callable[..., Run]
Write = Callable[..., str]


@pytest.fixture
def start_rank(start: Start, write: Write, free_port: int) -> Start:
    """Starts ``fxflow launch --tasks auto`` as one rank of a job."""
    write(IDLE_TASK, "idle_task.py")

    def start_rank(
        rank: int, count: int, code: str = "", *options: str, **variables: str
    ) -> Run:
        return start(
            *(sys.executable, "-c", LAUNCH, "--tasks", "auto", *options),
            write(CONTROLLER + code, f"controller-{rank}.py"),
            RANK=str(rank),
            WORLD_SIZE=str(count),
            LOCAL_RANK=str(rank),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(free_port),
            **variables,
        )

    return start_rank


def test_rank_0_runs_the_program_and_all_exit_with_its_status(
    start_rank: Start,
) -> None:
    code = "[pids(n, 1) for n in range(3)]; sys.exit(3)"
    runs = [start_rank(n, 3, code, FXFLOW_TOKEN="secret") for n in (2, 1, 0)]
    assert [run.end() for run in runs] == [3, 3, 3], runs[2].text
    found = runs[2].wait_for(r"^\[controller 0\] addresses (.*) keys client$")
    addresses = found[1].split()
    for run, number in zip(runs, (2, 1, 0), strict=True):
        listens = f"*:{addresses[number].rpartition(':')[2]}"
        line = f"[task {number}] serves {addresses[number]} {listens} keys server None"
        assert line in run.out, run.text
        assert ("[controller 0]" in run.text) == (number == 0)


def test_each_launcher_restarts_its_task(start_rank: Start) -> None:
    code = "os.kill(pids(1, 1)[0], signal.SIGKILL); pids(1, 2)"
    runs = [start_rank(n, 2, code) for n in range(2)]
    assert [run.end() for run in runs] == [0, 0], runs[0].text
    assert "task 1 ended with signal 9; restarting it" in runs[1].text


@pytest.mark.slow
def test_a_launcher_that_is_restarted_registers_again(
    start_rank: Start, tmp_path: Path, free_port: int
) -> None:
    code = "pids(1, 2)\nwhile not os.path.exists('end'): time.sleep(0.01)"
    port = ("--port", str(free_port + 1 if free_port < 65000 else free_port - 9))
    runs = [start_rank(n, 2, code, *port) for n in range(2)]
    runs[0].wait_for("addresses")
    runs[1].wait_for("serves")
    runs[1].process.kill()
    runs[0].wait_for(r"the launcher of task 1 \(.*\) is lost: its connection")
    wrong = start_rank(1, 2, code)
    assert wrong.end() == 1
    assert "listened at 127.0.0.1:" in wrong.text and "give --port" in wrong.text
    again = start_rank(1, 2, code, *port)
    again.wait_for("serves")
    (tmp_path / "end").touch()
    assert (runs[0].end(), again.end()) == (0, 0), again.text


def test_the_loss_of_process_0_ends_the_others(start_rank: Start) -> None:
    runs = [start_rank(n, 2, "time.sleep(60)") for n in range(2)]
    runs[0].wait_for("addresses")
    runs[1].wait_for("serves")
    os.kill(runs[0].process.pid, signal.SIGKILL)
    assert runs[1].end() == 1, runs[1].text
    assert "process 0 at 127.0.0.1:" in runs[1].text
    assert "is lost: its connection was closed" in runs[1].text


def test_missing_tasks_are_named(start_rank: Start) -> None:
    run = start_rank(0, 3, "", "--start-timeout", "0.5")
    assert run.end() == 1, run.text
    assert "of 3 tasks, 1, 2 did not register within 0.5 s" in run.text
    assert "[controller 0]" not in run.text


def test_a_process_without_a_cluster_manager_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(os.environ):
        if name.startswith(("FXFLOW_", "SLURM_", "OMPI_", "KUBERNETES_", "TF_")):
            monkeypatch.delenv(name)
    with pytest.raises(DistributedError, match="no cluster manager has started"):
        allocation_member()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "a")
    monkeypatch.setenv("MASTER_PORT", "1")
    assert allocation_member()[:3] == ("a:1", 2, 0)
    monkeypatch.setenv("FXFLOW_COORDINATOR_HOSTED", "1")
    with pytest.raises(DistributedError, match="unset FXFLOW_COORDINATOR_HOSTED"):
        allocation_member()


# -- the registry ----------------------------------------------------------------------


def register(registry: TaskRegistry, task: int, tasks: int, address: str) -> Channel:
    channel = dial(f"127.0.0.1:{registry.port}", 5, "t")
    channel.send(protocol.written(protocol.RegisterTask(task, tasks, "h:1", address)))
    return channel


def refusal(channel: Channel) -> str:
    assert channel.readable(5)
    event = protocol.read(channel.receive()[0])
    channel.close()
    assert isinstance(event, protocol.Refused)
    return event.why


def test_addresses_are_complete_when_all_have_registered() -> None:
    changed = threading.Event()
    registry = TaskRegistry("127.0.0.1:0", 2, token="t")
    registry.on_change = changed.set
    try:
        first = register(registry, 1, 2, "b:1")
        assert changed.wait(5)
        assert (registry.addresses(), registry.missing()) == ([], [0])
        assert "is taken by h:1" in refusal(register(registry, 1, 2, "b:1"))
        assert "expects 3 tasks, process 0 expects 2" in refusal(
            register(registry, 0, 3, "a:1")
        )
        assert "task 2 is not in 0 to 1" in refusal(register(registry, 2, 2, "c:1"))
        changed.clear()
        second = register(registry, 0, 2, "a:1")
        assert changed.wait(5)
        assert registry.addresses() == ["a:1", "b:1"]
        ends = threading.Thread(target=registry.end, args=(7,))
        ends.start()
        for channel in (first, second):
            assert channel.readable(5)
            assert protocol.read(channel.receive()[0]) == protocol.Ended(7)
            channel.send(protocol.written(protocol.Bye()))
            channel.close()
        ends.join(5)
        assert not ends.is_alive()
    finally:
        registry.stop()


def test_a_launcher_that_leaves_before_the_start_is_missing() -> None:
    registry = TaskRegistry("127.0.0.1:0", 2, token="t")
    changed = threading.Event()
    registry.on_change = changed.set
    try:
        register(registry, 0, 2, "a:1").close()
        assert changed.wait(5)
        end = threading.Event()
        for _ in range(500):
            if registry.missing() == [0, 1]:
                break
            end.wait(0.01)
        assert registry.missing() == [0, 1]
    finally:
        registry.stop()
