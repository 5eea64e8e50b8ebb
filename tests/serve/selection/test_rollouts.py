"""Rollouts: which requests the candidate gets, and when it is rolled back."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.serve.selection.rollouts import Rollout, RolloutPlan, least_rate, point_of


def test_shares_are_stable_and_even() -> None:
    points = [point_of("m", b"%d" % k) for k in range(4000)]
    assert points == [point_of("m", b"%d" % k) for k in range(4000)]
    for share in (0.01, 0.1, 0.5):
        got = sum(p < share for p in points) / len(points)
        assert got == pytest.approx(share, abs=0.03)
    # Another rollout starts with other clients.
    other = [point_of("n", b"%d" % k) for k in range(4000)]
    both = sum(p < 0.5 and q < 0.5 for p, q in zip(points, other, strict=True))
    assert both / 4000 == pytest.approx(0.25, abs=0.03)


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_lower_bound_is_below_the_rate(bad: int, more: int) -> None:
    of = bad + more
    low = least_rate(bad, of)
    assert 0 <= low <= (bad / of if of else 0) + 1e-12
    if bad and more:
        assert least_rate(10 * bad, 10 * of) > low  # more is known


def run(
    plan: RolloutPlan, errors: float, slow: float, requests: int, seed: int
) -> Rollout:
    rng = random.Random(seed)
    rollout = Rollout(plan)
    for _ in range(requests):
        seconds = 1.0 if rng.random() < slow else 0.01
        rollout = rollout.after(failed=rng.random() < errors, seconds=seconds)
    return rollout


PLAN = RolloutPlan(shares=(0.1, 1.0), max_errors=0.05, slow=0.1, max_slow=0.1)


def test_a_bad_version_is_rolled_back_soon() -> None:
    for seed in range(20):
        assert "failed" in run(PLAN, 0.5, 0.0, 40, seed).back
        assert "took more than 0.1 s" in run(PLAN, 0.0, 0.6, 40, seed).back


def test_a_good_version_is_rarely_rolled_back() -> None:
    back = sum(bool(run(PLAN, 0.01, 0.03, 500, seed).back) for seed in range(20))
    assert back <= 1


def test_few_requests_decide_nothing() -> None:
    rollout = Rollout(RolloutPlan(shares=(0.1,), least=20))
    for _ in range(19):
        rollout = rollout.after(failed=True, seconds=0.0)
        assert rollout.share == 0.1
    assert rollout.after(failed=True, seconds=0.0).share == 0.0


def test_each_step_begins_after_hold_requests() -> None:
    plan = RolloutPlan(shares=(0.0, 0.5, 1.0), hold=30)
    rollout, shares = Rollout(plan), []
    assert rollout.shadowed
    for _ in range(100):
        shares.append(rollout.share)
        rollout = rollout.after(failed=False, seconds=0.0)
    assert [shares.count(s) for s in plan.shares] == [30, 30, 40]
    by_hand = Rollout(RolloutPlan(shares=(0.0, 1.0)))
    for _ in range(5000):
        by_hand = by_hand.after(failed=False, seconds=0.0)
    assert by_hand.share == 0.0 and len(by_hand.seen) == by_hand.plan.window
    assert by_hand.forward().share == by_hand.forward().forward().share == 1.0


def test_a_rollout_can_restart_after_a_rollback() -> None:
    rollout = Rollout(RolloutPlan(shares=(0.5, 1.0))).forward().rolled_back("by hand")
    assert (rollout.share, rollout.shadowed, rollout.back) == (0.0, False, "by hand")
    assert rollout.after(failed=False, seconds=0.0) == rollout
    again = rollout.forward()
    assert (again.share, again.back) == (0.5, "")
