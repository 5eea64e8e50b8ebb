"""Layer-wise optimizers, compared with optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.optim import layerwise
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(layerwise))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.novograd(0.1),
        lambda: optim.fromage(0.1),
        lambda: optim.scale_by_distance_over_gradients(),
    ],
)
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())


def test_updates_have_the_dtype_of_gradients() -> None:
    # In optax they have `mu_dtype`.
    tx, p = optim.scale_by_novograd(mu_dtype="bfloat16"), fnp.ones(2)
    updates, state = tx.update(p, tx.init(p), p)
    assert (updates.dtype, state.mu.dtype) == ("float32", "bfloat16")
