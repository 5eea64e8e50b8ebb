"""Steps under way, and values that were asked for, as the controller keeps them."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fxflow.dataflow.measuring import Times
from fxflow.dataflow.tasks.devices import HERE
from fxflow.dataflow.tasks.remote import RemoteArray
from fxflow.errors import DistributedError

if TYPE_CHECKING:
    from fxflow.dataflow.tasks.session import Session

#: The most steps that are under way; a further call waits for the oldest.
MOST_STEPS = 4
#: Seconds that a task has to say what it is doing; less if the deadline is short.
ANSWER = 2.0


class RemoteStep:
    """A step under way, as its results see it.

    Args:
      session: of the step.
      number: of the step.
      program: that it runs.

    Attributes:
      begun: when it began, by `time.monotonic`.
      waiting: numbers of the processes that have not finished it.
      late: whether a wait took too long.
      waits: of processes that gave up: the fragment that waited, and for which edge.
      sending: edges of arguments that are being sent.
      sources: the steps whose results it takes, unless they have ended well.
      results: its results that are still referred to, by position.
      times: when each fragment ran, if that is measured.
    """

    __slots__ = ("_event", "begun", "error", "late", "number", "program",
                 "results", "sending", "session", "sources", "times", "waiting",
                 "waits")  # fmt: skip

    begun: float
    late: bool
    number: int
    program: Any
    session: Session
    times: Times | None

    def __init__(
        self, session: Session, number: int, program: Any, times: Times | None = None
    ) -> None:
        self.session, self.number, self.program = session, number, program
        self.times, self.begun = times, time.monotonic()
        self.waiting: set[int] = set(program.processes)
        self.results: dict[int, weakref.ref[RemoteArray]] = {}
        self.late = False
        self.waits: dict[int, tuple[int, int]] = {}
        self.sending: set[int] = set()
        self.sources: tuple[Any, ...] = ()
        self.error: Callable[[], BaseException] | None = None
        self._event = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether its values are not wanted any more."""
        return self.error is not None

    def stop(self, error: BaseException) -> None:
        """Ends it with an error."""
        self.session.fail(self, lambda: error)

    @property
    def ended(self) -> bool:
        """Whether it has been computed, or has failed."""
        return self._event.is_set()

    def end(self) -> None:
        """Wakes everything that waits for the end."""
        if self.error is None:
            self.sources = ()
        self._event.set()

    def wait(self, raises: bool = True) -> None:
        """Waits for the end.

        Args:
          raises: whether to raise what the step raised.

        Raises:
          DistributedError: it failed, or did not end in time.
        """
        session = self.session
        if not self._event.is_set() and not session.wait(self._event):
            session.give_up(self)
            # Others that are late may be explained before.
            if not self._event.wait(2 * MOST_STEPS * ANSWER):
                raise DistributedError(
                    f"step {self.number} of {self.program.name} has taken "
                    f"{session.deadline:g} s, and its tasks do not answer",
                    self.waiting - {HERE},
                    session.deadline,
                )
        if not raises or self.error is None:
            return
        # What an earlier step raised says more than that its results are missing.
        for source in self.sources:
            source.wait()
        raise self.error()


class Fetching:
    """A value that was asked for."""

    def __init__(self, task: int) -> None:
        self.task = task
        self.event: threading.Event = threading.Event()
        self.host: np.ndarray[Any, Any] | None = None
        self.error = ""
