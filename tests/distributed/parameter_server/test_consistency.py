"""Decisions on reads and pushes, over random schedules of workers."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server import consistency as kinds
from fxflow.distributed.parameter_server.consistency import (
    Consistency,
    Push,
    UpdateDecision,
    WorkerGroup,
    arrive,
    join,
    late,
    leave,
    may_read,
)
from fxflow.errors import ArgumentError

EVERY = [
    kinds.bsp(),
    kinds.ssp(0),
    kinds.ssp(3, rate="staleness", compensation=0.5),
    kinds.asynchronous(),
    kinds.asynchronous(rate="fixed", compensation=2),
    kinds.backup(2, 1),
    kinds.softsync(1, rate="fixed"),
    kinds.softsync(3),
    kinds.local_sgd(4),
    kinds.elastic_averaging(4, 0.3),
]


# -- values ----------------------------------------------------------------------------


@pytest.mark.parametrize("value", EVERY, ids=repr)
def test_a_consistency_survives_repr_and_json(value: Consistency) -> None:
    names = {
        **vars(kinds),
        "softsync": lambda splits, rate: kinds.softsync(splits, rate=rate),
    }
    assert eval(repr(value), names) == value
    assert Consistency.from_json(json.loads(json.dumps(value.to_json()))) == value
    assert hash(value) == hash(Consistency.from_json(value.to_json()))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kinds.ssp(-1), "ssp: staleness must be a whole number, 0 or more"),
        (lambda: kinds.ssp(True), "got True"),
        (lambda: kinds.ssp(1.5), "got 1.5"),  # type: ignore[arg-type]
        (lambda: kinds.ssp(1, rate="slow"), "rate must be 'fixed' or 'staleness'"),
        (lambda: kinds.asynchronous(compensation=-1), "compensation must be a number"),
        (lambda: kinds.asynchronous(compensation=float("nan")), "got nan"),
        (lambda: kinds.backup(0, 1), "backup: workers must be"),
        (lambda: kinds.backup(1, -1), "backup: spares must be"),
        (lambda: kinds.softsync(0), "softsync: n must be"),
        (lambda: kinds.local_sgd(0), "local_sgd: steps must be"),
        (lambda: kinds.elastic_averaging(1, 0), r"alpha must be a number in \(0, 1\]"),
        (lambda: Consistency.from_json({"kind": "eventual"}), "'kind' is one of bsp"),
        (lambda: Consistency.from_json({"kind": "bsp", "s": 1}), "has no arguments"),
        (lambda: Consistency.from_json({"kind": "ssp"}), "ssp has staleness, rate"),
        (lambda: Consistency.from_json([]), "expected a dictionary"),  # type: ignore[arg-type]
        (lambda: WorkerGroup.from_json({"version": 1}), "not a group"),
    ],
)
def test_invalid_values_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


# -- single decisions ------------------------------------------------------------------


def group_of(value: Consistency, count: int) -> WorkerGroup:
    group = WorkerGroup()
    for worker in range(count):
        group, _ = join(value, group, worker)
    return group


def push(
    value: Consistency, group: WorkerGroup, worker: int, version: int | None = None
):  # type: ignore[no-untyped-def]
    version = group.version if version is None else version
    return arrive(value, group, Push(worker, group[worker].clock, version))


def taken(decision: UpdateDecision) -> list[int]:
    return [weighted.push.worker for weighted in decision.apply]


def test_a_round_has_one_push_of_each_worker() -> None:
    value = kinds.bsp()
    group = group_of(value, 3)
    for worker in (2, 0):
        group, decision = push(value, group, worker)
        assert decision == UpdateDecision(hold=True)
        assert not may_read(value, group, worker, 1)
        assert late(value, group, worker, 1) == tuple(
            sorted({0, 1, 2} - {p.worker for p in group.waiting})
        )
    assert may_read(value, group, 1, 0)
    group, decision = push(value, group, 1)
    assert [tuple(w) for w in decision.apply] == [
        (Push(worker, 0, 0), 1 / 3, 0) for worker in (2, 0, 1)
    ]
    assert group.version == 1
    assert all(may_read(value, group, worker, 1) for worker in group)


def test_a_round_does_not_wait_for_workers_that_left_or_joined_late() -> None:
    value = kinds.bsp()
    group = group_of(value, 3)
    group, _ = push(value, group, 0)
    group, decision = join(value, group, 7)
    assert decision == UpdateDecision()
    assert not may_read(value, group, 7, group[7].clock)
    group, decision = leave(value, group, 1)
    assert decision == UpdateDecision()
    group, decision = leave(value, group, 2)
    assert taken(decision) == [0]
    assert may_read(value, group, 7, group[7].clock)
    # The push of a worker that dies afterwards is still part of the round.
    group, _ = push(value, group, 7)
    group, decision = leave(value, group, 7)
    assert decision == UpdateDecision()
    group, decision = push(value, group, 0)
    assert taken(decision) == [7, 0]


def test_a_round_does_not_wait_for_a_worker_that_restarted() -> None:
    value = kinds.bsp()
    group = group_of(value, 2)
    group, _ = push(value, group, 0)
    group, decision = join(value, group, 1)  # its death was not noticed
    assert taken(decision) == [0]
    assert may_read(value, group, 1, group[1].clock)


def test_ssp_bounds_the_lead() -> None:
    value = kinds.ssp(2)
    group = group_of(value, 2)
    for clock in range(1, 5):
        group, decision = push(value, group, 0)
        assert decision.apply[0].weight == 1
        assert may_read(value, group, 0, clock) == (clock <= 2)
    assert late(value, group, 0, 4) == (1,)
    assert may_read(value, group, 1, 0)
    # A new worker may read at once, and the others wait for 1, not for it.
    group, _ = join(value, group, 2)
    assert group[2].clock == 2
    assert may_read(value, group, 2, 2)
    group, _ = leave(value, group, 1)
    assert group.slowest == 2
    assert may_read(value, group, 0, 4)


def test_a_pull_does_not_overtake_the_workers_own_push() -> None:
    value = kinds.asynchronous()
    group = group_of(value, 2)
    assert not may_read(value, group, 0, 1)
    assert late(value, group, 0, 1) == (0,)
    group, _ = push(value, group, 0)
    assert may_read(value, group, 0, 1)


def test_staleness_divides_the_rate() -> None:
    fresh, fixed = kinds.asynchronous(), kinds.asynchronous(rate="fixed")
    for value, weights in ((fresh, [1, 1, 1 / 2, 1 / 3]), (fixed, [1, 1, 1, 1])):
        group = group_of(value, 4)
        found = []
        for worker in range(4):
            group, decision = push(value, group, worker, version=0)
            found.append(decision.apply[0])
        assert [w.staleness for w in found] == [0, 1, 2, 3]
        assert [w.weight for w in found] == weights


def test_backup_uses_the_first_pushes_of_a_round() -> None:
    value = kinds.backup(2, 1)
    group = group_of(value, 3)
    group, _ = push(value, group, 2)
    group, decision = push(value, group, 0)
    assert taken(decision) == [2, 0]
    group, decision = push(value, group, 1, version=0)
    assert decision == UpdateDecision(drop="late: computed from version 0 of 1")
    assert group.dropped == 1
    assert may_read(value, group, 1, 1)
    # With fewer live workers, a round has one push of each.
    group, _ = leave(value, group, 0)
    group, _ = leave(value, group, 2)
    group, decision = push(value, group, 1)
    assert taken(decision) == [1]


def test_softsync_averages_pushes_of_a_share_of_the_workers() -> None:
    value = kinds.softsync(2)
    group = group_of(value, 6)
    group, first = push(value, group, 0)
    group, second = push(value, group, 0)
    assert first.hold and second.hold and may_read(value, group, 0, 2)
    group, decision = push(value, group, 3)
    assert taken(decision) == [0, 0, 3]
    assert [w.weight for w in decision.apply] == [1 / 3] * 3
    group, _ = push(value, group, 4, version=0)
    group, _ = push(value, group, 5)
    group, decision = leave(value, group, 1)
    assert taken(decision) == [4, 5]
    assert [w.staleness for w in decision.apply] == [1, 0]


def test_impossible_pushes_are_dropped() -> None:
    value = kinds.bsp()
    group = group_of(value, 2)
    for wrong, reason in (
        (Push(5, 0, 0), "worker 5 is not in the group"),
        (Push(0, 3, 0), "clock 3 of worker 0, which is at 0"),
        (Push(0, 0, 9), "version 9, which does not exist yet"),
    ):
        after, decision = arrive(value, group, wrong)
        assert reason in decision.drop
        assert after.dropped == 1
    group, _ = push(value, group, 0)
    _, decision = push(value, group, 0)
    assert "the second push of worker 0 in one round" in decision.drop
    with pytest.raises(ArgumentError, match="worker 5 is not in the group of 2"):
        may_read(value, group, 5, 0)


# -- schedules -------------------------------------------------------------------------


@dataclass
class Schedule:
    """Workers that read, compute, push, die and join, in an order drawn by a seed.

    It checks from its own record of events what each read must see.
    """

    value: Consistency
    seed: int
    group: WorkerGroup = field(default_factory=WorkerGroup)
    clocks: dict[int, int] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    pushed: list[Push] = field(default_factory=list)
    applied: Counter[Push] = field(default_factory=Counter)
    dropped: list[Push] = field(default_factory=list)
    born: dict[int, int] = field(default_factory=dict)

    def run(self, workers: int, events: int) -> None:
        rng = random.Random(self.seed)
        for worker in range(workers):
            self.join(worker)
        for _ in range(events):
            kind = rng.random()
            if kind < 0.04:
                self.join(rng.randrange(2 * workers))
            elif kind < 0.08 and self.clocks:
                self.leave(rng.choice(sorted(self.clocks)))
            elif self.clocks:
                self.turn(rng.choice(sorted(self.clocks)))
            self.check()
        self.finish(rng)

    def turn(self, worker: int) -> bool:
        """Makes a worker push what it computed, or read; returns whether it could."""
        if worker in self.held:
            version = self.held.pop(worker)
            push = Push(worker, self.clocks[worker], version)
            self.clocks[worker] += 1
            self.pushed.append(push)
            group, decision = arrive(self.value, self.group, push)
            assert decision.hold == (push in group.waiting)
            assert (push in [w.push for w in decision.apply]) == (
                not decision.hold and not decision.drop
            )
            if decision.drop:
                self.dropped.append(push)
            self.follow(group, decision)
        elif may_read(self.value, self.group, worker, self.clocks[worker]):
            assert late(self.value, self.group, worker, self.clocks[worker]) == ()
            self.check_read(worker)
            self.held[worker] = self.group.version
        else:
            names = late(self.value, self.group, worker, self.clocks[worker])
            assert names and set(names) <= set(self.clocks) - {worker}
            return False
        return True

    def check_read(self, worker: int) -> None:
        clock = self.clocks[worker]
        if self.value.kind == "ssp":
            least = clock - (self.value.staleness or 0)
            assert min(self.clocks.values()) >= least
        if self.value.in_rounds:
            assert worker not in [p.worker for p in self.group.waiting]
        own = [p for p in self.pushed if p.worker == worker]
        if self.value.kind != "softsync":  # none of its own pushes may be missing
            assert all(p in self.applied or p in self.dropped for p in own)

    def follow(self, group: WorkerGroup, decision: UpdateDecision) -> None:
        assert group.version == self.group.version + bool(decision.apply)
        count = len(decision.apply)
        for push, weight, staleness in decision.apply:
            assert staleness == self.group.version - push.version >= 0
            factor = max(1, staleness) if self.value.rate == "staleness" else 1
            assert weight == pytest.approx(1 / count / factor)
            assert not self.value.in_rounds or staleness == 0
            self.applied[push] += 1
        if self.value.in_rounds and decision.apply:
            workers = [w.push.worker for w in decision.apply]
            assert len(set(workers)) == len(workers)
            assert count <= (self.value.workers or count)
            if self.value.workers is None:  # from all that the round waited for
                assert all(
                    worker in workers or self.born[worker] > self.group.version
                    for worker in self.clocks
                )
        self.group = group

    def join(self, worker: int) -> None:
        self.forget(worker)
        group, decision = join(self.value, self.group, worker)
        self.follow(group, decision)
        clock = self.clocks[worker] = group[worker].clock
        # In rounds, it starts with the current version or the next.
        self.born[worker] = group[worker].ready
        assert clock <= group.fastest
        assert all(clock > p.clock for p in group.waiting if p.worker == worker)
        assert self.value.in_rounds or may_read(self.value, group, worker, clock)

    def leave(self, worker: int) -> None:
        self.forget(worker)
        self.follow(*leave(self.value, self.group, worker))

    def forget(self, worker: int) -> None:
        self.clocks.pop(worker, None)
        self.held.pop(worker, None)

    def check(self) -> None:
        """Checks that cached counts equal counts from scratch."""
        group = self.group
        assert list(group) == sorted(self.clocks) and len(group) == len(self.clocks)
        assert {w: group[w].clock for w in group} == self.clocks
        if self.clocks:
            assert group.slowest == min(self.clocks.values())
        past = [push.clock + 1 for push in self.pushed]
        assert group.fastest == max([0, *past])
        assert group.missing == sum(group[w].ready <= group.version for w in group)
        assert group.dropped == len(self.dropped)

    def finish(self, rng: random.Random) -> None:
        """Checks that no worker waits forever and that each push counts once."""
        for _ in range(3):  # every worker advances, even one that waits
            start = dict(self.clocks)
            for _ in range(40 * len(start)):
                able = [w for w in sorted(start) if self.clocks[w] < start[w] + 3]
                if not able:
                    break
                turns = [self.turn(w) for w in rng.sample(able, len(able))]
                assert any(turns)
            if self.value.kind != "backup":
                assert all(self.clocks[w] >= start[w] + 3 for w in start)
        for worker in sorted(self.clocks):
            self.leave(worker)
        assert self.group.waiting == ()
        applied = self.applied.elements()
        assert sorted([*applied, *self.dropped]) == sorted(self.pushed)
        if (
            self.value.staleness is None
        ):  # otherwise a new worker may start at a past clock
            assert set(self.applied.values()) <= {1}


values = st.one_of(
    st.just(kinds.bsp()),
    st.integers(0, 5).map(kinds.ssp),
    st.sampled_from(["fixed", "staleness"]).map(lambda r: kinds.asynchronous(rate=r)),
    st.builds(kinds.backup, st.integers(1, 6), st.integers(0, 3)),
    st.integers(1, 8).map(kinds.softsync),
    st.integers(1, 3).map(kinds.local_sgd),
    st.builds(kinds.elastic_averaging, st.integers(1, 3), st.just(0.1)),
)


@settings(max_examples=100)
@given(values, st.integers(0, 2**32), st.integers(1, 7))
def test_random_schedules_keep_the_guarantees(
    value: Consistency, seed: int, workers: int
) -> None:
    Schedule(value, seed).run(workers, 60)


@pytest.mark.soak
@settings(max_examples=5000)
@given(values, st.integers(0, 2**32), st.integers(1, 12))
def test_long_random_schedules_keep_the_guarantees(
    value: Consistency, seed: int, workers: int
) -> None:
    Schedule(value, seed).run(workers, 300)


@given(values, st.integers(0, 2**32))
def test_a_group_survives_json(value: Consistency, seed: int) -> None:
    schedule = Schedule(value, seed)
    rng = random.Random(seed)
    for worker in range(5):
        schedule.join(worker)
    for _ in range(30):
        schedule.turn(rng.randrange(5))
    group = schedule.group
    assert WorkerGroup.from_json(json.loads(json.dumps(group.to_json()))) == group
