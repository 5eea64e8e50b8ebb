"""Runs in Ray actors, on a cluster of this machine."""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fxflow.distributed import launch
from fxflow.distributed.ray import _check_reachable, _Places, resources_of
from fxflow.errors import DistributedError
from tests.processes import check_gone

from .tasks_harness import CONTROLLER, IDLE_TASK, LAUNCH

pytest.importorskip("zmq")

ROOT = Path(__file__).parents[2]
# Sums ones. Worker 1 kills the actor of server 0, then its own.
SCRIPT = """
import json, os, signal, sys, time
import numpy as np
from fxflow import optim
from fxflow.distributed.parameter_server import asynchronous, messages, parameter_server

task, folder = os.environ["FXFLOW_PS_TASK"], sys.argv[1]
mark = os.path.join(folder, "killed")
assert os.environ["FXFLOW_PS_KEYS"].endswith(",")  # no server's
print("pid", os.getpid(), flush=True)
server = parameter_server(
    lambda w, batch: w * batch, optim.sgd(-1.0),
    consistency=asynchronous(rate="fixed"), deadline=240,
)
state = server.init(np.float32(0))
for step in range(20):
    state, _ = server.step(state, np.float32(1))
    if task == "worker:1" and not os.path.exists(mark):
        if step == 5:
            pid = server._run.client.ask({0: messages.Hello(0)})[0].fields.pid
            stat = open(f"/proc/{pid}/stat").read().rpartition(")")[2]
            os.kill(int(stat.split()[1]), signal.SIGKILL)
        if step == 10:
            open(mark, "w").close()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(240)
server.params(state)
if task == "worker:0":
    while not os.path.exists(os.path.join(folder, "through worker:1")):
        time.sleep(0.02)
    state, _ = server.step(state, np.float32(0))
    print(json.dumps(["total", float(server.params(state))]), flush=True)
open(os.path.join(folder, "through " + task), "w").close()
server.close()
"""


