"""The loop around a pure step: checkpoints, logs, hooks, signals, exact resumption.

`run` adds these to the loop::

    for batch in batches:
        state, outputs = step(state, batch)

It does not depend on the model. A run consists of `state` (parameters, optimizer,
random keys) and the position of the data. A checkpoint contains both, so a run that is
killed at any time and restarted gives bitwise the same result.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import dtypes, is_arraylike, typeof
from fxflow.core.boundary import boundary
from fxflow.core.source import warn
from fxflow.devices import process_count, process_index
from fxflow.distributed.multihost import (
    broadcast_one_to_all,
    process_allgather,
    reached_preemption_sync_point,
)
from fxflow.errors import ArgumentError, CheckpointError
from fxflow.lax.axes import integer, natural, number
from fxflow.train._nonfinite import Watch
from fxflow.train._paths import path_name
from fxflow.train.checkpoint import Checkpointer
from fxflow.train.data import DataIterator, Dataset, iterable

S = TypeVar("S")
B = TypeVar("B")
Log = Callable[[int, Mapping[str, Any]], Any]


class Outcome(NamedTuple, Generic[S]):
    """How a run ended.

    Attributes:
      state: the state after the last step.
      step: the number of steps, including those of earlier runs.
      reason: `"finished"`, `"interrupted"` (by a signal), or a hook's from `stop`.
    """

    state: S
    step: int
    reason: str


@dataclasses.dataclass
class Progress(Generic[S]):
    """The progress of a run, for its hooks.

    Attributes:
      step: the number of finished steps.
      epoch: the number of finished passes over the data.
      state: the state after the last step. A hook may replace it.
      outputs: the outputs of the last step.
      batch: the batch of the last step.
      is_chief: whether this is process 0, which does what must be done once.
    """

    step: int
    epoch: int
    state: S
    outputs: Any = None
    batch: Any = None
    is_chief: bool = True
    _reason: str = ""
    _save: Callable[[Mapping[str, Any]], None] | None = None

    def save(self, metrics: Mapping[str, Any] | None = None) -> None:
        """Saves a checkpoint now, whether or not one is due.

        Args:
          metrics: numbers by name, in addition to the outputs; the checkpointer may
            choose the best checkpoint by them.

        Raises:
          ArgumentError: the run has no checkpointer.
        """
        if self._save is None:
            raise ArgumentError("save: this run has no checkpointer=")
        self._save(metrics or {})

    def stop(self, reason: str) -> None:
        """Ends the run after the hooks of this step.

        If there are several processes, all must stop at the same step.

        Args:
          reason: the reason, which `run` returns.
        """
        self._reason = reason or "stopped"


class Hook(Protocol):
    """A function that `run` calls after each step.

    A hook whose decisions depend on earlier steps has `get_state()`, which returns a
    pytree of numbers, and `set_state(state)`, so that a resumed run decides alike.
    Checkpoints store its state under its attribute `name`, or else its class's name. So
    a resumed run may have additional hooks, or lack some.
    """

    def __call__(self, progress: Progress[Any], /) -> Any:
        """Handles the end of a step."""


# -- hooks -----------------------------------------------------------------------------


class Every:
    """A hook that calls a function periodically; see `every`."""

    epochs: int

    def __init__(
        self,
        function: Callable[[Progress[Any]], Any],
        steps: int,
        seconds: float,
        epochs: int,
    ) -> None:
        self._function = function
        self._steps, self._seconds, self.epochs = steps, seconds, epochs
        self._last = time.monotonic()

    def __call__(self, progress: Progress[Any]) -> None:
        """Calls the function if it is due after this step."""
        if self._steps and progress.step % self._steps == 0:
            self._function(progress)
        elif self._seconds:
            due = time.monotonic() - self._last >= self._seconds
            if process_count() > 1:  # process 0's clock decides for all
                due = bool(broadcast_one_to_all(np.array(due)))
            if due:
                self._last = time.monotonic()
                self._function(progress)

    def after_epoch(self, progress: Progress[Any]) -> None:
        """Calls the function if it is due after this epoch."""
        if self.epochs and progress.epoch % self.epochs == 0:
            self._function(progress)


def every(
    *, steps: int = 0, seconds: float = 0.0, epochs: int = 0
) -> Callable[[Callable[[Progress[Any]], Any]], Every]:
    """Returns a decorator that makes a function a hook that is called periodically.

    Args:
      steps: call it after every `steps` steps; or
      seconds: after a step, if this many seconds have passed; or
      epochs: after every `epochs` epochs.

    Returns:
      A decorator for functions of a `Progress`.

    Raises:
      ArgumentError: not exactly one argument is positive.

    Example:
      >>> @train.loop.every(steps=2)
      ... def show(progress):
      ...     print(progress.step, progress.state)
      >>> add = lambda state, batch: (state + batch, None)
      >>> train.loop.run(add, 0, [1, 2, 3, 4], hooks=[show]).state
      2 3
      4 10
      10
    """
    given = (
        integer("every", "steps", steps),
        number("every", "seconds", seconds),
        integer("every", "epochs", epochs),
    )
    if sum(value > 0 for value in given) != 1 or min(given) < 0:
        raise ArgumentError(
            f"every: give one of steps=, seconds= and epochs=, positive; got steps="
            f"{steps}, seconds={seconds}, epochs={epochs}"
        )
    return lambda function: Every(function, *given)


class EarlyStopping:
    """Ends a run when a number has stopped improving.

    A hook to call with each new value::

        stopping = loop.EarlyStopping(patience=3)

        @loop.every(epochs=1)
        def evaluate(progress):
            stopping.look(progress, float(loss_of(progress.state, held_out)))

        loop.run(step, state, batches, hooks=[evaluate, stopping])

    Args:
      patience: the number of values in a row without an improvement that ends the run.
      mode: `"max"` if larger values are better, `"min"` if smaller ones are.
      least: the smallest change that counts as an improvement.
      name: identifies its state in checkpoints if there are several such hooks.

    Raises:
      ArgumentError: an argument is out of range.
    """

    name: str

    def __init__(
        self,
        patience: int,
        *,
        mode: Literal["max", "min"] = "min",
        least: float = 0.0,
        name: str = "",
    ) -> None:
        if integer("EarlyStopping", "patience", patience) < 1 or least < 0:
            raise ArgumentError(
                f"EarlyStopping: patience must be at least 1 and least at least 0, got "
                f"{patience} and {least}"
            )
        if mode not in ("max", "min"):
            raise ArgumentError(f"EarlyStopping: mode must be max or min, got {mode!r}")
        self.name, self._patience, self._least = name, patience, least
        self._sign = 1.0 if mode == "max" else -1.0
        #: The best value so far, times the sign; and the number of values since.
        self._best, self._since = -math.inf, 0

    def look(self, progress: Progress[Any], value: float) -> None:
        """Considers a new value; nan is never an improvement.

        Args:
          progress: the progress of the run to stop.
          value: a number.
        """
        signed = self._sign * float(value)
        if signed > self._best + self._least or (
            math.isinf(self._best) and signed > self._best
        ):
            self._best, self._since = signed, 0
            return
        self._since += 1
        if self._since >= self._patience:
            progress.stop(
                f"not better than {self._sign * self._best:g} for {self._since} values"
            )

    def __call__(self, progress: Progress[Any]) -> None:
        """Does nothing: it is a hook only so that `run` saves its state."""

    def get_state(self) -> dict[str, float | int]:
        """Returns the best value and the number of values since."""
        return {"best": self._best, "since": self._since}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a state.

        Args:
          state: a result of `get_state`.
        """
        self._best, self._since = float(state["best"]), int(state["since"])


