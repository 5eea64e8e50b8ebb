"""Launches runs of servers and workers."""

import argparse
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed import jobs as jobs_module
from fxflow.distributed import launch as launch_module
from fxflow.distributed.jobs import JobLauncher, addresses_of, jobs_of, joined_run
from fxflow.distributed.launch import main
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import (
    LocalServers,
    asynchronous,
    parameter_server,
)

from .conftest import Run

pytest.importorskip("zmq")

Launch = Callable[..., Run]
ROOT = Path(__file__).parents[2]
# Sums ones; halfway, kills itself or the server, or makes the server leave.
SCRIPT = """
import json, os, signal, subprocess, sys, time
import numpy as np
from fxflow import optim
from fxflow.distributed.parameter_server import asynchronous, messages, parameter_server

task, folder = os.environ["FXFLOW_PS_TASK"], sys.argv[1]
kill, mark = sys.argv[2], os.path.join(sys.argv[1], "killed")
assert not os.environ.get("TF_CONFIG")
secret = os.environ.get("FXFLOW_PS_KEYS", "")
assert not secret or secret.endswith(",")  # no server's
print("pid", os.getpid(), flush=True)
if task == "evaluator:0":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.sigwait([signal.SIGTERM])
server = parameter_server(
    lambda w, batch: w * batch, optim.sgd(-1.0),
    consistency=asynchronous(rate="fixed"), deadline=30,
)
state = server.init(np.float32(0))
if task == "evaluator:0":
    print(json.dumps(["seen", float(server.params(state))]), flush=True)
    server.close()
    sys.exit()
for step in range(20):
    state, _ = server.step(state, np.float32(1))
    if step == 10 and task == "worker:1" and not os.path.exists(mark):
        open(mark, "w").close()
        if kill == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        if kill == "ps":
            pid = server._run.client.ask({0: messages.Hello(0)})[0].fields.pid
            os.kill(pid, signal.SIGKILL)
        if kill == "leave":
            pid = server._run.client.ask({0: messages.Hello(0)})[0].fields.pid
            os.kill(pid, signal.SIGTERM)
            while os.path.exists(f"/proc/{pid}"):
                time.sleep(0.02)
server.params(state)
print(json.dumps([task, server._run.client._sequence]), flush=True)
if task == "worker:0":
    # Until the others have finished, too.
    while sum("finished" in name for name in os.listdir(folder)) < int(sys.argv[3]):
        time.sleep(0.02)
    state, _ = server.step(state, np.float32(0))
    print(json.dumps(["total", float(server.params(state))]), flush=True)
open(os.path.join(folder, "finished " + task), "w").close()
server.close()
"""


def launched(
    tmp_path: Path, kill: str, others: int, *options: object
) -> tuple[int, str]:
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
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CONFIG": "none of ours"},
        cwd=tmp_path,
    )
    return done.returncode, done.stdout + done.stderr


def total(text: str) -> float:
    (line,) = [line for line in text.splitlines() if "total" in line]
    return float(json.loads(line.partition("] ")[2])[1])


def test_a_run_over_ssh_finishes(tmp_path: Path) -> None:
    """A script that runs the command on this machine replaces ssh."""
    ssh, hosts = tmp_path / "ssh", tmp_path / "hosts"
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        'for last; do :; done\nexec sh -c "$last"\n'
    )
    ssh.chmod(0o700)
    hosts.write_text("127.0.0.1 slots=3\n")
    options = ["--ps", "2", "--chief", "--evaluator", "--hosts", hosts, "--ssh", ssh]
    code, text = launched(tmp_path, "none", 2, *options)
    assert code == 0, text
    assert total(text) == 60
    # It evaluated after the others had finished, while the servers still ran.
    assert '[evaluator 0] ["seen", 60.0]' in text
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 6 and not any("KEYS" in line for line in asked)
    for job in ("ps 0", "ps 1"):
        assert f"[{job}] fxflow parameter-server: server" in text
    for task in ("chief:0", "worker:0", "worker:1"):
        assert f'["{task}", 20]' in text


@pytest.mark.parametrize(
    ("kill", "keep"),
    [
        pytest.param("worker", "--ps-folder", marks=pytest.mark.soak),
        pytest.param("ps", "--ps-folder", marks=pytest.mark.soak),
        ("ps", "--ps-copies"),
    ],
)
def test_a_killed_process_is_restarted(tmp_path: Path, kill: str, keep: str) -> None:
    options = ["--ps", "1", "--workers", "2", "--ps-folder", str(tmp_path / "logs")]
    if keep == "--ps-copies":
        options = ["--ps", "2", "--workers", "2", "--ps-copies", "2"]
    code, text = launched(tmp_path, kill, 1, *options)
    assert code == 0, text
    victim = "worker 1" if kill == "worker" else "ps 0"
    assert f"{victim} ended with signal 9; restarting it" in text
    if kill == "ps":
        assert total(text) == 40
    else:
        # The pushes of the first worker 1 count, except perhaps for its last one.
        assert total(text) in (50, 51)