@pytest.fixture
def scratch() -> Iterator[str]:
    """Yields a folder whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="r-", ignore_cleanup_errors=True) as folder:
        yield folder


def launched(
    scratch: str, *options: object, launch: tuple[str, ...] = ("-m", "fxflow", "launch")
) -> tuple[int, str]:
    command = [sys.executable, *launch, "--ray", "local", *options]
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        timeout=480,
        cwd=scratch,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": scratch,  # Ray stores a token there
            "RAY_TMPDIR": scratch,
            "RAY_USAGE_STATS_ENABLED": "0",
        },
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_ray_restarts_killed_actors(scratch: str) -> None:
    pytest.importorskip("ray", reason="pip install 'fxflow[ray]'")
    script = Path(scratch) / "train.py"
    script.write_text(SCRIPT)
    options = ["--ps", "2", "--workers", "2", "--ps-copies", "2", "--timeout", "240"]
    # More processes than a small machine has cores.
    options += ["--server-resources", "CPU=0.1", "--worker-resources", "CPU=0.1"]
    code, text = launched(scratch, *options, script, scratch)
    assert code == 0, text
    for job in ("ps 0", "worker 1"):
        assert f"{job}: its actor died; Ray has started another" in text, text
    # Server 0 listens at the same address.
    places = re.findall(r"server 0 of 2 listens at tcp://\S+:(\d+)", text)
    assert len(places) == 2 and len(set(places)) == 1, text
    (line,) = [line for line in text.splitlines() if "total" in line]
    total = json.loads(line.partition("] ")[2])[1]
    # 20 pushes of each worker, and those of the first worker 1 except perhaps the last.
    assert total in (50, 51), text
    assert len(re.findall(r"\[worker \d\] pid", text)) == 3
    check_gone(scratch)


@pytest.mark.slow
def test_tasks_run_in_actors(scratch: str) -> None:
    """A killed task and a killed actor are restarted; the program runs once."""
    pytest.importorskip("ray", reason="pip install 'fxflow[ray]'")
    (Path(scratch) / "idle_task.py").write_text(IDLE_TASK)
    script = Path(scratch) / "controller.py"
    script.write_text(
        f"{CONTROLLER}"
        "first = pids(0, 1)[0]\n"
        "os.kill(first, signal.SIGKILL)\n"
        "stat = open(f'/proc/{pids(1, 1)[0]}/stat').read().rpartition(')')[2]\n"
        "os.kill(int(stat.split()[1]), signal.SIGKILL)\n"
        "pids(0, 2), pids(1, 2)\n"
        "sys.exit(3)\n"
    )
    options = ["--tasks", "2", "--task-resources", "CPU=0.1", "--timeout", "240"]
    options += ["--worker-resources", "CPU=0.1", "--devices-per-process", "2"]
    code, text = launched(scratch, *options, script, launch=("-c", LAUNCH))
    assert code == 3, text
    assert "task 0 ended with signal 9; restarting it" in text
    assert "task 1: its actor died; Ray has started another" in text, text
    (found,) = re.findall(r"addresses (\S+) (\S+) keys client", text)
    for number, address in enumerate(found):
        listens = f"*:{address.rpartition(':')[2]}"
        # The line of a process that was killed may be lost with its actor.
        assert f"serves {address} {listens} keys server 2" in text, text
        assert f"[task {number}] serves" in text, text
    check_gone(scratch)


@pytest.mark.slow
def test_actors_that_cannot_be_placed_are_reported(scratch: str) -> None:
    pytest.importorskip("ray", reason="pip install 'fxflow[ray]'")
    options = ["--ps", "1", "--workers", "2", "--server-resources", "CPU=0.1"]
    code, text = launched(scratch, *options, "--worker-resources=gold=1", "train.py")
    assert code == 1
    # It fails at once: no machine can be added to a local cluster.
    assert "this machine has too few resources: the 3 processes take gold=2" in text
    assert "in total, but there is gold=0 (--server-resources and" in text, text
    check_gone(scratch)


class FakeGroup:
    """A placement group that is ready after `asked` calls of `wait`."""

    def __init__(self, asked: int) -> None:
        self.asked, self.waited = asked, 0.0

    def wait(self, seconds: float) -> bool:
        self.asked -= 1
        self.waited += seconds
        return self.asked < 0


def places(group: FakeGroup, ray: str = "auto") -> _Places:
    """Returns `_Places` for a cluster of two machines with 2 CPUs each."""
    found = _Places.__new__(_Places)
    nodes = [{"Alive": True, "Resources": {"CPU": 2.0}}] * 2
    nodes.append({"Alive": False, "Resources": {"CPU": 64.0}})
    found.ray = SimpleNamespace(
        nodes=lambda: nodes,
        available_resources=lambda: {"CPU": 1.0},
        util=SimpleNamespace(placement_group=lambda *_: group),
    )
    found._options = argparse.Namespace(ray=ray, start_timeout=300.0, tasks=None)
    found._groups, found.actors = [], []
    return found


def test_waiting_for_a_placement_is_reported_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    never = FakeGroup(asked=9)
    with pytest.raises(DistributedError, match="did not place ps 0, ps 1 within 300 s"):
        places(never).reserve(["ps 0", "ps 1"], {"CPU": 1.0})
    assert never.waited == 300.0
    said = capsys.readouterr().err
    assert "waiting up to 300 s for Ray to place ps 0, ps 1: each takes CPU=1" in said
    assert "free in total: CPU=1" in said


def test_too_few_resources_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    some, many = [{"CPU": 1.0}] * 4, [{"CPU": 1.0}] * 5
    places(FakeGroup(0)).check(some)
    assert not capsys.readouterr().err
    # Machines may be added to a cluster, but not to a local one.
    places(FakeGroup(0)).check(many)
    said = capsys.readouterr().err
    assert "the 5 processes take CPU=5 in total, but there is CPU=4" in said
    assert "waiting up to 300 s for Ray to add machines" in said
    with pytest.raises(DistributedError, match="CPU=5 in total, but there is CPU=4"):
        places(FakeGroup(0), ray="local").check(many)
    with pytest.raises(DistributedError, match="CPU=3 on one machine, but no machine"):
        places(FakeGroup(0), ray="local").check([{"CPU": 3.0}])


@pytest.mark.parametrize(
    "text", ["", "CPU", "CPU=x", "CPU=0", "=1", "CPU=1,,", "A=inf"]
)
def test_invalid_resources_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="resources must be NAME=NUMBER"):
        resources_of(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ray", "auto"], "--ray is for servers and workers, or tasks: add --ps N"),
        (["--ray", "auto", "--ps", "1", "--hosts", "HOSTS"], "--hosts and --ray both"),
        (["--ps", "1", "--worker-resources", "GPU"], "resources must be NAME=NUMBER"),
    ],
)
def test_incompatible_options_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("node1\n")
    words = [str(hosts) if word == "HOSTS" else word for word in options]
    with pytest.raises(SystemExit) as caught:
        launch.main([*words, "train.py"])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_missing_cluster_is_reported() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # no process listens there
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(DistributedError, match=f"no Ray cluster .* {address}"):
            _check_reachable(address)
    for text in ("auto", "local", "ray://127.0.0.1:1"):
        _check_reachable(text)  # Ray detects these addresses


def test_a_missing_ray_package_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit):
        launch.main(["--ray", "auto", "--ps", "1", "train.py"])
    assert "pip install 'fxflow[ray]'" in capsys.readouterr().err
