"""What launchers have in common: start processes, pass signals on, wait for the end."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from types import FrameType

from fxflow.distributed.children import Child, Output

_TICK = 0.01
#: Seconds that the others have to end by themselves after one has failed.
GRACE = 3.0


class Launcher:
    """Starts the processes of a run and waits for them.

    A subclass says what they are (`start`), and what the end of one means (`ended`).

    Args:
      options: of the command line: `no_color` and `timeout`.

    Attributes:
      children: those that run, by number.
      finished: those that have ended.
      output: where their lines go.
      status: the run's exit status; None until it is known.
    """

    #: Whether an interrupt is the run's own way to end, not a failure.
    interrupts_are_failures = True

    def __init__(self, options: argparse.Namespace) -> None:
        colour = (
            not options.no_color
            and "NO_COLOR" not in os.environ
            and sys.stdout.isatty()
        )
        self.output = Output(colour)
        self.children: dict[int, Child] = {}
        self.finished: list[Child] = []
        self.status: int | None = None
        self.woken = threading.Event()
        self._timeout = options.timeout
        self._signals: list[int] = []

    def start(self) -> None:
        """Starts every process."""
        raise NotImplementedError

    def ended(self, number: int, code: int, ending: bool) -> bool:
        """Notes how a process ended.

        Args:
          number: of the process.
          code: its exit status; a negative one is a signal's number.
          ending: whether all were told to end.

        Returns:
          Whether the others, told so, have to end soon.
        """
        raise NotImplementedError

    def look_after(self) -> None:
        """Does what is to be done from time to time."""

    def say(self, text: str) -> None:
        """Writes a line of the launcher's own."""
        self.output.write(sys.stderr, "", f"fxflow launch: {text}".encode())

    def tell_all(self, number: int) -> None:
        """Sends a signal to every process."""
        for child in self.children.values():
            child.send(number)

    def run(self) -> int:
        """Starts everything, waits for it, and returns the exit status."""
        before = {
            number: signal.signal(number, self._hear)
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

    def _hear(self, number: int, frame: FrameType | None) -> None:
        # Noted only: a handler runs between any two instructions of the main thread.
        self._signals.append(number)

    def _wait(self) -> None:
        timeout = self._timeout
        end = time.monotonic() + timeout if timeout else float("inf")
        kill_at = float("inf")
        forwarded = 0
        while self.children:
            now = time.monotonic()
            if len(self._signals) > forwarded:
                number = self._signals[forwarded]
                forwarded += 1
                if forwarded == 1:
                    what = "interrupted" if number == signal.SIGINT else "told to end"
                    self.say(f"{what}; all processes are told so")
                    self.output.ending = True
                    self.tell_all(number)
                    if self.status is None and self.interrupts_are_failures:
                        self.status = 128 + number
                else:
                    self.say("killing everything")
                    kill_at = now
            if now >= end:
                end = float("inf")
                self.say(f"ending everything: {timeout:g} s have passed")
                self.status = 124  # as timeout(1) does
                self.tell_all(signal.SIGTERM)
                kill_at = min(kill_at, now + GRACE)
            if now >= kill_at:
                self.tell_all(signal.SIGKILL)
                kill_at = float("inf")
            for number, child in list(self.children.items()):
                code = child.poll()
                if code is not None:
                    del self.children[number]
                    self.finished.append(child)
                    child.send(signal.SIGKILL)  # what it left behind
                    if self.ended(number, code, bool(forwarded)):
                        kill_at = min(kill_at, now + GRACE)
            self.look_after()
            self.woken.wait(_TICK)
