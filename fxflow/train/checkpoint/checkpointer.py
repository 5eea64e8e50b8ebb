"""A folder of checkpoints by step: which are written, which are kept, which is best."""

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
    """Saves a state now and then, while training goes on, and keeps the last ones.

    A save takes the state to host memory and returns; a thread writes it. What is there
    already, such as an array of a CPU, is not copied, unless it is NumPy's; nor is a
    `numpy.memmap` of mode "r", whose file must stay as it is. An error is raised by the
    next call. The newest checkpoint that is whole is what a killed run goes on from.

    Args:
      folder: as `where` of `save`. One run writes to it at a time.
      keep: how many of the newest checkpoints stay; None means all.
      every: how often `save` does anything: of how many steps one, or a time between
        saves; None means never by itself. `force=True` saves anyway.
      best: the metric by which one more is kept, the best.
      mode: whether a larger or a smaller value of it is better.
      background: whether a thread writes.
      timeout: seconds that a save or a restore may take.

    Attributes:
      restored_step: the step that was restored last; None before.

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
        """Returns whether `save` would save now.

        With a time between saves in several processes, process 0's clock decides.

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

        The last save is waited for first, so that at most one state is held.

        Args:
          step: the number of the step; a checkpoint of it that is there is replaced.
          state: as of `checkpoint.save`.
          metrics: numbers by name, kept with the checkpoint; one of them `best`.
          metadata: what JSON can say.
          force: whether to save although it is not due.

        Returns:
          Whether it was due.

        Raises:
          CheckpointError: another run writes to the folder; or a value by which the
            best is chosen is absent.
          Exception: what went wrong in the last save.
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
        said = {"step": step, "metrics": values, "metadata": metadata}
        self._saved_at = time.monotonic()
        if self._background:
            # No daemon: a program that ends waits until it is written.
            self._writer = threading.Thread(
                target=self._write,
                args=(storage, taken, said),
                name="fxflow checkpoint",
            )
            self._writer.start()
        else:
            self._write(storage, taken, said)
            self.wait()
        return True

    def _write(self, storage: Storage, taken: saving.Snapshot, said: Any) -> None:
        try:
            saving.write(taken, storage, said, self._timeout, self._tidy)
        except BaseException as error:  # raised by the next call
            self._error = error

    def _tidy(self) -> None:
        """Removes checkpoints that are not kept, and what killed runs left."""
        steps = self.steps()
        kept = set(steps if self._keep is None else steps[-self._keep :])
        kept |= {step for step in (self.best(),) if step is not None}
        for name in self._storage.names():
            found = _STEP.match(name)
            if found and int(found[1]) not in kept:
                inner = self._storage.inside(name)
                inner.remove(NAME)  # first: what is half removed is not a checkpoint
                self._storage.remove(name)

    def wait(self) -> None:
        """Waits until what was saved is written.

        Raises:
          Exception: what went wrong in the last save.
        """
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        """Waits for the last save and lets other runs write here.

        Raises:
          Exception: what went wrong in the last save.
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
        # An error of the loop is the one to see.
        with contextlib.suppress(*([Exception] if kind else [])):
            self.close()

    # -- what there is -----------------------------------------------------------------

    def steps(self) -> list[int]:
        """Returns the steps of which there are checkpoints, rising."""
        names = [name for name in self._storage.names() if _STEP.match(name)]
        return [
            int(name.removeprefix("step_"))
            for name in names
            if self._storage.inside(name).has(NAME)
        ]

    def _at(self, step: int) -> Storage:
        return self._storage.inside(f"step_{step:010d}")

    def latest(self) -> int | None:
        """Returns the newest step; None if there is none."""
        return max(self.steps(), default=None)

    def best(self) -> int | None:
        """Returns the step with the best value of the metric `best`.

        The newest of equal ones; None without such a metric, or without checkpoints.
        """
        if self._best is None:
            return None
        sign = 1 if self._mode == "max" else -1
        found = []
        for step in self.steps():
            with contextlib.suppress(CheckpointError):  # a damaged one is not best
                value = self.metrics(step).get(self._best, math.nan)
                if not math.isnan(value):
                    found.append((sign * value, step))
        return max(found)[1] if found else None

    def metrics(self, step: int) -> dict[str, float]:
        """Returns the metrics that were saved with a step.

        Args:
          step: of a checkpoint.

        Raises:
          CheckpointError: there is no checkpoint of it.
        """
        found: dict[str, float] = self._of(step)["metrics"]
        return found

    def metadata(self, step: int) -> Any:
        """Returns the metadata that were saved with a step.

        Args:
          step: of a checkpoint.

        Raises:
          CheckpointError: there is no checkpoint of it.
        """
        return self._of(step)["metadata"]

    def _of(self, step: int) -> Any:
        """Returns what was saved beside the state of a step."""
        self._require(step)
        return saving.described(self._at(step)).metadata

    def _require(self, step: int) -> None:
        if not self._at(step).has(NAME):
            raise CheckpointError(
                f"{self._storage}: there is no checkpoint of step {step}; those there "
                f"are: {self.steps()}"
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
          like: as of `checkpoint.restore`.
          step: which; None means the newest one that is not damaged. One that is gets a
            warning.
          at_most: without `step`, the newest one up to this step; None means any.
          **options: those of `checkpoint.restore`.

        Returns:
          The state.

        Raises:
          CheckpointError: there is no checkpoint, or it is not like `like`.
        """
        self.wait()
        if step is not None:
            return self._restored(step, like, options)
        steps = [s for s in self.steps() if at_most is None or s <= at_most]
        if not steps:
            upto = "" if at_most is None else f" of a step up to {at_most}"
            raise CheckpointError(
                f"{self._storage}: there is no checkpoint{upto} here yet"
            )
        for older in steps[:0:-1]:
            try:
                return self._restored(older, like, options)
            except DamagedCheckpointError as error:
                warn(f"{error}; going back to an older one")
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
                f"{error}\nlike= is the number {like}: to restore the checkpoint of a "
                f"step, write restore(step={like})"
            ) from None
        self.restored_step = step
        return found
