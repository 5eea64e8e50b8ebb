"""What the tests of all passes need: arrays, and graphs before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import config, make_graph
from fxflow.core.ir.graph import Graph


def values(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers, float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def names(graph: Graph) -> list[str]:
    """The operations of a graph, in order."""
    return [node.primitive.name for node in graph.nodes]


def assert_same(got: Any, want: Any, tolerance: float = 0.0) -> None:
    """Infinities and nan in the same elements, finite numbers near one another.

    Args:
      got: pytree of arrays.
      want: likewise.
      tolerance: relative to the largest finite number of each array, since sums of
        large terms may be small; 0: to the bit.
    """
    for a, b in zip(fxflow.tree.leaves(got), fxflow.tree.leaves(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        largest = np.abs(np.where(np.isfinite(b), b, 0)).max(initial=0)
        np.testing.assert_allclose(a, b, 0, tolerance * largest)


def before_and_after(
    rewrite: Callable[[Graph], Graph],
    f: Callable[..., Any],
    *args: Any,
    tolerance: float = 0.0,
    wide: bool = False,
) -> tuple[Graph, Graph]:
    """The graph of a function before and after a pass; it computes the same.

    Args:
      rewrite: the pass.
      f: the function.
      *args: what it is traced and called with.
      tolerance: how much the numbers may differ, as of `assert_same`.
      wide: compare the numbers of the same function in 64 bits, where rounding, which
        depends on the processor, is far from what a wrong pass would change.
    """
    traced = make_graph(f)(*args)
    graph = traced.graph
    new = rewrite(graph)
    new.check()
    assert new.out_avals == graph.out_avals
    if wide:
        with config.override(x64=True):
            before_and_after(rewrite, f, *map(_widened, args), tolerance=tolerance)
        return graph, new
    given = [*traced.consts, *map(fnp.asarray, fxflow.tree.leaves(args))]
    assert_same(new(*given), graph(*given), tolerance)
    return graph, new


def _widened(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype == np.float32 else x
