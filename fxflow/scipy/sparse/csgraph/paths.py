"""Shortest paths by name of the method, and the lengths of known paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.sparse.csgraph.graphs import _docs_of_paths, _graph, _paths


@_docs_of_paths
def floyd_warshall(
    csgraph: Any,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
) -> Any:
    """Returns the lengths of shortest paths between all vertices.

    It is `shortest_path`: all edges are relaxed at once, whatever the method.

    Args:
      overwrite: has no effect.

    Example:
      >>> floyd_warshall(fnp.array([[0.0, 2.0], [1.0, 0.0]]))
      Array([[0., 2.],
             [1., 0.]], dtype=float32)

    Source: `scipy.sparse.csgraph.floyd_warshall`.
    """
    name = "floyd_warshall"
    A = _graph(name, csgraph)
    return _paths(name, A, directed, return_predecessors, unweighted, None, np.inf)


@_docs_of_paths
def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Returns the lengths of shortest paths; see `shortest_path`.

    Example:
      >>> johnson(fnp.array([[0.0, 2.0], [0.0, 0.0]]), indices=0)
      Array([0., 2.], dtype=float32)

    Source: `scipy.sparse.csgraph.johnson`.
    """
    name = "johnson"
    A = _graph(name, csgraph)
    return _paths(name, A, directed, return_predecessors, unweighted, indices, np.inf)


def construct_dist_matrix(
    graph: Any,
    predecessors: Any,
    directed: bool = True,
    null_value: float = np.inf,
) -> Array:
    """Returns the lengths of the paths that predecessors describe.

    With the predecessors that `shortest_path` returns it is the lengths again, with
    derivatives with respect to the weights.

    Args:
      graph: (n, n) sparse or dense array of weights.
      predecessors: int array-like[n, n]: the vertex before j on the path from i to j;
        negative, there is no path.
      directed: whether the edges are directed; else the smaller weight counts.
      null_value: what stands where there is no path.

    Returns:
      Float array[n, n], 0 on the diagonal.

    Raises:
      ArgumentError: `graph` is not a matrix, or the predecessors are not integers.
      ShapeError: `graph` is not square, or the predecessors have the wrong shape.

    Example:
      >>> A = fnp.array([[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
      >>> before = floyd_warshall(A, return_predecessors=True)[1]
      >>> construct_dist_matrix(A, before)[0]
      Array([0., 1., 3.], dtype=float32)

    Source: `scipy.sparse.csgraph.construct_dist_matrix`.
    """
    name = "construct_dist_matrix"
    A = _graph(name, graph)
    n = A.shape[0]
    before = fnp.asarray(predecessors)
    if not dtypes.is_integer(typeof(before).dtype):
        raise ArgumentError(
            f"{name}: predecessors must be integers, got {typeof(before)}"
        )
    if typeof(before).shape != (n, n):
        raise ShapeError(
            f"{name}: predecessors must be [{n}, {n}], got {typeof(before)}"
        )
    (weights,) = promote_inexact(name, A.todense())
    if not n:
        return weights
    if not directed:
        both = [fnp.where(w == 0, np.inf, w) for w in (weights, weights.T)]
        weights = fnp.minimum(*both)
    rows, columns = np.arange(n)[:, None], np.arange(n)
    known = (before >= 0) & (rows != columns)
    # A path ends at its first vertex, which comes before itself at no cost.
    place = fnp.where(known, before, columns)
    step = fnp.where(known, weights[fnp.where(known, before, 0), columns], 0)
    # Steps of 1, 2, 4, … edges.
    for _ in range(max(n - 1, 1).bit_length()):
        step = step + fnp.take_along_axis(step, place, 1)
        place = fnp.take_along_axis(place, place, 1)
    lost = ~known & (rows != columns)
    return fnp.where(lost, fnp.asarray(null_value, step.dtype), step)
