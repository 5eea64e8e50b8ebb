"""Laplacians, shortest paths, components and spanning trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, is_arraylike, typeof
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.sparse.linalg.interface import aslinearoperator
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.construction import diags_array, fromdense
from fxflow.sparse.interchange import is_scipy, scipy_array, scipy_sparse


def matrix_of(name: str, what: str, given: Any) -> SparseArray:
    """Returns a matrix as a csr array; the entries of dense ones are not 0."""
    if is_scipy(given):
        given = from_scipy(given)
    if not isinstance(given, SparseArray):
        if not is_arraylike(given) or typeof(given).ndim != 2:
            raise ArgumentError(f"{name}: {what} must be a sparse array, got {given!r}")
        given = fromdense(given)
    held: SparseArray = given.tocsr()
    return held


def _graph(name: str, given: Any) -> SparseArray:
    """Returns a graph as a square csr array; edges of dense ones are not 0."""
    held = matrix_of(name, "csgraph", given)
    if held.shape[0] != held.shape[1]:
        raise ShapeError(f"{name}: csgraph must be square, got {list(held.shape)}")
    return held


def laplacian(
    csgraph: Any,
    normed: bool = False,
    return_diag: bool = False,
    use_out_degree: bool = False,
    *,
    copy: bool = True,
    form: str = "array",
    dtype: Any = None,
    symmetrized: bool = False,
) -> Any:
    """Returns the Laplacian of a graph, which is differentiable in the weights.

    Args:
      csgraph: (n, n) sparse or dense array of weights; the diagonal does not count.
      normed: whether it is scaled to have ones on the diagonal, D^-1/2 L D^-1/2.
      return_diag: whether the diagonal is returned, too: degrees, or if `normed` their
        square roots, 1 for vertices without edges.
      use_out_degree: whether the degrees are sums of rows, else of columns.
      copy: has no effect: arrays are immutable.
      form: "array"; "function", from vectors or matrices to their products with the
        Laplacian; or "lo", a `LinearOperator`.
      dtype: dtype of the result; None: as the weights, float if `normed`.
      symmetrized: whether the graph is A + Aᵀ.

    Returns:
      A sparse csr array, or what `form` says; `(laplacian, diagonal)` if
      `return_diag`.

    Raises:
      ArgumentError: `csgraph` is not a matrix, or there is no such `form`.
      ShapeError: `csgraph` is not square.

    Example:
      >>> laplacian(fnp.array([[0.0, 2.0], [2.0, 0.0]])).todense().tolist()
      [[2.0, -2.0], [-2.0, 2.0]]

    Source: `scipy.sparse.csgraph.laplacian`.
    """
    if form not in ("array", "function", "lo"):
        raise ArgumentError(
            f'laplacian: form must be "array", "function" or "lo", got {form!r}'
        )
    A = _graph("laplacian", csgraph)
    if symmetrized:
        A = (A + A.conj().T).tocsr()
    if normed and not dtypes.is_inexact(A.dtype):
        A = A.astype(dtypes.default_float())
    if dtype is not None:
        A = A.astype(dtype)
    row, col = A.coords
    off = A._with(fnp.where(np.asarray(row != col), A.values, 0))
    degrees = off.sum(1 if use_out_degree else 0)
    if normed:
        alone = degrees == 0
        roots = fnp.where(alone, 1, fnp.sqrt(fnp.where(alone, 1, degrees)))
        off = off._with(off.values / (roots[row] * roots[col]))
        diagonal = fnp.where(alone, 0, fnp.ones_like(degrees))
        degrees = roots
    else:
        diagonal = degrees
    found: Any = (diags_array(diagonal, format="csr") - off).tocsr()
    if form == "lo":
        found = aslinearoperator(found)
    elif form == "function":
        found = found.__matmul__
    return (found, degrees) if return_diag else found


def connected_components(
    csgraph: Any,
    directed: bool = True,
    connection: str = "weak",
    return_labels: bool = True,
) -> Any:
    """Returns the number of connected components, and the component of each vertex.

    It depends on the pattern alone: entries that are 0 are edges, too.

    Args:
      csgraph: (n, n) sparse array, or a dense one that is known.
      directed: whether the edges are directed.
      connection: "weak" or "strong": of directed graphs.
      return_labels: whether the labels are returned.

    Returns:
      An int; `(number, labels)` if `return_labels`, labels int32[n].

    Raises:
      ArgumentError: `csgraph` is not a matrix, or there is no such connection.
      ImportError: SciPy is not installed.

    Example:
      >>> from fxflow.sparse import coo_array
      >>> A = coo_array((fnp.ones(1), ([0], [2])), shape=(3, 3))
      >>> connected_components(A)
      (2, Array([0, 1, 0], dtype=int32))

    Source: `scipy.sparse.csgraph.connected_components`.
    """
    if connection not in ("weak", "strong"):
        raise ArgumentError(
            f'connected_components: connection must be "weak" or "strong", got '
            f"{connection!r}"
        )
    name = "connected_components"
    pattern = _graph(name, csgraph).pattern
    graph = scipy_array(pattern, np.ones(pattern.nnz))
    count, labels = _module(name).connected_components(graph, directed, connection)
    if not return_labels:
        return int(count)
    return int(count), fnp.asarray(labels.astype(np.int32))


def minimum_spanning_tree(csgraph: Any, overwrite: bool = False) -> SparseArray:
    """Returns a minimum spanning tree, or forest, of an undirected graph.

    Args:
      csgraph: (n, n) sparse or dense array of weights, which must be known: which edges
        the tree has depends on them. The smaller weight of two directions counts.
      overwrite: has no effect.

    Returns:
      A sparse csr array of its edges.

    Raises:
      ConcretizationError: the weights are traced.
      ImportError: SciPy is not installed.

    Example:
      >>> A = fnp.array([[0.0, 1.0, 3.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
      >>> minimum_spanning_tree(A).todense().tolist()
      [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]

    Source: `scipy.sparse.csgraph.minimum_spanning_tree`; Kruskal 1956.
    """
    name = "minimum_spanning_tree"
    A = _graph(name, csgraph)
    found = _module(name).minimum_spanning_tree(A.to_scipy())
    kind = A.dtype if dtypes.is_inexact(A.dtype) else None
    made: SparseArray = from_scipy(found, kind)
    return made


def _module(name: str) -> Any:
    scipy_sparse(name)
    import scipy.sparse.csgraph

    return scipy.sparse.csgraph


_docs_of_paths = shared("""
    Args:
      csgraph: (n, n) sparse or dense array of weights.
      directed: whether the edges are directed.
      indices: the source vertices: an integer or a vector; None is all.
      return_predecessors: whether to return the predecessor of each vertex.
      unweighted: whether each edge has length 1.

    Returns:
      As `shortest_path`.
""")


@_docs_of_paths
def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> Any:
    """Returns the lengths of shortest paths, by relaxing all edges at once.

    Compiled, for traced weights as well; they may be negative. It has no derivative.

    Args:
      method: "auto", "FW", "D", "BF" or "J": has no effect.
      overwrite: has no effect.

    Returns:
      Lengths, (n,) or (k, n): inf where there is no path. With predecessors a pair:
      int32 like the lengths, -9999 where there is none.

    Raises:
      ArgumentError: `csgraph` is not a matrix, or the method is unknown.

    Special cases:
      nan if a path has a cycle of negative length.

    Example:
      >>> A = fnp.array([[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
      >>> shortest_path(A, indices=0)
      Array([0., 1., 3.], dtype=float32)

    Source: `scipy.sparse.csgraph.shortest_path`; Bellman 1958.
    """
    if method not in ("auto", "FW", "D", "BF", "J"):
        raise ArgumentError(f"shortest_path: there is no method {method!r}")
    name = "shortest_path"
    A = _graph(name, csgraph)
    return _paths(name, A, directed, return_predecessors, unweighted, indices, np.inf)


@_docs_of_paths
def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Returns the lengths of shortest paths; see `shortest_path`.

    Example:
      >>> bellman_ford(fnp.array([[0.0, 2.0], [0.0, 0.0]]), indices=0)
      Array([0., 2.], dtype=float32)

    Source: `scipy.sparse.csgraph.bellman_ford`.
    """
    A = _graph("bellman_ford", csgraph)
    return _paths(
        "bellman_ford", A, directed, return_predecessors, unweighted, indices, np.inf
    )


@_docs_of_paths
def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
) -> Any:
    """Returns the lengths of shortest paths for non-negative weights.

    It is `shortest_path` with a maximum length.

    Args:
      limit: the maximum length; vertices that are farther away get inf.
      min_only: whether to return for each vertex only the length from the nearest
        source, (n,), and with predecessors also this source, int32[n], -9999 where
        there is none: a triple.

    Example:
      >>> A = fnp.array([[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
      >>> dijkstra(A, indices=0, limit=2)
      Array([ 0.,  1., inf], dtype=float32)

    Source: `scipy.sparse.csgraph.dijkstra`.
    """
    A = _graph("dijkstra", csgraph)
    given = (directed, return_predecessors, unweighted, indices, limit, min_only)
    return _paths("dijkstra", A, *given)


def _paths(
    name: str,
    A: SparseArray,
    directed: bool,
    predecessors: bool,
    unweighted: bool,
    indices: Any,
    limit: Any,
    min_only: bool = False,
) -> Any:
    n = A.shape[0]
    (weights,) = promote_inexact(name, A.values)
    weights = lax.stop_gradient(weights)
    if unweighted:
        weights = fnp.ones_like(weights)
    row, col = A.coords
    if not directed:
        row, col = np.concatenate([row, col]), np.concatenate([col, row])
        weights = fnp.concatenate([weights, weights])
    tail, head = (fnp.asarray(x.astype(np.int32)) for x in (row, col))
    start = fnp.arange(n, dtype=dtypes.int32) if indices is None else indices
    start = fnp.asarray(start)
    if typeof(start).ndim > 1 or not dtypes.is_integer(typeof(start).dtype):
        raise ArgumentError(f"{name}: indices must be integers, got {typeof(start)}")
    sources = fnp.ravel(start)
    own = fnp.arange(n) == fnp.where(sources < 0, sources + n, sources)[:, None]
    if min_only:
        own = fnp.any(own, 0, keepdims=True)
    lengths = fnp.where(own, 0, fnp.full((), fnp.inf, weights.dtype))

    def through(lengths: Any) -> Any:
        return lengths[:, tail] + weights

    def step(state: Any) -> Any:
        lengths, _, k = state
        shorter = lengths.at[:, head].min(through(lengths))
        return shorter, fnp.any(shorter < lengths), k + 1

    def more(state: Any) -> Any:
        return state[1] & (state[2] <= n)

    begin = (lengths, fnp.asarray(True), fnp.zeros((), dtypes.int32))
    lengths, changes, _ = lax.while_loop(more, step, begin)
    lengths = fnp.where(changes, fnp.nan, lengths)
    lengths = fnp.where(lengths <= limit, lengths, fnp.where(changes, fnp.nan, np.inf))
    found: Any = lengths
    if predecessors:
        # An edge at the end of a shortest path; the first one, if there are several.
        ends = (through(lengths) <= lengths[:, head]) & fnp.isfinite(lengths[:, head])
        ends = ends & ~own[:, head]
        if min_only:
            origin = _origins(own[0], ends[0], tail, head, n)
            # A path from the source that is reported, if there are several.
            ends = ends & (origin[tail] == origin[head])
        none = fnp.full(typeof(lengths).shape, n, dtypes.int32)
        before = none.at[:, head].min(fnp.where(ends, tail, n))
        before = fnp.where(before == n, -9999, before)
        found = lengths, before
        if min_only:
            origin = fnp.where(origin == n, -9999, origin)
            origin = fnp.where(fnp.isfinite(lengths[0]), origin, -9999)
            return lengths[0], before[0], origin
    if min_only:
        return lengths[0]
    if typeof(start).ndim:
        return found
    return (found[0][0], found[1][0]) if predecessors else found[0]


def _origins(own: Any, ends: Any, tail: Any, head: Any, n: int) -> Any:
    """Returns the sources that shortest paths come from, n where there is none.

    Args:
      own: bool[n]: which vertices are sources.
      ends: bool[edges]: which edges end a shortest path.
      tail: int32[edges]: where edges begin.
      head: int32[edges]: where they end.
      n: the number of vertices.
    """
    index = fnp.arange(n, dtype=dtypes.int32)

    def step(state: Any) -> Any:
        origin, _ = state
        new = origin.at[head].min(fnp.where(ends, origin[tail], n))
        return new, fnp.any(new != origin)

    start = (fnp.where(own, index, n), fnp.asarray(True))
    return lax.while_loop(lambda s: s[1], step, start)[0]
