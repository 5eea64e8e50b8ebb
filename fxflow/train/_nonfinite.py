"""What a run does about steps that give infinities or nan: find, name, leave out."""

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

#: How often in a row a run goes back to its last checkpoint.
_MOST_ROLLBACKS = 3


class Run(Protocol):
    """What is looked at: a `loop.Progress`."""

    step: int
    state: Any
    outputs: Any


class _Late(NamedTuple):
    """A step that is not looked at yet.

    Attributes:
      fine: whether it is not at fault, bool[].
      now: how many elements of each leaf of its state are not finite, int32[n].
      before: of the state that it was given.
      outputs: what it gave besides.
      step: its number.
      position: of the data behind its batch.
    """

    fine: Any
    now: Any
    before: Any
    outputs: Any
    step: int
    position: Any


class Watch:
    """Looks at what steps give, one step late: a look waits for the step.

    A step is at fault if an output is not finite, or if a leaf of its state has more
    elements that are not finite than it had before the step. A state may begin with
    some, such as a best loss of inf.

    Args:
      policy: `on_nonfinite` of `run`.
      run: the run.
      roll_back: goes back to the last checkpoint; returns False if there is none.
    """

    def __init__(
        self, policy: str | None, run: Run, roll_back: Callable[[], bool]
    ) -> None:
        self._policy, self._run, self._roll_back = policy, run, roll_back

        # Functions of their own: runs of many models are not one traced many times.
        def judge(outputs: Any, state: Any, before: Any) -> Any:
            return _judged(outputs, state, before)

        def select(which: Any, new: Any, old: Any) -> Any:
            return select_tree(which, new, old)

        self._judge, self._select = jit(judge), jit(select)
        # The state's structure: which leaves are checked, and their names.
        self._structure: Any = None
        self._places: list[int] = []
        self._names: list[str] = []
        # The state whose counts are known.
        self._seen: Any = None
        self._counts: Any = None
        self._late: _Late | None = None
        self._rollbacks = 0

    def begin(self, state: Any) -> None:
        """Looks at the state that a step is about to be given.

        Args:
          state: what the step before gave, or what took its place: the first state, a
            hook's, a checkpoint's.
        """
        if self._policy is None or (self._counts is not None and state is self._seen):
            return
        _, self._counts, _ = self._compared([], self._inexact(state), None)
        self._seen = state

    def look(self, before: Any, position: Any) -> None:
        """Takes what a step gave; settles the one before it.

        Args:
          before: the state that the step was given.
          position: of the data behind its batch.
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
        if self.settle():
            return  # this step was given the state of one at fault
        self._late = _Late(fine, now, counts, run.outputs, run.step, position)
        self._seen, self._counts = run.state, now

    def settle(self) -> bool:
        """Looks at the step that is not looked at yet.

        Returns:
          Whether the run went back to a checkpoint.

        Raises:
          NonFiniteError: the step is at fault, and the run is to stop or cannot go on.
        """
        late, self._late = self._late, None
        if late is None:
            return False
        if bool(late.fine):
            self._rollbacks = 0
            return False
        text = (
            f"run: step {late.step} gave {self._fault(late)}; its batch is the one "
            f"before position {late.position}"
        )
        if self._policy == "rollback":
            self._rollbacks += 1
            if self._rollbacks <= _MOST_ROLLBACKS and self._roll_back():
                return True
            text += (
                "; going back to the last checkpoint did not help"
                if self._rollbacks > _MOST_ROLLBACKS
                else "; there is no checkpoint to go back to"
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
            before = None  # the step gave a state of another structure
        try:
            found: tuple[Any, Any, Any] = self._judge(outputs, state, before)
            return found
        except (ArgumentError, PlacementError):
            pass
        # The leaves lie on devices that no program has together.
        fine = all(bool(_judged([x], [], None)[0]) for x in outputs)
        counted = [_judged([], [x], None)[1] for x in state]
        now = np.concatenate([np.zeros(0, np.int32), *map(np.asarray, counted)])
        fine &= before is None or bool(np.all(now <= np.asarray(before)))
        return np.array(fine), now, now if fine or before is None else before

    def _fault(self, late: _Late) -> str:
        """Names the first leaf that is at fault."""
        for path, leaf in tree.leaves_with_path(late.outputs):
            if _is_inexact(leaf):
                host = np.asarray(leaf)
                wrong = host[~np.isfinite(host)]
                if wrong.size:
                    return f"{path_name(path, 'output')} = {wrong.flat[0]}"
        now = np.asarray(late.now)
        before = np.zeros_like(now) if late.before is None else np.asarray(late.before)
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
        return "what is not finite"


def _judged(
    outputs: Sequence[Any], state: Sequence[Any], before: Any
) -> tuple[Any, Any, Any]:
    """Returns whether a step is not at fault, its counts, and those to go on with."""
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
    """Returns a leaf as an array; host data of 64 bits, which are finite, stay so."""
    if isinstance(leaf, Array):
        return leaf
    return as_array(leaf, getattr(leaf, "dtype", dtypes.float64))
