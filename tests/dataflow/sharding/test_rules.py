"""Which axes of operations are one dimension."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.rules import Rule, identity_rule, rule_of, sliced_rule
from tests.dataflow.sharding.networks import struct


def rule(fun: Any, *args: Any, name: str) -> Rule:
    """The rule of the operation of a name in a function's graph."""
    graph = fxflow.make_graph(fun)(*args).graph
    (node,) = (n for n in graph.nodes if n.primitive.name == name)
    avals, outs = [a.aval for a in node.inputs], [v.aval for v in node.outputs]
    return rule_of(node.primitive, avals, outs, node.params)


def test_a_product_sums_over_what_it_contracts() -> None:
    found = rule(
        lambda x, y: fnp.einsum("bij,bjk->bik", x, y),
        struct(2, 3, 4),
        struct(2, 4, 5),
        name="dot_general",
    )
    (x, y), (out,) = found.operands, found.results
    assert x[0] == y[0] == out[0] and x[1] == out[1] and y[2] == out[2]
    assert x[2] == y[1] and found.summed == {x[2]}
    assert not found.is_pointwise


def test_elementwise_operations_are_pointwise() -> None:
    found = rule(fnp.maximum, struct(3, 4), struct(3, 4), name="max")
    assert found == Rule(((0, 1), (0, 1)), ((0, 1),), 2, frozenset())
    assert found.is_pointwise
    assert rule(lambda x: x * 2.0, struct(3), name="mul").is_pointwise


def test_a_reduction_sums_over_its_axes() -> None:
    found = rule(lambda x: fnp.sum(x, 1), struct(3, 4), name="reduce_sum")
    assert found.results == ((found.operands[0][0],),)
    assert found.summed == {found.operands[0][1]}


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ((6, 4), (24,), {(0, 0)}),
        ((24,), (6, 4), {(0, 0)}),
        ((2, 12), (2, 3, 4), {(0, 0), (1, 1)}),
        ((5, 1, 4), (5, 4), {(0, 0), (2, 1)}),
    ],
)
def test_a_reshape_keeps_the_first_part_of_an_axis(
    old: Any, new: Any, pairs: set[tuple[int, int]]
) -> None:
    found = rule(lambda x: x.reshape(new), struct(*old), name="reshape")
    (x,), (out,) = found.operands, found.results
    same = {
        (i, j)
        for i, a in enumerate(x)
        for j, b in enumerate(out)
        if a is not None and a == b
    }
    assert same == pairs


def test_a_lookup_sums_over_the_rows_of_its_table() -> None:
    found = rule(
        lambda t, i: t[i], struct(100, 8), struct(3, 5, dtype="int32"), name="gather"
    )
    (table, indices), (out,) = found.operands, found.results
    assert table[0] in found.summed and table[1] == out[2]
    assert indices[:2] == out[:2]


def test_its_transpose_sums_over_the_indices() -> None:
    def gradient(i: Any, ct: Any) -> Any:
        return fnp.zeros((100, 8)).at[i].add(ct)

    found = rule(gradient, struct(3, dtype="int32"), struct(3, 8), name="scatter_add")
    (x, indices, updates), (out,) = found.operands, found.results
    assert x == out and updates[1] == out[1]
    assert found.summed == {indices[0]} == {updates[0]}


def test_writing_sums_nothing() -> None:
    found = rule(
        lambda x, i, v: x.at[i].set(v),
        struct(10, 8),
        struct(3, dtype="int32"),
        struct(3, 8),
        name="scatter",
    )
    assert not found.summed and found.operands[1][0] is None


def test_a_convolution_has_batch_and_features() -> None:
    def f(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(x, k, (1, 1), "SAME")

    found = rule(f, struct(8, 3, 9, 9), struct(4, 3, 3, 3), name="conv_general_dilated")
    (x, k), (out,) = found.operands, found.results
    assert x[0] == out[0] and k[0] == out[1]
    assert x[1] == k[1] and found.summed == {x[1]}
    assert x[2:] == out[2:] == (None, None)


def test_what_works_along_an_axis_needs_it_whole() -> None:
    sort = rule(lambda x: fnp.sort(x, 1), struct(3, 4), name="sort")
    assert sort.operands[0][1] is None and sort.operands[0][0] is not None
    flip = rule(lambda x: fnp.flip(x, 0), struct(3, 4), name="rev")
    assert flip.operands[0][0] is None and flip.operands[0][1] is not None
    fft = rule(lambda x: fnp.fft.fft(x), struct(3, 4, dtype="complex64"), name="fft")
    assert fft.operands[0][1] is None and fft.operands[0][0] is not None


def test_a_slice_of_an_axis_needs_it_whole() -> None:
    found = rule(lambda x: x[:, 1:3], struct(3, 4), name="slice")
    assert found.operands[0] == (0, None) and found.results[0] == (0, None)


def test_new_axes_are_dimensions() -> None:
    found = rule(
        lambda x: fnp.broadcast_to(x, (5, 3)), struct(3), name="broadcast_in_dim"
    )
    assert None not in found.results[0] and found.num_dims == 2
    assert not found.summed


def test_rules_of_loops() -> None:
    assert identity_rule((2, 3)).is_pointwise
    assert identity_rule((2, 1, 3)).results == ((0, None, 1),)
    assert sliced_rule((5, 2, 3)) == Rule(((None, 0, 1),), ((0, 1),), 2, frozenset())
    assert sliced_rule((5, 2), stacks=True).results == ((None, 0),)
