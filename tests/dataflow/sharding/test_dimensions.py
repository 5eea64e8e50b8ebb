"""Which axes of values are divided together."""

from __future__ import annotations

from typing import Any

import fxflow
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.dimensions import NONE, Dimensions, dimensions_of
from fxflow.dataflow.sharding.program import program_of
from tests.dataflow.sharding.networks import (
    perceptron,
    perceptron_step,
    perceptron_types,
    step,
    struct,
    token_types,
    transformer_types,
)


def dimensions(fun: Any, *args: Any) -> Dimensions:
    return dimensions_of(program_of(fxflow.make_graph(fun)(*args).graph))


def inputs(found: Dimensions) -> list[tuple[int, ...]]:
    return [found.axes[v] for v in found.program.inputs]


def test_a_perceptron_has_batch_width_and_hidden_units() -> None:
    found = dimensions(perceptron, perceptron_types(4, 8), struct(16, 4))
    (bias,), down, up, x = inputs(found)
    assert up == (x[1], bias) and down[0] == bias
    assert len({*up, *down, *x}) == 4  # the result's width is another one
    (out,) = found.program.outputs
    assert found.axes[out] == (x[0], down[1])


def test_in_a_residual_network_both_widths_are_one() -> None:
    found = dimensions(
        lambda p, x: x + perceptron(p, x), perceptron_types(4, 8), struct(16, 4)
    )
    _, down, up, x = inputs(found)
    assert down[1] == up[0] == x[1]


def test_gradients_have_the_dimensions_of_their_parameters() -> None:
    found = dimensions(
        perceptron_step, perceptron_types(4, 8), struct(16, 4), struct(16, 4)
    )
    new = [found.axes[v] for v in found.program.outputs[:3]]
    assert new == inputs(found)[:3]


def test_two_axes_of_a_value_stay_apart() -> None:
    def update(w: Any, x: Any) -> Any:
        return w - fxflow.grad(lambda w: fnp.sum((x + x @ w) ** 2))(w)

    found = dimensions(update, struct(8, 8), struct(4, 8))
    w, x = inputs(found)
    assert w[0] != w[1] and x[1] in w
    assert found.axes[found.program.outputs[0]] == w


def test_queries_and_keys_stay_apart() -> None:
    params = transformer_types(1, 16, 2, 32, 24, 8)
    found = dimensions(step, params, token_types(4, 9))
    for op, own in zip(found.program.ops, found.of_ops, strict=True):
        assert len(set(own)) == len(own), op.kind.name
    for row in found.axes:
        known = [a for a in row if a != NONE]
        assert len(set(known)) == len(known)


def test_lengths_divide_a_dimension_alike() -> None:
    found = dimensions(lambda x: fnp.sin(x).reshape(24), struct(6, 4))
    ((first, second),) = inputs(found)
    assert found.divisor[first] == 6 and found.divisor[second] == 4


def test_axes_of_length_one_are_not_dimensions() -> None:
    found = dimensions(fnp.sin, struct(1, 3))
    ((first, second),) = inputs(found)
    assert first == NONE and second == 0 and found.count == 1


def test_a_parameter_is_stored_with_its_gradient_and_state() -> None:
    def momentum(params: Any, memory: Any, x: Any, y: Any) -> Any:
        g = fxflow.grad(lambda p: fnp.mean((perceptron(p, x) - y) ** 2))(params)
        memory = fxflow.tree.map(lambda m, g: 0.9 * m + g, memory, g)
        return fxflow.tree.map(lambda p, m: p - m, params, memory), memory

    types = perceptron_types(4, 8)
    found = dimensions(momentum, types, types, struct(16, 4), struct(16, 4))
    program = found.program
    for i in range(3):
        values = program.inputs[i], program.inputs[3 + i], program.outputs[i]
        assert len({found.store_of[v] for v in values}) == 1
    groups = {found.store_of[program.inputs[i]] for i in range(3)}
    assert len(groups) == 3
