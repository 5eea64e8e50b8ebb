"""Flows, matchings of least weight, and several shortest paths, on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import natural
from fxflow.lax.callbacks import pure_callback
from fxflow.scipy.sparse.csgraph.graphs import _graph, _module, matrix_of
from fxflow.scipy.sparse.csgraph.traversals import _vertex
from fxflow.sparse.array import SparseArray
from fxflow.sparse.interchange import scipy_array
from fxflow.sparse.pattern import union


class MaximumFlow(NamedTuple):
    """What `maximum_flow` returns.

    Attributes:
      flow_value: int32[]: the flow from source to sink.
      flow: sparse array of int32 with the flow of each edge, and minus it of the edge
        back.
    """

    flow_value: Array
    flow: SparseArray


def maximum_flow(
    csgraph: Any, source: int, sink: int, *, method: str = "dinic"
) -> MaximumFlow:
    """Returns the maximum flow from one vertex to another.

    Args:
      csgraph: (n, n) sparse or dense array of int32 capacities; they may be traced.
      source: the vertex where the flow begins.
      sink: the vertex where it ends, another one.
      method: "dinic" or "edmonds_karp".

    Returns:
      A `MaximumFlow`: the value, and the flow of each edge.

    Raises:
      ArgumentError: `csgraph` is not a matrix, there are no such vertices, or the
        method is unknown.
      DtypeError: the capacities are not integers of at most 32 bits.
      ShapeError: `csgraph` is not square.
      ImportError: SciPy is not installed.

    Example:
      >>> A = fnp.array([[0, 2, 3], [0, 0, 1], [0, 0, 0]])
      >>> maximum_flow(A, 0, 2).flow_value
      Array(4, dtype=int32)

    Source: `scipy.sparse.csgraph.maximum_flow`; Dinic 1970, Edmonds and Karp 1972.
    """
    name = "maximum_flow"
    if method not in ("dinic", "edmonds_karp"):
        raise ArgumentError(
            f'{name}: method must be "dinic" or "edmonds_karp", got {method!r}'
        )
    A = _graph(name, csgraph).sum_duplicates()
    n = A.shape[0]
    start, end = (
        _vertex(name, k, v, n) for k, v in (("source", source), ("sink", sink))
    )
    if start == end:
        raise ArgumentError(f"{name}: source and sink must differ, got {start} twice")
    if np.dtype(A.dtype).kind != "i" or dtypes.bits(A.dtype) > 32:
        raise DtypeError(f"{name}: capacities must be int32, got {A.dtype}")
    both = union(A.pattern, A.T.tocsr().pattern).pattern
    row, col = (np.asarray(x) for x in both.coords[:2])
    graph = A.pattern

    def run(values: Any) -> Any:
        # SciPy takes no indices that are read-only.
        held = scipy_array(graph, np.array(values, np.int32)).copy()
        found = _module(name).maximum_flow(held, start, end, method=method)
        flow = np.asarray(found.flow[row, col]).ravel() if row.size else row
        return np.int32(found.flow_value), flow.astype(np.int32)

    likes = (
        ShapeDtypeStruct((), dtypes.int32),
        ShapeDtypeStruct(row.shape, dtypes.int32),
    )
    value, flow = pure_callback(run, likes, A.values, vmap_method="sequential")
    return MaximumFlow(value, SparseArray(both, flow))


def min_weight_full_bipartite_matching(
    biadjacency: Any, maximize: bool = False
) -> tuple[Array, Array]:
    """Returns the matching of all rows, or all columns, with minimum weight.

    Args:
      biadjacency: (m, n) sparse or dense array of weights, which are not 0; they may be
        traced.
      maximize: whether the weight is to be the greatest.

    Returns:
      int32[min(m, n)] twice: rows, ascending, and their columns.

    Raises:
      ArgumentError: `biadjacency` is not a matrix.
      ValueError: there is no such matching.
      ImportError: SciPy is not installed.

    Example:
      >>> A = fnp.array([[1.0, 2.0], [3.0, 9.0]])
      >>> min_weight_full_bipartite_matching(A)[1]
      Array([1, 0], dtype=int32)

    Source: `scipy.sparse.csgraph.min_weight_full_bipartite_matching`.
    """
    name = "min_weight_full_bipartite_matching"
    A = matrix_of(name, "biadjacency", biadjacency).sum_duplicates()
    pattern, count = A.pattern, min(A.shape)

    def run(values: Any) -> Any:
        held = scipy_array(pattern, np.array(values, float))
        row, col = _module(name).min_weight_full_bipartite_matching(
            held, bool(maximize)
        )
        return row.astype(np.int32), col.astype(np.int32)

    like = ShapeDtypeStruct((count,), dtypes.int32)
    row, col = pure_callback(run, (like, like), A.values, vmap_method="sequential")
    return row, col


def yen(
    csgraph: Any,
    source: int,
    sink: int,
    K: int,
    *,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Returns the lengths of the shortest paths without loops between two vertices.

    Args:
      csgraph: (n, n) sparse or dense array of weights, which must be known: the number
        of paths depends on them.
      source: the first vertex.
      sink: the last vertex.
      K: how many paths at most.
      directed: whether the edges are directed.
      return_predecessors: whether to return the predecessor of each vertex.
      unweighted: whether each edge has length 1.

    Returns:
      Float array[k], k ≤ K, ascending. With predecessors a pair with int32[k, n], -9999
      where there is none.

    Raises:
      ConcretizationError: the weights are traced.
      ArgumentError: `csgraph` is not a matrix, or there are no such vertices.
      ShapeError: `csgraph` is not square.
      ImportError: SciPy is not installed.

    Example:
      >>> A = fnp.array([[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
      >>> yen(A, 0, 2, 3)
      Array([3., 5.], dtype=float32)

    Source: `scipy.sparse.csgraph.yen`; J. Yen, Finding the K shortest loopless paths in
    a network, 1971.
    """
    name = "yen"
    A = _graph(name, csgraph)
    n = A.shape[0]
    start, end = (
        _vertex(name, k, v, n) for k, v in (("source", source), ("sink", sink))
    )
    lengths, before = _module(name).yen(
        A.to_scipy().astype(float),
        *(start, end, natural(name, "K", K)),
        directed=bool(directed),
        return_predecessors=True,
        unweighted=bool(unweighted),
    )
    dtype = A.dtype if dtypes.is_inexact(A.dtype) else dtypes.default_float()
    out = fnp.asarray(lengths, dtype)
    return (out, fnp.asarray(before.astype(np.int32))) if return_predecessors else out
