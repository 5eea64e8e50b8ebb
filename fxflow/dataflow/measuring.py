"""Measured steps: when each fragment ran."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from fxflow.core.arrays import Array
from fxflow.dataflow.placing import place_order
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.runner import Launch
from fxflow.dataflow.timelines import Ran, Timeline
from fxflow.lax.pytree_transfer import block_until_ready

Times = dict[int, tuple[float, float]]
"""Start and end of fragments by their indices, in seconds since the step began."""


class _TimedProgram:
    """A program that notes when it runs, alone on its device.

    Args:
      program: to run.
      number: of its fragment.
      times: gets the start and the end, by number.
      begun: when the step began, by `time.perf_counter`.
    """

    def __init__(self, program: Any, number: int, times: Times, begun: float) -> None:
        self._program, self._number = program, number
        self._times, self._begun = times, begun

    def __call__(self, arrays: list[Array]) -> list[Array]:
        block_until_ready(arrays)
        begin = time.perf_counter()
        outs: list[Array] = self._program(arrays)
        block_until_ready(outs)
        end = time.perf_counter()
        self._times[self._number] = begin - self._begun, end - self._begun
        return outs


def timed(launches: Iterable[Any], times: Times, begun: float) -> list[Any]:
    """Returns fragments that note when they run.

    A device waits for the end of each fragment before it starts the next one.

    Args:
      launches: fragments, ready to be started; what has no program is left as it is.
      times: gets the start and the end of each.
      begun: when the step begins, by `time.perf_counter`.
    """

    def of(launch: Any) -> Any:
        if not isinstance(launch, Launch):
            return launch
        program: Any = _TimedProgram(launch.program, launch.number, times, begun)
        return launch._replace(program=program)

    return [of(launch) for launch in launches]


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
    return Timeline(rows).in_order(place_order)
