"""Constraints in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import NamedSharding, P, lax
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.constraints import Constraint, constrain
from tests.dataflow.sharding.networks import struct


def test_operands_and_results_are_constrained() -> None:
    where = NamedSharding(fxflow.make_mesh((2,), ("x",)), P("x"))
    graph = fxflow.make_graph(lambda x: fnp.cos(fnp.sin(x)))(struct(4)).graph
    found = constrain(
        graph,
        [
            Constraint((0,), ~0, (where,), False),
            Constraint((1,), 0, (where, where), True),
        ],
    )
    names = [node.primitive.name for node in found.nodes]
    assert names == [
        "sin",
        "device_put",
        "optimization_barrier",
        "device_put",
        "device_put",
        "cos",
    ]
    found.check()
    (out,) = found.evaluate(fnp.ones(4))
    np.testing.assert_allclose(out, np.cos(np.sin(np.ones(4))), rtol=1e-6)


def test_operations_in_loops_are_constrained() -> None:
    where = NamedSharding(fxflow.make_mesh((2,), ("x",)), P("x"))

    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (fnp.sin(c), None), x, None, length=2)[0]

    graph = fxflow.make_graph(f)(struct(4)).graph
    at = [n.primitive.name for n in graph.nodes].index("scan")
    found = constrain(graph, [Constraint((at, 0, 0), 0, (where,), False)])
    found.check()
    body = found.nodes[at].params["graph"]
    assert [n.primitive.name for n in body.nodes] == ["device_put", "sin"]
    assert len(graph.nodes[at].params["graph"].nodes) == 1


def test_without_constraints_the_graph_is_the_same() -> None:
    graph = fxflow.make_graph(fnp.sin)(struct(4)).graph
    assert constrain(graph, []) is graph
