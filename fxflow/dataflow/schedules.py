"""Schedules: in which order each device starts its fragments.

A schedule is a rule for list scheduling: whenever a device is free, the rule chooses
among the fragments whose inputs are there. The order that this gives under a virtual
clock (`simulate`) is the order in which the device starts them in each step. Orders can
also be given as data (`actions`) and searched for (`search`).

The rules differ in what they prefer, in the devices of the stages, and in how many
activations a device may hold. The activations of a stage and a microbatch are held
from the start of its forward part (F) to the end of its backward parts (B and W). With
`p` devices, `v` stages on each, and a device `s` of them:

| schedule | goes first | activations held at once |
| --- | --- | --- |
| `"gpipe"` | forward | all |
| `"1f1b"` | B and W | `p - s` |
| `"interleaved"` | forward by groups of `p` microbatches, B, W | `_warmup` |
| `"zb-h1"` | forward, B, W | `v p`, and from F to B as `"1f1b"` |
| `"zb-v"` | B, forward, W; stages in the shape of a V | `v p` |
| `"breadth"` | earlier levels: as if each level were a barrier | all |

Sources: GPipe (Huang et al., 2019); PipeDream-Flush (Narayanan et al., 2021a); the
interleaved schedule of Megatron-LM (Narayanan et al., 2021b); Zero Bubble Pipeline
Parallelism (Qi et al., 2024).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from fxflow.core.source import name_of
from fxflow.dataflow.actions import Schedule
from fxflow.dataflow.placing import blocks
from fxflow.dataflow.timelines import Sent, Timeline, Work, at_once, simulate
from fxflow.errors import ArgumentError


class Scheduler(Protocol):
    """What orders fragments: a rule, a table of actions, a search."""

    @property
    def name(self) -> str:
        """For plans."""
        ...

    def device(self, stage: int, stages: int, devices: int) -> int:
        """Returns the number of the device that a stage runs on."""
        ...

    def order(
        self,
        works: Sequence[Work],
        seconds: Callable[[Any], float],
        sent: Sent = at_once,
    ) -> Timeline:
        """Returns when each fragment runs, and so the order of each device.

        Args:
          works: the fragments, in an order that can be run.
          seconds: that one takes.
          sent: seconds in which the results of one arrive at another.

        Raises:
          PlacementError: unknown order.
        """
        ...


class Pipeline(NamedTuple):
    """The shape of a pipeline.

    Attributes:
      places: numbers of the places that run stages, by the first stage of each.
      stages: on the place that has the most.
      first: the round of the first microbatch.
    """

    places: dict[Any, int]
    stages: int
    first: int

    @classmethod
    def of(cls, works: Sequence[Work]) -> Pipeline:
        """Returns the shape of the pipeline that fragments are of."""
        forward = [w for w in works if w.kind == "F"]
        level: dict[Any, int] = {}
        units: dict[Any, set[Any]] = {}
        for work in forward:
            level[work.place] = min(level.get(work.place, work.level), work.level)
            unit = work.level if work.stage is None else work.stage
            units.setdefault(work.place, set()).add(unit)
        order = sorted(level, key=lambda place: level[place])
        return cls(
            {place: number for number, place in enumerate(order)},
            max(map(len, units.values()), default=1),
            min((w.round for w in forward), default=0),
        )


Bound = Callable[[int, int, int], int]
"""From a place's number, the number of places and of stages on each, to the number of
activations that the place may hold."""


class ScheduleRule(NamedTuple):
    """A rule for list scheduling.

    Attributes:
      name: of the rule.
      key: the smallest goes first among those that are ready.
      device: from a stage and the numbers of stages and devices to the stage's device.
      held: how many activations a place may hold from F to the end of B and W.
      begun: how many it may hold from F to the end of B.
    """

    name: str
    key: Callable[[Work, Pipeline], Any]
    device: Callable[[int, int, int], int]
    held: Bound | None = None
    begun: Bound | None = None

    def order(
        self,
        works: Sequence[Work],
        seconds: Callable[[Any], float],
        sent: Sent = at_once,
    ) -> Timeline:
        """Returns when each fragment runs; see `Scheduler`."""
        pipeline = Pipeline.of(works)
        limits = None
        if self.held or self.begun:
            limits = Activations(works, pipeline, self.held, self.begun)
        return simulate(
            works,
            seconds,
            key=lambda work: self.key(work, pipeline),
            limits=limits,
            sent=sent,
        )


# -- the devices of stages -------------------------------------------------------------


def loops(stage: int, stages: int, devices: int) -> int:
    """Returns the device of a stage: each device has every `devices`-th."""
    return stage % devices


def vee(stage: int, stages: int, devices: int) -> int:
    """Returns the device of a stage: to the last device and back to the first."""
    devices = min(devices, -(-stages // 2))
    turn, at = divmod(stage, devices)
    return devices - 1 - at if turn % 2 else at


# -- the rules -------------------------------------------------------------------------

_BY_F = {"O": -1, "F": 0, "B": 1, "W": 1}
_BY_B = {"O": -1, "B": 0, "F": 1, "W": 2}
_BY_FB = {"O": -1, "F": 0, "B": 1, "W": 2}
_BY_BW = {"O": -1, "B": 0, "W": 0, "F": 1}


def _interleaved(work: Work, pipeline: Pipeline) -> Any:
    """Groups of as many microbatches as there are places go through all stages."""
    group, number = divmod(work.round - pipeline.first, len(pipeline.places) or 1)
    return _BY_FB[work.kind], group, work.level, number, work.index


def _warmup(place: int, places: int, stages: int) -> int:
    """Activations of 1F1B; with several stages on a device, of the interleaved one."""
    if stages == 1:
        return places - place
    return 2 * (places - place - 1) + (stages - 1) * places + 1


SCHEDULES = {
    s.name: s
    for s in (
        ScheduleRule("breadth", lambda w, _: (w.level, w.round, w.index), blocks),
        ScheduleRule(
            "gpipe", lambda w, _: (_BY_F[w.kind], w.round, w.level, w.index), blocks
        ),
        ScheduleRule(
            "1f1b", lambda w, _: (_BY_BW[w.kind], w.round, w.index), blocks, _warmup
        ),
        ScheduleRule("interleaved", _interleaved, loops, _warmup),
        ScheduleRule(
            "zb-h1",
            lambda w, _: (_BY_FB[w.kind], w.round, -w.level),
            blocks,
            lambda place, places, stages: stages * places,
            _warmup,
        ),
        ScheduleRule(
            "zb-v",
            lambda w, _: (_BY_B[w.kind], w.round, -w.level),
            vee,
            lambda place, places, stages: stages * places,
        ),
    )
}


class Activations:
    """Bounds how many activations each place holds; see `ScheduleRule`.

    Args:
      works: all fragments.
      pipeline: its shape.
      held: from F to the end of B and W; None: no bound.
      begun: from F to the end of B; None: no bound.
    """

    def __init__(
        self,
        works: Sequence[Work],
        pipeline: Pipeline,
        held: Bound | None,
        begun: Bound | None,
    ) -> None:
        count, stages = len(pipeline.places), pipeline.stages
        self._bounds = [
            (kinds, {p: bound(i, count, stages) for p, i in pipeline.places.items()})
            for kinds, bound in (("FBW", held), ("FB", begun))
            if bound is not None
        ]
        first: dict[Any, dict[Any, int]] = {}
        for work in works:
            if work.kind == "F":
                levels = first.setdefault(work.place, {})
                levels[work.stage] = min(work.level, levels.get(work.stage, work.level))
        #: How many stages of its place come after each: nothing ends before the last
        #: has run, so room is kept for those that nothing has reached yet.
        self._later = {
            (place, stage): sum(level > levels[stage] for level in levels.values())
            for place, levels in first.items()
            for stage in levels
        }
        #: For each bound: fragments left of an activation, activations of a place.
        self._left: list[dict[Any, int]] = []
        self._now: list[dict[Any, set[Any]]] = []
        for kinds, most in self._bounds:
            left: dict[Any, int] = {}
            for work in works:
                if work.kind in kinds:
                    unit = self._unit(work)
                    left[unit] = left.get(unit, 0) + 1
            self._left.append(left)
            self._now.append({place: set() for place in most})

    @staticmethod
    def _unit(work: Work) -> Any:
        return work.place, work.stage, work.round

    def group(self, work: Work) -> Any:
        """Returns what fragments share that begin activations of one stage."""
        return (work.stage, work.level) if work.kind == "F" else work.kind

    def may(self, work: Work) -> bool:
        """Returns whether a fragment may start: it begins no activation too many."""
        if work.kind != "F":
            return True
        unit, place = self._unit(work), work.place
        later = self._later[place, work.stage]
        for (_, most), now in zip(self._bounds, self._now, strict=True):
            held = now[place]
            room = most[place] - len(held)
            if room > later or unit in held:
                continue
            if room <= min((self._later[key[:2]] for key in held), default=later):
                return False
        return True

    def ran(self, work: Work) -> None:
        """Notes that a fragment has run."""
        unit, place = self._unit(work), work.place
        if work.kind == "O":
            return
        pairs = zip(self._bounds, self._left, self._now, strict=True)
        for (kinds, most), left, now in pairs:
            if work.kind in kinds and place in most:
                left[unit] -= 1
                (now[place].add if left[unit] else now[place].discard)(unit)

    def relax(self) -> bool:
        """Lets each place hold one activation more; returns whether it can."""
        found = False
        for (_, most), left in zip(self._bounds, self._left, strict=True):
            for place in most:
                if most[place] <= len(left):
                    most[place] += 1
                    found = True
        return found


def schedule_of(given: Any) -> Scheduler:
    """Returns what orders the fragments: the argument `schedule` of `dataflow.jit`.

    Args:
      given: a name, a `Schedule`, or a function from a fragment to a sort key.

    Raises:
      ArgumentError: it is something else, or there is no schedule of that name.
    """
    if isinstance(given, Schedule):
        return given
    if callable(given):
        return _by_key(given)
    if given == Search.name:
        return Search()
    found = SCHEDULES.get(given) if isinstance(given, str) else None
    if found is None:
        names = ", ".join(map(repr, (*SCHEDULES, Search.name)))
        raise ArgumentError(
            f"no schedule {given!r}: a schedule is one of {names}, a "
            "dataflow.Schedule, or a function from a fragment to a sort key"
        )
    return found


def _by_key(key: Callable[[Any], Any]) -> ScheduleRule:
    """Returns the rule of a user's sort key."""
    name = f"sort key {name_of(key)}"
    compared: list[Any] = []

    def checked(work: Work, _: Pipeline) -> Any:
        found = key(work)
        try:
            bool(found < (compared or [found])[0])
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"{name}: keys are compared by <, as tuples of numbers are; "
                f"{work.describe()} has {found!r}, another has {compared[:1]}"
            ) from error
        compared[:] = [found]
        return found

    return ScheduleRule(name, checked, blocks)


