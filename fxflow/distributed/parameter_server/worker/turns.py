"""Which thread runs a client's protocol: the caller that waits, or a thread beside it.

A caller that waits for an answer runs the protocol itself, and sends small requests
itself: waking another thread twice in each step would take longer than the server's
part of a small step. The thread runs it while no caller waits. Callers that come often
find it resting, so they need not wake it.
"""

from __future__ import annotations

# `signal` wraps these functions of C: to make enumerations of what they return takes
# ten times as long as they do.
import _signal  # type: ignore[import-not-found]
import contextlib
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
#: Seconds for which the thread rests after a caller has run the protocol.
_REST = 0.01


class Turns:
    """Lets one thread at a time run a protocol: that thread has the turn.

    Args:
      turn: waits for something to do, for at most some seconds, and does it; returns
        whether the protocol goes on. It raises no `Exception`.
      wake: makes `turn` return, now or the next time.
      has_orders: whether `turn` has something to do at once.

    Attributes:
      is_over: whether the protocol has ended: no thread has a turn any more.
    """

    is_over: bool

    def __init__(
        self,
        turn: Callable[[float], bool],
        wake: Callable[[], None],
        has_orders: Callable[[], bool],
    ) -> None:
        self._turn, self._wake, self._has_orders = turn, wake, has_orders
        self.is_over = False
        #: Held by the thread that has the turn.
        self._lock = threading.Lock()
        #: Held by a caller that has the turn, or gets it next, until it has its answer.
        self._claim = threading.Lock()
        #: The callers that wait for answers.
        self._waiting: set[object] = set()
        #: Released to end the thread's rest.
        self._rest = threading.Lock()
        self._rest.acquire()
        self._used = -_REST

    # -- the thread --------------------------------------------------------------------

    def serve(self, seconds: float) -> None:
        """Runs the protocol until it ends, while no caller does.

        Args:
          seconds: the longest wait of a turn.
        """
        try:
            while not self.is_over:
                if self._must_rest():
                    self._rest.acquire(timeout=_REST)
                    continue
                with self._lock:
                    # A caller may have begun to wait while another had the turn.
                    if not self.is_over and not self._must_rest():
                        self.is_over = not self._turn(seconds)
        finally:
            self.is_over = True

    def _must_rest(self) -> bool:
        if self._claim.locked():
            return True
        if self._waiting or self._has_orders():
            return False
        return time.monotonic() < self._used + _REST

    def _end_rest(self) -> None:
        with contextlib.suppress(RuntimeError):  # its rest has been ended already
            self._rest.release()

    # -- callers -----------------------------------------------------------------------

    def hand_over(self) -> None:
        """Makes another thread do what there is to do, now."""
        self._wake()
        self._end_rest()

    def do(self) -> None:
        """Does what there is to do: in this thread if no other has the turn."""
        with DeferredInterrupt(self._wake):
            self._used = time.monotonic()
            if not self._lock.acquire(blocking=False):
                self._wake()
                return
            try:
                if not self.is_over:
                    self.is_over = not self._turn(0.0)
            finally:
                self._lock.release()
                self._leave()

    def wait(
        self,
        is_done: Callable[[], bool],
        seconds: float,
        result: Callable[[float], T],
    ) -> T:
        """Waits for an answer; runs the protocol meanwhile, unless another thread does.

        Args:
          is_done: whether the answer has arrived.
          seconds: the longest wait.
          result: returns what `wait` returns, after waiting for the answer for at most
            the given seconds.
        """
        end, caller = time.monotonic() + seconds, object()
        self._waiting.add(caller)
        try:
            # One of several callers would run the protocol for the others, and another
            # would have to be woken when it leaves: the thread does it for all.
            if not is_done() and len(self._waiting) == 1:
                with DeferredInterrupt(self._wake) as interrupt:
                    self._wait_in_turns(is_done, end, interrupt)
            return result(max(0.0, end - time.monotonic()))
        finally:
            self._waiting.discard(caller)
            self._leave()

    def _wait_in_turns(
        self, is_done: Callable[[], bool], end: float, interrupt: DeferredInterrupt
    ) -> None:
        if not self._claim.acquire(blocking=False):
            return
        try:
            if not self._lock.acquire(blocking=False):
                self._wake()
                if not self._lock.acquire(timeout=max(0.0, end - time.monotonic())):
                    return
            try:
                while not (is_done() or self.is_over or interrupt.is_pending):
                    left = end - time.monotonic()
                    if left <= 0:
                        return
                    self.is_over = not self._turn(left)
            finally:
                self._used = time.monotonic()
                self._lock.release()
        finally:
            self._claim.release()

    def _leave(self) -> None:
        """Lets the thread continue if there is something to do, or to wait for."""
        if self.is_over or self._waiting or self._has_orders():
            self._end_rest()


class DeferredInterrupt:
    """A context that raises `KeyboardInterrupt` at its end, not within.

    An interrupt between two lines would leave the protocol in a state in which it
    cannot continue.

    Args:
      wake: called at an interrupt, to end a wait.

    Attributes:
      is_pending: whether an interrupt is to be raised.
    """

    is_pending: bool

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._replaced: Any = None
        self.is_pending = False

    def __enter__(self) -> DeferredInterrupt:
        if threading.current_thread() is threading.main_thread():
            handler = _signal.getsignal(signal.SIGINT)
            # Other handlers raise nothing, or know what they do.
            if handler is signal.default_int_handler:
                self._replaced = handler
                _signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: object) -> None:
        self.is_pending = True
        self._wake()

    def __exit__(self, *_: object) -> None:
        if self._replaced is not None:
            _signal.signal(signal.SIGINT, self._replaced)
            if self.is_pending:
                raise KeyboardInterrupt
