"""Token buckets."""

import random

import pytest

from fxflow.serve.limits import ClientLimits


def test_rate_0_is_unlimited() -> None:
    assert not any(ClientLimits().take("a", 0.0) for _ in range(100))


@pytest.mark.parametrize("seed", range(5))
def test_requests_within_rate_and_burst_are_accepted(seed: int) -> None:
    rng = random.Random(seed)
    limits = ClientLimits(rate=10.0, burst=5)
    now, taken = 0.0, 0
    while now < 20.0:
        wait = limits.take("a", now)
        assert 0 <= wait <= 0.1 + 1e-9
        taken += not wait
        assert taken <= 5 + 10 * now + 1e-6
        now += rng.expovariate(40.0)
    assert taken >= 190


def test_a_client_that_waits_for_the_retry_time_is_accepted() -> None:
    limits = ClientLimits(rate=2.0)
    assert limits.take("a", 0.0) == 0
    assert limits.take("a", limits.take("a", 0.1) + 0.1 + 1e-9) == 0


def test_memory_is_bounded() -> None:
    limits = ClientLimits(rate=1.0, burst=1, most=100)
    for number in range(1000):
        limits.take(str(number), number * 1e-4)
    assert len(limits._buckets) == 100
    limits.take("late", 10.0)
    assert len(limits._buckets) == 1