@runtime_checkable
class _Stateful(Protocol):
    """A hook that has a state."""

    def get_state(self) -> Any: ...

    def set_state(self, state: Any) -> None: ...


def _name_of(hook: Any) -> str:
    """Returns the name under which a checkpoint stores a hook's state."""
    name = getattr(hook, "name", "") or getattr(hook, "__qualname__", "")
    return str(name or type(hook).__qualname__)


def _restore_hooks(states: Sequence[tuple[str, Any]], hooks: Sequence[Any]) -> None:
    """Restores the states of hooks by name; warns about states without a hook.

    Args:
      states: the names and states in the checkpoint. Names are empty in checkpoints of
        older versions.
      hooks: the hooks of this run.
    """
    saved: dict[str, list[Any]] = {}
    for name, state in states:
        saved.setdefault(name, []).append(state)
    stateful = [hook for hook in hooks if isinstance(hook, _Stateful)]
    for name, found in saved.items():
        now = [hook for hook in stateful if name in ("", _name_of(hook))]
        if len(now) == len(found):
            for hook, state in zip(now, found, strict=True):
                hook.set_state(state)
            continue
        which = f"hook {name!r}" if name else "hooks with a state"
        hint = " (give each of them a different name)" if now else ""
        warn(
            f"run: {which} occurs {len(found)} times in the checkpoint and {len(now)} "
            f"times in this run{hint}: its state is ignored",
        )


