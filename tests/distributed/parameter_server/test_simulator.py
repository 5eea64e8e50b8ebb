"""Simulations end, agree with closed forms, and are reproducible."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.consistency import (
    Consistency,
    asynchronous,
    backup,
    bsp,
    elastic_averaging,
    local_sgd,
    softsync,
    ssp,
)
from fxflow.distributed.parameter_server.placement import Tensor, place
from fxflow.distributed.parameter_server.simulator import (
    Compute,
    LogisticRegression,
    Network,
    ProcessFault,
    Quadratic,
    Simulation,
    simulate,
)
from fxflow.errors import ArgumentError

#: Messages take no time.
FREE = Network(latency=0, bandwidth=math.inf, request=0)
VALUES = [
    bsp(),
    ssp(0),
    ssp(3),
    asynchronous(),
    backup(3, 2),
    softsync(2),
    local_sgd(2),
    elastic_averaging(2, 0.2),
]


# -- closed forms ----------------------------------------------------------------------


def test_a_round_takes_as_long_as_its_slowest_worker() -> None:
    found = simulate(
        bsp(), workers=8, compute=Compute(1, "exponential"), network=FREE, steps=400
    )
    expected = sum(1 / k for k in range(1, 9))  # the mean of the maximum of 8
    assert found.updates == 400
    assert found.seconds / 400 == pytest.approx(expected, rel=0.06)
    assert found.staleness == {0: 3200}
    assert found.idle == pytest.approx(1 - 1 / expected, abs=0.03)


def test_workers_prepare_while_they_wait() -> None:
    prepare = Compute(1, "exponential")
    found = simulate(bsp(), workers=8, prepare=prepare, network=FREE, steps=2000)
    # No worker begins a round before the last one ends, or unprepared.
    rng, pushed = np.random.default_rng(0), np.zeros(8)
    for _ in range(2000):
        pushed = np.maximum(pushed.max(), pushed + rng.exponential(size=8))
    assert found.seconds == pytest.approx(pushed.max(), rel=0.05)
    waiting = simulate(bsp(), workers=8, compute=prepare, network=FREE, steps=2000)
    assert found.seconds < 0.8 * waiting.seconds


@pytest.mark.parametrize(("prepare", "expected"), [(0.1, 0.3), (0.2, 0.3), (0.5, 0.6)])
def test_messages_overlap_with_preparing(prepare: float, expected: float) -> None:
    network = Network(latency=0.1, bandwidth=math.inf, request=0)
    found = simulate(
        asynchronous(), workers=1, compute=0.1, prepare=prepare, network=network
    )
    assert found.percentiles[50] == pytest.approx(expected)


def test_more_backup_workers_pay_off_with_a_longer_tail() -> None:
    def gain(compute: Compute, spares: int) -> float:
        """Returns the speedup by spares; Abadi et al., OSDI 2016, figure 8."""
        times = []
        for b in (0, spares):
            found = simulate(
                backup(50, b), workers=50 + b, compute=compute, network=FREE, steps=80
            )
            times.append(found.seconds / found.updates)
        return times[0] / times[1] * 50 / (50 + spares) - 1

    short = Compute(1.9, "lognormal", sigma=0.05)
    assert gain(short, 1) > gain(short, 3)
    long = Compute(1.9, "lognormal", sigma=0.05, straggling=(0.04, 1.4))
    assert gain(long, 3) > gain(long, 1) > gain(short, 1)
    assert 0.07 < gain(long, 3) < 0.15


def test_backup_does_not_wait_for_the_last() -> None:
    slow = Compute(1, slow={2: 10})
    found = simulate(backup(2, 1), workers=3, compute=slow, network=FREE, steps=40)
    assert found.seconds == found.updates == 60
    assert found.dropped == 6  # after ten steps each
    some = Compute(1, "exponential")
    found = simulate(backup(6, 2), workers=8, compute=some, network=FREE, steps=300)
    # A round ends between the 6th of 8 that start together and the last of 6.
    times = [sum(1 / k for k in range(n, m)) for n, m in ((3, 9), (1, 7))]
    assert times[0] < found.seconds / found.updates < times[1]
    assert set(found.staleness) == {0}
    assert found.steps == 6 * found.updates
    assert found.dropped > 0


def test_asynchronous_workers_are_never_idle() -> None:
    compute = Compute(1, "lognormal", sigma=0.5, slow={0: 4, 1: 2})
    found = simulate(
        asynchronous(), workers=6, compute=compute, network=FREE, steps=300
    )
    assert found.throughput == pytest.approx(4 + 1 / 2 + 1 / 4, rel=0.05)
    assert found.idle == 0
    assert found.mean_staleness == pytest.approx(5, rel=0.02)


def test_throughput_is_that_of_a_saturated_server() -> None:
    plan = place([Tensor("w", (1000, 1000))], 4, strategy="rows")
    network = Network(latency=0, bandwidth=1e9, request=1e-3)
    found = simulate(
        asynchronous(), workers=50, servers=plan, network=network, steps=20
    )
    # Each server receives a request and 1 MB of each push, and sends concurrently.
    assert found.throughput == pytest.approx(1 / 2e-3, rel=0.05)
    half = Network(latency=0, bandwidth=1e9, request=1e-3, duplex=False)
    slower = simulate(asynchronous(), workers=50, servers=plan, network=half, steps=20)
    assert slower.throughput == pytest.approx(1 / 4e-3, rel=0.05)


def test_a_step_without_compute_takes_the_time_of_its_messages() -> None:
    network = Network(latency=1e-3, bandwidth=1e9, request=1e-4)
    found = simulate(asynchronous(), workers=1, network=network, steps=100)
    # A push, and the pull right after it.
    assert found.percentiles[50] == pytest.approx(2e-3 + 2e-4)


def test_ssp_without_staleness_waits_like_bsp() -> None:
    compute = Compute(1, "lognormal", sigma=0.7, slow={2: 2})
    both = [simulate(v, workers=5, compute=compute, steps=30) for v in (bsp(), ssp(0))]
    assert both[0].seconds == both[1].seconds
    assert both[0].idle == both[1].idle


def test_idle_time_falls_as_the_staleness_bound_grows() -> None:
    compute = Compute(1, "lognormal", sigma=0.5)
    idle = [
        simulate(ssp(s), workers=8, compute=compute, network=FREE, steps=60).idle
        for s in (0, 1, 4, 16)
    ]
    assert idle == sorted(idle, reverse=True)
    assert idle[0] > 0.3 and idle[-1] < 0.05


def test_local_steps_save_messages() -> None:
    network = Network(latency=1.0, bandwidth=1e9, request=0)
    times = [
        simulate(v, workers=2, compute=1.0, network=network, steps=40).seconds
        for v in (local_sgd(1), local_sgd(8))
    ]
    # The last push is not answered.
    assert times == [pytest.approx(40 * 3), pytest.approx(5 * (8 + 2))]


# -- learning --------------------------------------------------------------------------


def test_bsp_equals_gradient_descent() -> None:
    problem = Quadratic(noise=0)
    found = simulate(
        bsp(), workers=4, compute=Compute(1, "exponential"), steps=20, problem=problem
    )
    for _, version, loss in found.losses:
        decay = (1 - 0.1 * problem.curvature) ** version
        assert loss == pytest.approx(0.5 * np.sum(problem.curvature * decay**2))
    assert len(found.losses) == 21


def test_stale_gradients_need_a_smaller_rate() -> None:
    problem = Quadratic(noise=0.01)

    def last(value: Consistency) -> float:
        found = simulate(
            value, workers=30, compute=Compute(1, "lognormal", sigma=0.2), steps=40,
            problem=problem, learning_rate=1.0,
        )  # fmt: skip
        return found.losses[-1][2]

    assert last(asynchronous(rate="fixed")) > 1e3
    assert last(asynchronous()) < 0.1
    assert last(softsync(1)) < 0.1


@pytest.mark.parametrize(
    "value", [*VALUES, asynchronous(rate="fixed", compensation=0.5)], ids=repr
)
def test_each_consistency_learns(value: Consistency) -> None:
    compute = Compute(1, "lognormal", sigma=0.3)
    problem = LogisticRegression(examples=200)
    found = simulate(value, workers=4, compute=compute, steps=60, problem=problem)
    assert found.losses[0][2] == pytest.approx(math.log(2))
    assert found.losses[-1][2] < 0.45
    times = [time for time, _, _ in found.losses]
    assert times == sorted(times) and times[-1] <= found.seconds


# -- faults ----------------------------------------------------------------------------


def test_a_round_waits_for_a_dead_worker_until_its_death_is_detected() -> None:
    faults = [ProcessFault(4.5, "kill", 0)]
    found = simulate(
        bsp(), workers=3, compute=1.0, network=FREE, steps=10, faults=faults,
        detection=2.0,
    )  # fmt: skip
    # Rounds end at 1, 2, 3, 4, then at 6.5 (two pushes waited), then each second.
    assert found.finished
    assert found.updates == 13
    assert found.seconds == pytest.approx(6.5 + 8)


def test_a_stopped_worker_resumes_with_its_state() -> None:
    faults = [ProcessFault(4.5, "stop", 0), ProcessFault(6.0, "join", 0)]
    found = simulate(
        bsp(), workers=3, compute=1.0, network=FREE, steps=10, faults=faults,
        detection=2.0,
    )  # fmt: skip
    assert found.updates == 10
    assert found.seconds == pytest.approx(11)


def test_the_push_of_a_worker_that_dies_afterwards_arrives() -> None:
    network = Network(latency=1.0, bandwidth=math.inf, request=0)
    faults = [ProcessFault(2.5, "kill", 0)]  # its push is sent at 2, and arrives at 3
    found = simulate(
        asynchronous(), workers=1, compute=1.0, network=network, faults=faults
    )
    assert not found.finished and found.steps == 1


def test_a_worker_that_died_while_waiting_returns_once() -> None:
    faults = [ProcessFault(2.0, "kill", 0), ProcessFault(3.0, "join", 0)]
    compute = Compute(1.0, slow={1: 5.0})
    found = simulate(
        bsp(), workers=2, compute=compute, network=FREE, steps=4, faults=faults,
        detection=10.0,
    )  # fmt: skip
    assert (found.updates, found.dropped, found.seconds) == (4, 0, 20)


def test_without_workers_the_run_does_not_finish() -> None:
    faults = [ProcessFault(2.5, "kill", w) for w in range(3)]
    found = simulate(ssp(1), workers=3, compute=1.0, network=FREE, faults=faults)
    assert not found.finished
    assert found.steps == 6
    resumed = [*faults, ProcessFault(100.0, "join", 1)]
    found = simulate(
        ssp(1), workers=3, compute=1.0, network=FREE, faults=resumed, steps=5
    )
    assert found.finished and found.seconds == pytest.approx(109)


def test_halted_servers_delay_all_workers() -> None:
    faults = [ProcessFault(0.5, "server", seconds=3.0)]
    found = simulate(
        bsp(), workers=2, compute=1.0, network=FREE, steps=4, faults=faults
    )
    assert found.seconds == pytest.approx(6.5)


def schedule(value: Consistency, seed: int, workers: int) -> Simulation:
    """Simulates deaths, stops and returns of workers."""
    rng = random.Random(seed)
    faults = []
    for _ in range(rng.randrange(12)):
        worker, when = rng.randrange(2 * workers), rng.uniform(0, 20)
        faults.append(ProcessFault(when, rng.choice(["kill", "stop", "join"]), worker))
        faults.append(ProcessFault(when + rng.uniform(0, 6), "join", worker))
    compute = Compute(1, "lognormal", sigma=1.0, straggling=(0.05, 5.0))
    return simulate(
        value, workers=workers, compute=compute, network=Network(latency=0.01),
        steps=12, seed=seed, faults=faults, detection=rng.uniform(0.1, 3.0),
        problem=Quadratic(4),
    )  # fmt: skip


values = st.sampled_from(VALUES)


@settings(max_examples=60)
@given(values, st.integers(0, 2**32), st.integers(1, 6))
def test_every_schedule_ends(value: Consistency, seed: int, workers: int) -> None:
    found = schedule(value, seed, workers)
    assert found.finished
    assert sum(found.staleness.values()) * value.steps == found.steps
    assert not value.in_rounds or set(found.staleness) == {0}


@pytest.mark.soak
@settings(max_examples=3000)
@given(values, st.integers(0, 2**32), st.integers(1, 12))
def test_thousands_of_schedules_end(
    value: Consistency, seed: int, workers: int
) -> None:
    assert schedule(value, seed, workers).finished


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_equal_seeds_give_equal_results(value: Consistency) -> None:
    assert schedule(value, 7, 4) == schedule(value, 7, 4)
    assert schedule(value, 7, 4) != schedule(value, 8, 4)


@pytest.mark.soak
def test_runs_with_ten_thousand_workers_finish() -> None:
    plan = place([Tensor("w", (100_000, 250))], 500)
    compute = Compute(2, "lognormal", sigma=0.2)
    for value in (bsp(), ssp(4), asynchronous(), backup(9500, 500)):
        found = simulate(value, workers=10_000, servers=plan, compute=compute, steps=4)
        assert found.finished


# -- arguments and results -------------------------------------------------------------


def test_measured_times_are_scaled_to_their_mean() -> None:
    compute = Compute(2, "measured", samples=(1, 1, 4))
    rng = random.Random(0)
    drawn = [compute.draw(rng, 0) for _ in range(3000)]
    assert set(drawn) == {1.0, 4.0}
    assert np.mean(drawn) == pytest.approx(2, rel=0.05)


def test_results_print_as_a_summary() -> None:
    found = simulate(bsp(), workers=2, compute=1.0, network=FREE, steps=3)
    assert str(found) == (
        "6 steps and 3 updates in 3 s: 2 steps/s; computing 100.0%, idle 0.0%; "
        "staleness 0.00, dropped 0; a step within 50 % 1 s, 90 % 1 s, 99 % 1 s"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simulate(bsp(), workers=0), "workers must be 1 or more"),
        (lambda: simulate(bsp(), workers=1, steps=0), "steps must be 1 or more"),
        (
            lambda: simulate(bsp(), workers=1, faults=[ProcessFault(0, "fire")]),
            "got ProcessFault",
        ),
        (lambda: Compute(1, "gamma"), "kind must be one of constant"),
        (lambda: Compute(-1), "mean and sigma must be"),
        (lambda: Compute(1, "measured"), "needs samples"),
        (lambda: Network(bandwidth=0), "bandwidth positive"),
    ],
)
def test_invalid_arguments_are_rejected(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
