"""Schedule-free optimizers, compared with optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.optim.contrib import scheduleless
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(scheduleless))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.contrib.schedule_free_sgd(0.1),
        lambda: optim.contrib.schedule_free_adamw(0.1, 3),
    ],
)
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())


def test_eval_params_are_the_average_of_iterates() -> None:
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


def test_steps_are_weighted_by_their_own_rates() -> None:
    # As in the paper, z moves by γ_t, with weight γ_t² in the mean (optax: γ_{t+1}²).
    rates = [0.0, 0.1, 0.2, 0.3, 0.3]
    schedule = lambda count: fnp.array(rates)[count]
    tx = optim.contrib.schedule_free(optim.sgd(schedule), schedule, 0.9)
    y = fnp.ones(1)
    state, z, x, total = tx.init(y), 1.0, 1.0, 0.0
    for rate in rates:
        g = float(y[0]) * 2
        updates, state = tx.update(fnp.array([g]), state, y)
        y = optim.apply_updates(y, updates)
        z, total = z - rate * g, total + rate**2
        share = rate**2 / total if total else 0.0
        x = (1 - share) * x + share * z
        assert float(state.z[0]) == pytest.approx(z, rel=1e-5)
        assert float(y[0]) == pytest.approx(0.9 * x + 0.1 * z, rel=1e-5)