# -- the loop --------------------------------------------------------------------------


@boundary
def run(
    step: Callable[[S, B], tuple[S, Any]],
    state: S,
    batches: Dataset[B] | Iterable[B],
    *,
    num_steps: int | None = None,
    epochs: int | None = None,
    hooks: Sequence[Hook] = (),
    log: Log | None = None,
    log_every: int = 10,
    checkpointer: Checkpointer | None = None,
    on_nonfinite: Literal["stop", "skip", "rollback"] | None = None,
) -> Outcome[S]:
    """Runs a training loop: calls a step with one batch after another.

    If the `checkpointer` has a checkpoint, the run continues from it. After SIGTERM or
    the first Ctrl-C, the run finishes the step, saves, and returns; a second Ctrl-C
    raises `KeyboardInterrupt` at once. If there are several processes, all call this
    with their own part of the data, and end at the same step.

    Args:
      step: returns `(state, outputs)` for a state and a batch; usually jitted. Outputs
        are a pytree such as `{"loss": loss}`, or None.
      state: the initial state; a checkpoint must have its structure and types.
      batches: a `data.Dataset`, whose position is saved; or an iterable, as for
        `data.iterable`.
      num_steps: the total number of steps; None means until the data end.
      epochs: the number of passes over the data; None means one, or, with `num_steps`,
        as many as necessary.
      hooks: called with a `Progress` after each step, in order; see `every`.
      log: called by process 0 with the step's number and its scalar outputs by path;
        `logs.Logger` does not wait for them.
      log_every: the number of steps between two calls of `log`.
      checkpointer: saves the state, and decides how often.
      on_nonfinite: what to do when a step returns outputs that are infinite or nan, or
        a state with more nonfinite elements than before. `"stop"`: raise an error that
        names the first leaf and the batch's position. `"skip"`: keep the state from
        before the step, which must not donate it. `"rollback"`: restore the last
        checkpoint and continue with the next batch, at most three times in a row. None:
        nothing. Steps are checked one step late, so that the run does not wait.

    Returns:
      The last state, the number of steps, and the reason for the end.

    Raises:
      NonFiniteError: a step returned a nonfinite value; see `on_nonfinite`.
      CheckpointError: the checkpoint has another structure or other types.
      ArgumentError: `step` does not return a pair, or an argument is out of range.

    Example:
      >>> def step(mean, batch):
      ...     return 0.5 * mean + 0.5 * fnp.mean(batch), {"mean": mean}
      >>> batches = train.data.arrays(np.arange(8.0)).batch(2)
      >>> outcome = train.loop.run(step, fnp.zeros(()), batches, epochs=2)
      >>> float(outcome.state), outcome.step, outcome.reason
      (5.013671875, 8, 'finished')
    """
    for name, count in (("num_steps", num_steps), ("epochs", epochs)):
        if count is not None:
            natural("run", name, count, 0)
    natural("run", "log_every", log_every)
    if on_nonfinite not in (None, "stop", "skip", "rollback"):
        raise ArgumentError(
            f"run: on_nonfinite must be 'stop', 'skip', 'rollback' or None, got "
            f"{on_nonfinite!r}"
        )
    if on_nonfinite == "rollback" and checkpointer is None:
        raise ArgumentError("run: on_nonfinite='rollback' needs a checkpointer")
    if epochs is None:
        epochs = 1 if num_steps is None else None
    dataset = batches if isinstance(batches, Dataset) else iterable(batches)
    loop = _Loop(step, dataset, num_steps, epochs, hooks, log, log_every, checkpointer)
    return loop.run(state, on_nonfinite)


