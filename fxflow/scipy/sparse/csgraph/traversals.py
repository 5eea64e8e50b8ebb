"""Orders, trees and matchings of graphs, which depend on the pattern alone.

They are computed once, by SciPy, and known while tracing; weights may be traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.scipy.sparse.csgraph.graphs import _graph, _module, matrix_of
from fxflow.sparse.array import SparseArray
from fxflow.sparse.interchange import scipy_array
from fxflow.sparse.pattern import Pattern

_docs = shared("""
    Args:
      csgraph: (n, n) sparse array, or a dense one that is known; entries that are 0 are
        edges, too.
      i_start: the vertex to begin at.
      directed: whether the edges are directed.

    Raises:
      ArgumentError: `csgraph` is not a matrix, or there is no such vertex.
      ShapeError: `csgraph` is not square.
      ImportError: SciPy is not installed.

    Source: `scipy.sparse.csgraph.{name}`.
""")


def _ones(pattern: Pattern) -> Any:
    """Returns a graph of SciPy whose edges have the weight 1."""
    return scipy_array(pattern, np.ones(pattern.nnz))


def _vertex(name: str, what: str, vertex: Any, n: int) -> int:
    """Returns the number of a vertex.

    Raises:
      ArgumentError: there is no such vertex.
    """
    i = integer(name, what, vertex)
    if not 0 <= i < n:
        raise ArgumentError(
            f"{name}: {what} must be a vertex, 0 … {n - 1}, got {vertex!r}"
        )
    return i


def _ordered(
    name: str, csgraph: Any, i_start: Any, directed: Any
) -> tuple[SparseArray, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns a graph, the order of its vertices, and the vertex before each one."""
    A = _graph(name, csgraph)
    start = _vertex(name, "i_start", i_start, A.shape[0])
    order = "breadth_first_order" if name.startswith("b") else "depth_first_order"
    made = getattr(_module(name), order)
    found, before = made(_ones(A.pattern), start, bool(directed))
    return A, found.astype(np.int32), before.astype(np.int32)


def _order(
    name: str, csgraph: Any, i_start: Any, directed: Any, predecessors: Any
) -> Any:
    _, found, before = _ordered(name, csgraph, i_start, directed)
    if not predecessors:
        return fnp.asarray(found)
    return fnp.asarray(found), fnp.asarray(before)


@_docs
def breadth_first_order(
    csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True
) -> Any:
    """Returns the vertices reachable from a vertex, in breadth-first order.

    Args:
      return_predecessors: whether the vertex before each one is returned, too.

    Returns:
      int32[m]; with predecessors a pair with int32[n], -9999 where there is none.

    Example:
      >>> A = fnp.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
      >>> breadth_first_order(A, 0)
      (Array([0, 1, 2], dtype=int32), Array([-9999,     0,     0], dtype=int32))
    """
    name = "breadth_first_order"
    return _order(name, csgraph, i_start, directed, return_predecessors)


@_docs
def depth_first_order(
    csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True
) -> Any:
    """Returns the vertices reachable from a vertex, in depth-first order.

    Args:
      return_predecessors: whether the vertex before each one is returned, too.

    Returns:
      int32[m]; with predecessors a pair with int32[n], -9999 where there is none.

    Example:
      >>> A = fnp.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
      >>> depth_first_order(A, 0, return_predecessors=False)
      Array([0, 1, 2], dtype=int32)
    """
    name = "depth_first_order"
    return _order(name, csgraph, i_start, directed, return_predecessors)


