"""The graph of a dataflow function shows how it is cut."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import dataflow, lax
from fxflow import numpy as fnp
from fxflow.dataflow import on


def f(x: Any) -> Any:
    with on("/device:cpu:1"):
        y = fnp.sin(x)
    with on("/device:cpu:2"):
        return fnp.cos(y) + 1, y


def test_fragments_send_and_receive() -> None:
    x = fnp.ones(3)
    graph = fxflow.make_graph(dataflow.jit(f))(x)
    assert str(graph).splitlines() == [
        "graph f(a: f32[3]) {",
        "  fragment 0 on cpu:1 {",
        "    b: f32[3] = sin a",
        "    send b to cpu:2",
        "  }",
        "  fragment 1 on cpu:2 {",
        "    b: f32[3] = recv from cpu:1, 12 bytes",
        "    c: f32[3] = cos b",
        "    d: f32[3] = add c 1.0:f32[]",
        "  }",
        "  return d, b",
        "}",
    ]
    assert graph.to_text(lines=True).count("test_texts.py:") == 3
    fxflow.tree.map(np.testing.assert_allclose, graph(x), f(x))


def test_loops_and_names_of_several_letters() -> None:
    def g(x: Any) -> Any:
        for _ in range(30):
            x = fnp.sin(x)
        with on("/device:cpu:1"):
            x, _ = lax.scan(lambda c, v: (c + fnp.cos(v), v), 0.0, x)
        with on("/device:cpu:2"):
            return fnp.tan(x)

    text = str(fxflow.make_graph(dataflow.jit(g))(fnp.ones(3)))
    assert text.count("send ") == text.count(" = recv from ")
    assert text.count("= sin ") == 30 and "      graph = graph " in text
    assert text.count("{") == text.count("}")
