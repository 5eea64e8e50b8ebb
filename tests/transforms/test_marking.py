"""Marks lead names in programs back to operations."""

from __future__ import annotations

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, make_graph
from fxflow.transforms.marking import OTHER, Marks


def test_numbers_of_nodes_and_of_nodes_inside():
    def f(x):
        with fxflow.named_scope("outer"):
            return lax.scan(lambda c, _: (fnp.sin(c), None), x, length=2)[0] * 2

    marks = Marks(make_graph(f)(1.0).graph)
    names = [operation.name for operation in marks.operations]
    assert names == ["scan", "sin", "mul", OTHER.name]
    assert marks.operations[0].scope == ("outer",)
    assert all("test_marking.py" in o.line for o in marks.operations[:3])
    assert marks.graph.nodes[-1].scope == ("outer", "#2")
    assert marks.number("jit_f/outer/#0/#1/sin") == 1
    assert marks.number("jit_f/outer/scan") == 3
