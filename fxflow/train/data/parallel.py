"""Threads and processes that work ahead of the consumer of a pipeline.

The functions here turn one iterator of `(element, state)` pairs into another with the
same order. Each is a generator; its threads and processes end when it is closed or
garbage-collected. Threads are daemons, and a process ends when its pipe is closed, so
that a source that never returns blocks neither the loop nor the program's exit.
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

#: Seconds to wait for a thread to end.
_GRACE = 1.0
#: Seconds to wait for a process to end after its pipe was closed, with its output.
_ENDING = 10.0
#: Seconds of work that are transferred together. A transfer between threads that all
#: need the GIL, or to a process, takes 0.1 ms, and several ms on busy cores.
_SPAN = 1e-2


def _where(thread: threading.Thread) -> str:
    """Returns the top of a thread's stack, for a message."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return " (its thread has ended)"
    lines = traceback.format_stack(frame)[-3:]
    return "; it is at\n" + "".join(lines).rstrip()


def prefetched(pairs: Pairs[T, S], size: int, timeout: float, name: str) -> Pairs[T, S]:
    """Yields the pairs, which a thread reads ahead.

    Args:
      pairs: the pairs; the thread reads and closes them.
      size: the most pairs that exist at a time, including the last one yielded.
      timeout: seconds to wait for a pair.
      name: the caller's name, for messages.

    Raises:
      DataTimeoutError: no pair arrived in time; the message shows the thread's stack.
    """
    # The last item is an error or the end.
    ready: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    # An item for each pair that may be read. `SimpleQueue`, written in C, takes a third
    # of the time of a condition.
    room: SimpleQueue[None] = SimpleQueue()
    is_closed = False

    def has_room() -> bool:
        room.get()
        return not is_closed

    def fill() -> None:
        error: BaseException = StopIteration()
        try:
            # Only the thread that runs a generator may close it.
            with contextlib.closing(pairs):
                while has_room():
                    ready.put((next(pairs), None))
        except BaseException as raised:  # the consumer raises any error
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
                    f"{name}: the source yielded no element in {timeout:g} s"
                    f"{_where(thread)}\nA source that may take longer needs a larger "
                    f"timeout="
                ) from None
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield pair
            del pair  # free it before the next pair arrives
            room.put(None)
    finally:
        is_closed = True
        room.put(None)
        thread.join(_GRACE)


def note(element: str) -> str:
    """Returns the note for an error of the user's function, which names the element."""
    return f"fxflow.train.data: while computing {element}"


# -- a function in threads or processes ------------------------------------------------
#
# A worker receives consecutive items as a run that takes about `_SPAN`. It returns the
# results in parts, one for each `_SPAN`: fast elements share a transfer, a slow one has
# its own.


class _Run(Generic[T, S]):
    """Consecutive items for one worker, and their results."""

    def __init__(self, pairs: Iterable[tuple[T, S]]) -> None:
        items, states = zip(*pairs)
        self.items: tuple[T, ...] = items
        self.states: tuple[S, ...] = states
        #: The number of the item that the worker is computing.
        self.place = ctypes.c_long(0)
        #: Results of items; finally None, or an error about the item at `place`.
        self.parts: SimpleQueue[list[Any] | BaseException | None] = SimpleQueue()

    def answer(self, timeout: float, label: Callable[[S], str]) -> list[Any] | None:
        """Waits for the next results; None is the end. Raises as `mapped` does."""
        while True:
            try:
                part = self.parts.get(timeout=timeout)
            except Empty:
                at = self.place.value
                # If results arrived meanwhile, `at` may belong to the next run.
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
    """Yields a function of each item, with the current item's number in `place`."""
    for place.value, item in enumerate(items, first):
        yield function(item)


def _gathered(source: Iterator[T]) -> tuple[list[T], Exception | None]:
    """Returns what `source` yields within `_SPAN`, and the exception that ended it."""
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
    """The main function of a thread: computes runs until None or an error."""
    while (run := runs.get()) is not None and not is_closed.is_set():
        try:
            for part in compute(run):
                run.parts.put(part)
                del part  # free it before the next part is computed
                if is_closed.is_set():
                    return
            run.parts.put(None)
        except BaseException as error:  # the consumer raises any error
            run.parts.put(error)
            return  # `place` does not change any more
        del run


# -- processes -------------------------------------------------------------------------


def _pickled(
    found: list[Any], error: Exception | None
) -> tuple[bytes, Exception | None]:
    """Returns both as a message, and the error.

    If an element of `found` cannot be pickled, it and later ones are removed, and the
    error gives the reason.
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
        f"map: an element or a result of the function cannot be pickled: {words}"
    )
    return pickle.dumps((found, error), protocol=5), error


def _sendable(error: Exception) -> Any:
    """Returns an error in a form that the other process can unpickle.

    pickle calls the class with `args`; a class with its own `__init__` may then fail,
    or produce another message. Such an error is made without that call. If the other
    process cannot find the class, the error becomes a DataError.
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
    """Pickles an error so that unpickling does not call its `__init__`."""

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
    # This process ends when the parent closes the pipe or dies.
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
    """Returns the function of a message, or one that raises why it cannot be loaded."""
    try:
        return pickle.loads(message)  # type: ignore[no-any-return]
    except Exception as error:
        failure = DataError(
            "map: a worker process cannot load the function: "
            f"{type(error).__name__}: {error}. Define it in a module that other "
            "processes can import, not in an interactive session or a notebook"
        )

    def fail(*args: Any) -> None:
        raise failure

    return fail


def _answered(
    message: bytes, function: Callable[..., T], place: ctypes.c_long
) -> Iterator[T]:
    # A generator, so that an error of unpickling belongs to the first element.
    arguments, _ = pickle.loads(message)
    yield from _each(lambda one: function(*one), arguments, place, place.value)


class _Child:
    """A process that applies one function, for one thread of this process.

    Unpickling from its pipe is safe, because the program's own child writes to it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        # A fork would copy the state of locks that XLA's threads hold.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        #: In shared memory, to know the current item of a child that does not respond.
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
            place.value = given  # now the child updates it
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
                        "map: a result of the function cannot be unpickled here: "
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
                f"map: a worker process {ended}; its standard error may say why"
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

    There are two runs in progress for each worker. When a worker hangs or dies, results
    that it has not transferred, at most `_SPAN` of work, are lost. The error is raised
    in their place, and names the element that the worker was computing.

    Args:
      pairs: items and states, which the consumer's thread reads.
      fetch: returns the arguments of `function`; called in a thread.
      function: the user's function; called in the same thread, or in its child process.
      workers: the number of threads.
      processes: whether each thread has a child process.
      timeout: seconds to wait for one item.
      label: returns the name of the element before a state, for messages.

    Raises:
      DataTimeoutError: an item took longer than `timeout`.
      Exception: an error of `function`, with a note that names the element.
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
    after: Exception | None = None  # raised after all earlier elements
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
                while results:  # keep no reference to a result that was yielded
                    yield results.pop(), next(states)
            # Aim at one part per run: a run of one part may be too short, so double it.
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
