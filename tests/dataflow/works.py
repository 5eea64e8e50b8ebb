"""Pipelines of works without programs, for schedules and the virtual clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fxflow.dataflow.timelines import Timeline


@dataclass(eq=False)
class FakeWork:
    """What a `Fragment` says of itself."""

    index: int
    place: Any
    level: int
    round: int
    kind: str
    after: tuple[int, ...] = ()
    stage: int | None = None
    microbatch: int | None = None

    def describe(self) -> str:
        if self.stage is None:
            return f"{self.kind}{self.index}"
        return f"{self.stage}{self.kind}{self.microbatch}"

    def takes(self, other: FakeWork) -> str:
        return f"x{other.index}"


def pipeline(
    stages: int, rounds: int, device: Callable[[int, int, int], int] | None = None,
    devices: int = 0,
) -> list[FakeWork]:  # fmt: skip
    """F, B and W of each stage in each round, by level."""
    names = [
        (level, r, kind, s)
        for r in range(rounds)
        for s in range(stages)
        for level, kind in (
            (s, "F"),
            (2 * stages - 1 - s, "B"),
            (2 * stages - 1 - s, "W"),
        )
    ]
    names.sort()
    at = {(kind, s, r): i for i, (_, r, kind, s) in enumerate(names)}
    works = []
    for i, (level, r, kind, s) in enumerate(names):
        before = (
            [("F", s - 1, r)] if kind == "F" else [("B" if kind == "W" else "F", s, r)]
        )
        if kind == "B":
            before.append(("B", s + 1, r))
        after = tuple(at[b] for b in before if b in at)
        place = device(s, stages, devices) if device else s
        works.append(FakeWork(i, place, level, r, kind, after, s, r))
    return works


def check_rules(works: list[FakeWork], timeline: Timeline) -> None:
    """Each work once, after what it waits for, and one at a time on a place."""
    ended = {ran.work.index: ran.end for row in timeline.rows.values() for ran in row}
    assert len(ended) == len(works)
    for row in timeline.rows.values():
        for one, two in itertools.pairwise(row):
            assert two.start >= one.end
        for ran in row:
            assert all(ran.start >= ended[i] for i in ran.work.after)
