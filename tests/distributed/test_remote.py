import io
import json
import os
import subprocess
import sys
import time
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


def test_no_such_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert remote.main(io.StringIO(order(["/no/such"]))) == 127
    assert "/no/such: No such file" in capsys.readouterr().err


def test_it_ends_when_the_connection_does() -> None:
    mark = f"MARK=remote-{os.getpid()}-{time.monotonic_ns()}"
    name, _, value = mark.partition("=")
    process = subprocess.Popen(
        [sys.executable, "-m", "fxflow.distributed.remote"],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert process.stdin is not None
    command = ["sh", "-c", "sleep 60 & sleep 60"]
    process.stdin.write(order(command, **{name: value}))
    process.stdin.flush()
    end = time.monotonic() + 20
    while len(processes(mark)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(processes(mark)) >= 2
    process.stdin.write("signal 18\n")
    process.stdin.close()
    assert process.wait(20) == 143
    while processes(mark) and time.monotonic() < end:
        time.sleep(0.02)
    assert not processes(mark)