def test_a_server_that_leaves_transfers_its_shards(tmp_path: Path) -> None:
    options = ["--ps", "2", "--ps-shards", "4", "--workers", "2"]
    code, text = launched(tmp_path, "leave", 1, *options)
    assert code == 0, text
    assert total(text) == 40
    assert "ps 0 has left; the others continue without it" in text


# Sums ones in three shards: the first worker until it is asked to end, another until
# the server of its launch holds a shard.
JOINED = """
import os, sys, time
import numpy as np
from fxflow import optim
from fxflow.distributed.parameter_server import asynchronous, parameter_server

task, folder, count = os.environ["FXFLOW_PS_TASK"], sys.argv[1], 0
server = parameter_server(
    lambda ws, batch: sum(ws) * batch, optim.sgd(-1.0),
    consistency=asynchronous(rate="fixed"), deadline=30,
)
state = server.init([np.float32(0)] * 3)

def has_finished():
    if task == "worker:0":
        return os.path.exists(os.path.join(folder, "stop"))
    view = server._run.client.view
    return count >= 20 and len(view.addresses) > 1 and view.served_by(1)

while not has_finished():
    state, _ = server.step(state, np.float32(1))
    count += 1
    time.sleep(0.005)
    if count == 1:
        print("begun", os.environ["FXFLOW_PS_WORKERS"], flush=True)
print(task, count, sorted({float(w) for w in server.params(state)}), flush=True)
server.close()
"""


