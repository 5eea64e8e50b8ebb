"""`Logger`: sends values to any number of sinks, without waiting for the values."""

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

#: The most calls that may wait to be written; beyond that, `log` waits too.
_QUEUE = 1000


class Sink(Protocol):
    """A destination for logs."""

    def write(self, step: int, seconds: float, values: Mapping[str, Any]) -> None:
        """Writes the values of a step.

        Args:
          step: the step's number.
          seconds: when it was logged, in seconds since 1970.
          values: Python numbers, and values of `fxflow.train.logs`, by name.
        """

    def flush(self) -> None:
        """Makes everything that was written readable."""

    def close(self) -> None:
        """Writes the rest, and closes the sink."""


class Logger:
    """Sends numbers and other values to sinks.

    A call adds them to a queue and returns; a thread waits until arrays are computed.
    Errors there do not end the run, and all other values are written. The next call
    warns, once for each name or sink and class of error. `close` warns how often errors
    occurred.

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
        # The errors by name or sink, and by class: their number, and the first.
        self._failures: dict[Any, _Failure] = {}
        self._calls: queue.Queue[Any] = queue.Queue(_QUEUE)
        self._thread: threading.Thread | None = None

    def __call__(self, step: int, values: Mapping[str, Any]) -> None:
        """Logs values.

        Args:
          step: the number of the step.
          values: by name, such as `losses/main`: arrays and numbers with one element,
            metrics, and the values of `fxflow.train.logs`. Do not log an array that is
            donated later.

        Raises:
          ArgumentError: a name is not a string.
        """
        self._warn()
        step = integer("log", "step", step)
        for name in values:
            if not isinstance(name, str):
                raise ArgumentError(f"log: names must be strings, got {name!r}")
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="fxflow log", daemon=True
            )
            self._thread.start()
            # A program that exits without closing waits until all is written.
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
            with self._recording(name, f"{name!r} at step {step} is not logged"):
                shown[name] = _host(name, value)
        for which, sink in enumerate(self._sinks):
            what = f"{_described(sink)} could not write step {step}, or not all of it"
            with self._recording(which, what):
                sink.write(step, seconds, shown)
                if self._calls.empty():
                    sink.flush()

    @contextlib.contextmanager
    def _recording(self, key: Any, what: str) -> Iterator[None]:
        """Records an error under a key, for a warning in the caller's thread."""
        try:
            yield
        except Exception as error:
            text = f"log: {what}: {type(error).__name__}: {error}"
            failure = self._failures.setdefault((key, type(error)), _Failure(text))
            failure.count += 1

    def _warn(self, at_end: bool = False) -> None:
        """Warns about new errors; at the end, also about repeated ones."""
        for failure in list(self._failures.values()):
            if not failure.reported:
                failure.reported = True
                warn(failure.text)
            elif at_end and failure.count > 1:
                again = f"{failure.text} (and {failure.count - 1} more times)"
                warn(again)

    def flush(self) -> None:
        """Waits until all values are written; warns about errors."""
        self._calls.join()
        self._warn()

    def close(self) -> None:
        """Writes the rest, and closes the sinks; warns about errors."""
        if self._thread is not None:
            _finish(self._calls, self._thread)
            self._thread = None
        for which, sink in enumerate(self._sinks):
            with self._recording(which, f"{_described(sink)} could not be closed"):
                sink.close()
        self._warn(at_end=True)
        self._failures.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Failure:
    """The errors of one class, with one name or sink."""

    def __init__(self, text: str) -> None:
        self.text, self.count, self.reported = text, 0, False


def _described(sink: Sink) -> str:
    return f"the sink {type(sink).__name__.lstrip('_')}"


def _finish(calls: queue.Queue[Any], thread: threading.Thread) -> None:
    """Ends a logger's thread after all is written."""
    calls.put(None)
    thread.join()


def _host(name: str, value: Any) -> Any:
    """Returns a value in host memory: a number, or a value of `fxflow.train.logs`."""
    if isinstance(value, get_args(Value)):
        return value
    if isinstance(value, Metric):
        value = value.compute()
    if isinstance(value, str):
        raise ArgumentError(f"log: {name} is a string: use logs.Text({value[:20]!r})")
    return number(name, value)


def histograms(params: Any, prefix: str = "") -> dict[str, Histogram]:
    """Returns a histogram of each array of a pytree, for `log`.

    Args:
      params: pytree of arrays, such as parameters or gradients.
      prefix: the prefix of the names.

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
