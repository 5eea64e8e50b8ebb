"""`elastic`: a loop of steps over a cluster that continues when tasks are lost.

It is `distributed.elastic` for a program that runs once, as a controller: there each
process holds the state, here tasks do. So this process keeps snapshots of the state,
from which the loop continues with the tasks that answer; functions over the cluster are
planned again for these. A task that was lost and answers again takes part after the
next snapshot.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core import tree as trees
from fxflow.core.arrays import as_array
from fxflow.core.boundary import require_callable
from fxflow.dataflow.tasks.cluster import Cluster
from fxflow.dataflow.tasks.remote import fetch
from fxflow.distributed.checkpointed import CheckpointedLoop, Checkpoints, Outcome
from fxflow.distributed.preemption import noticing
from fxflow.distributed.serialization import HostLeaf, to_host
from fxflow.errors import ArgumentError, DistributedError, TaskLostError

#: How often the steps after one snapshot may fail without the loss of a task, and how
#: often, for each task, with one.
_MOST_FAILURES = 3
#: Seconds to wait for tasks if too few are left.
RETURN = 60.0


def elastic(
    step: Callable[[Any, int], Any],
    state: Any,
    num_steps: int,
    *,
    cluster: Cluster,
    snapshot_every: int = 10,
    minimum: int = 1,
    checkpointer: Checkpoints | None = None,
) -> Outcome:
    """Applies `step` `num_steps` times, while tasks of a cluster are lost and return.

    When a task ends or stops, the tasks that are left continue from the last snapshot
    of the state: functions with ``dataflow.jit(devices=cluster)`` are planned again for
    their devices. A lost task that answers again, such as one that `fxflow launch` has
    restarted, takes part after the next snapshot.

    Args:
      step: ``step(state, index)`` returns the next state. It is called for each index,
        from 0, and again for those after the last snapshot when a task is lost. So its
        result must depend on its arguments alone: let the batch be a function of the
        index. Its arrays may stay in tasks.
      state: the initial state: a pytree of arrays.
      num_steps: the number of steps.
      cluster: the tasks.
      snapshot_every: the number of steps from one snapshot to the next. A snapshot is a
        copy of the state in the memory of this process, which waits for it.
      minimum: the number of tasks with which the loop continues; with fewer, it waits
        for others for a minute.
      checkpointer: a `train.checkpoint.Checkpointer`, which also saves snapshots when
        it decides to, and after a SIGTERM. The loop begins with its newest checkpoint.
        It is closed at the end.

    Returns:
      The last state, as NumPy arrays; after a SIGTERM, the state by then.

    Raises:
      TaskLostError: too few tasks are left, or one that a scope names does not return.
      DistributedError: a step failed several times although no task is lost.
      CheckpointError: the checkpoint has another structure or other types.
      ArgumentError: a number is not positive, or `step` changes the state's structure.
      Exception: any other error of `step`.

    Example:
      >>> from fxflow import dataflow
      >>> from fxflow.dataflow import on
      >>> def add(total, index):
      ...     with on("/task:0"):
      ...         return total + index
      >>> with dataflow.local_cluster(1) as cluster:
      ...     step = dataflow.jit(add, devices=cluster)
      ...     dataflow.elastic(step, fnp.zeros(()), 5, cluster=cluster)
      Outcome(state=array(10., dtype=float32), step=5, preempted=False)
    """
    require_callable(step, "dataflow.elastic")
    for what, number in (("snapshot_every", snapshot_every), ("minimum", minimum)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ArgumentError(
                f"dataflow.elastic: {what} is a positive integer, got {number!r}"
            )
    if not isinstance(cluster, Cluster):
        raise ArgumentError(
            "dataflow.elastic: cluster is a dataflow.Cluster, such as "
            f"dataflow.connect() returns, got {cluster!r}"
        )
    loop = _Loop(step, state, num_steps, cluster, snapshot_every, minimum, checkpointer)
    return loop.run()


class _Loop(CheckpointedLoop):
    """The arguments of `elastic`, and the last snapshot."""

    def __init__(
        self,
        step: Callable[[Any, int], Any],
        state: Any,
        num_steps: int,
        cluster: Cluster,
        snapshot_every: int,
        minimum: int,
        checkpointer: Checkpoints | None,
    ) -> None:
        super().__init__("dataflow.elastic", state, num_steps, checkpointer)
        self._step, self._cluster = step, cluster
        self._every, self._minimum = snapshot_every, minimum
        #: The last snapshot: the number of steps that were applied, and the state.
        self._index, self._held = 0, self.initial_leaves()
        self._failures = 0
        #: Tasks without which functions cannot be planned: scopes name them.
        self._needed: set[int] = set()

    def run(self) -> Outcome:
        """Runs the steps, from the newest checkpoint."""
        newest = self.newest()
        if newest is not None:
            self._index, state = self.restored(newest, self._held)
            self._held = [to_host(leaf) for leaf in trees.leaves(state)]
        with noticing() as notice:
            while not self._reaches_end(notice):
                pass
        preempted = self._index < self.num_steps
        if preempted:
            self.save(self._index, trees.leaves(self._restored()))
        self.close()
        return Outcome(self.tree(self._held), self._index, preempted)

    def _reaches_end(self, notice: threading.Event) -> bool:
        """Runs steps to the last one or a SIGTERM; returns whether no task was lost."""
        try:
            self._run_steps(notice)
        except DistributedError as error:
            self._recover(error)
            return False
        return True

    def _run_steps(self, notice: threading.Event) -> None:
        index, state = self._index, self._restored()
        while index < self.num_steps and not notice.is_set():
            state = self._step(state, index)
            leaves = self.leaves(state)
            index += 1
            due = index % self._every == 0 or index == self.num_steps
            if due or self.is_due(index) or notice.is_set():
                self._keep(index, leaves)
                if (returned := self._cluster.returned) and index < self.num_steps:
                    names = ", ".join(map(self._cluster.task_name, returned))
                    have = "has" if len(returned) == 1 else "have"
                    self._reconnect(f"{names} {have} returned")
                    state = self._restored()

    def _restored(self) -> Any:
        """Returns the state of the last snapshot, as arrays of this process."""
        state = self.tree(self._held)
        # Arrays of fxflow: functions would narrow NumPy's 64-bit arrays.
        return trees.map(lambda leaf: as_array(leaf, leaf.dtype), state)

    def _keep(self, index: int, leaves: Sequence[Any]) -> None:
        """Takes a snapshot of the state after `index` steps."""
        held: list[HostLeaf] = [to_host(as_array(leaf)) for leaf in fetch(leaves)]
        self._index, self._held, self._failures = index, held, 0
        if self.is_due(index):
            self.save(index, trees.leaves(self._restored()))

    def _recover(self, error: DistributedError) -> None:
        """Connects to the tasks that answer.

        Raises:
          DistributedError: too few do, or the loss of a task does not explain `error`.
        """
        if isinstance(error, TaskLostError) and error.task in self._cluster.missing:
            self._needed.add(error.task)
        self._reconnect(str(error))
        self._failures += 1
        lost = isinstance(error, TaskLostError) or bool(self._cluster.missing)
        count = len(self._cluster.addresses) if lost else 1
        if self._failures >= _MOST_FAILURES * count:
            raise error

    def _reconnect(self, why: str) -> None:
        alive = self._cluster.reconnect(
            minimum=self._minimum, needed=self._needed, seconds=RETURN
        )
        listed = ", ".join(map(str, alive))
        print(
            f"fxflow: {why}; continuing from step {self._index} with tasks {listed}",
            file=sys.stderr,
            flush=True,
        )
