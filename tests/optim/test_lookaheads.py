"""Lookahead, compared with optax."""

import pytest

from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim import lookaheads
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(lookaheads))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


def test_other_parameters_than_lookahead_params_are_refused() -> None:
    tx = optim.lookahead(optim.sgd(0.1), 2, 0.5)
    with pytest.raises(ArgumentError, match="needs LookaheadParams"):
        tx.init({"w": 1.0})
    with pytest.raises(ArgumentError, match="sync_period must be positive, got 0"):
        optim.lookahead(optim.sgd(0.1), 0, 0.5)
