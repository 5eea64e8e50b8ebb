"""Schedules, compared with optax, eager and traced."""

import numpy as np
import pytest

import fxflow
from fxflow import optim
from fxflow.errors import ArgumentError
from tests.optim.golden import DATA

SCHEDULES = DATA["schedules"]


@pytest.mark.parametrize("name", SCHEDULES)
def test_numbers_match_optax(name: str) -> None:
    schedule = eval(SCHEDULES[name]["call"], {"optim": optim})
    want = SCHEDULES[name]["values"]
    eager = [float(schedule(count)) for count in range(20)]
    np.testing.assert_allclose(eager, want, rtol=1e-5, atol=1e-6)
    counts = np.arange(20, dtype=np.int32)
    traced = fxflow.jit(
        fxflow.vmap(lambda c: fxflow.numpy.asarray(schedule(c)) + 0 * c)
    )
    np.testing.assert_allclose(traced(counts), want, rtol=1e-5, atol=1e-6)


def test_invalid_steps_rates_and_boundaries_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match="linear_schedule: transition_steps must be"
    ):
        optim.linear_schedule(0.0, 1.0, 0)
    with pytest.raises(ArgumentError, match="transition_begin must not be negative"):
        optim.polynomial_schedule(0.0, 1.0, 2, 10, -1)
    with pytest.raises(
        ArgumentError, match="exponential_decay: decay_rate must not be"
    ):
        optim.exponential_decay(1.0, 10, 0.0)
    with pytest.raises(ArgumentError, match="exponential_decay: transition_steps must"):
        optim.exponential_decay(1.0, 0, 0.5)
    with pytest.raises(ArgumentError, match="decay_steps must be positive, got -1"):
        optim.cosine_decay_schedule(1.0, -1)
    with pytest.raises(ArgumentError, match=r"2 schedules need 1 boundaries, got 2"):
        optim.join_schedules([optim.constant_schedule(1.0)] * 2, [1, 2])
    with pytest.raises(ArgumentError, match="factors must not be negative"):
        optim.piecewise_constant_schedule(1.0, {3: -1.0})
    with pytest.raises(ArgumentError, match='interpolate_type must be "linear" or'):
        optim.piecewise_interpolate_schedule("cubic", 1.0, {3: 1.0})
    with pytest.raises(ArgumentError, match="boundaries must be positive"):
        optim.piecewise_interpolate_schedule("linear", 1.0, {0: 1.0})


def test_a_schedule_without_warmup_starts_at_the_peak() -> None:
    schedule = optim.warmup_cosine_decay_schedule(0.0, 1.0, 0, 10)
    assert float(schedule(0)) == 1.0


def test_a_restart_repeats_the_schedule() -> None:
    one = {"init_value": 0.1, "peak_value": 1.0, "warmup_steps": 3, "decay_steps": 8}
    once = optim.warmup_cosine_decay_schedule(**one)
    again = optim.sgdr_schedule([one, one])
    for count in range(8):
        np.testing.assert_allclose(again(count), once(count), rtol=1e-6)
        np.testing.assert_allclose(again(8 + count), once(count), rtol=1e-6)


def test_short_cycles_begin_at_the_peak() -> None:
    # As in optax if the rise takes less than one update.
    cosine = optim.cosine_onecycle_schedule(3, 1.0)
    wanted = [1.0, 0.750001, 0.250003, 4e-6]
    np.testing.assert_allclose([cosine(n) for n in range(4)], wanted, rtol=1e-4)
    linear = optim.linear_onecycle_schedule(2, 1.0)
    np.testing.assert_allclose([linear(n) for n in range(3)], [1.0, 0.04, 4e-6])


def test_schedules_without_enough_steps_are_refused() -> None:
    with pytest.raises(ArgumentError, match="which includes the warm-up"):
        optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10)
    with pytest.raises(ArgumentError, match="transition_steps must be positive"):
        optim.cosine_onecycle_schedule(0, 1.0)
