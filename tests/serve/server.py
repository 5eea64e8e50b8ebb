"""`fxflow serve` in a separate process, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Running:
    """A server in a separate process."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fxflow", "serve", *arguments, "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self.port = int(self.until(r" at https?://127\.0\.0\.1:(\d+)")[1])

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    def until(self, pattern: str, seconds: float = 60.0) -> re.Match[str]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := re.search(pattern, "".join(self.lines)):
                return found
            assert self._thread.is_alive() or self.process.poll() is None, self.lines
            time.sleep(0.02)
        raise AssertionError("".join(self.lines))

    def ask(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            text = None if value is None else json.dumps(value)
            connection.request(method, path, text)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@contextmanager
def running(*arguments: str) -> Iterator[Running]:
    server = Running(*arguments)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server._thread.join()
        assert server.process.stderr is not None
        server.process.stderr.close()
