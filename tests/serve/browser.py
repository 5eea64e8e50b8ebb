"""A headless browser, controlled over a pipe."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: It reads commands from 3 and writes what happens to 4.
_START = """
import fcntl, os, sys
high = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1].split()]
for number, file in zip(high, (3, 4)):
    os.dup2(number, file)
    os.close(number)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Browser:
    """One page of a browser; skips the test if there is none.

    It speaks with the browser by two inherited pipes, so no port is opened, and ends
    with it: every wait has a deadline.
    """

    def __init__(self, width: int = 1000, height: int = 800) -> None:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None:
            pytest.skip("there is no Chromium here")
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        options = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-background-networking"),
            *("--disable-component-update", f"--window-size={width},{height}"),
            *(f"--user-data-dir={self._folder.name}", "--remote-debugging-pipe"),
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, f"{theirs_in} {theirs_out}", found]
            + [*options, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._count, self._session = b"", 0, ""
        #: Errors of the page's scripts.
        self.errors: list[str] = []

    def __enter__(self) -> Browser:
        try:
            targets = self.send("Target.getTargets")["targetInfos"]
            page = next(t["targetId"] for t in targets if t["type"] == "page")
            found = self.send("Target.attachToTarget", targetId=page, flatten=True)
        except BaseException:
            self.__exit__()
            raise
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_: Any) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def send(self, method: str, /, **params: Any) -> Any:
        """Runs one command and returns its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 30
        while True:
            text, mark, rest = self._rest.partition(b"\0")
            if not mark:
                left = end - time.monotonic()
                assert left > 0 and select.select([self._in], [], [], left)[0], method
                part = os.read(self._in, 1 << 20)
                assert part, f"the browser ended at {method}"
                self._rest += part
                continue
            self._rest = rest
            got = json.loads(text)
            if got.get("id") == self._count:
                assert "error" not in got, got
                return got["result"]
            details = got.get("params", {})
            if got.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(details["exceptionDetails"]))
            elif got.get("method") == "Log.entryAdded":
                entry = details["entry"]
                if entry["level"] == "error":
                    self.errors.append(f"{entry['text']} {entry.get('url', '')}")

    def go(self, url: str) -> None:
        """Opens a page."""
        assert "errorText" not in self.send("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression in the page."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 60) -> Any:
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + seconds
        # The element may not exist yet.
        tried = f"(() => {{ try {{ return {expression} }} catch {{ return null }} }})()"
        while not (value := self.value(tried)):
            assert time.monotonic() < end, self.value("document.body?.innerText")
            time.sleep(0.05)
        return value

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Moves, presses or releases the mouse."""
        self.send(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=x,
            y=y,
            button="left",
            buttons=0 if kind == "Released" else 1,
            clickCount=1,
        )

    def draw(self, points: list[tuple[float, float]]) -> None:
        """Draws a line with the mouse."""
        self.mouse("Pressed", *points[0])
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            for k in range(1, 6):
                self.mouse("Moved", x + (to_x - x) * k / 5, y + (to_y - y) * k / 5)
        self.mouse("Released", *points[-1])

    def screenshot(self, path: Path) -> None:
        """Saves a screenshot of the page."""
        found = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))
