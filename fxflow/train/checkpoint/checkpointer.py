"""`Checkpointer`: saves checkpoints by step in a folder, and keeps some of them."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np

from fxflow.core.source import warn
from fxflow.devices import process_index
from fxflow.distributed.elastic import run_address
from fxflow.distributed.multihost import broadcast_one_to_all
from fxflow.errors import ArgumentError, CheckpointError, DamagedCheckpointError
from fxflow.lax.axes import integer, natural
from fxflow.train.checkpoint import saving
from fxflow.train.checkpoint.description import NAME
from fxflow.train.checkpoint.storage import Storage, Where, storage_of

_STEP = re.compile(r"step_(\d{10})$")


class Checkpointer:
    """Saves a state periodically, while training continues, and keeps the newest ones.

    A save copies the state to host memory and returns; a thread writes it. Arrays that
    are in host memory, such as those of a CPU, are not copied, unless they are NumPy
    arrays; nor is a `numpy.memmap` of mode "r", whose file must not change. The next
    call raises an error of the thread. A killed run continues from the newest complete
    checkpoint.

    Args:
      folder: as `where` of `save`. Only one run may write to it at a time.
      keep: the number of newest checkpoints to keep; None means all.
      every: how often `save` saves: after this number of steps, or this time; None
        means only with `force=True`.
      best: the metric by which the best checkpoint is kept in addition.
      mode: whether a larger (`"max"`) or a smaller (`"min"`) value of `best` is better.
      background: whether a thread writes.
      timeout: seconds that a save or a restore may take.

    Attributes:
      restored_step: the step of the last restored checkpoint; None before.

    Raises:
      ArgumentError: an argument is out of range.

    Example:
      >>> folder = tempfile.mkdtemp()
      >>> with train.checkpoint.Checkpointer(folder, keep=2, every=10) as checkpoints:
      ...     for step in range(50):
      ...         saved = checkpoints.save(step, {"w": fnp.full(2, step)})
      >>> checkpoints.steps()
      [30, 40]
      >>> checkpoints.restore()["w"].tolist()
      [40, 40]
    """

    def __init__(
        self,
        folder: Where,
        *,
        keep: int | None = 3,
        every: int | datetime.timedelta | None = 1,
        best: str | None = None,
        mode: Literal["max", "min"] = "max",
        background: bool = True,
        timeout: float = saving.TIMEOUT,
    ) -> None:
        if keep is not None:
            natural("Checkpointer", "keep", keep)
        self._seconds, self._steps = 0.0, 0
        if isinstance(every, datetime.timedelta):
            self._seconds = every.total_seconds()
        elif every is not None:
            self._steps = integer("Checkpointer", "every", every)
        if every is not None and self._seconds <= 0 and self._steps <= 0:
            raise ArgumentError(f"Checkpointer: every must be positive, got {every}")
        if mode not in ("max", "min"):
            raise ArgumentError(f"Checkpointer: mode must be max or min, got {mode!r}")
        self._storage: Storage = storage_of(folder, timeout)
        self._keep, self._best, self._mode = keep, best, mode
        self._background, self._timeout = background, timeout
        self._saved_at = time.monotonic()
        self.restored_step: int | None = None
        self._unlock: Callable[[], None] | None = None
        self._writer: threading.Thread | None = None
        self._error: BaseException | None = None

    # -- saving ------------------------------------------------------------------------

    def is_due(self, step: int) -> bool:
        """Returns whether `save` would write a checkpoint at this step.

        If `every` is a time, process 0's clock decides for all processes.

        Args:
          step: the number of the step.
        """
        if self._steps:
            return integer("is_due", "step", step) % self._steps == 0
        if not self._seconds:
            return False
        due = time.monotonic() - self._saved_at >= self._seconds
        return bool(broadcast_one_to_all(np.array(due)))

    def save(
        self,
        step: int,
        state: Any,
        *,
        metrics: Mapping[str, Any] | None = None,
        metadata: Any = None,
        force: bool = False,
    ) -> bool:
        """Saves a state, if it is due.

        It first waits for the last save, so that at most one state is in host memory.

        Args:
          step: the number of the step; replaces an existing checkpoint of this step.
          state: as for `checkpoint.save`.
          metrics: numbers by name, stored with the checkpoint; must include `best`.
          metadata: a JSON value.
          force: whether to save even if it is not due.

        Returns:
          Whether the state is saved.

        Raises:
          CheckpointError: another run writes to the folder, or `metrics` lacks the
            metric `best`.
          Exception: the error of the last save.
        """
        step = natural("save", "step", step, 0)
        if not (force or self.is_due(step)):
            return False
        values = {name: float(value) for name, value in (metrics or {}).items()}
        if self._best is not None and self._best not in values:
            raise CheckpointError(
                f"save: the best checkpoint is chosen by {self._best!r}, but metrics "
                f"has {sorted(values)}"
            )
        self.wait()
        if self._unlock is None and process_index() == 0:
            self._unlock = self._storage.lock(run_address())
        storage = self._at(step)
        taken = saving.snapshot(state, storage, copy=self._background)
        record = {"step": step, "metrics": values, "metadata": metadata}
        self._saved_at = time.monotonic()
        if self._background:
            # Not a daemon: a program that exits waits until the state is written.
            self._writer = threading.Thread(
                target=self._write,
                args=(storage, taken, record),
                name="fxflow checkpoint",
            )
            self._writer.start()
        else:
            self._write(storage, taken, record)
            self.wait()
        return True

    def _write(self, storage: Storage, taken: saving.Snapshot, record: Any) -> None:
        try:
            saving.write(taken, storage, record, self._timeout, self._tidy)
        except BaseException as error:  # raised by the next call
            self._error = error

    def _tidy(self) -> None:
        """Removes checkpoints that are not kept, and remains of killed runs."""
        steps = self.steps()
        kept = set(steps if self._keep is None else steps[-self._keep :])
        kept |= {step for step in (self.best(),) if step is not None}
        for name in self._storage.names():
            found = _STEP.match(name)
            if found and int(found[1]) not in kept:
                inner = self._storage.inside(name)
                inner.remove(NAME)  # first, so that the rest is not a checkpoint
                self._storage.remove(name)

    def wait(self) -> None:
        """Waits until the last save is written.

        Raises:
          Exception: the error of the last save.
        """
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        """Waits for the last save, and unlocks the folder for other runs.

        Raises:
          Exception: the error of the last save.
        """
        try:
            self.wait()
        finally:
            if self._unlock is not None:
                self._unlock()
                self._unlock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        # An error in the `with` block takes precedence.
        with contextlib.suppress(*([Exception] if kind else [])):
            self.close()

    # -- checkpoints -------------------------------------------------------------------

    def steps(self) -> list[int]:
        """Returns the steps of the checkpoints, in ascending order."""
        names = [name for name in self._storage.names() if _STEP.match(name)]
        return [
            int(name.removeprefix("step_"))
            for name in names
            if self._storage.inside(name).has(NAME)
        ]

    def _at(self, step: int) -> Storage:
        return self._storage.inside(f"step_{step:010d}")

    def latest(self) -> int | None:
        """Returns the newest checkpoint's step; None if there is no checkpoint."""
        return max(self.steps(), default=None)

    def best(self) -> int | None:
        """Returns the step with the best value of the metric `best`.

        Among equal values, it is the newest; None if `best` is None or there is no
        checkpoint.
        """
        if self._best is None:
            return None
        sign = 1 if self._mode == "max" else -1
        found = []
        for step in self.steps():
            with contextlib.suppress(CheckpointError):  # skip damaged checkpoints
                value = self.metrics(step).get(self._best, math.nan)
                if not math.isnan(value):
                    found.append((sign * value, step))
        return max(found)[1] if found else None

    def metrics(self, step: int) -> dict[str, float]:
        """Returns the metrics that were saved with a step.

        Args:
          step: the step of a checkpoint.

        Raises:
          CheckpointError: there is no checkpoint of this step.
        """
        found: dict[str, float] = self._record(step)["metrics"]
        return found

    def metadata(self, step: int) -> Any:
        """Returns the metadata that were saved with a step.

        Args:
          step: the step of a checkpoint.

        Raises:
          CheckpointError: there is no checkpoint of this step.
        """
        return self._record(step)["metadata"]

    def _record(self, step: int) -> Any:
        """Returns the step, metrics and metadata that were saved with a step."""
        self._require(step)
        return saving.described(self._at(step)).metadata

    def _require(self, step: int) -> None:
        if not self._at(step).has(NAME):
            raise CheckpointError(
                f"{self._storage}: there is no checkpoint of step {step}; there are "
                f"checkpoints of steps {self.steps()}"
            )

    # -- restoring ---------------------------------------------------------------------

    def restore(
        self,
        like: Any = None,
        *,
        step: int | None = None,
        at_most: int | None = None,
        **options: Any,
    ) -> Any:
        """Reads the state of a step.

        Args:
          like: as for `checkpoint.restore`.
          step: the step; None means the newest undamaged checkpoint. A damaged one
            causes a warning.
          at_most: without `step`, the largest step to consider; None means any.
          **options: the options of `checkpoint.restore`.

        Returns:
          The state.

        Raises:
          CheckpointError: there is no checkpoint, or it differs from `like`.
        """
        self.wait()
        if step is not None:
            return self._restored(step, like, options)
        steps = [s for s in self.steps() if at_most is None or s <= at_most]
        if not steps:
            up_to = "" if at_most is None else f" of a step up to {at_most}"
            raise CheckpointError(
                f"{self._storage}: there is no checkpoint{up_to} here yet"
            )
        for older in steps[:0:-1]:
            try:
                return self._restored(older, like, options)
            except DamagedCheckpointError as error:
                warn(f"{error}; restoring an older one")
        return self._restored(steps[0], like, options)

    def _restored(self, step: int, like: Any, options: Mapping[str, Any]) -> Any:
        self._require(step)
        options = {"timeout": self._timeout, **options}
        try:
            found = saving.restored(self._at(step), like, **options)
        except CheckpointError as error:
            if type(like) is not int or isinstance(error, DamagedCheckpointError):
                raise
            raise CheckpointError(
                f"{error}\nlike= is the number {like}: to restore the checkpoint of "
                f"that step, write restore(step={like})"
            ) from None
        self.restored_step = step
        return found
