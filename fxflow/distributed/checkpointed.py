"""The state of a loop of steps, and its checkpoints: what elastic loops share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from fxflow.core import tree as trees
from fxflow.core.arrays import Array, as_array
from fxflow.distributed.serialization import HostLeaf, from_host, to_host
from fxflow.errors import ArgumentError


class Outcome(NamedTuple):
    """How the loop ended.

    Attributes:
      state: the state after `step` steps, as NumPy arrays.
      step: the number of steps that were applied.
      preempted: whether the loop ended early because of a SIGTERM.
    """

    state: Any
    step: int
    preempted: bool


class Checkpoints(Protocol):
    """Saves and restores the state, as `train.checkpoint.Checkpointer` does.

    Attributes:
      restored_step: the step of the last restored checkpoint.
    """

    restored_step: int | None

    def steps(self) -> list[int]:
        """Returns the steps of the checkpoints, in ascending order."""

    def is_due(self, step: int) -> bool:
        """Returns whether a checkpoint is due after a step."""

    def save(self, step: int, state: Any, *, force: bool) -> bool:
        """Saves a state; all members of an epoch save at the same step."""

    def restore(self, like: Any, *, at_most: int) -> Any:
        """Returns the newest undamaged state, of step `at_most` or earlier."""

    def close(self) -> None:
        """Waits until all saves are written; then another process may save."""


class CheckpointedLoop:
    """A loop that applies a function to a state `num_steps` times.

    Args:
      name: of the user's function, for messages.
      state: the initial state.
      num_steps: the number of steps.
      checkpointer: saves and restores the state, if there is one.

    Raises:
      ArgumentError: `num_steps` is negative.
    """

    name: str
    state: Any
    num_steps: int

    def __init__(
        self, name: str, state: Any, num_steps: int, checkpointer: Checkpoints | None
    ) -> None:
        if num_steps < 0:
            raise ArgumentError(
                f"{name}: num_steps must not be negative, got {num_steps}"
            )
        self.name, self.state, self.num_steps = name, state, num_steps
        self.checkpointer = checkpointer

    def initial_leaves(self) -> list[HostLeaf]:
        """Returns the initial state's leaves, with the dtypes of fxflow's arrays."""
        return [to_host(as_array(leaf)) for leaf in trees.leaves(self.state)]

    def tree(self, leaves: Sequence[HostLeaf]) -> Any:
        """Returns leaves in a tree with the initial state's structure."""
        structure = trees.structure(self.state)
        if structure.num_leaves != len(leaves):
            raise ArgumentError(
                f"{self.name}: the state has {structure.num_leaves} leaves, the state "
                f"to continue from has {len(leaves)}: another program made it"
            )
        return structure.unflatten([from_host(leaf) for leaf in leaves])

    def leaves(self, state: Any) -> list[Any]:
        """Returns a state's leaves after checking the state's structure."""
        leaves, structure = trees.flatten(state)
        expected = trees.structure(self.state)
        if structure != expected:
            raise ArgumentError(
                f"{self.name}: step returned a state of structure "
                f"{trees.written(structure)}, the initial state has "
                f"{trees.written(expected)}"
            )
        return leaves

    # -- checkpoints -------------------------------------------------------------------

    def newest(self) -> int | None:
        """Returns the step of the newest checkpoint to continue from, if any."""
        if self.checkpointer is None:
            return None
        steps = (s for s in self.checkpointer.steps() if s <= self.num_steps)
        return max(steps, default=None)

    def restored(self, step: int, initial: Sequence[HostLeaf]) -> tuple[int, Any]:
        """Reads the newest undamaged checkpoint, of step `step` or earlier.

        All members of an epoch read the same files, and so restore the same checkpoint.

        Args:
          step: the step of the newest checkpoint.
          initial: the leaves of the initial state.

        Returns:
          The checkpoint's step, and the state in host memory.
        """
        assert self.checkpointer is not None
        state = self.checkpointer.restore(self.tree(initial), at_most=step)
        assert self.checkpointer.restored_step is not None
        return self.checkpointer.restored_step, state

    def is_due(self, step: int) -> bool:
        """Returns whether to save the state after a step."""
        return self.checkpointer is not None and self.checkpointer.is_due(step)

    def save(self, step: int, leaves: Sequence[Any]) -> None:
        """Saves the state after a step, if there is a checkpointer."""
        if self.checkpointer is not None:
            arrays = [
                leaf if isinstance(leaf, Array) else from_host(to_host(leaf))
                for leaf in leaves
            ]
            state = trees.structure(self.state).unflatten(arrays)
            self.checkpointer.save(step, state, force=True)

    def close(self) -> None:
        """Waits until all saves are written."""
        if self.checkpointer is not None:
            self.checkpointer.close()
