"""Networks to export: functions of parameters and an input."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from fxflow import nn, random

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class Net(NamedTuple):
    """A network with an example input."""

    apply: Callable[..., Any]
    params: Any
    inputs: tuple[Any, ...]


def example(name: str) -> ModuleType:
    """Imports a program of `examples/`."""
    pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))


def mnist() -> Net:
    """The convolutional network of `examples/mnist.py`."""
    module = example("mnist")
    params = module.cnn_init(random.key(0))
    return Net(module.cnn_apply, params, (random.uniform(random.key(1), (2, 28, 28)),))


def sentences() -> Net:
    """The network of `examples/sentences.py`, with few filters and words."""
    module = example("sentences")
    settings = module.Settings(filters=8)
    params = {
        **module.init(random.key(0), 12, settings),
        "vectors": [random.normal(random.key(1), (50, 12))],
    }

    def apply(params: Any, words: Any) -> Any:
        return module.logits(params, (), words, None, 0.0)

    words = np.random.default_rng(0).integers(0, 50, (3, 20)).astype(np.int32)
    return Net(apply, params, (words,))


def lstm() -> Net:
    """One step of a long short-term memory."""
    params = nn.lstm_cell_init(random.key(0), 5, 7)
    state, x = (
        random.normal(random.key(1), (2, 3, 7)),
        random.normal(random.key(2), (3, 5)),
    )
    return Net(nn.lstm_cell, params, ((state[0], state[1]), x))


def transformer() -> Net:
    """A block of `examples/sharded_transformer.py`, with embedding and read-out."""
    module = example("sharded_transformer")
    tokens = np.random.default_rng(0).integers(0, module.PRIME, (2, 6))
    return Net(
        module.apply, module.init(random.key(0), 1, 6), (tokens.astype(np.int32),)
    )


NETS: dict[str, Callable[[], Net]] = {
    "mnist": mnist,
    "sentences": sentences,
    "lstm": lstm,
    "transformer": transformer,
}