@_docs
def breadth_first_tree(
    csgraph: Any, i_start: int, directed: bool = True
) -> SparseArray:
    """Returns the tree of a breadth-first search.

    Returns:
      A sparse csr array with the weights of these edges, which are differentiable.

    Example:
      >>> A = fnp.array([[0.0, 2.0, 5.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
      >>> breadth_first_tree(A, 0).todense().tolist()
      [[0.0, 2.0, 5.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    A, _, before = _ordered("breadth_first_tree", csgraph, i_start, directed)
    return edges_of(A, before, bool(directed))


@_docs
def depth_first_tree(csgraph: Any, i_start: int, directed: bool = True) -> SparseArray:
    """Returns the tree of a depth-first search.

    Returns:
      A sparse csr array with the weights of these edges, which are differentiable.

    Example:
      >>> A = fnp.array([[0.0, 2.0, 5.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
      >>> depth_first_tree(A, 0).todense().tolist()
      [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
    """
    A, _, before = _ordered("depth_first_tree", csgraph, i_start, directed)
    return edges_of(A, before, bool(directed))


def edges_of(A: SparseArray, before: np.ndarray, directed: bool) -> SparseArray:
    """Returns the tree that predecessors describe, with the weights of its edges.

    Args:
      A: a graph.
      before: int[n]: negative, there is none.
      directed: whether the edges are directed; else the smaller weight counts.
    """
    head = np.flatnonzero(before >= 0)
    head = head[np.argsort(before[head], kind="stable")]
    tail = before[head]
    weights = A._elements(tail, head)
    if not directed:
        back = A._elements(head, tail)
        weights, back = (fnp.where(w == 0, np.inf, w) for w in (weights, back))
        weights = fnp.minimum(weights, back).astype(A.dtype)
    pattern = Pattern.of_coords(tail.astype(np.int32), head.astype(np.int32), A.shape)
    return SparseArray(pattern, weights).tocsr()


def reconstruct_path(
    csgraph: Any, predecessors: Any, directed: bool = True
) -> SparseArray:
    """Returns a tree of the vertex before each one.

    Args:
      csgraph: (n, n) sparse or dense array of weights; they may be traced.
      predecessors: int array-like[n], known: negative, there is none.
      directed: whether the edges are directed; else the smaller weight counts.

    Returns:
      A sparse csr array with the weights of these edges.

    Raises:
      ArgumentError: `csgraph` is not a matrix, or the predecessors are traced.
      ShapeError: there are not as many predecessors as vertices.

    Example:
      >>> A = fnp.array([[0.0, 2.0, 5.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
      >>> reconstruct_path(A, [-9999, 0, 1]).todense().tolist()
      [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]

    Source: `scipy.sparse.csgraph.reconstruct_path`.
    """
    name = "reconstruct_path"
    A = _graph(name, csgraph)
    if isinstance(predecessors, Tracer):
        raise ArgumentError(
            f"{name}: predecessors must be known, got a traced {predecessors.aval}"
        )
    before = np.asarray(predecessors)
    if before.shape != A.shape[:1]:
        raise ShapeError(
            f"{name}: expected {A.shape[0]} predecessors, got shape {before.shape}"
        )
    return edges_of(A, before.astype(np.int32), bool(directed))


def reverse_cuthill_mckee(graph: Any, symmetric_mode: bool = False) -> Array:
    """Returns the reverse Cuthill-McKee order, which reduces the bandwidth.

    Args:
      graph: (n, n) sparse array, or a dense one that is known.
      symmetric_mode: whether the pattern is known to be symmetric.

    Returns:
      int32[n].

    Raises:
      ArgumentError: `graph` is not a matrix.
      ShapeError: it is not square.
      ImportError: SciPy is not installed.

    Example:
      >>> A = fnp.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
      >>> sorted(reverse_cuthill_mckee(A).tolist())
      [0, 1, 2]

    Source: `scipy.sparse.csgraph.reverse_cuthill_mckee`; Cuthill and McKee 1969.
    """
    name = "reverse_cuthill_mckee"
    A = _graph(name, graph)
    found = _module(name).reverse_cuthill_mckee(_ones(A.pattern), bool(symmetric_mode))
    return fnp.asarray(found.astype(np.int32))


def maximum_bipartite_matching(graph: Any, perm_type: str = "row") -> Array:
    """Returns a maximum matching of rows and columns.

    Args:
      graph: (m, n) sparse array, or a dense one that is known.
      perm_type: "row": the row of each column is returned; "column": the column of each
        row.

    Returns:
      int32[n] or [m], -1 where there is none.

    Raises:
      ArgumentError: `graph` is not a matrix, or there is no such `perm_type`.
      ImportError: SciPy is not installed.

    Example:
      >>> maximum_bipartite_matching(fnp.array([[1.0, 1.0], [1.0, 0.0]]))
      Array([1, 0], dtype=int32)

    Source: `scipy.sparse.csgraph.maximum_bipartite_matching`; Hopcroft and Karp 1973.
    """
    name = "maximum_bipartite_matching"
    if perm_type not in ("row", "column"):
        raise ArgumentError(
            f'{name}: perm_type must be "row" or "column", got {perm_type!r}'
        )
    A = matrix_of(name, "graph", graph)
    found = _module(name).maximum_bipartite_matching(_ones(A.pattern), perm_type)
    return fnp.asarray(found.astype(np.int32))


def structural_rank(graph: Any) -> int:
    """Returns the structural rank: the maximum rank of a matrix of this pattern.

    Args:
      graph: (m, n) sparse array, or a dense one that is known.

    Returns:
      An int.

    Raises:
      ArgumentError: `graph` is not a matrix.
      ImportError: SciPy is not installed.

    Example:
      >>> structural_rank(fnp.array([[1.0, 1.0], [0.0, 0.0]]))
      1

    Source: `scipy.sparse.csgraph.structural_rank`.
    """
    found = maximum_bipartite_matching(graph)
    return int((np.asarray(found) >= 0).sum())
