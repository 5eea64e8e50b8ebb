"""What the tests of all passes need: arrays, and graphs before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import make_graph
from fxflow.core.ir.graph import Graph


def values(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers, float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def names(graph: Graph) -> list[str]:
    """The operations of a graph, in order."""
    return [node.primitive.name for node in graph.nodes]


def before_and_after(
    rewrite: Callable[[Graph], Graph],
    f: Callable[..., Any],
    *args: Any,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> tuple[Graph, Graph]:
    """The graph of a function before and after a pass; it computes the same.

    Args:
      rewrite: the pass.
      f: the function.
      *args: what it is traced and called with.
      rtol: how much the numbers may differ; to the bit if nothing is said.
      atol: likewise.
    """
    traced = make_graph(f)(*args)
    graph = traced.graph
    new = rewrite(graph)
    new.check()
    assert new.out_avals == graph.out_avals
    given = [*traced.consts, *map(fnp.asarray, fxflow.tree.leaves(args))]
    for old, out in zip(graph(*given), new(*given), strict=True):
        np.testing.assert_allclose(np.asarray(out), np.asarray(old), rtol, atol)
    return graph, new
