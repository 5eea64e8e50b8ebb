"""Graphs divided over a mesh."""

from __future__ import annotations

import fxflow
from fxflow import P
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.sharded import shard
from tests.dataflow.sharding.networks import (
    accelerator,
    perceptron,
    perceptron_types,
    struct,
)


def test_each_variable_has_a_sharding() -> None:
    mesh = fxflow.make_mesh((8,), ("x",))
    made = fxflow.make_graph(perceptron)(perceptron_types(2048, 16384), struct(8, 2048))
    found = shard(made.graph, mesh, accelerator())
    bias, down, up, x = (s.spec for s in found.inputs)
    assert (up, bias, down, x) == (P(None, "x"), P("x"), P("x"), P())
    hidden = next(v for n in made.graph.nodes for v in n.outputs if v.aval.ndim == 2)
    assert found.sharding_of(hidden).spec == P(None, "x")
    assert found.sharding_of(made.graph.outputs[0]).spec == P()
    assert [s.spec for s in found.outputs] == [P()]
    assert not found.constraints
    ((collective, times),) = found.collectives
    assert collective.kind == "all-reduce" and times == 1


def test_inputs_that_are_divided_stay_so() -> None:
    mesh = fxflow.make_mesh((4,), ("x",))
    made = fxflow.make_graph(fnp.sin)(struct(8, 4))
    found = shard(made.graph, mesh, accelerator(), pinned={0: [0, 1]})
    assert found.inputs[0].spec == P(None, "x") == found.outputs[0].spec
