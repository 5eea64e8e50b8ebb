"""`fxflow coordinator`: runs without a launcher."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fxflow.train.checkpoint import Checkpointer
from tests.deploy.checkout import ROOT, environment

PROGRAM = ("-m", "fxflow", "coordinator")
HELLO = "examples/multi_host/hello.py"
SURVIVE = "examples/multi_host/survive.py"
DEADLINE = 60


class Process:
    """A process whose output is read as a file."""

    def __init__(self, folder: Path, *command: str, **variables: str) -> None:
        self.path = folder / f"{len(list(folder.iterdir()))}.log"
        with self.path.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment(
                    # A process that aborts prints the stacks of its threads.
                    **{"FXFLOW_TOKEN": "secret", "PYTHONFAULTHANDLER": "1"} | variables
                ),
                stdout=output,
                stderr=output,
            )

    def text(self) -> str:
        return self.path.read_text()

    def wait(self) -> int:
        return self.process.wait(DEADLINE)

    def says(self, pattern: str, times: int = 1) -> re.Match[str]:
        """Waits until the output has `times` matches of `pattern`."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            found = list(re.finditer(pattern, self.text()))
            if len(found) >= times:
                return found[times - 1]
            assert self.process.poll() is None, self.text()
            time.sleep(0.02)
        raise AssertionError(f"no {pattern!r} in:\n{self.text()}")


class Run:
    """A coordinator and the processes of its runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[Process] = []

    def start(self, *command: str, **variables: str) -> Process:
        process = Process(self.folder, *command, **variables)
        self.all.append(process)
        return process

    def coordinator(self, *options: str) -> Process:
        self.main = self.start(*PROGRAM, "--address=127.0.0.1", "--port=0", *options)
        self.port = self.main.says(r"port (\d+)")[1]
        return self.main

    def pod(self, index: int, program: str, **variables: str) -> Process:
        """Starts a process with the environment of a pod of an Indexed Job."""
        return self.start(
            program,
            **{
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "JOB_COMPLETION_INDEX": str(index),
                "FXFLOW_NUM_PROCESSES": "2",
                "FXFLOW_COORDINATOR_ADDRESS": f"127.0.0.1:{self.port}",
                "FXFLOW_COORDINATOR_HOSTED": "1",
            }
            | variables,
        )

    def worker(self, number: int, *arguments: str) -> Process:
        return self.start(
            SURVIVE,
            *arguments,
            FXFLOW_PROCESS_ID=str(number),
            FXFLOW_ELASTIC_ADDRESS=f"127.0.0.1:{self.port}",
            XLA_FLAGS="--xla_cpu_collective_timeout_seconds=20",
        )


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    folder = tmp_path / "logs"
    folder.mkdir()
    result = Run(folder)
    yield result
    for started in result.all:
        if started.process.poll() is None:
            started.process.kill()
            started.process.wait(DEADLINE)


def test_another_run_follows_a_failed_one(run: Run, tmp_path: Path) -> None:
    """A run loses a process; all are restarted, join, and finish."""
    fatal = tmp_path / "fatal.py"
    fatal.write_text(
        "import os, fxflow\n"
        "fxflow.distributed.initialize()\n"
        "fxflow.devices.devices()\n"
        "fxflow.distributed.multihost.sync_global_devices('together', timeout=20)\n"
        "if fxflow.process_index(): os.kill(os.getpid(), 9)\n"
        "fxflow.distributed.multihost.sync_global_devices('never', timeout=20)\n"
    )
    coordinator = run.coordinator("--num-processes=2")
    first = [run.pod(k, str(fatal)) for k in range(2)]
    assert first[1].wait() == -signal.SIGKILL, first[1].text()
    assert first[0].wait() == 1, first[0].text() + coordinator.text()
    assert "process 1" in first[0].text() and "is lost" in first[0].text()
    coordinator.says("process 1 is lost: its connection was closed")
    coordinator.says(r"waiting for 2 processes", times=2)
    second = [run.pod(k, HELLO) for k in range(2)]
    assert [p.wait() for p in second] == [0, 0], [p.text() for p in second]
    assert "processes [0, 1] were here" in second[0].text()
    assert coordinator.wait() == 0
    assert "the run is done" in coordinator.text()


def test_another_token_is_refused(run: Run) -> None:
    run.coordinator("--num-processes=2")
    other = run.pod(0, HELLO, FXFLOW_TOKEN="another")
    assert other.wait() == 1
    assert "token" in other.text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--num-processes=2"], "giving up: processes [0, 1] did not join"),
        (["--elastic=1:2"], "0 workers are ready, at least 1"),
    ],
)
def test_missing_processes_end_the_command(
    run: Run, options: list[str], words: str
) -> None:
    coordinator = run.coordinator(*options, "--start-timeout=0.3")
    assert coordinator.wait() == 1
    assert words in coordinator.text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command(run: Run, number: signal.Signals) -> None:
    coordinator = run.coordinator("--elastic=1:2")
    coordinator.process.send_signal(number)
    assert coordinator.wait() == 128 + number


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--num-processes"),
        (["--num-processes=0"], "at least 1, got 0"),
        (["--elastic=3:2"], "MIN:MAX"),
        (["--elastic=2:4", "--num-processes=2"], "not allowed with"),
    ],
)
def test_invalid_command_lines_exit_with_a_message(
    run: Run, options: list[str], words: str
) -> None:
    wrong = run.start(*PROGRAM, *options)
    assert wrong.wait() == 2
    assert words in wrong.text()


def test_the_command_without_processes_gives_up(run: Run) -> None:
    served = run.start(*PROGRAM, "-n1", "--port=0", "--start-timeout=0")
    assert served.wait() == 1
    assert "fxflow coordinator: giving up" in served.text()


def test_port_in_use(run: Run) -> None:
    run.coordinator("--num-processes=1")
    second = run.start(*PROGRAM, "-n1", "--address=127.0.0.1", f"--port={run.port}")
    assert second.wait() == 1
    assert "the port is in use" in second.text()


@pytest.mark.slow
def test_an_elastic_run_replaces_workers_and_resumes(run: Run, tmp_path: Path) -> None:
    """A worker dies, another joins; all get SIGTERM; the next run continues."""
    given = ["--steps=250", f"--checkpoints={tmp_path / 'state'}"]
    coordinator = run.coordinator("--elastic=1:2")
    one, two = run.worker(0, *given), run.worker(1, *given)
    coordinator.says(r"epoch \d+: workers (0, 1|1, 0)")
    os.kill(two.process.pid, signal.SIGKILL)
    coordinator.says("worker 1 is lost")
    again = run.worker(1, *given)
    coordinator.says(r"worker 1 .* has joined", times=2)
    coordinator.says(r"epoch \d+: workers (0, 1|1, 0)", times=2)
    one.process.send_signal(signal.SIGTERM)
    assert [one.wait(), again.wait()] == [75, 75], one.text() + again.text()
    step = int(re.search(r"after step (\d+) is saved", one.text())[1])
    assert Checkpointer(tmp_path / "state").steps() == [step]
    coordinator.says("waiting for 1:2 workers", times=2)
    last = run.worker(0, *given)
    assert last.wait() == 0, last.text()
    assert f"from step {step}" in coordinator.text()
    assert re.search(r"done: 250 steps, weights \[-?0.0, 1.0, 2.0, 3.0, 4", last.text())
    assert coordinator.wait() == 0
