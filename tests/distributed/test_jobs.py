"""Runs of servers and workers, launched."""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fxflow.distributed.jobs import jobs_of
from fxflow.distributed.launch import main

pytest.importorskip("zmq")

ROOT = Path(__file__).parents[2]
# Adds up ones, and kills what it is told to in the middle.
SCRIPT = """
import json, os, signal, subprocess, sys, time
import numpy as np
from fxflow import optim
from fxflow.distributed.parameter_server import asynchronous, parameter_server

task, folder = os.environ["FXFLOW_PS_TASK"], sys.argv[1]
kill, mark = sys.argv[2], os.path.join(sys.argv[1], "killed")
server = parameter_server(
    lambda w, batch: w * batch, optim.sgd(-1.0),
    consistency=asynchronous(rate="fixed"), deadline=30,
)
state = server.init(np.float32(0))
for step in range(20):
    state, _ = server.step(state, np.float32(1))
    if step == 10 and task == "worker:1" and not os.path.exists(mark):
        open(mark, "w").close()
        if kill == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        if kill == "ps":
            pid = server._client.ask(0, "hello", shard=0).fields["pid"]
            os.kill(pid, signal.SIGKILL)
server.params(state)
print(json.dumps([task, server._client._sequence]), flush=True)
if task == "worker:0":
    # Until the others are through, too.
    while sum("through" in name for name in os.listdir(folder)) < int(sys.argv[3]):
        time.sleep(0.02)
    state, _ = server.step(state, np.float32(0))
    print(json.dumps(["total", float(server.params(state))]), flush=True)
open(os.path.join(folder, "through " + task), "w").close()
server.close()
"""


def launched(tmp_path: Path, kill: str, others: int, *options: str) -> tuple[int, str]:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    folder = tmp_path / "folder"
    folder.mkdir()
    command = [sys.executable, "-m", "fxflow", "launch", *options, script, folder, kill]
    done = subprocess.run(
        [*map(str, command), str(others)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )
    return done.returncode, done.stdout + done.stderr


def total(text: str) -> float:
    (line,) = [line for line in text.splitlines() if "total" in line]
    return float(json.loads(line.partition("] ")[2])[1])


def test_workers_share_servers(tmp_path: Path) -> None:
    options = ["--ps", "2", "--workers", "2", "--chief"]
    code, text = launched(tmp_path, "nobody", 2, *options)
    assert code == 0, text
    assert total(text) == 60
    for job in ("ps 0", "ps 1"):
        assert f"[{job}] fxflow parameter-server: server" in text
    for task in ("chief:0", "worker:0", "worker:1"):
        assert f'["{task}", 20]' in text


@pytest.mark.parametrize("kill", [pytest.param("worker", marks=pytest.mark.soak), "ps"])
def test_a_killed_process_is_started_again(tmp_path: Path, kill: str) -> None:
    options = ["--ps", "1", "--workers", "2", "--ps-folder", str(tmp_path / "logs")]
    code, text = launched(tmp_path, kill, 1, *options)
    assert code == 0, text
    victim = "worker 1" if kill == "worker" else "ps 0"
    assert f"{victim} ended with signal 9; it is started again" in text
    if kill == "ps":
        assert total(text) == 40
    else:
        # What the first worker 1 pushed is there; its last push may not have been sent.
        assert total(text) in (50, 51)


def test_a_failure_for_good_ends_the_run(tmp_path: Path) -> None:
    script = tmp_path / "fail.py"
    script.write_text("raise SystemExit(3)")
    command = ["launch", "--ps", "1", "--workers", "1", "--restarts", "1", str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "fxflow", *command],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 3, done.stderr
    assert "worker 0 ended with status 3; it is started again" in done.stderr
    assert "worker 0 ended with status 3; ending the others" in done.stderr


def test_jobs_are_told_theirs(tmp_path: Path) -> None:
    options = argparse.Namespace(
        ps=2, workers=1, chief=False, evaluator=True, ps_folder="logs"
    )
    jobs = jobs_of(options, ["python", "x.py"], str(tmp_path))
    assert [str(job) for job in jobs] == ["ps 0", "ps 1", "worker 0", "evaluator 0"]
    assert [job.environment["FXFLOW_PS_TASK"] for job in jobs][1:3] == [
        "ps:1",
        "worker:0",
    ]
    assert jobs[0].command[-2:] == ["--folder", "logs"]
    assert jobs[2].command == ["python", "x.py"]
    (told,) = {job.environment["FXFLOW_PS_WORKERS"] for job in jobs}
    assert told == "1"
    (servers,) = {job.environment["FXFLOW_PS_SERVERS"] for job in jobs}
    assert servers == f"ipc://{tmp_path}/ps-0,ipc://{tmp_path}/ps-1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ps", "1", "-n", "2"], "-n is for processes in step"),
        (["--ps", "1", "--workers", "0"], "at least one of each"),
    ],
)
def test_options(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*options, "x.py"])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_interrupt_ends_servers_too(tmp_path: Path) -> None:
    script = tmp_path / "wait.py"
    script.write_text("import time\nprint('here', flush=True)\ntime.sleep(60)")
    command = ["launch", "--ps", "1", "--workers", "1", str(script)]
    process = subprocess.Popen(
        [sys.executable, "-m", "fxflow", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    seen = ""
    while "here" not in seen or "listens" not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line
    process.send_signal(signal.SIGINT)
    seen += process.communicate(timeout=30)[0]
    assert process.returncode == 130, seen
    assert "interrupted; all processes are told so" in seen
