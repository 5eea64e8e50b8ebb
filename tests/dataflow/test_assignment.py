"""Assignments are near the optimum, and never below the bound."""

from __future__ import annotations

import itertools
import random

import pytest

from fxflow.dataflow.assignment import Problem, assign, lower_bound, scheduled
from tests.dataflow.optimum import optimum, random_problem
from tests.sweeps.sampling import sample

FREE = [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("seed", range(4))
def test_a_small_problem_is_solved_to_within_a_twentieth(seed: int) -> None:
    problem = random_problem(seed, 9)
    best, proved = optimum(problem)
    found = assign(problem)
    assert found.seconds <= 1.05 * best
    assert lower_bound(problem) <= best * (1 + 1e-6)
    assert proved == pytest.approx(best, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", sample(range(200), 100, "assignment"))
def test_problems_of_twelve_groups_are_solved_to_within_a_twentieth(seed: int) -> None:
    problem = random_problem(seed)
    best, _ = optimum(problem, 30.0)
    assert assign(problem).seconds <= 1.05 * best
    assert lower_bound(problem) <= best * (1 + 1e-6)


def test_what_is_found_beats_random_assignments_and_single_devices() -> None:
    for seed in range(8):
        problem = random_problem(seed + 1000, 40)
        found, order = assign(problem), problem.order()
        rng = random.Random(seed)
        for _ in range(100):
            where = [rng.choice(problem.allowed(g)) for g in range(len(order))]
            assert found.key <= scheduled(problem, where, order).key, seed
        for d in range(problem.count):
            if all(d in problem.allowed(g) for g in range(len(order))):
                alone = scheduled(problem, [d] * len(order), order)
                assert found.seconds <= alone.seconds, seed


def test_groups_start_after_what_they_take_has_arrived() -> None:
    problem = random_problem(7)
    found = assign(problem)
    end = [s + problem.seconds[g][found.where[g]] for g, s in enumerate(found.start)]
    for u, v, nbytes in problem.values:
        a, b = found.where[u], found.where[v]
        sent = problem.latency[a][b] + nbytes * problem.per_byte[a][b]
        assert found.start[v] >= end[u] + sent - 1e-9
    for d in range(problem.count):
        row = sorted(
            (found.start[g], end[g]) for g, w in enumerate(found.where) if w == d
        )
        assert all(b[0] >= a[1] - 1e-9 for a, b in itertools.pairwise(row))


def test_memory_is_kept_to_even_if_that_takes_longer() -> None:
    # Two groups that depend on one another, each with an argument of 60 bytes.
    def problem(capacity: float) -> Problem:
        return Problem(
            [[1.0, 1.0], [1.0, 1.0]],
            [(0, 1, 8.0)],
            [[0.0, 0.5], [0.5, 0.0]],
            FREE,
            [8.0, 8.0],
            [False, True],
            [(60.0, [0]), (60.0, [1])],
            [capacity, capacity],
        )

    assert assign(problem(200.0)).seconds == 2.0
    apart = assign(problem(100.0))
    assert apart.seconds == 2.5 and not apart.overflow
    assert assign(problem(50.0)).overflow > 0


def test_an_argument_counts_once_on_a_device_and_values_until_their_last_use() -> None:
    chain = Problem(
        [[1.0]] * 4,
        [(0, 1, 10.0), (1, 2, 10.0), (2, 3, 10.0)],
        [[0.0]],
        [[0.0]],
        [10.0] * 4,
        [False, False, False, True],
        [(5.0, [0, 3])],
        [30.0],
    )
    assert chain.need([0] * 4, [0, 1, 2, 3]) == [25.0]


def test_what_is_tied_is_on_one_device() -> None:
    problem = Problem([[1.0, 9.0], [9.0, 1.0]], [], FREE, FREE, tied=[[0, 1]])
    found = assign(problem)
    assert found.where[0] == found.where[1] and found.seconds == 10.0


def test_arguments_that_are_elsewhere_arrive_first() -> None:
    problem = Problem([[1.0, 1.0]], [], FREE, FREE, ready=[[5.0, 0.0]])
    assert assign(problem).where == [1]
    assert lower_bound(problem) == 1.0


def test_the_bound_counts_work_and_what_comes_before_and_after() -> None:
    # A fork: one second, four of two seconds on two devices, one second.
    values = [(0, g, 1.0) for g in range(1, 5)] + [(g, 5, 1.0) for g in range(1, 5)]
    seconds = [[s, s] for s in (1.0, 2.0, 2.0, 2.0, 2.0, 1.0)]
    problem = Problem(seconds, values, FREE, FREE)
    assert lower_bound(problem) == pytest.approx(6.0)
    assert assign(problem).seconds == pytest.approx(6.0)
    pinned = [[s[0], float("inf")] for s in seconds]
    assert lower_bound(Problem(pinned, values, FREE, FREE)) == pytest.approx(10.0)