class _Interrupted(threading.Event):
    """An event that SIGTERM or Ctrl-C sets, to end the run."""

    def __init__(self) -> None:
        super().__init__()
        self._several = process_count() > 1

    @contextlib.contextmanager
    def handling(self) -> Iterator[None]:
        """Handles signals, if this is the main thread, which Python requires."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # With several processes, `multihost` handles SIGTERM and agrees on a step.
        signals = [signal.SIGINT] if self._several else [signal.SIGINT, signal.SIGTERM]
        before = {one: signal.getsignal(one) for one in signals}

        def handle(number: int, frame: Any) -> None:
            self.set()
            handler = before[signal.Signals(number)]
            if number == signal.SIGINT and handler is signal.SIG_IGN:
                handler = signal.default_int_handler  # a second one must interrupt
            signal.signal(number, handler)
            if self._several:
                os.kill(os.getpid(), signal.SIGTERM)

        for one in signals:
            signal.signal(one, handle)
        try:
            yield
        finally:
            for one in signals:
                signal.signal(one, before[one])

    def at(self, step: int) -> bool:
        """Returns whether the run ends before this step."""
        if self._several:
            return reached_preemption_sync_point(step)
        return self.is_set()


class _Loop(Generic[S, B]):
    """A run: its arguments and its position in the data."""

    def __init__(
        self,
        step: Callable[[S, B], tuple[S, Any]],
        dataset: Dataset[B],
        num_steps: int | None,
        epochs: int | None,
        hooks: Sequence[Hook],
        log: Log | None,
        log_every: int,
        checkpointer: Checkpointer | None,
    ) -> None:
        self._step, self._dataset, self._hooks = step, dataset, hooks
        self._num_steps = math.inf if num_steps is None else num_steps
        self._epochs = math.inf if epochs is None else epochs
        self._log = log if process_index() == 0 else None
        self._log_every, self._checkpointer = log_every, checkpointer
        self._position: Any = None

    def run(self, state: S, on_nonfinite: str | None) -> Outcome[S]:
        """Runs to the end, from the newest checkpoint if there is one."""
        progress = Progress(0, 0, state, is_chief=process_index() == 0)
        checkpointer = self._checkpointer
        if checkpointer is not None and checkpointer.latest() is not None:
            self._resume(checkpointer, progress)
        watch = Watch(on_nonfinite, progress, lambda: self._roll_back(progress))
        if checkpointer is not None:

            def save(metrics: Mapping[str, Any]) -> None:
                watch.check()
                self._save(progress, metrics)

            progress._save = save
        interrupted = _Interrupted()
        try:
            with interrupted.handling():
                reason = self._epochs_of(progress, watch, interrupted)
                watch.check()
            if checkpointer is not None and reason == "interrupted":
                self._save(progress)
        finally:
            if checkpointer is not None:
                checkpointer.wait()
        return Outcome(progress.state, progress.step, reason)

    def _epochs_of(
        self, progress: Progress[S], watch: Watch, interrupted: _Interrupted
    ) -> str:
        """Runs the epochs; returns the reason for the end of the run."""
        ends = [hook for hook in self._hooks if isinstance(hook, Every) and hook.epochs]
        while progress.epoch < self._epochs and progress.step < self._num_steps:
            is_new, begun = self._position is None, progress.step
            with self._dataset.iterate(self._position, epoch=progress.epoch) as batches:
                reason, at_end = self._steps_of(batches, progress, watch, interrupted)
                if ends and not reason and not at_end:
                    at_end = next(batches, _END) is _END
            if reason:
                return reason
            if is_new and progress.step == begun:
                break  # the data are empty, and would be in all epochs
            if at_end:
                progress.epoch += 1
                self._position = None
                for hook in ends:
                    hook.after_epoch(progress)
                if progress._reason:
                    return progress._reason
        return "finished"

    def _steps_of(
        self,
        batches: DataIterator[B],
        progress: Progress[S],
        watch: Watch,
        interrupted: _Interrupted,
    ) -> tuple[str, bool]:
        """Runs the steps of an epoch.

        Returns:
          The reason for the end of the run, if it ends; whether the epoch has ended.
        """
        step, hooks, log = self._step, self._hooks, self._log
        checkpointer = self._checkpointer
        while progress.step < self._num_steps:
            if interrupted.at(progress.step):
                return "interrupted", False
            batch = next(batches, _END)
            if batch is _END:
                return "", True
            before = progress.state
            watch.count(before)
            pair = step(before, batch)
            if type(pair) is not tuple or len(pair) != 2:
                raise ArgumentError(
                    f"run: step must return (state, outputs), got {type(pair).__name__}"
                )
            progress.state, progress.outputs = pair
            progress.step += 1
            progress.batch = batch
            self._position = batches.state
            watch.record(before, self._position)
            for hook in hooks:
                hook(progress)
            if log is not None and progress.step % self._log_every == 0:
                log(progress.step, scalars(progress.outputs))
            if checkpointer is not None and checkpointer.is_due(progress.step):
                watch.check()
                self._save(progress)
            if progress._reason:
                return progress._reason, False
        return "", False

    # -- checkpoints -------------------------------------------------------------------

    def _save(
        self, progress: Progress[S], more: Mapping[str, Any] | None = None
    ) -> None:
        """Saves the state, the position of the data and the hooks' states."""
        assert self._checkpointer is not None
        position = self._position
        if position is None:
            position = self._dataset.source.start(progress.epoch)
        hook_states = [
            [_name_of(hook), hook.get_state()]
            for hook in self._hooks
            if isinstance(hook, _Stateful)
        ]
        metadata = {
            "epoch": progress.epoch,
            "positions": _gather_texts(json.dumps(position)),
            "hook_states": hook_states,
        }
        metrics = {
            name: value
            for name, value in scalars(progress.outputs).items()
            if not dtypes.is_complex(typeof(value).dtype)
        }
        metrics |= dict(more or {})
        self._checkpointer.save(
            progress.step,
            progress.state,
            metrics=metrics,
            metadata=metadata,
            force=True,
        )

    def _resume(self, checkpointer: Checkpointer, progress: Progress[S]) -> None:
        """Restores the newest checkpoint, with the position of the data."""
        progress.state = checkpointer.restore(progress.state)
        progress.step = checkpointer.restored_step or 0
        metadata = checkpointer.metadata(progress.step)
        positions = metadata["positions"]
        if len(positions) != process_count() and len(set(positions)) > 1:
            raise CheckpointError(
                f"run: the checkpoint has positions of {len(positions)} processes, "
                f"which differ; {process_count()} cannot continue from them"
            )
        own = process_index() if len(positions) == process_count() else 0
        self._position, progress.epoch = json.loads(positions[own]), metadata["epoch"]
        states = metadata.get("hook_states")
        if states is None:  # an older version, without names
            states = [["", state] for state in metadata["hooks"] if state is not None]
        _restore_hooks(states, self._hooks)

    def _roll_back(self, progress: Progress[S]) -> bool:
        """Restores the last checkpoint's state; returns False if there is none."""
        assert self._checkpointer is not None
        self._checkpointer.wait()
        if self._checkpointer.latest() is None:
            return False
        # Continue with the next batch: the same batch would fail again.
        progress.state = self._checkpointer.restore(progress.state)
        return True


def _gather_texts(text: str) -> list[str]:
    """Returns the texts of all processes."""
    data = np.frombuffer(text.encode(), np.uint8)
    lengths = process_allgather(np.array(len(data)))
    row = np.zeros(int(np.max(lengths)), np.uint8)
    row[: len(data)] = data
    rows = process_allgather(row).reshape(-1, len(row))
    return [
        bytes(one[:length]).decode()
        for one, length in zip(rows, np.ravel(lengths).tolist(), strict=True)
    ]


_END: Any = object()


def scalars(outputs: Any) -> dict[str, Any]:
    """Returns the scalar outputs by path.

    Args:
      outputs: a pytree.

    Returns:
      0-d arrays and Python numbers by path, such as `losses/main`; if `outputs` is a
      scalar itself, its path is `output`.

    Example:
      >>> train.loop.scalars({"loss": fnp.float32(0.5), "image": fnp.zeros((2, 2))})
      {'loss': Array(0.5, dtype=float32)}
    """
    return {
        path_name(path, "output"): leaf
        for path, leaf in tree.leaves_with_path(outputs)
        if is_arraylike(leaf)
        and not typeof(leaf).shape
        and not dtypes.is_key(typeof(leaf).dtype)
    }
