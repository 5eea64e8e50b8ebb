"""What is decided once."""

from __future__ import annotations

from typing import Any

import fxflow
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.dimensions import Dimensions, dimensions_of
from fxflow.dataflow.sharding.program import program_of
from fxflow.dataflow.sharding.tying import tied
from tests.dataflow.sharding.networks import (
    step,
    struct,
    token_types,
    transformer_types,
)


def dimensions(fun: Any, *args: Any) -> Dimensions:
    return dimensions_of(program_of(fxflow.make_graph(fun)(*args).graph))


def decisions(layers: int) -> int:
    params = transformer_types(layers, 16, 2, 32, 24, 8)
    return len(set(tied(dimensions(step, params, token_types(4, 9)))))


def test_more_layers_take_the_same_decisions() -> None:
    assert decisions(2) == decisions(5)


def test_what_is_used_together_is_decided_apart() -> None:
    def chain(ws: Any, x: Any) -> Any:
        for w in ws:
            x = fnp.tanh(x @ w)
        return x

    found = dimensions(chain, [struct(8, 8)] * 4, struct(4, 8))
    number = tied(found)
    for own in found.of_ops:
        named = [number[d] for d in own]
        assert len(set(named)) == len(named)


def test_layers_of_other_sizes_are_decided_apart() -> None:
    def residual(ws: Any, x: Any) -> Any:
        for up, down in ws:
            x = x + fnp.tanh(x @ up) @ down
        return x

    types = [(struct(8, n), struct(n, 8)) for n in (16, 16, 32)]
    found = dimensions(residual, types, struct(4, 8))
    number = tied(found)
    hidden = [number[found.axes[v][1]] for v in found.program.inputs[0:6:2]]
    assert hidden[0] == hidden[1] != hidden[2]
