"""Schedule-free optimizers, against optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.optim.contrib import scheduleless
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(scheduleless))
def test_as_optax(name: str) -> None:
    suite.as_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.contrib.schedule_free_sgd(0.1),
        lambda: optim.contrib.schedule_free_adamw(0.1, 3),
    ],
)
def test_step_is_compiled(make) -> None:
    suite.step_is_compiled(make())


def test_average_is_what_one_keeps() -> None:
    tx = optim.contrib.schedule_free_sgd(0.5)
    p = fnp.ones(1)
    state = tx.init(p)
    seen = []
    for _ in range(3):
        u, state = tx.update(fnp.ones(1), state, p)
        p = optim.apply_updates(p, u)
        seen.append(float(state.z[0]))
    mean = optim.contrib.schedule_free_eval_params(state, p)
    assert float(mean[0]) == pytest.approx(sum(seen) / 3, abs=1e-6)