def test_another_launch_joins_and_leaves(launch: Launch, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(JOINED)
    options = ["--ps", "1", "--ps-shards", "3", "--workers", "1"]
    first = launch(*options, str(script), str(tmp_path))
    said = first.wait_for("to add processes: fxflow launch (--join .*) PROGRAM")
    first.wait_for("begun 1")
    second = launch(*said[1].split(), str(script), str(tmp_path))
    assert second.end() == 0, second.text
    second.wait_for("begun 2")
    second.wait_for("server 1 ends")
    count = int(second.wait_for(r"worker:1 (\d+) ")[1])
    (tmp_path / "stop").touch()
    assert first.end() == 0, first.text
    own, total = first.wait_for(r"worker:0 (\d+) \[(\d+)\.0\]").groups()
    assert int(total) == int(own) + count


@pytest.mark.slow
def test_servers_join_without_workers(launch: Launch, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(JOINED)
    options = ["--ps", "1", "--ps-shards", "3", "--workers", "1"]
    first = launch(*options, str(script), str(tmp_path))
    servers = first.wait_for("launch --join (\\S+) ")[1]
    first.wait_for("begun 1")
    second = launch("--join", servers, "--ps", "1", "--workers", "0")
    second.wait_for("server 1 of 2 listens")
    second.process.terminate()
    assert second.end() == 128 + 15, second.text
    second.wait_for("server 1 ends$")
    (tmp_path / "stop").touch()
    assert first.end() == 0, first.text
    own, total = first.wait_for(r"worker:0 (\d+) \[(\d+)\.0\]").groups()
    assert int(total) == int(own)


def test_only_servers_that_join_need_no_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for given in [], ["--ps", "1"], ["--join", "a:1", "--ps", "1"], ["--join", "a:1"]:
        with pytest.raises(SystemExit):
            main(given)
        assert "no program given" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--join", "a:1", "--ps", "0", "--workers", "0", "x.py"])
    assert "need at least one process" in capsys.readouterr().err


def test_servers_describe_the_run_to_join() -> None:
    local = LocalServers(2, shards=3)
    cluster = dataclasses.replace(local.cluster, index=4)
    server = parameter_server(
        lambda w, batch: w * batch,
        optim.sgd(0.1),
        consistency=asynchronous(),
        cluster=cluster,
    )
    server.init(np.float32(0))
    run = joined_run(local.cluster.servers[1:], None)
    assert run == (local.cluster.servers, 3, 5)
    server.close()
    local.close()
    options = options_of(workers=2, evaluator=True, ps_folder="logs")
    jobs = jobs_of(options, ["x"], [""], ["ipc:///run/more"], run=run)
    names = ["ps 2", "worker 5", "worker 6", "evaluator 0"]
    assert [str(job) for job in jobs] == names
    command = ["--join", "ipc:///run/more", "--folder", "logs/ps-2"]
    assert jobs[0].command[-4:] == command
    told = jobs[1].environment
    assert told["FXFLOW_PS_SERVERS"] == ",".join(run.servers)
    assert (told["FXFLOW_PS_SHARDS"], told["FXFLOW_PS_WORKERS"]) == ("3", "7")


def test_joining_a_missing_run_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs_module, "_ANSWER_TIMEOUT", 0.2)
    assert main(["--join", "ipc:///nowhere/ps-0", "x.py"]) == 1
    assert "no server of the run to join answers: ipc" in capsys.readouterr().err


def test_a_permanent_failure_ends_the_run(tmp_path: Path) -> None:
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
    assert "worker 0 ended with status 3; restarting it" in done.stderr
    assert "worker 0 ended with status 3; ending the others" in done.stderr


def options_of(**given: object) -> argparse.Namespace:
    options = launch_module._parser().parse_args(["x.py"])
    return argparse.Namespace(**{**vars(options), **given})


def test_each_job_gets_its_environment() -> None:
    options = options_of(workers=1, evaluator=True, ps_folder="logs", ps_shards=6)
    addresses = ["ipc:///run/ps-0", "ipc:///run/ps-1"]
    jobs = jobs_of(options, ["python", "x.py"], [""], addresses)
    assert [str(job) for job in jobs] == ["ps 0", "ps 1", "worker 0", "evaluator 0"]
    assert [job.environment["FXFLOW_PS_TASK"] for job in jobs][1:3] == [
        "ps:1",
        "worker:0",
    ]
    assert jobs[1].command[-4:] == ["--shards", "6", "--folder", "logs/ps-1"]
    assert {job.environment["FXFLOW_PS_SHARDS"] for job in jobs} == {"6"}
    assert jobs[2].command == ["python", "x.py"]
    (told,) = {job.environment["FXFLOW_PS_WORKERS"] for job in jobs}
    assert told == "1"
    (servers,) = {job.environment["FXFLOW_PS_SERVERS"] for job in jobs}
    assert servers == ",".join(addresses)


def test_jobs_are_distributed_over_machines() -> None:
    slots = ["a", "a", "u@b", "[::1]"]
    addresses = addresses_of(["a", "u@b", "[::1]", "a"], 7000)
    assert addresses == ["a:7000", "b:7000", "[::1]:7000", "a:7001"]
    keys = Keys("a" * 40, "b" * 40, "c" * 40, "d" * 40)
    options = options_of(workers=3, chief=True, evaluator=True, heartbeat_timeout=2.0)
    jobs = jobs_of(options, ["x"], slots, addresses, keys)
    assert [(str(job), job.host) for job in jobs] == [
        ("ps 0", "a"),
        ("ps 1", "u@b"),
        ("ps 2", "[::1]"),
        ("ps 3", "a"),
        ("chief 0", "a"),
        ("worker 0", "a"),
        ("worker 1", "u@b"),
        ("worker 2", "[::1]"),
        ("evaluator 0", "a"),
    ]
    assert jobs[2].command[-4:] == ["--lost-after", "2", "--listen", "[::]:7000"]
    assert jobs[3].command[-1] == "*:7001"
    for job in jobs:
        assert not any(key in word for word in job.command for key in ("aaaa", "dddd"))
        assert ("dddd" in job.environment["FXFLOW_PS_KEYS"]) == (job.name == "ps")


@pytest.mark.parametrize(
    ("folder", "code", "message"),
    [
        (
            None,
            -9,
            "signal 9, and its state is lost (--ps-folder logs it, "
            "--ps-copies replicates it)",
        ),
        ("logs", 1, "status 1"),
    ],
)
def test_a_server_that_cannot_restart_ends_the_run(
    folder: str | None, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of(workers=1, ps_folder=folder)
    jobs = jobs_of(options, ["x"], [""], ["ipc:///run/ps-0"])
    launcher = JobLauncher(jobs, {}, options)
    assert launcher.on_end(0, code, False)
    assert launcher.status == (137 if code < 0 else 1)
    assert f"ps 0 ended with {message}; ending the others" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ps", "1", "-n", "2"], "-n is for synchronous runs"),
        (["--ps", "1", "--workers", "0"], "at least one of each"),
        (["--ps", "2", "--ps-copies", "3"], "--ps-copies must be 1 to 2"),
        (["--join", "a:1", "--workers", "0"], "at least one process"),
        (["--join", "a:1", "--chief"], "--chief is for the launch that starts a run"),
        (["--join", "a:1", "--ps-copies", "2"], "the launch that started the run"),
        (["--join", "a", "--ps", "1"], "'a'"),
        (["--join", "a:1", "--hosts", "ONE"], "set FXFLOW_PS_KEYS_FILE to the run's"),
        (
            ["--ps", "1", "--workers", "2", "--hosts", "ONE"],
            "the host file has 1 slots",
        ),
    ],
)
def test_invalid_options_exit_with_a_message(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = tmp_path / "one"
    one.write_text("node1\n")
    options = [str(one) if word == "ONE" else word for word in options]
    with pytest.raises(SystemExit) as ended:
        main([*options, "x.py"])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_interrupt_also_ends_servers(tmp_path: Path) -> None:
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
    assert "interrupted; forwarding the signal to all processes" in seen
