"""Launches runs of tasks and a controller."""

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fxflow.distributed import launch as launch_module
from fxflow.distributed.launch import main
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.tasks import task_jobs

from .conftest import Run
from .tasks_harness import CONTROLLER, IDLE_TASK, LAUNCH

pytest.importorskip("zmq")

ROOT = Path(__file__).parents[2]
Start = Callable[..., Run]
Write = Callable[..., str]


@pytest.fixture
def run_tasks(start: Start, write: Write) -> Start:
    """Starts ``fxflow launch --tasks`` with tasks that do nothing."""
    write(IDLE_TASK, "idle_task.py")

    def run_tasks(code: str, *options: str) -> Run:
        return start(
            *(sys.executable, "-c", LAUNCH, *options),
            write(CONTROLLER + code),
            TF_CONFIG="none of ours",
        )

    return run_tasks


def test_the_program_runs_once_and_its_status_counts(run_tasks: Start) -> None:
    code = "pids(0, 1), pids(1, 1)\nassert not os.environ['TF_CONFIG']\nsys.exit(3)"
    run = run_tasks(code, "--tasks", "2", "--devices-per-process", "4")
    assert run.end() == 3, run.text
    found = run.wait_for(r"^\[controller 0\] addresses (\S+) (\S+) keys none$")
    folder = re.fullmatch(r"ipc://(/.*)/task-0", found[1])
    assert folder and found[2] == f"ipc://{folder[1]}/task-1"
    for number in range(2):
        address = found[number + 1]
        assert f"[task {number}] serves {address} None keys none 4" in run.out
    assert not os.path.exists(folder[1])


def test_a_task_that_dies_is_restarted(run_tasks: Start) -> None:
    code = (
        "pids(0, 1)\n"
        "for count in (1, 2):\n"
        "    os.kill(pids(1, count)[-1], signal.SIGKILL)\n"
        "while not os.path.exists('end'): time.sleep(0.01)\n"
    )
    run = run_tasks(code, "--tasks", "2", "--restarts", "1")
    run.wait_for("task 1 ended with signal 9; restarting it")
    run.wait_for("task 1 ended with signal 9; the run continues without it")
    assert run.process.poll() is None
    Path(run.cwd, "end").touch()
    assert run.end() == 0, run.text


def test_a_task_that_cannot_start_ends_the_run(
    run_tasks: Start, tmp_path: Path
) -> None:
    (tmp_path / "fail-1").touch()
    run = run_tasks("time.sleep(60)", "--tasks", "2")
    assert run.end() == 1, run.text
    assert "task 1 ended with status 1; ending the others" in run.text


def test_tasks_over_ssh_get_keys(run_tasks: Start, tmp_path: Path) -> None:
    """A script that runs the command on this machine replaces ssh."""
    ssh, hosts = tmp_path / "ssh", tmp_path / "hosts"
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        'for last; do :; done\nexec sh -c "$last"\n'
    )
    ssh.chmod(0o700)
    hosts.write_text("127.0.0.1 slots=2\nlocalhost\n")
    run = run_tasks(
        "[pids(n, 1) for n in range(3)]",
        *("--tasks", "3", "--hosts", str(hosts), "--ssh", str(ssh), "--port", "7100"),
    )
    assert run.end() == 0, run.text
    places = ["127.0.0.1:7100", "127.0.0.1:7101", "localhost:7100"]
    assert f"[controller 0] addresses {' '.join(places)} keys client" in run.out
    for number, place in enumerate(places):
        listens = f"*:{place.rpartition(':')[2]}"
        assert f"[task {number}] serves {place} {listens} keys server None" in run.out
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 4 and not any("KEYS" in line for line in asked)


@pytest.mark.slow
def test_a_program_continues_when_a_task_is_killed(launch: Start) -> None:
    """With real tasks: `dataflow.elastic` continues, the launcher restarts the task."""
    program = ROOT / "examples" / "multi_host" / "stages.py"
    run = launch("--tasks", "3", str(program), "--steps", "400")
    run.wait_for("step 50: loss", 120)
    os.kill(pid_of_task(run.process.pid, 1), signal.SIGKILL)
    run.wait_for("task 1 ended with signal 9; restarting it")
    run.wait_for(r"task:1 is lost: .*; continuing from step \d+ with tasks 0, 2")
    assert run.end(120) == 0, run.text
    assert "done: 400 steps, norm of the weights" in run.text


def pid_of_task(launcher: int, index: int) -> int:
    """Returns the process id of a task that a launcher has started."""
    for path in Path(f"/proc/{launcher}/task").glob("*/children"):
        for pid in path.read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"--index" in words and int(words[words.index(b"--index") + 1]) == index:
                return int(pid)
    raise AssertionError(f"there is no task {index}")


def test_the_controller_runs_on_the_first_machine() -> None:
    options = launch_module._parser().parse_args(["x.py"])
    keys = Keys("a" * 40, "b" * 40, "c" * 40, "d" * 40)
    jobs = task_jobs(options, ["x"], ["u@b", "a"], ["b:1", "a:1"], keys)
    assert [(str(job), job.host) for job in jobs] == [
        ("task 0", "u@b"),
        ("task 1", "a"),
        ("controller 0", "u@b"),
    ]
    for job in jobs:
        assert not any(key in word for word in job.command for key in ("cccc", "dddd"))
        assert ("dddd" in job.environment["FXFLOW_PS_KEYS"]) == (job.name == "task")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tasks", "2", "-n", "2"], "-n is for programs that run in every process"),
        (["--tasks", "2", "--ps", "1"], "--ps is for programs that run in every"),
        (["--tasks", "2", "--elastic", "1:2"], "--elastic is for programs"),
        (["--tasks", "0"], "takes the number of tasks, or 'auto', got '0'"),
        (["--tasks", "many"], "takes the number of tasks, or 'auto', got 'many'"),
        (
            ["--tasks", "3", "--hosts", "TWO"],
            "--tasks 3, but the host file has 2 slots",
        ),
        (["--tasks", "1", "--hosts", "TWO", "--ray", "auto"], "give only one"),
        (["--tasks", "auto", "--hosts", "TWO"], "a cluster manager decides"),
    ],
)
def test_incompatible_options_are_refused(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    two = tmp_path / "two"
    two.write_text("node1\nnode2\n")
    options = [str(two) if word == "TWO" else word for word in options]
    with pytest.raises(SystemExit) as ended:
        main([*options, "x.py"])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
