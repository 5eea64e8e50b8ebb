"""Compiled training steps of the examples copy no table that they are given."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import ShapeDtypeStruct, random
from tests.examples.programs import example

KEY = random.key(0)


@pytest.fixture
def program(request: Any) -> ModuleType:
    return example(request.param)


def copied(step: Any, init: Any, *args: Any) -> list[Any]:
    """The copies of arrays that are more than a few numbers."""
    state = fxflow.eval_shape(init, KEY)
    compiled = step.lower(state, *args).compile()
    assert any(a.donated for a in fxflow.tree.leaves(compiled.args_info, is_info))
    return [copy for copy in compiled.copies() if copy.nbytes > 256]


def is_info(leaf: Any) -> bool:
    return hasattr(leaf, "donated")


def ints(*shape: int) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "int32")


@pytest.mark.parametrize("program", ["word2vec"], indirect=True)
def test_word2vec(program: ModuleType) -> None:
    settings = program.Settings(size=16, stretch=128, drawn=16, window=2)
    step = program.make_step(np.ones(500), settings)
    around = ints(128 + 2 * settings.window)
    assert not copied(
        step, lambda key: program.init(key, 500, settings), KEY, around, around
    )


@pytest.mark.parametrize("program", ["language_model"], indirect=True)
def test_language_model(program: ModuleType) -> None:
    settings = program.Settings(vocabulary=400, units=24, batch=4, length=5, drawn=32)
    words = ints(settings.length, settings.batch)
    step = program.make_step(settings)
    found = copied(step, lambda key: program.init(key, settings), KEY, words, words)
    # XLA copies the matrix of the LSTM, in a program that both reads it and replaces
    # it. None of the tables, whose rows are written, and nothing of Adagrad's.
    assert {copy.label for copy in found} <= {
        "state.params['lstm'][0]['w']",
        "state.carry[0][0]",
        "state.carry[0][1]",
    }
