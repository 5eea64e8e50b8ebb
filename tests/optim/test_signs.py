"""Rprop and Signum, against optax."""

import pytest

from fxflow import optim
from fxflow.optim import signs
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(signs))
def test_as_optax(name: str) -> None:
    suite.as_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: optim.rprop(0.1), lambda: optim.signum(0.1)])
def test_step_is_compiled(make) -> None:
    suite.step_is_compiled(make())
