"""What happens to the process around the runtime: interrupts, forks, its end.

The runtime has threads of its own, and calls of it last for seconds or minutes. Left to
itself it crashes the process if one of them is interrupted, hangs in a process that was
forked, and aborts if Python ends while a thread is still inside. So:

- what an interrupt must not cut short runs in a thread that none reaches (`shielded`);
- a fork of a process that has used the runtime is warned of, and the child learns of it
  (`on_fork`), so that it can refuse to work rather than wait for ever;
- at the end of the process, what the runtime still does is waited for, for
  `EXIT_SECONDS` at most.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from fxflow.devices import clients
from fxflow.devices._jaxlib import RuntimeFailure
from fxflow.errors import ForkedError

T = TypeVar("T")

#: Seconds that the end of the process waits for the runtime.
EXIT_SECONDS = 10.0
_TICK = 0.002
#: Seconds after which an interrupt is seen at the latest.
_PATIENCE = 0.5
#: Name of the threads of `shielded`.
_SHIELDED = "fxflow-shielded"
#: Names of other threads of ours, and the package whose functions wait for messages of
#: other processes: they are not in the runtime.
_OURS, _TALKING = "fxflow-", "fxflow.distributed"

# -- interrupts ------------------------------------------------------------------------


def shielded(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function of the runtime where no signal can cut the call short.

    The runtime looks for signals while it waits for its compiler, and leaves by a
    `KeyboardInterrupt` while the compiler still reads the program, which is freed by
    then. Signals reach the main thread alone: there another thread makes the call. An
    interrupt ends the wait at once; the call goes on, and what it returns is dropped.

    Args:
      function: what to call.
      *arguments: its arguments.

    Returns:
      What the function returns.

    Raises:
      BaseException: what the function raised, or KeyboardInterrupt.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return function(*arguments)
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def call() -> None:
        try:
            answers.put((function(*arguments), None))
        except BaseException as error:
            answers.put((None, error))

    try:
        threading.Thread(target=call, name=_SHIELDED, daemon=True).start()
    except RuntimeError:  # no more threads: there are too many, or Python is ending
        return function(*arguments)
    result: T
    result, error = _awaited(answers)
    if error is None:
        return result
    try:
        raise error
    finally:
        del error  # its traceback holds this frame


def _awaited(answers: queue.SimpleQueue[T]) -> T:
    # A signal that comes as a wait is about to begin does not end it: Python has looked
    # for signals just before, and the system wakes only threads that wait. So waits are
    # short.
    while True:
        try:
            return answers.get(timeout=_PATIENCE)
        except queue.Empty:
            continue


# -- forks -----------------------------------------------------------------------------


_is_forked = False
_on_fork: list[Callable[[], None]] = []
#: Modules that fork only to become another program at once.
_EXECUTING = frozenset({"os", "subprocess", "_posixsubprocess"})


def forked_error() -> ForkedError:
    """Returns the error for any use of fxflow in such a process."""
    return ForkedError(
        "this process was forked from one in which fxflow had started its runtime, "
        "whose threads a fork does not copy: fxflow cannot be used here. Start "
        'processes by multiprocessing.get_context("spawn") (or "forkserver"), or fork '
        "before the first use of fxflow."
    )


def require_not_forked() -> None:
    """Raises a `ForkedError` in a process whose runtime has no threads.

    When the process ends, threads that are still there end here.
    """
    if _is_forked:
        raise forked_error()
    if _is_over and threading.get_ident() != threading.main_thread().ident:
        raise SystemExit  # as `_leave` has those do that are inside


def on_fork(callback: Callable[[], None]) -> None:
    """Calls `callback` in a process that was forked from one that used the runtime."""
    _on_fork.append(callback)


def _before_fork() -> None:
    if not clients.started() or _is_forked:
        return
    if sys._getframe(1).f_globals.get("__name__") in _EXECUTING:
        return
    warnings.warn(
        "os.fork() was called after fxflow had started its runtime, whose threads a "
        "fork does not copy. fxflow cannot be used in the new process; if it is to "
        'be, start it by multiprocessing.get_context("spawn").',
        RuntimeWarning,
        stacklevel=2,
    )


def _after_fork() -> None:
    global _is_forked
    if clients.started() and not _is_forked:
        _is_forked = True
        # At the end of this process they would wait for threads that are not here.
        _keep_for_ever()
        clients.refuse(forked_error)
        for callback in _on_fork:
            callback()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


# -- the end ---------------------------------------------------------------------------

#: What an interrupted `wait_for` left behind.
_unfinished: set[Any] = set()
_on_exit: list[Callable[[], Any]] = []
_is_ending = _is_over = False


def wait_for(token: Any) -> None:
    """Waits for a program; if that is interrupted, the end of the process does.

    Args:
      token: of the program.

    Raises:
      RuntimeFailure: the program failed.
    """
    _unfinished.add(token)
    try:
        token.block_until_ready()
    except RuntimeFailure:
        _unfinished.discard(token)
        raise
    _unfinished.discard(token)


def on_exit(callback: Callable[[], Any]) -> None:
    """Asks `callback`, when the process ends, for what is to be waited for.

    Args:
      callback: returns what has ``block_until_ready()``, or None.
    """
    _on_exit.append(callback)


def ending() -> bool:
    """Returns whether the end of the process is waiting for programs."""
    return _is_ending


def _all_clients() -> list[Any]:
    return [clients.client(platform) for platform in clients.started()]


def _keep_for_ever() -> None:
    """Has the clients outlive Python: their end waits for their threads."""
    import ctypes

    for client in _all_clients():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


def _threads_inside() -> Iterator[tuple[int, bool]]:
    """Yields the threads that are in a call of fxflow, and whether it can be left."""
    ours = {t.ident: t.name for t in threading.enumerate()}
    here = threading.get_ident()
    for ident, frame in sys._current_frames().items():
        name = ours.get(ident, "")
        if ident == here or (name.startswith(_OURS) and name != _SHIELDED):
            continue
        found: Any = frame
        while found is not None:
            module = found.f_globals.get("__name__", "")
            if module.startswith("fxflow.") and not module.startswith(_TALKING):
                yield ident, name != _SHIELDED
                break
            found = found.f_back


def _leave(ident: int) -> None:
    """Has a thread raise SystemExit when it comes back to Python.

    The interpreter ends such a thread anyway. But it does so wherever the thread next
    asks for the interpreter, and in the runtime that aborts the process.
    """
    import ctypes

    number = ctypes.c_ulong(ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(SystemExit))


def _wait_for_threads(end: float) -> bool:
    """Waits until no thread is inside of fxflow, and holds threads off from there."""
    if threading.active_count() == len(sys._current_frames()) == 1:
        return True  # as most often: no other thread has to be given time
    interval = sys.getswitchinterval()
    told: set[int] = set()
    while True:
        # From here on the others run only when this thread waits for something.
        sys.setswitchinterval(1e6)
        # One that waits already does so for the interval that was, once.
        busy = time.monotonic() + 2 * interval
        while time.monotonic() < busy:
            pass
        inside = dict(_threads_inside())
        if not inside:
            return True
        sys.setswitchinterval(interval)
        if time.monotonic() >= end:
            return False
        for ident, can_leave in inside.items():
            if can_leave and ident not in told:
                told.add(ident)
                _leave(ident)
        time.sleep(_TICK)


def _wait_for_programs(end: float) -> bool:
    """Waits for every program whose results are still reachable."""
    pending = [*_unfinished, *(callback() for callback in _on_exit)]
    for client in _all_clients():
        pending += client.live_arrays()
    pending = [p for p in pending if p is not None and not _is_through(p)]
    if not pending:
        return True

    def wait() -> None:
        for each in pending:
            # What failed, was deleted, or cannot be waited for has finished.
            with contextlib.suppress(RuntimeFailure, RuntimeError, ValueError):
                each.block_until_ready()

    thread = threading.Thread(target=wait, name=_SHIELDED, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # Python starts none any more
        return False
    thread.join(max(0.0, end - time.monotonic()))
    return not thread.is_alive()


def _is_through(pending: Any) -> bool:
    try:
        return bool(pending.is_ready())
    except AttributeError:
        return False
    except (RuntimeFailure, RuntimeError, ValueError):
        return True


def _abandon() -> None:
    """Has the process end although the runtime is still at work.

    Three things would go wrong. The clients would wait for their threads. A thread that
    comes back to Python, and be it to look for signals, is ended by the interpreter, to
    which C++ says `terminate`: that one shall pause instead. And the end of the C++
    runtime would pull the ground from under its threads: the process is to end before,
    with its status, which only the C library can tell.
    """
    import ctypes

    _keep_for_ever()
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None)
            libc.fflush(None)
            libc.on_exit(libc._exit, None)  # called with the status
            ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(libc.pause)


def _finish() -> None:
    """Waits for the runtime at the end of the process."""
    if _is_forked or not clients.started():
        return
    global _is_ending, _is_over
    _is_ending = _is_over = True
    end = time.monotonic() + EXIT_SECONDS
    try:
        through = _wait_for_programs(end) and _wait_for_threads(end)
    except KeyboardInterrupt:
        through = False
    _is_ending = False
    if not through:
        _abandon()


# Registered when fxflow is imported: what the program registers runs before.
atexit.register(_finish)
