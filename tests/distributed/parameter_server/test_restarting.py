"""Servers restart one by one under training, and no push is lost."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    asynchronous,
    parameter_server,
    restart_servers,
)
from fxflow.distributed.parameter_server.command import main
from fxflow.distributed.parameter_server.monitor import polling
from fxflow.distributed.parameter_server.restarting import RESTART
from fxflow.errors import DistributedError
from tests import processes

pytest.importorskip("zmq")

ROOT = Path(__file__).parents[3]
SCRIPT = """
import os, sys, time
import numpy as np
from fxflow import optim
from fxflow.distributed.parameter_server import asynchronous, parameter_server

server = parameter_server(
    lambda w, batch: w * batch, optim.sgd(-1.0),
    consistency=asynchronous(rate="fixed"), deadline=60,
)
state = server.init(np.float32(0))
steps, task = 0, os.environ["FXFLOW_PS_TASK"]
while not os.path.exists(sys.argv[1] + "/stop"):
    state, _ = server.step(state, np.float32(1))
    steps += 1
    time.sleep(0.01)
server.params(state)
print("steps", steps, flush=True)
open(sys.argv[1] + "/" + task, "w").close()
if task == "worker:0":
    while not os.path.exists(sys.argv[1] + "/worker:1"):
        time.sleep(0.02)
    state, _ = server.step(state, np.float32(0))
    print("total", float(server.params(state)), flush=True)
server.close()
"""


def test_a_server_that_would_lose_its_state_refuses() -> None:
    local = LocalServers(1)
    server = parameter_server(
        lambda w, x: w * x,
        optim.sgd(1.0),
        consistency=asynchronous(),
        cluster=local.cluster,
    )
    server.init(np.float32(0))
    with pytest.raises(DistributedError, match="neither a folder nor copies"):
        restart_servers(local.cluster.servers, deadline=10)
    server.close()
    local.close()


def test_missing_servers_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "PATIENCE", 0.2)
    with pytest.raises(DistributedError, match=r"no server .*: 127.0.0.1:1 \(no proc"):
        restart_servers(["127.0.0.1:1"], deadline=0.1)
    assert main(["restart", "--servers", "127.0.0.1:1", "--deadline", "0.1"]) == 1
    assert "no server of the run answers" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--ps-folder", "logs"], ["--ps-copies", "2"]])
def test_no_push_is_lost_while_all_servers_restart(
    tmp_path: Path, options: list[str]
) -> None:
    """A drill: both servers restart twice while two workers count their pushes."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "fxflow", "launch", "--ps", "2", "--workers", "2"]
    command += ["--restarts", "0", *options, str(script), str(tmp_path)]
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    ) as launcher:
        assert launcher.stdout is not None
        reader = threading.Thread(target=lambda: lines.extend(launcher.stdout or ()))
        reader.start()
        try:
            servers = until(lambda: addresses(lines))
            until(lambda: any("listens" in line for line in lines))
            told: list[str] = []
            for _ in range(2):
                restart_servers(servers, deadline=60, log=told.append)
            (tmp_path / "stop").touch()
            assert launcher.wait(60) == 0, "".join(lines)
        finally:
            if launcher.poll() is None:
                launcher.send_signal(signal.SIGTERM)
                launcher.wait(30)
            reader.join(10)
    text = "".join(lines)
    assert len(told) == 4
    assert text.count("ended to be restarted") == 4
    steps = [int(n) for n in re.findall(r"steps (\d+)", text)]
    (total,) = re.findall(r"total ([\d.]+)", text)
    assert len(steps) == 2 and float(total) == sum(steps), text
    assert min(steps) > 20
    processes.check_gone(str(tmp_path))


def addresses(lines: list[str]) -> list[str]:
    found = re.findall(r"watch --servers (\S+)", "".join(lines))
    return found[0].split(",") if found else []


def until(find: Any) -> Any:
    end = time.monotonic() + 60
    while not (found := find()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def test_the_status_is_that_of_a_temporary_failure() -> None:
    assert RESTART == os.EX_TEMPFAIL
