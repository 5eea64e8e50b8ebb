"""Preemption: after a SIGTERM to any process, all processes stop at the same step.

A process that receives the signal notifies the coordinator, which asks all processes to
hold. Each reports the first step that it has not begun, and begins no step until it
receives the decision, `until`: the maximum of these. A step cannot be undone, so the
other processes catch up with the farthest one. Like the end of a `range`, `until` is
the first step that does not run. Without a signal, each step only acquires a lock.

The runtime's own preemption manager would deadlock: it holds the GIL while it waits for
the other processes, and their messages pass through Python (`Relay`).
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from fxflow._config import config
from fxflow.devices.cluster import failure
from fxflow.distributed.coordination import Coordination
from fxflow.distributed.protocol import Hold, InStep, Notice, Until
from fxflow.errors import DistributedError


@contextlib.contextmanager
def noticing(notify: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """Handles SIGTERM while a ``with`` block runs; in the main thread only.

    Args:
      notify: called after the signal, on a separate thread.

    Yields:
      An event, which the signal sets.
    """
    event, is_over = threading.Event(), threading.Event()
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main:
        yield event
        return

    def wait() -> None:
        event.wait()
        if not is_over.is_set():
            notify()

    # Not in the handler itself, which may run while a connection's lock is held.
    threading.Thread(target=wait, name="fxflow-notice", daemon=True).start()
    before = signal.signal(signal.SIGTERM, lambda number, frame: event.set())
    try:
        yield event
    finally:
        is_over.set()
        event.set()
        signal.signal(signal.SIGTERM, before)


class StopPoint:
    """The process's part: determines which steps may begin.

    Args:
      step: the first step.

    Attributes:
      next: the first step that has not begun.
      is_held: whether the coordinator has asked this process to hold.
      until: the decision, the first step that does not run; None before it is known.
    """

    next: int

    def __init__(self, step: int = 0) -> None:
        self.next = step
        self.is_held = False
        self.until: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the process must wait for the decision."""
        return self.is_held and self.until is None

    def begin(self, step: int) -> bool:
        """Returns whether a step runs, and records that it has begun.

        Args:
          step: the next step. `is_open` must be False.
        """
        if self.until is not None and step >= self.until:
            return False
        self.next = step + 1
        return True


class Agreement:
    """Takes part in agreeing on the step at which all processes stop.

    Args:
      step: the first step of this process.

    Attributes:
      then: what follows the agreed step: ``"stop"``, or ``"reform"`` to change the
        members of an elastic run.
    """

    then: str

    def __init__(self, step: int = 0) -> None:
        self.then = ""
        self._changed = threading.Condition()
        self._coordination: Coordination | None = None
        self._listening = contextlib.ExitStack()
        self._is_listening = self._has_stopped = False
        self._point = StopPoint(step)

    @property
    def begun(self) -> int:
        """The last step that has begun; before that, the first step minus one."""
        return self._point.next - 1

    def attach(self, coordination: Coordination) -> None:
        """Sets the connection to the coordinator; events may have arrived before."""
        with self._changed:
            self._coordination = coordination
            if self._point.is_held:
                self._report()

    def handle(self, event: Hold | Until) -> None:
        """Handles an event of the coordinator; called by the thread that reads."""
        with self._changed:
            if isinstance(event, Until):
                self._point.until, self.then = event
            elif not self._point.is_held:
                self._point.is_held = True
                self._report()
            self._changed.notify_all()

    def wake(self) -> None:
        """Makes a thread that waits for the decision check for a failure."""
        with self._changed:
            self._changed.notify_all()

    def _report(self) -> None:
        if self._coordination is not None:
            with contextlib.suppress(OSError):
                # Under the lock, so that no step begins before the report is sent.
                self._coordination.post(InStep(self._point.next))

    def reached(self, step: int) -> bool:
        """Returns whether all processes stop at this step; True once.

        Args:
          step: the number of the step about to run.

        Raises:
          DistributedError: a process is lost, or did not report its step in time.
        """
        with self._changed:
            deadline = config.collective_timeout
            is_known = self._changed.wait_for(
                lambda: not self._point.is_open or failure(), deadline
            )
            error = failure()
            if error is not None:
                raise DistributedError(str(error), error.processes, error.seconds)
            if not is_known:
                raise DistributedError(
                    f"the processes did not agree on a step to stop at within "
                    f"{deadline:g} s (fxflow.config.collective_timeout): one of them "
                    "is stopped",
                    seconds=deadline,
                )
            if self._has_stopped or self._point.begin(step):
                return False
            self._has_stopped = True
            return True

    def listen(self) -> None:
        """Starts handling SIGTERM, if this is the main thread."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and not self._is_listening:
            self._is_listening = True
            self._listening.enter_context(noticing(self._notify))

    def _notify(self) -> None:
        if self._coordination is not None:
            with contextlib.suppress(OSError):
                self._coordination.post(Notice())

    def close(self) -> None:
        """Restores the previous handler of SIGTERM."""
        if threading.current_thread() is threading.main_thread():
            self._listening.close()
