"""Detects training steps that return infinities or nan, and handles them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, as_array, dtypes, is_arraylike, typeof
from fxflow.errors import ArgumentError, NonFiniteError, PlacementError
from fxflow.train._paths import path_name
from fxflow.train.precision import all_finite, select_tree
from fxflow.transforms.jit import jit

#: The most times in a row that a run restores its last checkpoint.
_MOST_ROLLBACKS = 3


class Run(Protocol):
    """The run to check: a `loop.Progress`."""

    step: int
    state: Any
    outputs: Any


class _Pending(NamedTuple):
    """A step that has not been checked.

    Attributes:
      fine: whether the step is fine, bool[].
      now: the number of nonfinite elements in each leaf of its new state, int32[n].
      before: the same for its old state.
      outputs: its outputs.
      step: its number.
      position: the position of the data after its batch.
    """

    fine: Any
    now: Any
    before: Any
    outputs: Any
    step: int
    position: Any


class Watch:
    """Checks the results of steps, one step late, because a check waits for the step.

    A step has failed if an output is not finite, or if a leaf of its state has more
    nonfinite elements than before the step. A state may start with nonfinite elements,
    such as a best loss of inf.

    Args:
      policy: `on_nonfinite` of `run`.
      run: the run.
      roll_back: restores the last checkpoint; returns False if there is none.
    """

    def __init__(
        self, policy: str | None, run: Run, roll_back: Callable[[], bool]
    ) -> None:
        self._policy, self._run, self._roll_back = policy, run, roll_back

        # New functions for each run: otherwise many runs would count as retracing.
        def judge(outputs: Any, state: Any, before: Any) -> Any:
            return _judged(outputs, state, before)

        def select(which: Any, new: Any, old: Any) -> Any:
            return select_tree(which, new, old)

        self._judge, self._select = jit(judge), jit(select)
        # The state's structure, and the indices and names of the leaves to check.
        self._structure: Any = None
        self._places: list[int] = []
        self._names: list[str] = []
        # The last state that was checked, and its counts.
        self._seen: Any = None
        self._counts: Any = None
        self._pending: _Pending | None = None
        self._rollbacks = 0

    def count(self, state: Any) -> None:
        """Counts the nonfinite elements of the next step's state, if they are unknown.

        Args:
          state: the state, possibly not from the last step, but the initial state, a
            hook's or a checkpoint's.
        """
        if self._policy is None or (self._counts is not None and state is self._seen):
            return
        _, self._counts, _ = self._compared([], self._inexact(state), None)
        self._seen = state

    def record(self, before: Any, position: Any) -> None:
        """Records the results of a step, and checks those of the step before.

        Args:
          before: the step's old state.
          position: the position of the data after its batch.
        """
        if self._policy is None:
            return
        run, counts = self._run, self._counts
        outputs = [_wide(x) for x in tree.leaves(run.outputs) if _is_inexact(x)]
        fine, now, kept = self._compared(outputs, self._inexact(run.state), counts)
        if self._policy == "skip":
            run.state = self._select(fine, run.state, before)
            self._seen, self._counts = run.state, kept
            return
        if self.check():
            return  # this step started from the state of a failed step
        self._pending = _Pending(fine, now, counts, run.outputs, run.step, position)
        self._seen, self._counts = run.state, now

    def check(self) -> bool:
        """Checks the pending step.

        Returns:
          Whether the run has restored a checkpoint.

        Raises:
          NonFiniteError: the step has failed, and the run stops or cannot continue.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            return False
        if bool(pending.fine):
            self._rollbacks = 0
            return False
        text = (
            f"run: step {pending.step} returned {self._fault(pending)}; its batch is "
            f"the one before position {pending.position}"
        )
        if self._policy == "rollback":
            self._rollbacks += 1
            if self._rollbacks <= _MOST_ROLLBACKS and self._roll_back():
                return True
            text += (
                "; restoring the last checkpoint did not help"
                if self._rollbacks > _MOST_ROLLBACKS
                else "; there is no checkpoint to restore"
            )
        raise NonFiniteError(text)

    def _inexact(self, state: Any) -> list[Any]:
        """Returns the leaves of a state that may be infinite or nan."""
        leaves, structure = tree.flatten(state)
        if self._structure is None or structure != self._structure:
            named = enumerate(tree.leaves_with_path(state))
            found = [(i, path_name(path)) for i, (path, x) in named if _is_inexact(x)]
            self._structure = structure
            self._places = [i for i, _ in found]
            self._names = [name for _, name in found]
        return [_wide(leaves[i]) for i in self._places]

    def _compared(
        self, outputs: Sequence[Any], state: Sequence[Any], before: Any
    ) -> tuple[Any, Any, Any]:
        if before is not None and len(before) != len(state):
            before = None  # the step returned a state of another structure
        try:
            found: tuple[Any, Any, Any] = self._judge(outputs, state, before)
            return found
        except (ArgumentError, PlacementError):
            pass
        # No single program can use the devices of all leaves.
        fine = all(bool(_judged([x], [], None)[0]) for x in outputs)
        counted = [_judged([], [x], None)[1] for x in state]
        now = np.concatenate([np.zeros(0, np.int32), *map(np.asarray, counted)])
        fine &= before is None or bool(np.all(now <= np.asarray(before)))
        return np.array(fine), now, now if fine or before is None else before

    def _fault(self, pending: _Pending) -> str:
        """Describes the first leaf that is not finite."""
        for path, leaf in tree.leaves_with_path(pending.outputs):
            if _is_inexact(leaf):
                host = np.asarray(leaf)
                wrong = host[~np.isfinite(host)]
                if wrong.size:
                    return f"{path_name(path, 'output')} = {wrong.flat[0]}"
        now, before = np.asarray(pending.now), pending.before
        before = np.zeros_like(now) if before is None else np.asarray(before)
        if len(before) == len(now) == len(self._names):
            for name, count, known in zip(self._names, now, before, strict=True):
                if count > known:
                    where = f"in which {name} has" if name else "with"
                    many = (
                        "1 element that is"
                        if count == 1
                        else f"{count} elements that are"
                    )
                    return f"a state {where} {many} not finite"
        return "a value that is not finite"


def _judged(
    outputs: Sequence[Any], state: Sequence[Any], before: Any
) -> tuple[Any, Any, Any]:
    """Returns whether a step is fine, its counts, and the counts to continue with."""
    counts = [fnp.sum(~fnp.isfinite(leaf), dtype="int32") for leaf in state]
    now = fnp.stack(counts) if counts else fnp.zeros(0, "int32")
    fine = all_finite(outputs)
    if before is None:
        return fine, now, now
    fine = fine & fnp.all(now <= before)
    return fine, now, fnp.where(fine, now, before)


def _is_inexact(leaf: Any) -> bool:
    return is_arraylike(leaf) and bool(dtypes.is_inexact(typeof(leaf).dtype))


def _wide(leaf: Any) -> Array:
    """Returns a leaf as an array; 64-bit host data keep their dtype and stay finite."""
    if isinstance(leaf, Array):
        return leaf
    return as_array(leaf, getattr(leaf, "dtype", dtypes.float64))
