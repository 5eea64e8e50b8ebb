"""The launcher's child processes: their output, signals and exit.

On another machine, ssh starts `processes.lead`, which runs the child and ends it when
the connection closes.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TextIO

from fxflow.distributed import processes

#: Runs the source of `processes`, which is the first line of standard input.
_LEADER = "import json, sys; exec(json.loads(sys.stdin.readline()))"
#: Disables prompts, and detects a host that is down within a minute.
_SSH = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=20")
_COLORS = (36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91)
#: What gloo prints to standard output whenever it connects. Its threads interleave
#: their lines, so that loose numbers remain after this is removed.
_NOISE = re.compile(
    rb"\[Gloo\] Rank | is connected to | ?peer ranks\. |"
    rb"Expected number of connected peer ranks is : "
)
_LEFT_OVER = re.compile(rb"[\d\s]*")
#: The largest number of bytes of a child's output that are read at once.
_PIECE = 1 << 16
#: Erases the terminal's line from the cursor to its end.
_ERASE = "\033[K"
#: Seconds after gloo's output during which a line of digits counts as part of it.
_NOISE_SECONDS = 0.05


class Output:
    """Writes the output of several children: prefixed whole lines, and one live line.

    A line that a child overwrites, such as a progress bar, is updated in place at the
    bottom of the terminal, for one child at a time. The lines that other children
    overwrite meanwhile are held until that child ends its line; then each appears in
    its last state.

    Args:
      color: whether prefixes are colored.

    Attributes:
      ending: whether all children are being ended; what they print about that is
        dropped.
    """

    def __init__(self, color: bool) -> None:
        self._color = color
        self.ending = False
        self._lock = threading.Lock()
        #: The live line: its stream, its mark, and its text.
        self._live: tuple[TextIO, str, str] | None = None

    def mark(self, number: int, label: str = "") -> str:
        """Returns the prefix of a child's lines: its label, or its number."""
        text = f"[{label or number}]"
        if not self._color:
            return f"{text} "
        return f"\033[{_COLORS[number % len(_COLORS)]}m{text}\033[0m "

    def write(self, stream: TextIO, mark: str, line: bytes) -> None:
        """Writes one line, above the live line."""
        text = mark + line.decode(errors="replace").rstrip("\r\n") + "\n"
        with self._lock, contextlib.suppress(OSError, ValueError):
            again = ""
            if self._live is not None:
                other, whose, shown = self._live
                before = f"\r{_ERASE}" if other.isatty() else "\r"
                if (other, whose) == (stream, mark):
                    text = before + text
                    self._live = None
                elif not _same_place(stream, other):
                    pass
                elif other.isatty():
                    text, again = before + text, shown
                elif shown:
                    # What was written to a file cannot be erased.
                    text = "\n" + text
                    self._live = (other, whose, "")
            stream.write(text + again)
            stream.flush()

    def show(self, stream: TextIO, mark: str, line: bytes) -> None:
        """Shows a line's current state, unless another child's line is live."""
        text = line.decode(errors="ignore")
        with self._lock, contextlib.suppress(OSError, ValueError):
            live = self._live
            if self.ending or (live is not None and live[:2] != (stream, mark)):
                return
            before = "\r"
            if stream.isatty():
                before += _ERASE
                if "\033" not in text:
                    # A line that wraps could not be overwritten.
                    room = shutil.get_terminal_size().columns - len(mark) - 1
                    text = text[: max(room, 8)]
            shown = f"{before}{mark}{text}"
            if live is None or live[2] != shown:
                self._live = (stream, mark, shown)
                stream.write(shown)
                stream.flush()


def _same_place(one: TextIO, other: TextIO) -> bool:
    """Returns whether two streams write to the same file."""
    if one is other:
        return True
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError):  # not files, as in tests
        return False


class Lines:
    """Splits a child's output into lines, and tracks its unfinished last line.

    Only the last state of a line that a carriage return overwrites is kept.
    """

    def __init__(self) -> None:
        self._rest = b""

    def ended(self, piece: bytes) -> list[bytes]:
        """Returns the lines that end in the next piece."""
        *lines, rest = (self._rest + piece).split(b"\n")
        # Keep the carriage return: it marks a line that is overwritten.
        if b"\r" in rest:
            rest = b"\r" + self._last(rest) + (b"\r" if rest.endswith(b"\r") else b"")
        self._rest = rest
        return [self._last(line) + b"\n" for line in lines]

    @property
    def live(self) -> bytes:
        """The unfinished last line if it is being overwritten, else empty."""
        return self._last(self._rest) if b"\r" in self._rest else b""

    @property
    def rest(self) -> bytes:
        """The unfinished last line."""
        return self._last(self._rest)

    @staticmethod
    def _last(line: bytes) -> bytes:
        states = [state for state in line.split(b"\r") if state]
        return states[-1] if states else b""


