"""Optimizers without a learning rate, compared with optax."""

import pytest

from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim.contrib import distances
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(distances))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.contrib.dadapt_adamw(),
        lambda: optim.contrib.prodigy(),
        lambda: optim.contrib.dog(),
        lambda: optim.contrib.dowg(),
        lambda: optim.contrib.mechanize(optim.sgd(1.0)),
    ],
)
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())


def test_unknown_kinds_of_first_steps_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"dog: init_step\[0\] must be"):
        optim.contrib.dog(init_step=("speed", 1.0))


def test_arguments_must_be_pairs_of_numbers() -> None:
    with pytest.raises(ArgumentError, match="dog: init_step must have two elements"):
        optim.contrib.dog(init_step=("distance",))
    with pytest.raises(ArgumentError, match="prodigy: betas must be two numbers"):
        optim.contrib.prodigy(betas=(0.9, "a"))
