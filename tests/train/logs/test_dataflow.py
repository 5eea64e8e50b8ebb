"""Graphs for TensorBoard: scopes, edges and shapes."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.train import logs
from fxflow.train.logs.dataflow import graph_def

proto = pytest.importorskip(
    "tensorboardX", reason="pip install 'fxflow[tensorboard]'"
).proto


def nodes_of(function: Any, *args: Any) -> dict[str, Any]:
    found = graph_def(proto, logs.Graph(function, *args).graph)
    names = [node.name for node in found.node]
    assert len(set(names)) == len(names)
    for node in found.node:
        for name in node.input:
            assert name.split(":")[0] in names
    return {node.name: node for node in found.node}


def sizes(node: Any) -> list[list[int]]:
    shapes = node.attr["_output_shapes"].list.shape
    return [[dim.size for dim in shape.dim] for shape in shapes]


def test_scopes_and_shapes_are_converted() -> None:
    def model(x: Any) -> Any:
        with fxflow.named_scope("layer"):
            with fxflow.named_scope("inner/odd"):
                x = fnp.sin(x)
            x = x * 2
        return fnp.sum(x)

    nodes = nodes_of(model, fnp.ones((2, 3)))
    assert list(nodes["layer/inner_odd/sin"].input) == ["argument_0"]
    assert next(iter(nodes["layer/mul"].input)) == "layer/inner_odd/sin"
    assert sizes(nodes["layer/mul"]) == [[2, 3]] and sizes(nodes["result_0"]) == [[]]
    assert b"test_dataflow.py" in nodes["layer/mul"].attr["source"].s


def test_nodes_with_several_results_are_converted() -> None:
    nodes = nodes_of(lambda x: lax.top_k(x, 2), fnp.arange(5.0))
    assert sizes(nodes["top_k"]) == [[2], [2]]
    assert list(nodes["result_1"].input) == ["top_k:1"]


def test_calls_and_bodies_become_scopes() -> None:
    inner = fxflow.jit(lambda x: fnp.cos(x))

    def model(x: Any) -> Any:
        def body(carry: Any, y: Any) -> Any:
            return inner(carry) + y, carry

        return lax.scan(body, x[0], x)[0] + inner(x[0])

    nodes = nodes_of(model, fnp.ones(3))
    assert any(name.startswith("scan/") and name.endswith("/cos") for name in nodes)
    assert "scan/scan" in nodes


def test_the_gradient_of_a_step_is_converted() -> None:
    def loss(params: Any, x: Any) -> Any:
        with fxflow.named_scope("dense"):
            return fnp.mean(fnp.tanh(x @ params["w"] + params["b"]) ** 2)

    params = {"w": fnp.ones((3, 4)), "b": fnp.zeros(4)}
    nodes = nodes_of(fxflow.value_and_grad(loss), params, fnp.ones((5, 3)))
    assert any(name.startswith("dense/") for name in nodes)
    assert len([name for name in nodes if name.startswith("result_")]) == 3
