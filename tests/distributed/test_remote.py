import inspect
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fxflow.distributed import remote

from .conftest import ROOT, processes


def order(command: list[str], folder: str = "/", **environment: str) -> str:
    text = {"command": command, "environment": environment, "folder": folder}
    return json.dumps(text) + "\n"


def test_it_runs(tmp_path: Path) -> None:
    code = "import os, sys; open('x', 'w').write(os.environ['A']); sys.exit(5)"
    text = order([sys.executable, "-c", code], str(tmp_path), A="b")
    assert remote.main(io.StringIO(text)) in (5, 143)
    # The orders end at once here, so it may be ended before it has written.


def test_no_such_command(capfd: pytest.CaptureFixture[str]) -> None:
    # The orders go on: at their end it would be ended.
    text = order(["/no/such"], "/no/folder")
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    with open(reader) as orders:
        before = os.getcwd()
        assert remote.main(orders) == 127
        assert os.getcwd() == before
        os.close(writer)
        time.sleep(0.1)  # its thread reads to the end
    said = capfd.readouterr().err
    assert f"/no/folder: No such file or directory; running in {before}" in said
    assert "/no/such: No such file" in said


def test_it_needs_nothing_but_python() -> None:
    """Its text is sent to machines on which nothing of fxflow may be imported."""
    text = inspect.getsource(remote)
    code = "import json, sys; exec(json.loads(sys.stdin.readline()))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        input=json.dumps(text) + "\n" + order(["sh", "-c", "exit 6"]) + "\n" * 9,
        text=True,
        timeout=20,
    )
    assert done.returncode in (6, 143)


def start_led(mark: str) -> subprocess.Popen[str]:
    """A leader, and a command of two processes that it leads."""
    name, _, value = mark.partition("=")
    process = subprocess.Popen(
        [sys.executable, "-m", "fxflow.distributed.remote"],
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
def test_it_is_killed() -> None:
    """What it leads is a shell here; what that started is not in anybody's reach."""
    mark = f"MARK=killed-{os.getpid()}-{time.monotonic_ns()}"
    process = start_led(mark)
    (shell,) = (pid for pid in processes(mark) if b"60 &" in command_of(pid))
    process.kill()
    process.communicate(timeout=20)
    try:
        wait_until(lambda: shell not in processes(mark))
    finally:
        for pid in processes(mark):
            os.kill(pid, 9)


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_it_ends_when_the_connection_does() -> None:
    mark = f"MARK=remote-{os.getpid()}-{time.monotonic_ns()}"
    process = start_led(mark)
    assert process.stdin is not None
    process.stdin.write("signal 18\n")
    process.stdin.close()
    assert process.wait(20) == 143
    wait_until(lambda: not processes(mark))
