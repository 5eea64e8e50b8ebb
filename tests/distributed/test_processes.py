import asyncio
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fxflow.distributed import processes as module
from fxflow.distributed.processes import Backoff, Process, lead, status_of

from .conftest import ROOT, processes


def order(command: list[str], folder: str = "/", **environment: str) -> str:
    text = {"command": command, "environment": environment, "folder": folder}
    return json.dumps(text) + "\n"


def test_a_leader_runs_the_command_in_its_orders(tmp_path: Path) -> None:
    code = "import os, sys; open('x', 'w').write(os.environ['A']); sys.exit(5)"
    text = order([sys.executable, "-c", code], str(tmp_path), A="b")
    assert lead(io.StringIO(text)) in (5, 143)
    # The orders end at once, so the command may be ended before it writes.


def test_missing_folders_and_commands_are_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    # Keep the orders open: their end would end the process.
    text = order(["/no/such"], "/no/folder")
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    with open(reader) as orders:
        before = os.getcwd()
        assert lead(orders) == 127
        assert os.getcwd() == before
        os.close(writer)
        time.sleep(0.1)  # its thread reads until the end
    said = capfd.readouterr().err
    assert f"/no/folder: No such file or directory; running in {before}" in said
    assert "/no/such: No such file" in said


def test_the_module_imports_only_the_standard_library() -> None:
    """Its source is sent to machines without fxflow."""
    text = inspect.getsource(module)
    code = "import json, sys; exec(json.loads(sys.stdin.readline()))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        input=json.dumps(text) + "\n" + order(["sh", "-c", "exit 6"]) + "\n" * 9,
        text=True,
        timeout=20,
    )
    assert done.returncode in (6, 143)


def test_exit_statuses_are_those_of_the_shell() -> None:
    assert [status_of(code) for code in (0, 3, -9)] == [0, 3, 137]


def test_a_process_reports_its_exit_status(tmp_path: Path) -> None:
    command = ["sh", "-c", 'read word; echo "$word $A"; pwd; exit 3']
    process = Process(
        command, {"A": "b"}, folder=str(tmp_path), output=True, orders=True
    )
    assert process.poll() is None and process.wait(0.01) is None
    assert process.stdin is not None and process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"said\n")
    process.stdin.close()
    assert process.wait(20) == process.poll() == 3
    assert process.stdout.read() == f"said b\n{tmp_path}\n".encode()
    process.stdout.close()
    process.stderr.close()


def test_kill_ends_the_process_group() -> None:
    process = Process(["sh", "-c", "sleep 60 & sleep 60"])

    async def end() -> int:
        asyncio.get_running_loop().call_later(0.05, process.kill)
        return await asyncio.wrap_future(process.ended)

    assert asyncio.run(end()) == -signal.SIGKILL
    process.kill()  # no process is left


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_the_memory_of_a_process_is_measured() -> None:
    process = Process([sys.executable, "-c", "input()"], orders=True)
    wait_until(lambda: process.memory > 1 << 20)
    process.kill()
    assert process.wait(20) == -signal.SIGKILL
    assert process.memory == 0
    assert process.stdin is not None
    process.stdin.close()


def test_backoff_grows_to_a_limit_and_is_reset() -> None:
    backoff, seconds = Backoff(), []
    for _ in range(2000):
        backoff = backoff.after(ran=1.0)
        seconds.append(backoff.seconds)
    assert seconds == sorted(seconds) and seconds[-1] == 30.0
    assert seconds[:4] == [0.0, 0.1, 0.2, 0.4]
    assert backoff.after(ran=11.0).seconds == 0.0


def start_led(mark: str) -> subprocess.Popen[str]:
    """Starts a leader with a command of two processes."""
    name, _, value = mark.partition("=")
    process = subprocess.Popen(
        [sys.executable, "-m", "fxflow.distributed.processes"],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(order(["sh", "-c", "sleep 60 & sleep 60"], **{name: value}))
    process.stdin.flush()
    wait_until(lambda: len(processes(mark)) >= 2)
    return process


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    assert true()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_a_process_dies_with_its_leader() -> None:
    """The shell that it leads dies; the shell's own children are not checked."""
    mark = f"MARK=killed-{os.getpid()}-{time.monotonic_ns()}"
    process = start_led(mark)
    try:
        # Until it runs `sleep`, a child of the shell has the shell's command line.
        wait_until(lambda: len(shells(mark)) == 1)
        (shell,) = shells(mark)
        process.kill()
        process.communicate(timeout=20)
        wait_until(lambda: shell not in processes(mark))
    finally:
        process.kill()
        process.communicate(timeout=20)
        for pid in processes(mark):
            os.kill(pid, 9)


def shells(mark: str) -> list[int]:
    return [pid for pid in processes(mark) if b"60 &" in command_of(pid)]


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_process_ends_when_its_orders_end() -> None:
    mark = f"MARK=orders-{os.getpid()}-{time.monotonic_ns()}"
    process = start_led(mark)
    assert process.stdin is not None
    process.stdin.write("signal 18\n")
    process.stdin.close()
    assert process.wait(20) == 143
    wait_until(lambda: not processes(mark))
