"""One `log(step, values)` to any number of sinks, without waiting for the values."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, get_args

from fxflow.core import tree
from fxflow.core.source import warn
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.train._paths import path_name
from fxflow.train.logs.values import Histogram, Value, number
from fxflow.train.metrics import Metric

#: How many calls may wait to be written; then `log` waits too.
_QUEUE = 1000


class Sink(Protocol):
    """Where logs go."""

    def write(self, step: int, seconds: float, values: Mapping[str, Any]) -> None:
        """Writes the values of a step.

        Args:
          step: its number.
          seconds: since 1970, when it was logged.
          values: Python numbers, and values of `fxflow.train.logs`, by name.
        """

    def flush(self) -> None:
        """Makes what was written readable."""

    def close(self) -> None:
        """Writes what is left, and ends."""


class Logger:
    """Sends numbers and other values to sinks.

    A call puts them into a queue and returns: a thread waits until arrays are computed.
    What goes wrong there does not end the run: the next call warns, once for each name
    and kind of error, and for each sink, and all else is written. `close` says how
    often it was.

    Args:
      *sinks: such as `terminal()`, `json_lines(path)` and `tensorboard(folder)`.

    Example:
      >>> path = tempfile.mkdtemp() + "/run.jsonl"
      >>> with train.logs.Logger(train.logs.json_lines(path)) as log:
      ...     for step in range(3):
      ...         log(step, {"loss": fnp.float32(1 / (step + 1))})
      >>> [round(line["loss"], 2) for line in train.logs.read_json_lines(path)]
      [1.0, 0.5, 0.33]
    """

    def __init__(self, *sinks: Sink) -> None:
        for sink in sinks:
            if not hasattr(sink, "write"):
                raise ArgumentError(
                    f"Logger: expected sinks, got {sink!r}: make one with "
                    f"logs.json_lines(path), logs.tensorboard(folder), ..."
                )
        self._sinks: Sequence[Sink] = sinks
        # What went wrong with a name or a sink: how often, and the first time.
        self._failures: dict[Any, _Failure] = {}
        self._calls: queue.Queue[Any] = queue.Queue(_QUEUE)
        self._thread: threading.Thread | None = None

    def __call__(self, step: int, values: Mapping[str, Any]) -> None:
        """Logs values.

        Args:
          step: the number of the step they belong to.
          values: by name, `losses/main`: arrays and numbers with one element, metrics,
            and the values of `fxflow.train.logs`. An array that is donated later must
            not be among them.

        Raises:
          ArgumentError: a name is not text.
        """
        self._warn()
        step = integer("log", "step", step)
        for name in values:
            if not isinstance(name, str):
                raise ArgumentError(f"log: names must be texts, got {name!r}")
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="fxflow log", daemon=True
            )
            self._thread.start()
            # A program that ends without closing waits until all is written.
            weakref.finalize(self, _finish, self._calls, self._thread)
        self._calls.put((step, time.time(), dict(values)))

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            try:
                if call is None:
                    return
                self._write(*call)
            finally:
                self._calls.task_done()

    def _write(self, step: int, seconds: float, values: Mapping[str, Any]) -> None:
        shown = {}
        for name, value in values.items():
            with self._noted(name, f"{name!r} at step {step} is not logged"):
                shown[name] = _host(name, value)
        for which, sink in enumerate(self._sinks):
            what = f"{_called(sink)} could not write step {step}, or not all of it"
            with self._noted(which, what):
                sink.write(step, seconds, shown)
                if self._calls.empty():
                    sink.flush()

    @contextlib.contextmanager
    def _noted(self, key: Any, what: str) -> Iterator[None]:
        """Notes an error under a key, to be warned of in the caller's thread."""
        try:
            yield
        except Exception as error:
            text = f"log: {what}: {type(error).__name__}: {error}"
            failure = self._failures.setdefault((key, type(error)), _Failure(text))
            failure.count += 1

    def _warn(self, at_end: bool = False) -> None:
        """Warns of what went wrong first; at the end of what did again."""
        for failure in list(self._failures.values()):
            if not failure.told:
                failure.told = True
                warn(failure.text)
            elif at_end and failure.count > 1:
                again = f"{failure.text} (and {failure.count - 1} more times)"
                warn(again)

    def flush(self) -> None:
        """Waits until all that was logged is written; warns of what could not be."""
        self._calls.join()
        self._warn()

    def close(self) -> None:
        """Writes what is left, and closes the sinks; warns of what could not be."""
        if self._thread is not None:
            _finish(self._calls, self._thread)
            self._thread = None
        for which, sink in enumerate(self._sinks):
            with self._noted(which, f"{_called(sink)} could not be closed"):
                sink.close()
        self._warn(at_end=True)
        self._failures.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Failure:
    """What went wrong with one name or sink."""

    def __init__(self, text: str) -> None:
        self.text, self.count, self.told = text, 0, False


def _called(sink: Sink) -> str:
    return f"the sink {type(sink).__name__.lstrip('_')}"


def _finish(calls: queue.Queue[Any], thread: threading.Thread) -> None:
    """Ends a logger's thread when all is written."""
    calls.put(None)
    thread.join()


def _host(name: str, value: Any) -> Any:
    """Returns a value in host memory: a number, or a value of `fxflow.train.logs`."""
    if isinstance(value, get_args(Value)):
        return value
    if isinstance(value, Metric):
        value = value.compute()
    if isinstance(value, str):
        raise ArgumentError(f"log: {name} is a text: give logs.Text({value[:20]!r})")
    return number(name, value)


def histograms(params: Any, prefix: str = "") -> dict[str, Histogram]:
    """Returns a histogram of each array of a pytree, to be logged.

    Args:
      params: pytree of arrays, such as parameters or gradients.
      prefix: what names begin with.

    Returns:
      Histograms by path.

    Example:
      >>> params = {"w": fnp.ones(2), "b": fnp.zeros(1)}
      >>> sorted(train.logs.histograms(params, "params/"))
      ['params/b', 'params/w']
    """
    return {
        prefix + path_name(path): Histogram(leaf)
        for path, leaf in tree.leaves_with_path(params)
    }
