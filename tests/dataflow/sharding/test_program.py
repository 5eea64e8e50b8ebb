"""Graphs as lists of operations."""

from __future__ import annotations

from typing import Any

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.program import LITERAL, Program, program_of
from tests.dataflow.sharding.networks import struct


def program(fun: Any, *args: Any) -> Program:
    return program_of(fxflow.make_graph(fun)(*args).graph)


def names(found: Program) -> list[str]:
    return [op.kind.name for op in found.ops]


def test_calls_are_written_out() -> None:
    @fxflow.jit
    def inner(x: Any) -> Any:
        return fnp.sin(x) * 2

    found = program(lambda x: fxflow.checkpoint(inner)(inner(x)), struct(3))
    assert names(found) == ["sin", "mul", "sin", "mul"]
    first, second = found.ops[0], found.ops[2]
    assert first.kind is second.kind and first.path != second.path
    assert found.ops[1].inputs[1] == LITERAL
    assert found.outputs == list(found.ops[-1].outputs)


def test_the_body_of_a_loop_runs_several_times() -> None:
    def f(x: Any, ws: Any) -> Any:
        return lax.scan(lambda c, w: (fnp.tanh(c @ w), fnp.sum(c)), x, ws)

    found = program(f, struct(2, 4), struct(5, 4, 4))
    runs = {op.kind.name: op.runs for op in found.ops}
    assert runs["dot_general"] == runs["tanh"] == 5
    assert runs["slice"] == runs["stack"] == 1
    carry, stacked = found.outputs
    assert found.avals[carry].shape == (2, 4) and found.avals[stacked].shape == (5,)
    copies = [op for op in found.ops if op.kind.name == "copy"]
    assert [op.outputs for op in copies] == [(carry,)] * 2


def test_other_loops_and_branches_are_inside() -> None:
    def f(x: Any) -> Any:
        x = lax.while_loop(lambda c: c[0] < 3, lambda c: fnp.exp(c), x)
        return lax.cond(x[0] > 0, fnp.sin, fnp.cos, x)

    found = program(f, struct(3))
    assert {"exp", "sin", "cos"} <= set(names(found))
    (out,) = found.outputs
    assert sum(out in op.outputs for op in found.ops) == 2


def test_variables_of_the_graph_are_known() -> None:
    graph = fxflow.make_graph(lambda x: fnp.sin(x))(struct(3)).graph
    found = program_of(graph)
    assert found.vars[graph.outputs[0]] == found.outputs[0]
    assert found.vars[graph.inputs[0]] == found.inputs[0]
