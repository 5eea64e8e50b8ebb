"""Steps of the size of layers, against optax."""

import pytest

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
