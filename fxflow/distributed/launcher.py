"""Base class of the launchers: starts processes, forwards signals, waits for the end.

The launcher's thread sleeps until a process ends, a signal arrives, or a deadline
passes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from fxflow.distributed.children import Child, Output
from fxflow.distributed.processes import KILL

#: Seconds for the other processes to end by themselves after one has failed.
GRACE = 3.0
#: The longest sleep, in seconds; locks overflow at longer timeouts.
_DAY = 86400.0


class Launcher:
    """Starts the processes of a run and waits for them.

    A subclass starts them (`start`) and reacts when one of them ends (`on_end`).

    Args:
      options: the options of the command line; `no_color` and `timeout` are used.

    Attributes:
      children: the running processes, by number.
      finished: the processes that have ended.
      output: writes their output.
      starts: the times of restarts, and the functions that start the processes.
      status: the run's exit status; None until it is known.
    """

    output: Output

    #: Whether an interrupted run counts as failed.
    interrupts_are_failures = True

    def __init__(self, options: argparse.Namespace) -> None:
        color = (
            not options.no_color
            and "NO_COLOR" not in os.environ
            and sys.stdout.isatty()
        )
        self.output = Output(color)
        self.children: dict[int, Child] = {}
        self.finished: list[Child] = []
        self.status: int | None = None
        # A `SimpleQueue`, because signal handlers call its `put` during its `get`.
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.starts: list[tuple[float, Callable[[], None]]] = []
        self._timeout = options.timeout
        self._signals: list[int] = []

    def start(self) -> None:
        """Starts every process."""
        raise NotImplementedError

    def on_end(self, number: int, code: int, ending: bool) -> bool:
        """Handles the end of a process.

        Args:
          number: the process's number.
          code: its exit status; -n after signal n.
          ending: whether the launcher has received a signal to end.

        Returns:
          Whether to kill the other processes, which were signalled, after `GRACE`.
        """
        raise NotImplementedError

    def maintain(self) -> float:
        """Does what is due; returns when it must be called again at the latest."""
        return float("inf")

    def wake(self) -> None:
        """Wakes the launcher's thread, which then calls `maintain`."""
        self._woken.put(None)

    def start_again(self, child: Child, start: Callable[[], Child]) -> None:
        """Restarts a process after its backoff, unless the run ends before that.

        Args:
          child: the process that has ended.
          start: starts it, and returns the new process.
        """
        now = time.monotonic()
        backoff = child.backoff.after(now - child.begun)

        def begin() -> None:
            start().backoff = backoff

        self.starts.append((now + backoff.seconds, begin))

    def log(self, text: str) -> None:
        """Writes a line of the launcher itself."""
        self.output.write(sys.stderr, "", f"fxflow launch: {text}".encode())

    def signal_all(self, number: int) -> None:
        """Sends a terminating signal to every process, and cancels restarts."""
        self.starts.clear()
        for child in self.children.values():
            child.send(number)

    def run(self) -> int:
        """Starts everything, waits for it, and returns the exit status."""
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            self.start()
            self._wait()
        finally:
            for child in [*self.children.values(), *self.finished]:
                child.finish()
            for number, handler in before.items():
                signal.signal(number, handler)
        return self.status or 0

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Only record it: a handler may run between any two instructions.
        self._signals.append(number)
        self.wake()

    def _wait(self) -> None:
        timeout = self._timeout
        end = time.monotonic() + timeout if timeout else float("inf")
        kill_at = float("inf")
        forwarded = 0
        while self.children or self.starts:
            now = time.monotonic()
            if len(self._signals) > forwarded:
                number = self._signals[forwarded]
                forwarded += 1
                if forwarded == 1:
                    what = "interrupted" if number == signal.SIGINT else "terminated"
                    self.log(f"{what}; forwarding the signal to all processes")
                    self.output.ending = True
                    self.signal_all(number)
                    if self.status is None and self.interrupts_are_failures:
                        self.status = 128 + number
                else:
                    self.log("killing all processes")
                    kill_at = now
            if now >= end:
                end = float("inf")
                self.log(f"ending all processes: {timeout:g} s have passed")
                self.status = 124  # as timeout(1) does
                self.signal_all(signal.SIGTERM)
                kill_at = min(kill_at, now + GRACE)
            if now >= kill_at:
                self.signal_all(KILL)
                kill_at = float("inf")
            for number, child in list(self.children.items()):
                code = child.poll()
                if code is not None:
                    del self.children[number]
                    self.finished.append(child)
                    child.send(KILL)  # its remaining descendants
                    if self.on_end(number, code, bool(forwarded)):
                        kill_at = min(kill_at, now + GRACE)
            for start in [one for one in self.starts if one[0] <= now]:
                self.starts.remove(start)
                start[1]()
            due = min(self.maintain(), end, kill_at, *(at for at, _ in self.starts))
            if self.children or self.starts:
                self._sleep(due - time.monotonic())

    def _sleep(self, seconds: float) -> None:
        """Sleeps until it is woken."""
        with contextlib.suppress(queue.Empty):
            self._woken.get(timeout=min(max(0.0, seconds), _DAY))
