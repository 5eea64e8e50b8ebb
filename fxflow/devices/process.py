"""Protects the process from the runtime: interrupts, forks, interpreter shutdown.

The runtime has its own threads, and its calls take seconds or minutes. By itself it
crashes the process if a call is interrupted, hangs in a forked process, and aborts if
Python shuts down while a thread is in a call. Therefore:

- calls that must not be interrupted run in a thread that gets no signals (`shielded`);
- a fork of a process that has used the runtime causes a warning, and the child raises
  an error instead of waiting forever (`on_fork`);
- at its end, the process waits for the runtime, for at most `EXIT_SECONDS`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
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

#: Seconds that the process waits for the runtime at its end.
EXIT_SECONDS = 10.0
_TICK = 0.002
#: Longest time in seconds before an interrupt is noticed.
_PATIENCE = 0.5
#: Name of the threads of `shielded`.
_SHIELDED = "fxflow-shielded"
#: Prefix of the names of fxflow's other threads, and the package whose functions wait
#: for messages of other processes: neither is in the runtime.
_OWN_PREFIX, _MESSAGING = "fxflow-", "fxflow.distributed"


def cores() -> int:
    """Returns how many of the machine's cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> dict[str, str]:
    """Returns what Linux says about the first processor; empty on other systems."""
    found: dict[str, str] = {}
    with (
        contextlib.suppress(OSError),
        open("/proc/cpuinfo", encoding="ascii", errors="replace") as file,
    ):
        for line in file:
            name, _, value = line.partition(":")
            if not name.strip():
                break
            found[name.strip()] = value.strip()
    return found


# -- interrupts ------------------------------------------------------------------------


def shielded(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function of the runtime so that no signal can interrupt the call.

    The runtime checks for signals while it waits for its compiler, and raises
    `KeyboardInterrupt` while the compiler still reads the program, which is then freed.
    Only the main thread gets signals: in it, this function makes the call in another
    thread. An interrupt ends the wait at once; the call continues, and its result is
    dropped.

    Args:
      function: the function to call.
      *arguments: its arguments.

    Returns:
      The function's result.

    Raises:
      BaseException: the function's exception, or KeyboardInterrupt.
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
    except RuntimeError:  # too many threads, or the interpreter is shutting down
        return function(*arguments)
    result: T
    result, error = awaited(answers)
    if error is None:
        return result
    try:
        raise error
    finally:
        del error  # its traceback holds this frame


def awaited(answers: queue.SimpleQueue[T]) -> T:
    """Returns what a thread puts into a queue; an interrupt ends the wait at once."""
    # A signal that arrives just before a wait does not end it: Python has checked for
    # signals already, and the system wakes only threads that wait. So keep waits short.
    while True:
        try:
            return answers.get(timeout=_PATIENCE)
        except queue.Empty:
            continue


# -- forks -----------------------------------------------------------------------------


_is_forked = False
_on_fork: list[Callable[[], None]] = []
#: Modules that fork only to execute another program.
_EXECUTING = frozenset({"os", "subprocess", "_posixsubprocess"})


def forked_error() -> ForkedError:
    """Returns the error for any use of fxflow in a forked process."""
    return ForkedError(
        "this process was forked from one in which fxflow had started its runtime, "
        "whose threads a fork does not copy: fxflow cannot be used here. Start "
        'processes with multiprocessing.get_context("spawn") (or "forkserver"), or '
        "fork before the first use of fxflow."
    )


def require_not_forked() -> None:
    """Raises a `ForkedError` in a forked process, whose runtime has no threads.

    At the end of the process, ends any thread but the main one.
    """
    if _is_forked:
        raise forked_error()
    if _is_over and threading.get_ident() != threading.main_thread().ident:
        raise SystemExit  # as `_raise_exit` does in threads inside a call


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
        "fork does not copy. fxflow cannot be used in the new process; to use it "
        'there, start the process with multiprocessing.get_context("spawn").',
        RuntimeWarning,
        stacklevel=2,
    )


def _after_fork() -> None:
    global _is_forked
    if clients.started() and not _is_forked:
        _is_forked = True
        # At the end of this process the clients would wait for threads it lacks.
        _keep_clients()
        clients.refuse(forked_error)
        for callback in _on_fork:
            callback()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


# -- shutdown --------------------------------------------------------------------------

#: Tokens of programs whose `wait_for` was interrupted.
_unfinished: set[Any] = set()
_on_exit: list[Callable[[], Any]] = []
_is_ending = _is_over = False


