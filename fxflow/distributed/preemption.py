"""Notices to end (SIGTERM), and the one step at which all processes heed them.

The first process that is told to end tells the coordinator; all processes are then told
to hold. Each answers with the step it is in, and begins no other before it hears which
is the last. Without a notice a step costs one lock.

The runtime has a manager for the same. It is not used: it keeps Python's lock while it
waits for the other processes, and what it waits for comes through Python (`Relay`).
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any

from fxflow._config import config
from fxflow.devices.cluster import failure
from fxflow.distributed.coordination import Coordination
from fxflow.distributed.wire import Message
from fxflow.errors import DistributedError


class Notice:
    """Hears SIGTERM while a ``with`` block runs; in the main thread alone."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._before: Any = None

    def __enter__(self) -> threading.Event:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(
                signal.SIGTERM, lambda number, frame: self._event.set()
            )
        return self._event

    def __exit__(self, *details: object) -> None:
        if (
            self._before is not None
            and threading.current_thread() is threading.main_thread()
        ):
            signal.signal(signal.SIGTERM, self._before)
            self._before = None

    def end(self) -> None:
        """Wakes up who waits for a notice."""
        self._event.set()


class Agreement:
    """What a process has to do with the step at which all stop."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._coordination: Coordination | None = None
        self._notice: Notice | None = None
        self._closed = threading.Event()
        #: The step that was begun last.
        self._current: int | None = None
        self._held = self._stopped = False
        #: The step that all stop at, when they agreed on one.
        self._until: int | None = None

    def attach(self, coordination: Coordination) -> None:
        """Says through what the others are reached; events may have come before."""
        with self._changed:
            self._coordination = coordination
            if self._held:
                self._answer()

    def hear(self, message: Message) -> None:
        """Takes an event of the coordinator; called by the thread that reads."""
        with self._changed:
            if message["event"] == "hold" and not self._held:
                self._held = True
                self._answer()
            elif message["event"] == "until":
                self._until = int(message["step"])
            self._changed.notify_all()

    def wake(self) -> None:
        """Lets who waits look whether something has gone wrong."""
        with self._changed:
            self._changed.notify_all()

    def _answer(self) -> None:
        if self._coordination is not None:
            with contextlib.suppress(OSError):
                # Under the lock: no step begins between this look and its telling.
                self._coordination.post("in_step", step=self._current)

    def reached(self, step: int) -> bool:
        """Returns whether all stop at this step; True once.

        Args:
          step: the number of the step about to run.

        Raises:
          DistributedError: a process is lost, or did not say where it is in time.
        """
        self._listen()
        with self._changed:
            deadline = config.collective_timeout
            came = self._changed.wait_for(
                lambda: not self._held or self._until is not None or failure(), deadline
            )
            error = failure()
            if error is not None:
                raise DistributedError(str(error), error.processes, error.seconds)
            if not came:
                raise DistributedError(
                    f"the processes did not agree on a step to stop at within "
                    f"{deadline:g} s (fxflow.config.collective_timeout): one of them "
                    "is stopped",
                    seconds=deadline,
                )
            self._current = step
            if self._until is None or step < self._until or self._stopped:
                return False
            self._stopped = True
            return True

    def _listen(self) -> None:
        """Hears SIGTERM from now on, if this is the main thread."""
        main = threading.current_thread() is threading.main_thread()
        if self._notice is not None or not main:
            return
        self._notice = Notice()
        told = self._notice.__enter__()
        # Not the handler itself: it may run while the line's lock is held.
        threading.Thread(
            target=self._tell, args=(told,), name="fxflow-notice", daemon=True
        ).start()

    def _tell(self, told: threading.Event) -> None:
        told.wait()
        if not self._closed.is_set() and self._coordination is not None:
            with contextlib.suppress(OSError):
                self._coordination.post("notice")

    def close(self) -> None:
        """Hears no more notices; what SIGTERM did before, it does again."""
        self._closed.set()
        notice, self._notice = self._notice, None
        if notice is not None:
            notice.__exit__()
            notice.end()
