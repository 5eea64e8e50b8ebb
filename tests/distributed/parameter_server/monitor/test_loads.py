"""Loads of shards, by a clock that the tests set."""

import pytest

from fxflow.distributed.parameter_server.monitor.loads import ShardLoads


def test_a_constant_load_is_its_share_of_the_time() -> None:
    loads = ShardLoads(half_life=30.0)
    for step in range(1, 1001):
        loads.add(2, 0.025, now=step / 10)
    assert loads.load(2, now=100.0) == pytest.approx(0.25, abs=2e-3)
    assert loads.load(1, now=100.0) == 0.0


def test_work_counts_half_after_the_half_life() -> None:
    loads = ShardLoads(half_life=30.0)
    loads.add(0, 1.0, now=1000.0)
    loads.add(1, 1.0, now=1030.0)
    # Long after both, the windows since their first work weigh the same.
    assert loads.load(1, now=2000.0) / loads.load(0, now=2000.0) == pytest.approx(2.0)


def test_a_load_follows_a_change_in_both_directions() -> None:
    loads = ShardLoads(half_life=10.0)
    for step in range(1, 101):
        loads.add(0, 0.9, now=float(step))
        loads.add(1, 0.1, now=float(step))
    for step in range(101, 201):
        loads.add(0, 0.1, now=float(step))
        loads.add(1, 0.9, now=float(step))
    assert loads.load(0, now=200.0) == pytest.approx(0.1, abs=0.01)
    assert loads.load(1, now=200.0) == pytest.approx(0.9, abs=0.05)


def test_a_shard_that_has_just_arrived_has_its_load_at_once() -> None:
    loads = ShardLoads()
    loads.add(0, 0.5, now=7.0)
    loads.add(0, 0.5, now=7.5)
    assert loads.load(0, now=7.5) == pytest.approx(1.0, abs=0.01)
    assert loads.load(0, now=8.5) == pytest.approx(0.5, abs=0.02)


def test_work_without_a_duration_adds_no_load() -> None:
    loads = ShardLoads()
    loads.add(0, 0.0, now=7.0)
    assert loads.load(0, now=7.0) == loads.load(0, now=8.0) == 0.0


def test_shards_that_have_left_are_forgotten() -> None:
    loads = ShardLoads()
    loads.add(0, 1.0, now=1.0)
    loads.add(1, 1.0, now=1.0)
    loads.keep({1: "held"})
    assert loads.load(0, now=1.0) == 0.0
    assert loads.load(1, now=1.0) > 0.9
