"""Threads and processes that work ahead of the consumer of a pipeline.

Everything here turns one iterator of `(element, state)` pairs into another, which
yields the same pairs in the same order. Each is a generator: to close it, or to drop
it, ends its threads and processes. Threads are daemons and a process ends when its
pipe does, so that a source that never returns holds neither the loop nor the exit.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import multiprocessing
import pickle
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Generic, TypeVar

from fxflow.errors import DataError, DataTimeoutError

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")
Pairs = Generator[tuple[T, S], None, None]

#: Seconds that a thread has to end once it is asked to; then it is left behind.
_GRACE = 1.0
#: How long a process whose pipe is closed may take to end, with what it still says.
_ENDING = 10.0
#: Seconds of work that are handed over at once. A hand-over between threads that all
#: want Python's lock, or to a process, takes 0.1 ms, and several where cores are busy.
_SPAN = 1e-2


def _where(thread: threading.Thread) -> str:
    """The innermost lines that `thread` is at, for a message."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return " (its thread has ended)"
    lines = traceback.format_stack(frame)[-3:]
    return "; it is at\n" + "".join(lines).rstrip()


def prefetched(pairs: Pairs[T, S], size: int, timeout: float, name: str) -> Pairs[T, S]:
    """Yields the pairs, drawn by a thread.

    Args:
      pairs: drawn, and closed, by the thread.
      size: how many there may be at a time; the one that was given last is one of them.
      timeout: seconds to wait for one.
      name: of the caller, in messages.

    Raises:
      DataTimeoutError: none came within `timeout` seconds; it says where the thread is.
    """
    # The last item is an error or the end.
    ready: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    # An item for each pair that may be drawn. Queues of C hand over in a third of the
    # time that a condition takes.
    room: SimpleQueue[None] = SimpleQueue()
    is_closed = False

    def has_room() -> bool:
        room.get()
        return not is_closed

    def fill() -> None:
        error: BaseException = StopIteration()
        try:
            # Closed here, by the thread that runs it: a generator belongs to one.
            with contextlib.closing(pairs):
                while has_room():
                    ready.put((next(pairs), None))
        except BaseException as raised:  # any error is given to the consumer
            error = raised
        ready.put((None, error))

    thread = threading.Thread(target=fill, name="fxflow prefetch", daemon=True)
    thread.start()
    try:
        for _ in range(size):
            room.put(None)
        while True:
            try:
                pair, error = ready.get(timeout=timeout)
            except Empty:
                raise DataTimeoutError(
                    f"{name}: the source gave no element in {timeout:g} s"
                    f"{_where(thread)}\nA source that may take longer needs a larger "
                    f"timeout="
                ) from None
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield pair
            del pair  # else it would live until the next one comes
            room.put(None)
    finally:
        is_closed = True
        room.put(None)
        thread.join(_GRACE)


def note(element: str) -> str:
    """What is added to an error of the user's function: which element it was about."""
    return f"fxflow.train.data: while computing {element}"


# -- a function in threads or processes ------------------------------------------------
#
# Consecutive items go to a worker as a run, as many as take about `_SPAN`. Their
# results come back in parts, one each `_SPAN`: quick elements share a hand-over, a slow
# one has its own.


class _Run(Generic[T, S]):
    """Consecutive items for one worker, and what it made of them."""

    def __init__(self, pairs: Iterable[tuple[T, S]]) -> None:
        items, states = zip(*pairs)
        self.items: tuple[T, ...] = items
        self.states: tuple[S, ...] = states
        #: The number of the item that the worker has in hand.
        self.place = ctypes.c_long(0)
        #: Results of items; at last None, or an error about the item at `place`.
        self.parts: SimpleQueue[list[Any] | BaseException | None] = SimpleQueue()

    def answer(self, timeout: float, label: Callable[[S], str]) -> list[Any] | None:
        """Waits for the next results; None is the end. `mapped` says what is raised."""
        while True:
            try:
                part = self.parts.get(timeout=timeout)
            except Empty:
                at = self.place.value
                # If something came meanwhile, `at` may be of the worker's next run.
                if not self.parts.empty():
                    continue
                raise DataTimeoutError(
                    f"map: {label(self.states[at])} took more than {timeout:g} s. An "
                    f"element that may take longer needs a larger timeout="
                ) from None
            if isinstance(part, BaseException):
                part.add_note(note(label(self.states[self.place.value])))
                raise part
            return part


def _each(
    function: Callable[[T], U], items: Iterable[T], place: ctypes.c_long, first: int = 0
) -> Iterator[U]:
    """Yields a function of each item; the number of the one in hand is in `place`."""
    for place.value, item in enumerate(items, first):
        yield function(item)


