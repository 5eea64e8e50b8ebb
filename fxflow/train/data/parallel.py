"""Threads and processes that work ahead of the consumer of a pipeline.

Everything here turns one iterator of `(element, state)` pairs into another, which
yields the same pairs in the same order. Each is a generator: to close it, or to drop
it, ends its threads and processes. Threads are daemons and a process ends when its
pipe does, so that a source that never returns holds neither the loop nor the exit.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import pickle
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from fxflow.errors import DataError, DataTimeoutError

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")
Pairs = Generator[tuple[T, S], None, None]

#: How long a thread that was told to end may go on before it is left behind.
_GRACE = 1.0


class _Channel(Generic[T]):
    """A bounded queue of one writer and one reader, which the reader can close."""

    def __init__(self, size: int) -> None:
        self._items: SimpleQueue[T] = SimpleQueue()
        #: A token for each item that there is room for. Queues of C hand over in a
        #: third of the time that a condition takes.
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(size):
            self._room.put(None)
        self._closed = False

    def put(self, item: T) -> bool:
        """Waits for room; returns False if the reader is gone."""
        self._room.get()
        if self._closed:
            self._room.put(None)
            return False
        self._items.put(item)
        return True

    def get(self, timeout: float) -> T:
        """Waits for an item; raises TimeoutError if none comes in `timeout` seconds."""
        try:
            item = self._items.get(timeout=timeout)
        except Empty:
            raise TimeoutError from None
        self._room.put(None)
        return item

    def close(self) -> None:
        self._closed = True
        self._room.put(None)


def _where(thread: threading.Thread) -> str:
    """The innermost lines that `thread` is at, for a message."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return " (its thread has ended)"
    lines = traceback.format_stack(frame)[-3:]
    return "; it is at\n" + "".join(lines).rstrip()


def prefetched(pairs: Pairs[T, S], size: int, timeout: float) -> Pairs[T, S]:
    """Yields the pairs, up to `size` of which a thread holds ready.

    Raises:
      DataTimeoutError: none came within `timeout` seconds; it says where the thread is.
    """
    # The last item is an error or the end.
    channel: _Channel[tuple[Any, BaseException | None]] = _Channel(size)

    def fill() -> None:
        error: BaseException = StopIteration()
        try:
            # Closed here, by the thread that runs it: a generator belongs to one.
            with contextlib.closing(pairs):
                for pair in pairs:
                    if not channel.put((pair, None)):
                        return
        except BaseException as raised:  # given to who waits, whatever it is
            error = raised
        channel.put((None, error))

    thread = threading.Thread(target=fill, name="fxflow prefetch", daemon=True)
    thread.start()
    try:
        while True:
            try:
                pair, error = channel.get(timeout)
            except TimeoutError:
                raise DataTimeoutError(
                    f"prefetch: the source gave no element in {timeout:g} s"
                    f"{_where(thread)}\nA source that may take longer needs a larger "
                    f"timeout="
                ) from None
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield pair
    finally:
        channel.close()
        thread.join(_GRACE)


def note(element: str) -> str:
    """What is added to an error of the user's function: which element it was about."""
    return f"fxflow.train.data: while computing {element}"


# -- a function in threads or processes ------------------------------------------------


def _serve(pipe: Connection) -> None:
    """The main function of a child process: receives a function, then its arguments."""
    # The parent's end, or its death, closes the pipe, and with it this process.
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        function = pickle.loads(pipe.recv_bytes())
        while True:
            pipe.send_bytes(_answer(function, pipe.recv_bytes()))


def _answer(function: Callable[..., Any], message: bytes) -> bytes:
    """Returns a result and an error, one of which is None, pickled."""
    result: Any = None
    error: Exception | None = None
    try:
        result = function(*pickle.loads(message))
    except Exception as raised:
        lines = "".join(traceback.format_exception(raised)).rstrip()
        raised.add_note(f"in a process of map:\n{lines}")
        error = raised
    try:
        return pickle.dumps((result, error), protocol=5)
    except Exception as unpicklable:
        words = f"map: what the function gave or raised cannot be sent: {unpicklable}"
        return pickle.dumps((None, DataError(words)))


class _Child:
    """A process that applies one function, for one thread of this process.

    What comes over the pipe was written by our own child, from our own program.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        # A fork would copy the locks of XLA's threads.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs,), name="fxflow map", daemon=True
        )
        message = pickle.dumps(function)
        self._process.start()
        theirs.close()
        self._pipe.send_bytes(message)

    def __call__(self, *args: Any) -> Any:
        try:
            self._pipe.send_bytes(pickle.dumps(args, protocol=5))
            result, error = pickle.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._process.join(_GRACE)
            raise DataError(
                f"map: a worker process ended with exit code {self._process.exitcode}"
            ) from None
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        self._process.terminate()
        self._process.join(_GRACE)
        self._pipe.close()


_Job = tuple["Future[Any]", Any]


def _work(
    jobs: SimpleQueue[_Job | None],
    fetch: Callable[[Any], tuple[Any, ...]],
    function: Callable[..., Any],
) -> None:
    """Runs jobs until it gets None."""
    while (job := jobs.get()) is not None:
        future, item = job
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*fetch(item)))
            except BaseException as error:  # given to who waits, whatever it is
                future.set_exception(error)
        del future, item, job  # else the last element lives until the next one comes


def mapped(
    pairs: Pairs[T, S],
    fetch: Callable[[T], tuple[Any, ...]],
    function: Callable[..., U],
    *,
    workers: int,
    processes: bool,
    timeout: float,
    label: Callable[[S], str],
) -> Pairs[U, S]:
    """Yields `(function(*fetch(item)), state)`, computed by threads or processes.

    Twice as many items as there are workers are under way.

    Args:
      pairs: items and states; drawn by the consumer's thread.
      fetch: gives the arguments of `function`; called in a thread.
      function: the user's; called in the same thread, or in its child process.
      workers: how many threads.
      processes: whether each thread has a child process.
      timeout: seconds that one item may take after it is waited for.
      label: names the element whose state is given, in messages.

    Raises:
      DataTimeoutError: an item took longer than `timeout`.
      Exception: what `function` raised, with a note that names the element.
    """
    jobs: SimpleQueue[_Job | None] = SimpleQueue()
    ahead: deque[tuple[Future[U], S]] = deque()
    children = [_Child(function) for _ in range(workers)] if processes else []
    callables: Sequence[Callable[..., U]] = children or [function] * workers
    threads = [
        threading.Thread(
            target=_work, args=(jobs, fetch, one), name="fxflow map", daemon=True
        )
        for one in callables
    ]
    for thread in threads:
        thread.start()
    broken: Exception | None = None
    try:
        while True:
            try:
                for item, state in itertools.islice(pairs, 2 * workers - len(ahead)):
                    future: Future[U] = Future()
                    jobs.put((future, item))
                    ahead.append((future, state))
            except Exception as error:
                broken = error  # raised when what was drawn before has been given
            if not ahead:
                if broken is not None:
                    raise broken
                return
            future, state = ahead.popleft()
            try:
                result = future.result(timeout)
            except BaseException as error:
                if not isinstance(error, TimeoutError) or future.done():
                    error.add_note(note(label(state)))
                    raise
                raise DataTimeoutError(
                    f"map: {label(state)} took more than {timeout:g} s. An element "
                    f"that may take longer needs a larger timeout="
                ) from None
            yield result, state
            del result
    finally:
        for future, _ in ahead:
            future.cancel()
        for _ in threads:
            jobs.put(None)
        for child in children:
            child.close()
        for thread in threads:
            thread.join(_GRACE)
        pairs.close()
