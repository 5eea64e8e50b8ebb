"""Groups can be run one after the other, and keep what can run side by side apart."""

from __future__ import annotations

import random

import pytest

from fxflow.dataflow.groups import Items, grouped


def items(preds: list[list[int]], seconds: list[float] | None = None) -> Items:
    count = len(preds)
    return Items(
        seconds or [1.0] * count,
        preds,
        [1] * count,
        [0] * count,
        [-1] * count,
        [1.0] * count,
    )


def random_items(seed: int) -> Items:
    rng = random.Random(seed)
    count = rng.randint(1, 200)
    reach = rng.choice([3, 30])
    preds = [
        sorted({rng.randrange(max(0, v - reach), v) for _ in range(rng.randint(0, 3))})
        if v
        else []
        for v in range(count)
    ]
    return Items(
        [rng.expovariate(1) * rng.choice([0.01, 1]) for _ in range(count)],
        preds,
        [rng.choice([7, 7, 7, 1, 2, 3]) for _ in range(count)],
        [rng.choice([0, 0, 1]) for _ in range(count)],
        [rng.choice([-1] * 20 + [0, 1]) for _ in range(count)],
        [rng.random() for _ in range(count)],
    )


@pytest.mark.parametrize("seed", range(20))
def test_values_only_pass_to_later_groups(seed: int) -> None:
    given = random_items(seed)
    for least, most in ((0.01, 200), (0.1, 20), (1.0, 5)):
        number = grouped(given, least, most=most)
        masks = [-1] * (max(number) + 1)
        for v, preds in enumerate(given.preds):
            assert all(number[u] <= number[v] for u in preds), seed
            masks[number[v]] &= given.masks[v]
        assert all(masks), seed  # each group has a device on which it can run


def test_a_chain_is_one_group() -> None:
    assert grouped(items([[], [0], [1], [2]]), 0.5) == [0, 0, 0, 0]


def test_branches_stay_apart() -> None:
    #   0 → 1 → 2 ↘
    #     ↘ 3 → 4 → 5
    number = grouped(items([[], [0], [1], [0], [3], [2, 4]]), 0.5)
    assert number[1] == number[2] != number[3] == number[4]
    assert number[0] not in number[1:5]


def test_cheap_items_go_with_what_comes_before() -> None:
    number = grouped(items([[], [0], [1]], [1.0, 0.01, 0.01]), 0.5)
    assert number == [0, 0, 0]
    # Through a cheap one, two that are not can be reached: these stay apart.
    number = grouped(items([[], [0], [0], [1], [2]], [1, 0.01, 0.01, 1, 1]), 0.5)
    assert number[3] != number[4] and number[0] not in number[3:]


def test_a_group_holds_no_more_than_there_is_room_for() -> None:
    chain = items([[], [0], [1], [2]])
    assert len(set(grouped(chain, 0.5, room=2.0))) == 2


def test_what_can_run_in_different_places_is_not_merged() -> None:
    chain = items([[], [0], [1], [2]])
    chain.masks = [1, 1, 2, 2]
    assert grouped(chain, 0.5) == [0, 0, 1, 1]
    chain.masks, chain.kinds = [3] * 4, [0, 1, 1, 1]  # fastest on another device
    assert grouped(chain, 0.5) == [0, 1, 1, 1]


def test_items_side_by_side_are_merged_to_the_number_that_is_wanted() -> None:
    assert len(set(grouped(items([[] for _ in range(100)]), 0.5, most=10))) == 10
