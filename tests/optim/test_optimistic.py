"""Optimistic steps, compared with optax, and in a game."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim import optimistic
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(optimistic))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


def test_optimistic_gradient_descent_converges_in_a_game() -> None:
    # min over x, max over y of x * y: gradient descent diverges.
    def norm(tx) -> float:
        point = fnp.array([1.0, 1.0])
        state = tx.init(point)
        for _ in range(300):
            g = fnp.array([point[1], -point[0]])
            updates, state = tx.update(g, state, point)
            point = optim.apply_updates(point, updates)
        return float(fnp.linalg.norm(point))

    assert norm(optim.optimistic_gradient_descent(0.2)) < 0.1
    assert norm(optim.sgd(0.2)) > 100


def test_optimistic_adam_refuses_schedules() -> None:
    with pytest.raises(ArgumentError, match="learning_rate must be a number, such"):
        optim.optimistic_adam(optim.constant_schedule(0.1))


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: optim.optimistic_adam_v2(0.1)])
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())
