"""Batch policies against simulated models of known speed, without a clock."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.serve.batching import (
    AIMD,
    BatchPolicy,
    Fixed,
    Lateness,
    Pace,
    Processing,
    QuantileRegression,
    Queue,
    QueueEntry,
    batch_policy,
    padded,
    quantile_line,
    sizes_up_to,
)


def settle(policy: BatchPolicy, start: float, per_row: float, rounds: int) -> list[int]:
    """Returns the limits for full batches, at start + per_row · rows seconds."""
    rng = random.Random(0)
    limits = []
    for _ in range(rounds):
        rows = policy.limit
        limits.append(rows)
        policy = policy.after(rows, (start + per_row * rows) * rng.uniform(0.95, 1.05))
    return limits


@pytest.mark.parametrize("name", ["aimd", "quantile"])
@pytest.mark.parametrize(("per_row", "best"), [(1e-4, 80), (1e-3, 8), (1e-5, 800)])
def test_finds_the_largest_batch_in_time(name: str, per_row: float, best: int) -> None:
    limits = settle(batch_policy(name, 0.010, 10_000), 0.002, per_row, 3000)[-500:]
    assert 0.75 * best <= sum(limits) / len(limits) <= 1.05 * best
    late = sum(0.002 + per_row * rows > 0.0105 for rows in limits)
    assert late <= (len(limits) // (3 if name == "aimd" else 10))


@pytest.mark.parametrize("name", ["aimd", "quantile"])
def test_follows_a_model_that_becomes_slower(name: str) -> None:
    policy = batch_policy(name, 0.010, 10_000)
    for seconds in (1e-4, 1e-3):
        for _ in range(1500):
            policy = policy.after(policy.limit, 0.002 + seconds * policy.limit)
    assert 5 <= policy.limit <= 9


def delayed(share: float, mean: float) -> Callable[[random.Random], float]:
    """Draws the seconds that some batches wait for something other than the model."""
    return lambda rng: rng.expovariate(1 / mean) + 0.01 if rng.random() < share else 0.0


@pytest.mark.parametrize(
    ("delay", "least"),
    [(delayed(0.05, 0.05), 70), (delayed(0.2, 0.02), 70), (delayed(0.4, 1.0), 70)],
    ids=["rare", "frequent", "long"],
)
def test_quantiles_ignore_delays_that_no_limit_prevents(
    delay: Callable[[random.Random], float], least: int
) -> None:
    rng, policy = random.Random(1), QuantileRegression(0.010, 10_000)
    for _ in range(1500):
        seconds = 0.002 + 1e-4 * policy.limit
        policy = policy.after(
            policy.limit, seconds * rng.uniform(0.95, 1.05) + delay(rng)
        )
    assert least <= policy.limit <= 85


def test_quantiles_hold_for_a_model_with_noise() -> None:
    """Noise that depends on the rows is not mistaken for an external delay."""
    rng, policy = random.Random(1), QuantileRegression(0.010, 10_000)
    late = []
    for _ in range(2500):
        seconds = (0.002 + 1e-4 * policy.limit) * rng.uniform(0.7, 1.3)
        late.append(seconds > 0.010)
        policy = policy.after(policy.limit, seconds)
    assert sum(late[500:]) <= 0.03 * len(late[500:]) and policy.limit >= 50


@given(
    st.sampled_from(["aimd", "quantile", "fixed", "none"]),
    st.lists(st.tuples(st.integers(1, 99), st.floats(1e-6, 10.0)), max_size=60),
)
def test_limits_stay_in_bounds(name: str, seen: list[tuple[int, float]]) -> None:
    policy = batch_policy(name, 0.01, 50)
    for rows, seconds in seen:
        policy = policy.after(rows, seconds)
        assert 1 <= policy.limit <= 50


def test_models_that_always_miss_the_budget_get_single_rows() -> None:
    assert settle(batch_policy("aimd", 0.001, 64), 1.0, 0.1, 50)[-1] == 1
    assert settle(batch_policy("quantile", 0.001, 64), 1.0, 0.1, 50)[-1] == 1


def test_aimd_shrinks_by_a_tenth_of_the_rows_that_ran() -> None:
    policy = AIMD(budget=0.01, maximum=500, level=400.0)
    assert policy.after(100, 0.02).level == pytest.approx(90)
    assert policy.after(100, 0.005).level == 400


def test_none_limits_batches_to_one_row() -> None:
    assert batch_policy("none", 0.01, 64) == Fixed(1)
    assert batch_policy("fixed", 0.01, 64).after(3, 9.0).limit == 64


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(ValueError, match="'none', got 'best'"):
        batch_policy("best", 0.01, 64)


def test_a_share_of_the_points_lies_below_the_quantile_line() -> None:
    rng = random.Random(2)
    points = []
    for _ in range(400):
        rows = rng.randint(1, 100)
        points.append((rows, 0.001 + 0.0001 * rows * rng.uniform(0.5, 1.0)))
    for quantile in (0.5, 0.9):
        start, slope = quantile_line(tuple(points), quantile)
        below = sum(s <= start + slope * r for r, s in points) / len(points)
        assert below == pytest.approx(quantile, abs=0.04)


def test_a_limit_is_at_most_twice_what_was_seen() -> None:
    policy = QuantileRegression(budget=1.0, maximum=10_000)
    for _ in range(16):
        policy = policy.after(1, 1e-6)
    assert policy.limit == 2


@given(st.integers(1, 5000))
def test_padding_costs_at_most_a_half(largest: int) -> None:
    sizes = sizes_up_to(largest)
    assert list(sizes) == sorted(set(sizes))
    assert sizes[0] == 1 and sizes[-1] == largest
    assert all(
        after <= 2 if before == 1 else after <= before * 1.5
        for before, after in itertools.pairwise(sizes)
    )
    rows = max(1, largest // 3)
    assert rows <= padded(rows, sizes) <= max(2, rows * 1.5)


def test_up_to_512_rows_need_few_sizes() -> None:
    assert len(sizes_up_to(512)) <= 19
    with pytest.raises(ValueError, match="at least 1, got 0"):
        sizes_up_to(0)


def test_padded_returns_the_rows_without_sizes() -> None:
    assert padded(7, ()) == 7
    assert padded(9, (1, 8)) == 9


# -- queue -----------------------------------------------------------------------------

STEADY = Pace().after(1, 0.010).after(1, 0.010)


def waiting(name: str, deadline: float = 1.0, **options: object) -> QueueEntry:
    return QueueEntry(name, 1, 0.0, deadline, **options)  # type: ignore[arg-type]


def fill(queue: Queue, *entries: QueueEntry, pace: Pace | None = None) -> None:
    for entry in entries:
        assert queue.offer(entry, 0.0, Processing(8, pace or Pace(), 1, 1)) is None


def names(entries: list[QueueEntry]) -> str:
    return "".join(entry.item for entry in entries)


def test_requests_run_by_priority_deadline_and_arrival() -> None:
    queue = Queue(100)
    fill(queue, waiting("c"), waiting("b", 0.5), waiting("d"))
    fill(queue, waiting("a", 9.0, priority=-1))
    assert names(queue.take(0.0, 3, Pace()).batch) == "abc"
    assert names(queue.take(0.0, 3, Pace()).batch) == "d"
    assert not queue.take(0.0, 3, Pace()).batch and queue.rows == len(queue) == 0


def test_groups_are_not_mixed() -> None:
    queue = Queue(100)
    fill(queue, *(waiting(name, group=name.islower()) for name in "aBcD"))
    assert names(queue.take(0.0, 8, Pace()).batch) == "ac"
    assert names(queue.take(0.0, 8, Pace()).batch) == "BD"


def test_a_large_request_goes_alone() -> None:
    queue = Queue(100)
    queue.offer(QueueEntry("a", 20, 0, 1), 0, Processing(8, Pace(), free=1, replicas=1))
    fill(queue, waiting("b"))
    assert names(queue.take(0.0, 8, Pace()).batch) == "a"


def test_a_small_batch_waits_for_the_delay() -> None:
    queue = Queue(100, delay=0.002)
    fill(queue, waiting("a"), waiting("b"))
    first = queue.take(0.0, 3, Pace())
    assert not first.batch and first.wake == pytest.approx(0.002)
    assert names(queue.take(0.002, 3, Pace()).batch) == "ab"
    fill(queue, waiting("c"), waiting("d"), waiting("e"))
    assert names(queue.take(0.0, 3, Pace()).batch) == "cde"  # full: no delay


def test_a_delay_ends_before_a_deadline_is_missed() -> None:
    queue = Queue(100, delay=0.5)
    fill(queue, waiting("a", 0.1))
    assert queue.take(0.0, 3, STEADY).wake == pytest.approx(0.08)


def test_late_requests_are_shed() -> None:
    queue = Queue(100)
    fill(queue, waiting("a", 0.005), waiting("b", 0.5))
    decision = queue.take(0.0, 8, STEADY)
    assert names(decision.batch) == "b"
    ((shed, why),) = decision.shed
    assert shed.item == "a" and why.retry_after == pytest.approx(0.005)


def test_a_single_request_runs_even_if_it_seems_late() -> None:
    queue = Queue(100)
    fill(queue, waiting("a", 0.005))
    assert names(queue.take(0.0, 8, STEADY).batch) == "a"
    fill(queue, waiting("b", 0.005))
    decision = queue.take(0.006, 8, STEADY)
    assert not decision.batch and decision.shed[0][0].item == "b"


def test_refusals_give_their_reason() -> None:
    queue = Queue(3)
    none = queue.offer(waiting("a"), 0.0, Processing(8, Pace(), free=0, replicas=0))
    assert none is not None and "no replica" in none.reason
    fill(queue, waiting("a"), waiting("b"), waiting("c"))
    full = queue.offer(waiting("d"), 0.0, Processing(8, STEADY, free=0, replicas=1))
    assert full is not None and "the queue has 3 rows" in full.reason
    queue = Queue(100)
    fill(queue, *(waiting(name) for name in "abcd"), pace=STEADY)
    late = queue.offer(
        waiting("e", 0.03), 0.0, Processing(1, STEADY, free=0, replicas=1)
    )
    assert late is None  # before the others, since its deadline is near
    late = queue.offer(
        waiting("f", 0.02), 0.0, Processing(1, STEADY, free=0, replicas=1)
    )
    assert late is None
    late = queue.offer(
        waiting("g", 0.031), 0.0, Processing(1, STEADY, free=0, replicas=1)
    )
    assert late is not None and late.retry_after == pytest.approx(0.004)


def test_requests_wait_for_a_replica_that_is_being_started() -> None:
    queue = Queue(100)
    coming = Processing(8, STEADY, free=0, replicas=1, until=0.5)
    late = queue.offer(waiting("a", 0.5), 0.0, coming)
    assert late is not None and "until one has restarted" in late.reason
    assert late.retry_after == pytest.approx(0.01)
    early = waiting("b", 0.6)
    assert queue.offer(early, 0.0, coming) is None
    assert not early.due  # no estimate learns from it
    assert names(queue.take(0.51, 8, STEADY).batch) == "b"


def test_predict_wait_returns_the_refusal_that_offer_returns() -> None:
    queue = Queue(100)
    fill(queue, *(waiting(name) for name in "abcd"), pace=STEADY)
    for deadline in (0.02, 0.031, 0.1):
        state = Processing(1, STEADY, free=0, replicas=1)
        predicted = queue.predict_wait(last := waiting("e", deadline), 0.0, state)
        rows = queue.rows
        assert len(queue) == 4
        refused = queue.offer(last, 0.0, Processing(1, STEADY, free=0, replicas=1))
        if refused is None:
            assert predicted == last.due
            queue.withdraw(last)
        else:
            assert predicted == refused
        assert queue.rows == rows


def test_withdraw_and_drain() -> None:
    queue = Queue(100)
    a, b, c = waiting("a"), waiting("b"), waiting("c")
    fill(queue, a, b, c)
    assert queue.withdraw(b) and not queue.withdraw(b)
    assert names(queue.drain()) == "ac" and queue.rows == 0
    assert not queue.take(5.0, 8, Pace()).shed


def traffic(
    seed: int,
    load: float,
    lag: float = 0.0,
    learns: bool = True,
    pauses: float = 0.0,
) -> tuple[Counter[str], float]:
    """Simulates four seconds of requests; counts outcomes and possible answers.

    Args:
      seed: of arrivals and noise.
      load: arrivals, of those that can be answered.
      lag: seconds that answers take beyond their batch's time, half of it or more.
      learns: whether the queue learns how late answers are.
      pauses: share of the batches that take 60 ms longer; the deadline is 100 ms then.
    """
    rng = random.Random(seed)
    replicas, objective = rng.choice([1, 3]), 0.020
    start, per_row = 0.001, 0.0005
    policy = batch_policy("aimd", objective / 2, 64)
    queue, pace = Queue(1000, delay=rng.choice([0.0, 0.001])), Pace()
    overdue = overrun = Lateness()
    best = 18 / (start + per_row * 18 + 0.75 * lag) * replicas  # rows a second in time
    rate = load * best
    now, free, number = 0.0, replicas, 0
    ends: Counter[str] = Counter()
    ended: set[int] = set()
    events: list[tuple[float, int, str, list[QueueEntry]]] = [(0.0, 0, "arrive", [])]
    begun: dict[int, float] = {}
    ticket = 0

    def end(entry: QueueEntry, how: str) -> None:
        assert entry.item not in ended
        ended.add(entry.item)
        ends[how] += 1

    while events:
        now, _, kind, batch = heapq.heappop(events)
        if kind == "arrive" and now < 4.0:
            number += 1
            limit = 5 * objective if pauses else objective + 4 * lag
            entry = QueueEntry(number, 1, now, now + limit)
            why = queue.offer(
                entry,
                now,
                Processing(
                    policy.limit,
                    pace,
                    free=free,
                    replicas=replicas,
                    margin=overdue.margin if learns else 0.0,
                ),
            )
            if why:
                assert why.retry_after > 0
                end(entry, "refused")
            ticket += 1
            heapq.heappush(events, (now + rng.expovariate(rate), ticket, "arrive", []))
        elif kind == "done":
            free += 1
            rows = len(batch)
            taken = now - begun.pop(batch[0].item)
            overrun = overrun.after(taken - pace.predict(rows))
            overdue = overdue.after(now - min(entry.due for entry in batch))
            seconds = (start + per_row * rows) * rng.uniform(0.9, 1.1)
            pace, policy = pace.after(rows, seconds), policy.after(rows, seconds)
            for entry in batch:
                end(entry, "good" if now <= entry.deadline else "late")
        while free:
            decision = queue.take(
                now, policy.limit, pace, overrun.margin if learns else 0.0
            )
            for entry, _ in decision.shed:
                end(entry, "shed")
            ticket += 1
            if not decision.batch:
                if decision.wake < 1e9:
                    assert decision.wake > now
                    heapq.heappush(events, (decision.wake, ticket, "wake", []))
                break
            free -= 1
            begun[decision.batch[0].item] = now
            took = start + per_row * len(decision.batch) + lag * rng.uniform(0.5, 1)
            took += 0.06 * (rng.random() < pauses)
            heapq.heappush(events, (now + took, ticket, "done", decision.batch))
    assert len(ended) == number and queue.rows == 0
    ends["asked"] = number
    return ends, min(number, best * 4.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("load", [0.5, 0.9, 3.0])
def test_under_any_load_most_good_requests_are_served(seed: int, load: float) -> None:
    """Every request has one outcome, and most that could be answered are."""
    ends, possible = traffic(seed, load)
    assert ends["good"] >= 0.85 * possible, ends
    assert ends["late"] <= 0.03 * ends["asked"], ends


@pytest.mark.parametrize("seed", range(6))
def test_overload_of_a_server_with_its_own_delays(seed: int) -> None:
    """A full queue leaves time for delays that the estimates do not include."""
    ends, possible = traffic(seed, 3.0, lag=0.010)
    assert ends["good"] >= 0.8 * possible, ends
    assert ends["late"] <= 0.01 * ends["asked"], ends
    believed, _ = traffic(seed, 3.0, lag=0.010, learns=False)
    assert believed["late"] > 10 * ends["late"], (believed, ends)


@pytest.mark.parametrize("seed", range(6))
def test_a_pause_of_the_machine_sheds_only_late_requests(seed: int) -> None:
    """Requests that waited during the pause but can be answered in time are kept."""
    ends, _ = traffic(seed, 0.3, pauses=0.02)
    believed, _ = traffic(seed, 0.3, pauses=0.02, learns=False)
    assert ends["good"] >= believed["good"] - 0.03 * ends["asked"], (ends, believed)
    assert ends["late"] <= 0.05 * ends["asked"], ends


def test_a_new_pace_predicts_0() -> None:
    assert Pace().predict(10) == 0.0


def test_a_pace_finds_the_line_and_follows_it() -> None:
    rng = random.Random(0)
    pace = Pace()
    for _ in range(300):
        rows = rng.randint(1, 32)
        pace = pace.after(rows, 0.002 + 0.0005 * rows)
    assert pace.predict(100) == pytest.approx(0.052, rel=0.01)
    for _ in range(300):  # the model became slower
        rows = rng.randint(1, 32)
        pace = pace.after(rows, 0.004 + 0.001 * rows)
    assert pace.predict(10) == pytest.approx(0.014, rel=0.02)


def test_a_pace_from_batches_of_one_size() -> None:
    pace = Pace()
    for _ in range(20):
        pace = pace.after(8, 0.01)
    assert pace.predict(8) == pytest.approx(0.01)
    assert pace.predict(1) >= 0


def test_noise_never_makes_a_pace_decreasing_or_negative() -> None:
    rng = random.Random(1)
    pace = Pace()
    for _ in range(2000):
        pace = pace.after(rng.randint(1, 64), rng.expovariate(100))
        assert 0 <= pace.predict(1) <= pace.predict(2) <= pace.predict(64)


def test_lateness_follows_the_errors_and_forgets_them() -> None:
    rng = random.Random(2)
    late = Lateness()
    assert late.margin == 0
    for _ in range(200):
        late = late.after(rng.uniform(0.01, 0.03))
    assert 0.025 < late.margin < 0.05
    for _ in range(200):  # answers arrive as predicted again, or earlier
        late = late.after(rng.uniform(-0.002, 0.0))
    assert 0 <= late.margin < 0.003


def test_one_pause_counts_little_and_lasting_lateness_is_learned() -> None:
    late = Lateness()
    for _ in range(50):
        late = late.after(0.001).after(0.002)
    before = late.margin
    assert late.after(0.2).margin < 2 * before + 0.002
    for _ in range(12):
        late = late.after(0.1)
    assert late.margin > 0.1
    # The first error is not clipped: it sets the scale.
    assert Lateness().after(0.1).margin > 0.05