class EndingFilter:
    """Drops the lines that a child prints because it is being ended.

    These are the traceback of a KeyboardInterrupt, of the error that reports a lost
    process, or of both, and fxflow's line about the loss.
    """

    _BEGIN = b"Traceback (most recent call last):"
    _LINKS = (b"During handling of the above", b"The above exception was the direct")
    _ENDED = re.compile(rb"KeyboardInterrupt\b|[\w.]*DistributedError\b")
    _LOST = re.compile(rb"fxflow: .* (is|are) lost: ")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        #: The last line of the held traceback.
        self._last = b""
        self._linked = False

    def kept(self, line: bytes) -> list[bytes]:
        """Returns the lines to write now that this one has arrived."""
        begins = line.startswith(self._BEGIN)
        if self._held and not self._last:
            if not line.startswith((b" ", b"\n")):
                self._last, self._linked = line, False
        elif self._held and line.startswith(self._LINKS):
            self._linked = True
        elif self._held and begins and self._linked:
            self._last = b""
        elif self._held and line.strip():
            return [*self.rest(), *self.kept(line)]
        elif not self._held and not begins:
            return [] if self._LOST.match(line) else [line]
        self._held.append(line)
        return []

    def rest(self) -> list[bytes]:
        """Returns the held lines, unless they are about the child being ended."""
        held, self._held = self._held, []
        ended = self._ENDED.match(self._last) is not None
        self._last = b""
        return [] if ended else held


class Child:
    """A process of the run.

    Args:
      number: its number, for the prefix of its lines.
      command: what to run.
      environment: variables on top of the launcher's.
      output: writes its output.
      host: the machine; empty for this one.
      ssh: the command that connects to another machine.
      python: the path of Python there.
      label: the prefix of its lines; if empty, its number.
      ended: called on a separate thread after the process has ended.

    Attributes:
      number: its number.
      status: its exit status, as `subprocess` reports it, once it has ended.
      begun: the time of its start, by `time.monotonic`.
      backoff: the delay of its next restart.
    """

    number: int
    status: Future[int]
    begun: float
    backoff: processes.Backoff = processes.Backoff()

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Output,
        host: str = "",
        ssh: str = "ssh",
        python: str = sys.executable,
        label: str = "",
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.number, self.begun = number, time.monotonic()
        self._remote = bool(host)
        if host:
            line = [*shlex.split(ssh), *_SSH, host]
            line.append(f"exec {shlex.quote(python)} -I -S -c {shlex.quote(_LEADER)}")
            self._process = processes.Process(line, output=True, orders=True)
            self._send_line(json.dumps(inspect.getsource(processes)))
            # Not on the command line: `ps` would show the secret to every user.
            spec = {
                "command": list(command),
                "environment": dict(environment),
                "folder": os.getcwd(),
            }
            self._send_line(json.dumps(spec))
        else:
            self._process = processes.Process(command, environment, output=True)
        mark = output.mark(number, label)
        self._follow_pipes(self._process.stdout, self._process.stderr, mark, output)
        self.status = self._process.ended
        self.status.add_done_callback(lambda _: ended())

    def _follow_pipes(self, out: Any, err: Any, mark: str, output: Output) -> None:
        self._threads = [
            threading.Thread(
                target=self._copy, args=(pipe, stream, mark, output), daemon=True
            )
            for pipe, stream in ((out, sys.stdout), (err, sys.stderr))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _copy(pipe: Any, stream: TextIO, mark: str, output: Output) -> None:
        with pipe:
            noisy = -_NOISE_SECONDS
            ending = EndingFilter()
            lines = Lines()

            def write(line: bytes) -> None:
                nonlocal noisy
                if output.ending:
                    for kept in ending.kept(line):
                        output.write(stream, mark, kept)
                    return
                now = time.monotonic()
                if _NOISE.search(line):
                    noisy = now
                    line = _NOISE.sub(b"", line)
                if now - noisy > _NOISE_SECONDS or not _LEFT_OVER.fullmatch(line):
                    output.write(stream, mark, line)

            while piece := pipe.read1(_PIECE):
                for line in lines.ended(piece):
                    write(line)
                if lines.live:
                    output.show(stream, mark, lines.live)
            if lines.rest:
                write(lines.rest)
            for kept in ending.rest():
                output.write(stream, mark, kept)

    def _send_line(self, line: str) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.write(line.encode() + b"\n")
            pipe.flush()

    @property
    def pid(self) -> int:
        """The process id on this machine; that of ssh for another machine."""
        return self._process.pid

    def poll(self) -> int | None:
        """Returns its exit status, as `subprocess` does; None while it runs."""
        return self.status.result() if self.status.done() else None

    def send(self, number: int) -> None:
        """Sends a signal to the child and its descendants."""
        if not self._remote:
            self._process.send(number)
        elif number == processes.KILL:
            # The other end kills the group when the connection ends.
            self._send_line("kill")
        else:
            self._send_line(f"signal {number}")

    def finish(self, timeout: float = 5.0) -> None:
        """Kills what is left of its process group, and waits for its output."""
        self.send(processes.KILL)
        if self._process.wait(timeout) is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        for thread in self._threads:
            thread.join(timeout)