def _gathered(source: Iterator[T]) -> tuple[list[T], Exception | None]:
    """Returns what comes within `_SPAN`, at least one, and what ended it, if it has."""
    found: list[T] = []
    end = monotonic() + _SPAN
    try:
        while True:
            found.append(next(source))
            if monotonic() > end:
                return found, None
    except Exception as error:
        return found, error


def _computed(
    run: _Run[T, Any], function: Callable[..., U], fetch: Callable[[T], tuple[Any, ...]]
) -> Iterator[list[U]]:
    """Yields the results of a run in parts, computed in this thread."""
    results = _each(lambda item: function(*fetch(item)), run.items, run.place)
    error: Exception | None = None
    while error is None:
        found, error = _gathered(results)
        if found:
            yield found
        del found
    if not isinstance(error, StopIteration):
        raise error


def _work(
    runs: SimpleQueue[_Run[Any, Any] | None],
    compute: Callable[[_Run[Any, Any]], Iterator[list[Any]]],
    is_closed: threading.Event,
) -> None:
    """The main function of a thread: computes runs until it gets None, or one fails."""
    while (run := runs.get()) is not None and not is_closed.is_set():
        try:
            for part in compute(run):
                run.parts.put(part)
                del part  # else it would live until the next one comes
                if is_closed.is_set():
                    return
            run.parts.put(None)
        except BaseException as error:  # any error is given to the consumer
            run.parts.put(error)
            return  # `place` stays
        del run


# -- processes -------------------------------------------------------------------------


def _pickled(
    found: list[Any], error: Exception | None
) -> tuple[bytes, Exception | None]:
    """Returns both as a message, and the error.

    From what cannot be pickled on, `found` is cut off; the error says why.
    """
    error = None if error is None else _sendable(error)
    try:
        return pickle.dumps((found, error), protocol=5), error
    except Exception as reason:
        words = str(reason)
    for count, one in enumerate(found):
        try:
            pickle.dumps(one)
        except Exception as reason:
            words = str(reason)
            del found[count:]
            break
    error = DataError(
        f"map: an element, or what the function gave, cannot be sent: {words}"
    )
    return pickle.dumps((found, error), protocol=5), error


def _sendable(error: Exception) -> Any:
    """Returns an error as the other process can rebuild it.

    pickle calls the class with `args`, which a class with an `__init__` of its own may
    refuse, or turn into other words. Such an error is made without that call. Only one
    whose class the other process cannot find is a DataError there.
    """
    lines = [str(error), *getattr(error, "__notes__", ())]
    for candidate in (error, _Bare(error)):
        try:
            found = pickle.loads(pickle.dumps(candidate))
            if type(found) is type(error) and str(found) == lines[0]:
                return candidate
        except Exception:
            continue
    words = f"map: the function raised {type(error).__qualname__}: {lines[0]}"
    stand_in = DataError(words)
    for note in lines[1:]:
        stand_in.add_note(note)
    return stand_in


