"""Steps of the size of layers, against optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.optim import layerwise
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(layerwise))
def test_as_optax(name: str) -> None:
    suite.as_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.novograd(0.1),
        lambda: optim.fromage(0.1),
        lambda: optim.scale_by_distance_over_gradients(),
    ],
)
def test_step_is_compiled(make) -> None:
    suite.step_is_compiled(make())


def test_updates_have_the_dtype_of_gradients() -> None:
    # optax's have `mu_dtype`.
    tx, p = optim.scale_by_novograd(mu_dtype="bfloat16"), fnp.ones(2)
    updates, state = tx.update(p, tx.init(p), p)
    assert (updates.dtype, state.mu.dtype) == ("float32", "bfloat16")
