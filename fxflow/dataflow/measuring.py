"""Measured steps: when each fragment ran."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from fxflow.core.arrays import Array
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.timelines import Ran, Timeline
from fxflow.lax.pytree_transfer import block_until_ready

Times = dict[int, tuple[float, float]]
"""Start and end of fragments in seconds, by their indices."""


class _TimedProgram:
    """A program that notes when it runs, alone on its device.

    Args:
      program: to run.
      number: of its fragment.
      times: gets the start and the end, by number.
    """

    def __init__(self, program: Any, number: int, times: Times) -> None:
        self._program, self._number, self._times = program, number, times

    def __call__(self, arrays: list[Array]) -> list[Array]:
        block_until_ready(arrays)
        begin = time.perf_counter()
        outs: list[Array] = self._program(arrays)
        block_until_ready(outs)
        self._times[self._number] = begin, time.perf_counter()
        return outs


def timed_step(current: Any, arrays: Sequence[Array]) -> tuple[list[Array], Times]:
    """Runs a step; returns its results, and when each fragment ran.

    A device waits for the end of each fragment before it starts the next one.

    Args:
      current: runs the fragments of a plan; a `Partitioned`.
      arrays: the leaves of the arguments.
    """
    times: Times = {}
    rows = [
        (
            thread,
            [
                task._replace(program=_TimedProgram(task.program, task.number, times))
                for task in row
            ],
        )
        for thread, row in current.rows
    ]
    outs: list[Array] = current.run(arrays, rows)
    # A thread may still be at a fragment for which no result waits.
    block_until_ready(outs)
    return outs, times


def measured_timeline(plan: Plan, times: Mapping[int, tuple[float, float]]) -> Timeline:
    """Returns measured times as a timeline, which begins at 0.

    Args:
      plan: whose fragments were measured.
      times: start and end of each.
    """
    first = min((start for start, _ in times.values()), default=0.0)
    rows: dict[Any, list[Ran]] = {place: [] for place in plan.places}
    for index, (start, end) in sorted(times.items(), key=lambda item: item[1]):
        fragment = plan.fragments[index]
        rows[fragment.place].append(Ran(fragment, start - first, end - first))
    return Timeline(rows)
