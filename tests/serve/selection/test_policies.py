"""Policies on bandits with known losses: their regret against proven bounds."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.serve.selection.policies import (
    POLICIES,
    Change,
    Choice,
    EpsilonGreedy,
    Exp3,
    Exp4,
    LossTotals,
    SelectionPolicy,
    Thompson,
    among,
    selection_policy,
)

MEANS = (0.5, 0.3, 0.45, 0.6, 0.7)
K = len(MEANS)
losses_ = st.floats(0.0, 1.0, allow_nan=False)


def play(
    policy: SelectionPolicy, means: list[tuple[float, ...]], seed: int
) -> tuple[list[int], LossTotals]:
    """Returns the models chosen for requests with given mean losses."""
    rng = random.Random(seed)
    state = LossTotals.start(len(means[0]))
    chosen = []
    for t, now in enumerate(means):
        choice = policy.choose(state, range(len(now)), key=seed << 32 | t)
        chosen.append(choice.model)
        loss = float(rng.random() < now[choice.model])
        state = state.after(policy.learn(state, choice, {choice.model: loss}, t))
    return chosen, state


def regret(policy: SelectionPolicy, rounds: int, seeds: int = 4) -> float:
    """Returns the expected regret against the best model, averaged over seeds."""
    total = 0.0
    for seed in range(seeds):
        chosen, _ = play(policy, [MEANS] * rounds, seed)
        total += sum(MEANS[k] - min(MEANS) for k in chosen)
    return total / seeds


def test_exp3_within_its_bound() -> None:
    found = regret(Exp3(explore=0.0, window=math.inf), 2000)
    bound = 2 * math.sqrt(2000 * K * math.log(K))
    assert found < bound
    # It learns: a uniform choice would have twice that regret.
    even = 2000 * (sum(MEANS) / K - min(MEANS))
    assert found < 0.75 * even


def test_exp3_against_an_adversary() -> None:
    """The best model at first is the worst later."""
    halves = [(0.2, 0.5)] * 1000 + [(0.9, 0.5)] * 1000
    lost = 0.0
    for seed in range(4):
        chosen, _ = play(Exp3(explore=0.0, window=math.inf), halves, seed)
        lost += sum(now[k] for now, k in zip(halves, chosen, strict=True)) / 4
    best = min(sum(now[k] for now in halves) for k in (0, 1))
    assert lost - best < 2 * math.sqrt(2000 * 2 * math.log(2))


def test_thompson_is_near_the_lowest_possible_regret() -> None:
    def divergence(p: float, q: float) -> float:
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    best = min(MEANS)
    # Lai and Robbins' bound, which Thompson reaches up to a constant (Agrawal, Goyal).
    bound = sum(
        (m - best) / divergence(m, best) * math.log(2000) for m in MEANS if m > best
    )
    assert regret(Thompson(window=math.inf), 2000) < 1.5 * bound + 10


def test_epsilon_greedy_pays_for_its_share() -> None:
    wide = (0.1, 0.6, 0.7, 0.8, 0.9)
    chosen, _ = play(EpsilonGreedy(explore=0.1, window=math.inf), [wide] * 4000, seed=0)
    paid = 0.1 * 4000 * (sum(wide) / K - min(wide))
    found = sum(wide[k] - min(wide) for k in chosen)
    assert 0.8 * paid < found < 1.2 * paid + 20


@given(st.lists(st.tuples(losses_, losses_, losses_), min_size=1, max_size=60))
def test_exp4_is_within_its_bound_for_any_losses(
    rounds: list[tuple[float, float, float]],
) -> None:
    policy, state, mixed = Exp4(window=math.inf), LossTotals.start(3), 0.0
    choice = policy.choose(state, (0, 1, 2), 0)
    for losses in rounds:
        weights = policy.weights(state)
        mixed += sum(w * loss for w, loss in zip(weights, losses, strict=True))
        state = state.after(policy.learn(state, choice, dict(enumerate(losses)), 0))
    best = min(sum(losses[k] for losses in rounds) for k in range(3))
    bound = math.sqrt(2 * len(rounds) * math.log(3)) + math.sqrt(math.log(3) / 8)
    assert mixed - best <= bound + 1e-9


@pytest.mark.parametrize("name", POLICIES)
def test_a_model_that_is_repaired_is_found_again(name: str) -> None:
    policy = selection_policy(name, window=200)
    good, bad = (0.2, 0.4), (0.9, 0.4)
    state, rng = LossTotals.start(2), random.Random(1)
    found = []
    for t, now in enumerate([good] * 1000 + [bad] * 1000 + [good] * 1000):
        choice = policy.choose(state, (0, 1), key=t)
        asked = (0, 1) if policy.runs_all else (choice.model,)
        losses = {k: float(rng.random() < now[k]) for k in asked}
        state = state.after(policy.learn(state, choice, losses, t))
        if t % 1000 == 999:
            found.append(policy.weights(state)[0])
    assert found[0] > 0.65 and found[1] < 0.35 and found[2] > 0.65


sums = st.floats(0.0, 1e6, allow_nan=False)


@given(
    st.sampled_from(sorted(POLICIES)),
    st.lists(st.tuples(sums, losses_), min_size=1, max_size=6),
    st.integers(0, 2**64 - 1),
    st.data(),
)
def test_weights_are_a_distribution(
    name: str, known: list[tuple[float, float]], key: int, data: st.DataObject
) -> None:
    policy = selection_policy(name)
    count = tuple(n for n, _ in known)
    state = LossTotals(count, tuple(n * share for n, share in known))
    weights = policy.weights(state)
    assert sum(weights) == pytest.approx(1.0) and min(weights) >= 0
    ready = data.draw(st.sets(st.sampled_from(range(len(known))), min_size=1))
    left = among(weights, ready)
    assert sum(left) == pytest.approx(1.0)
    assert all(left[k] == 0 for k in range(len(known)) if k not in ready)
    choice = policy.choose(state, ready, key)
    assert choice == policy.choose(state, ready, key)  # the key decides
    assert choice.model in (ready if not policy.runs_all else {-1})
    assert 0 < choice.probability <= 1 + 1e-9


@given(st.lists(st.tuples(sums, losses_), min_size=3, max_size=3))
def test_exp3_estimates_are_right_on_average(known: list[tuple[float, float]]) -> None:
    policy = Exp3(explore=0.1, window=math.inf)
    state = LossTotals(tuple(n for n, _ in known), tuple(n * s for n, s in known))
    losses = (0.2, 0.9, 0.5)
    mean = [0.0, 0.0, 0.0]
    for k, p in enumerate(policy.weights(state)):
        change = policy.learn(state, Choice(k, p, (0, 1, 2)), {k: losses[k]}, 0)
        mean = [a + p * b for a, b in zip(mean, change.loss, strict=True)]
    assert mean == pytest.approx(losses)


@pytest.mark.parametrize("name", ["exp3", "exp4"])
def test_models_that_are_not_ready_keep_their_weight(name: str) -> None:
    policy = selection_policy(name, rate=0.3, window=math.inf)
    state = LossTotals.start(3)
    for t in range(200):
        choice = policy.choose(state, (0, 1), t)
        asked = (0, 1) if policy.runs_all else (choice.model,)
        # Both are equally bad: the model that is not ready keeps its third.
        state = state.after(policy.learn(state, choice, dict.fromkeys(asked, 0.7), t))
    slept = state.loss[2]
    mean = (state.loss[0] + state.loss[1]) / 2
    assert slept == pytest.approx(mean, rel=0.15)


def test_thompson_rounds_fractional_losses_at_random() -> None:
    policy, state = Thompson(window=math.inf), LossTotals.start(2)
    lost = 0.0
    for key in range(1000):
        lost += policy.learn(state, Choice(0, 1.0, (0, 1)), {0: 0.3}, key).loss[0]
    assert lost == pytest.approx(300, abs=50)


changes = st.builds(
    Change,
    st.floats(0.5, 1.0),
    st.tuples(losses_, losses_),
    st.tuples(losses_, losses_),
)


@given(changes, changes, changes)
def test_changes_compose(a: Change, b: Change, c: Change) -> None:
    state = LossTotals((3.0, 4.0), (1.0, 2.0))
    one_by_one = state.after(a).after(b).after(c)
    for whole in (a.then(b).then(c), a.then(b.then(c))):
        at_once = state.after(whole)
        assert at_once.counts == pytest.approx(one_by_one.counts)
        assert at_once.loss == pytest.approx(one_by_one.loss)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "best"}, "'exp4', 'epsilon-greedy' or 'thompson', got 'best'"),
        ({"name": "exp3", "rate": -1.0}, "rate must be above 0"),
        ({"name": "exp3", "rate": math.nan}, "rate must be above 0"),
        ({"name": "exp4", "explore": 0.1}, "has no option 'explore'; options: 'rate'"),
        ({"name": "exp3", "explore": 2.0}, "explore must be from 0"),
        ({"name": "exp4", "window": 0.5}, "window must be at least 1 loss"),
    ],
)
def test_invalid_options_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        selection_policy(**options)