def wait_for(token: Any) -> None:
    """Waits for a program; if interrupted, the process waits for it at its end.

    Args:
      token: the program's token.

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
    """Makes the end of the process wait for what `callback` returns.

    Args:
      callback: returns an object with ``block_until_ready()``, or None.
    """
    _on_exit.append(callback)


def ending() -> bool:
    """Returns whether the process is ending and waits for programs."""
    return _is_ending


def _all_clients() -> list[Any]:
    return [clients.client(platform) for platform in clients.started()]


def _keep_clients() -> None:
    """Keeps Python from destroying the clients, which would wait for their threads."""
    import ctypes

    for client in _all_clients():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


def _threads_inside() -> Iterator[tuple[int, bool]]:
    """Yields the threads in a call of fxflow, and whether the call may be abandoned."""
    ours = {t.ident: t.name for t in threading.enumerate()}
    here = threading.get_ident()
    for ident, frame in sys._current_frames().items():
        name = ours.get(ident, "")
        if ident == here or (name.startswith(_OWN_PREFIX) and name != _SHIELDED):
            continue
        found: Any = frame
        while found is not None:
            module = found.f_globals.get("__name__", "")
            if module.startswith("fxflow.") and not module.startswith(_MESSAGING):
                yield ident, name != _SHIELDED
                break
            found = found.f_back


def _raise_exit(ident: int) -> None:
    """Makes a thread raise SystemExit when it returns to Python.

    The interpreter ends the thread anyway, but where it next acquires the GIL: inside
    the runtime that aborts the process.
    """
    import ctypes

    number = ctypes.c_ulong(ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(SystemExit))


def _wait_for_threads(end: float) -> bool:
    """Waits until no thread is in fxflow, and keeps threads from entering it."""
    if threading.active_count() == len(sys._current_frames()) == 1:
        return True  # usual case: there are no other threads
    interval = sys.getswitchinterval()
    exiting: set[int] = set()
    while True:
        # Now the other threads run only when this one waits for something.
        sys.setswitchinterval(1e6)
        # A thread that waits already still uses the previous interval, once.
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
            if can_leave and ident not in exiting:
                exiting.add(ident)
                _raise_exit(ident)
        time.sleep(_TICK)


def _wait_for_programs(end: float) -> bool:
    """Waits for every program whose results are still reachable."""
    pending = [*_unfinished, *(callback() for callback in _on_exit)]
    for client in _all_clients():
        pending += client.live_arrays()
    pending = [p for p in pending if p is not None and not _is_finished(p)]
    if not pending:
        return True

    def wait() -> None:
        for each in pending:
            # Anything that failed, was deleted or cannot be waited for has finished.
            with contextlib.suppress(RuntimeFailure, RuntimeError, ValueError):
                each.block_until_ready()

    thread = threading.Thread(target=wait, name=_SHIELDED, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down
        return False
    thread.join(max(0.0, end - time.monotonic()))
    return not thread.is_alive()


def _is_finished(pending: Any) -> bool:
    try:
        return bool(pending.is_ready())
    except AttributeError:
        return False
    except (RuntimeFailure, RuntimeError, ValueError):
        return True


def _abandon() -> None:
    """Lets the process end although the runtime is still working.

    Otherwise three things would go wrong. The clients would wait for their threads:
    keep them. The interpreter would end a thread that returns to Python, even to check
    for signals, and C++ would call `terminate`: make that pause instead. The C++
    runtime would be destroyed while its threads run: end the process before, with its
    status, which only the C library knows.
    """
    import ctypes

    _keep_clients()
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
        finished = _wait_for_programs(end) and _wait_for_threads(end)
    except KeyboardInterrupt:
        finished = False
    _is_ending = False
    if not finished:
        _abandon()


# Registered when fxflow is imported: the program's own functions run before it.
atexit.register(_finish)


# -- memory ----------------------------------------------------------------------------

#: Parameters of glibc's `mallopt`, and what they are set to: larger blocks come from
#: the system each time (32 MB is the most that glibc takes), and free memory at the end
#: of the heap goes back to it.
_MALLOPT = {-3: 32 << 20, -1: 512 << 20}


def keep_freed_memory() -> bool:
    """Has the C library keep freed memory for the next array.

    For a process that computes the same arrays in every step. By default the pages go
    back to the system, which clears them when they come again: 8 % of a step in stages
    of a perceptron (measured).

    Returns:
      Whether the C library can do that.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return all(mallopt(name, value) for name, value in _MALLOPT.items())