class _Bare:
    """Is pickled as an error that is made without a call of its `__init__`."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = {}
        for name, value in vars(self._error).items():
            with contextlib.suppress(Exception):
                pickle.loads(pickle.dumps(value))
                attributes[name] = value
        return _made, (type(self._error), self._error.args, attributes)


def _made(kind: type[Exception], args: tuple[Any, ...], attributes: Any) -> Exception:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


def _serve(pipe: Connection, place: ctypes.c_long) -> None:
    """The main function of a child process: receives a function, then its arguments."""
    # The parent's end, or its death, closes the pipe, and with it this process.
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        function = _loaded(pipe.recv_bytes())
        while True:
            results = _answered(pipe.recv_bytes(), function, place)
            given = place.value
            error: Exception | None = None
            while error is None:
                found, error = _gathered(results)
                if error is not None and not isinstance(error, StopIteration):
                    lines = "".join(traceback.format_exception(error)).rstrip()
                    error.add_note(f"in a process of map:\n{lines}")
                wanted = len(found)
                answer, error = _pickled(found, error)
                given += len(found)
                if len(found) < wanted:
                    place.value = given
                pipe.send_bytes(answer)


def _loaded(message: bytes) -> Callable[..., Any]:
    """Returns the function of a message, or one that says why there is none."""
    try:
        return pickle.loads(message)  # type: ignore[no-any-return]
    except Exception as error:
        failure = DataError(
            "map: a worker process cannot load the function: "
            f"{type(error).__name__}: {error}. Define it in a module that other "
            "processes can import, rather than in a session or a notebook"
        )

    def fail(*args: Any) -> None:
        raise failure

    return fail


def _answered(
    message: bytes, function: Callable[..., T], place: ctypes.c_long
) -> Iterator[T]:
    # A generator, so that what cannot be unpickled is an error of the first element.
    arguments, _ = pickle.loads(message)
    yield from _each(lambda one: function(*one), arguments, place, place.value)


class _Child:
    """A process that applies one function, for one thread of this process.

    What comes over the pipe was written by our own child, from our own program.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        # A fork would copy the locks of XLA's threads.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        #: In shared memory: it says where a child is that says nothing any more.
        self._place: ctypes.c_long = context.RawValue(ctypes.c_long, 0)
        self._process = context.Process(
            target=_serve, args=(theirs, self._place), name="fxflow map", daemon=True
        )
        message = pickle.dumps(function)
        self._process.start()
        theirs.close()
        self._pipe.send_bytes(message)

    def computed(
        self, run: _Run[T, Any], fetch: Callable[[T], tuple[Any, ...]]
    ) -> Iterator[list[Any]]:
        """Yields the results of a run in parts; `fetch` is called in this thread."""
        place = self._place
        given = place.value = 0
        run.place = place
        arguments = _each(fetch, run.items, place)
        error: Exception | None = None
        while error is None:
            found, error = _gathered(arguments)
            message, unsendable = _pickled(found, None)
            error = unsendable or error
            place.value = given  # and from here on the child says where it is
            for results in self._answers(message) if found else ():
                given += len(results)
                yield results
            place.value = given
        if not isinstance(error, StopIteration):
            raise error

    def _answers(self, message: bytes) -> Iterator[list[Any]]:
        error: Exception | None = None
        try:
            self._pipe.send_bytes(message)
            while error is None:
                answer = self._pipe.recv_bytes()
                try:
                    found, error = pickle.loads(answer)
                except Exception as reason:
                    raise DataError(
                        "map: what the function gave cannot be loaded here: "
                        f"{type(reason).__name__}: {reason}"
                    ) from reason
                if found:
                    yield found
        except (EOFError, OSError):
            self._process.join(_ENDING)
            code = self._process.exitcode
            ended = (
                "closed its pipe" if code is None else f"ended with exit code {code}"
            )
            raise DataError(
                f"map: a worker process {ended}; what it said of that is on its "
                "standard error"
            ) from None
        if not isinstance(error, StopIteration):
            raise error

    def close(self) -> None:
        self._process.terminate()
        self._process.join(_GRACE)
        self._pipe.close()


# -- the pipeline's step ---------------------------------------------------------------


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

    Twice as many runs as there are workers are under way. When a worker is stuck or has
    died, what it had not handed over yet is lost, at most `_SPAN` of work: the error
    comes in its place, and names the element that the worker had in hand.

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
    runs: SimpleQueue[_Run[T, S] | None] = SimpleQueue()
    ahead: deque[_Run[T, S]] = deque()
    is_closed = threading.Event()
    children = [_Child(function) for _ in range(workers)] if processes else []
    computing: list[Callable[[_Run[T, S]], Iterator[list[U]]]]
    computing = [functools.partial(child.computed, fetch=fetch) for child in children]
    if not processes:
        one = functools.partial(_computed, function=function, fetch=fetch)
        computing = [one] * workers
    threads = [
        threading.Thread(
            target=_work, args=(runs, one, is_closed), name="fxflow map", daemon=True
        )
        for one in computing
    ]
    for thread in threads:
        thread.start()
    length = 1
    after: Exception | None = None  # what is raised when all before it has been given
    try:
        while True:
            while after is None and len(ahead) < 2 * workers:
                drawn, error = _gathered(itertools.islice(pairs, length))
                if len(drawn) < length:
                    after = error
                if drawn:
                    ahead.append(_Run(drawn))
                    runs.put(ahead[-1])
            if not ahead:
                if isinstance(after, StopIteration):
                    return
                assert after is not None
                raise after
            run = ahead.popleft()
            states, parts = iter(run.states), 0
            while (results := run.answer(timeout, label)) is not None:
                parts += 1
                results.reverse()
                while results:  # none is kept here that was given
                    yield results.pop(), next(states)
            # As many as take one part: a run that was quick may have been shorter.
            count = len(run.items)
            length = 2 * count if parts == 1 else max(count // parts, 1)
    finally:
        is_closed.set()
        for _ in threads:
            runs.put(None)
        for child in children:
            child.close()
        for thread in threads:
            thread.join(_GRACE)
        pairs.close()
