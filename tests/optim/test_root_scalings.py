"""AdaGrad, RMSProp and AdaDelta, against optax."""

import numpy as np
import pytest

from fxflow import optim
from fxflow.optim import root_scalings
from tests.optim import suite

MAKERS = {
    "adagrad": lambda: optim.adagrad(0.5),
    "rmsprop": lambda: optim.rmsprop(0.05),
    "adadelta": lambda: optim.adadelta(20.0),
}


@pytest.mark.parametrize("name", suite.recorded(root_scalings))
def test_as_optax(name: str) -> None:
    suite.as_optax(name)


@pytest.mark.parametrize("name", MAKERS)
def test_finds_the_minimum(name: str) -> None:
    suite.finds_the_minimum(MAKERS[name]())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", suite.DTYPES)
def test_types_stay(name: str, dtype: str) -> None:
    suite.types_stay(MAKERS[name](), dtype)


def test_complex_parameters() -> None:
    params = np.array([1 + 1j, -2j], np.complex64)
    for tx in (
        optim.rmsprop(0.1),
        optim.adagrad(0.1),
    ):
        updates, _ = tx.update(params, tx.init(params), params)
        assert updates.dtype == "complex64"
        # The size of a complex gradient counts, not its square.
        direction = np.asarray(updates) / params
        np.testing.assert_allclose(direction.imag, 0, atol=1e-6)