# -- search ----------------------------------------------------------------------------


class Search:
    """Looks for the shortest schedule: for stages of unequal work.

    List scheduling with several rules, among them all named ones, and several bounds;
    then with priorities that are changed at random where the best one was found. The
    shortest wins, and of those the one that holds the fewest activations. So it is
    never longer than a named schedule with the same devices, by the times it is given.
    """

    name = "search"

    def device(self, stage: int, stages: int, devices: int) -> int:
        """Returns the device of a stage: neighbours share one."""
        return blocks(stage, stages, devices)

    def order(
        self,
        works: Sequence[Work],
        seconds: Callable[[Any], float],
        sent: Sent = at_once,
    ) -> Timeline:
        """Returns the best order found; see `Scheduler`."""
        times = {work.index: seconds(work) for work in works}
        took = lambda work: times[work.index]
        pipeline = Pipeline.of(works)
        best: tuple[Any, Timeline] | None = None

        def offer(timeline: Timeline) -> bool:
            nonlocal best
            score = round(timeline.seconds, 12), sum(timeline.activations.values())
            if best is None or score < best[0]:
                best = score, timeline
                return True
            return False

        for rule in SCHEDULES.values():
            offer(rule.order(works, took, sent))
        ranks = _ranks(works, times)
        keys: list[Callable[[Work], Any]] = [
            lambda w: -ranks[w.index],
            lambda w: (_BY_B[w.kind], -ranks[w.index]),
            lambda w: (w.kind == "W", -ranks[w.index]),
            lambda w: (_BY_B[w.kind], w.round, -w.level),
        ]

        def tried(key: Callable[[Work], Any], more: int | None) -> bool:
            limits = None
            if more is not None:
                bound = lambda place, places, stages: (
                    _warmup(place, places, stages) + more
                )
                limits = Activations(works, pipeline, bound, None)
            return offer(simulate(works, took, key=key, limits=limits, sent=sent))

        runs, room = len(SCHEDULES), None
        for more in (0, 1, 2, 4, None):
            for key in keys:
                runs += 1
                if tried(key, more):
                    room = more
        shake = random.Random(0)
        noise: dict[int, float] = {}
        while (runs := runs + 1) * len(works) < SEARCHED:
            moved = dict(noise)
            for work in shake.sample(works, 1 + len(works) // 50):
                moved[work.index] = shake.gauss(0, 2 * times[work.index])
            if tried(_moved_key(ranks, moved), room):
                noise = moved
        assert best is not None
        return best[1]


def _moved_key(
    ranks: dict[int, float], moved: dict[int, float]
) -> Callable[[Work], Any]:
    return lambda work: moved.get(work.index, 0.0) - ranks[work.index]


#: Fragments that a search runs under the virtual clock: about a second.
SEARCHED = 100_000


def _ranks(works: Sequence[Work], times: dict[int, float]) -> dict[int, float]:
    """Returns the seconds of the longest path from the start of each to the end."""
    ranks = dict(times)
    for work in reversed(works):
        for before in work.after:
            ranks[before] = max(ranks[before], times[before] + ranks[work.index])
    return ranks
