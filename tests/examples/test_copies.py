"""Compiled training steps of the examples copy no table that they are given."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import ShapeDtypeStruct, random

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
KEY = random.key(0)


@pytest.fixture
def example(request: Any) -> ModuleType:
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(request.param)
    finally:
        sys.path.remove(str(EXAMPLES))


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


@pytest.mark.parametrize("example", ["word2vec"], indirect=True)
def test_word2vec(example: ModuleType) -> None:
    settings = example.Settings(size=16, stretch=128, drawn=16, window=2)
    step = example.make_step(np.ones(500), settings)
    around = ints(128 + 2 * settings.window)
    assert not copied(
        step, lambda key: example.init(key, 500, settings), KEY, around, around
    )


@pytest.mark.parametrize("example", ["language_model"], indirect=True)
def test_language_model(example: ModuleType) -> None:
    settings = example.Settings(vocabulary=400, units=24, batch=4, length=5, drawn=32)
    words = ints(settings.length, settings.batch)
    step = example.make_step(settings)
    found = copied(step, lambda key: example.init(key, settings), KEY, words, words)
    # XLA copies the matrix of the LSTM, in a program that both reads it and replaces
    # it. None of the tables, whose rows are written, and nothing of Adagrad's.
    assert {copy.label for copy in found} <= {
        "state.params['lstm'][0]['w']",
        "state.carry[0][0]",
        "state.carry[0][1]",
    }
