"""Rprop and Signum, compared with optax."""

import pytest

from fxflow import optim
from fxflow.optim import signs
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(signs))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: optim.rprop(0.1), lambda: optim.signum(0.1)])
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())
