"""Batch policies against simulated models of known speed, without a clock."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.serve.batching.policies import (
    AIMD,
    BatchPolicy,
    Fixed,
    QuantileRegression,
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
