"""Graphs as dense arrays, in which some values mean that there is no edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse.csgraph.graphs import _graph
from fxflow.sparse.array import SparseArray
from fxflow.sparse.pattern import Pattern

_docs = shared("""
    Args:
      graph: (n, n) array of weights, known (not traced).
      null_value: the value that means no edge; None: every value is an edge.
      nan_null: whether nan means no edge.
      infinity_null: whether infinities mean no edge.

    Raises:
      ArgumentError: `graph` is traced.
      ShapeError: it is not a square matrix.

    Source: `scipy.sparse.csgraph.{name}`.
""")


def _square(name: str, graph: Any) -> np.ndarray[Any, Any]:
    if isinstance(graph, Tracer):
        raise ArgumentError(
            f"{name}: graph must be known, got a traced {graph.aval}: which edges it "
            "has depends on its elements"
        )
    x: np.ndarray[Any, Any] = np.asanyarray(graph)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ShapeError(f"{name}: graph must be square, got shape {x.shape}")
    return x


def _edges(x: np.ndarray, null: Any, nan: Any, infinity: Any) -> np.ndarray:
    """Returns which elements are edges."""
    edges: np.ndarray = np.ones(x.shape, bool)
    if null is not None:
        edges &= (x != null) & ~(np.isnan(null) & np.isnan(x))
    if nan:
        edges &= ~np.isnan(x)
    if infinity:
        edges &= ~np.isinf(x)
    return edges


@_docs
def csgraph_from_dense(
    graph: Any,
    null_value: float | None = 0,
    nan_null: bool = True,
    infinity_null: bool = True,
) -> SparseArray:
    """Returns the sparse array of a dense one.

    Returns:
      A sparse csr array.

    Example:
      >>> csgraph_from_dense(np.array([[0.0, 2.0], [np.inf, 0.0]])).todense().tolist()
      [[0.0, 2.0], [0.0, 0.0]]
    """
    x = _square("csgraph_from_dense", graph)
    x = x if x.dtype.kind == "f" else x.astype(float)
    row, col = np.nonzero(_edges(x, null_value, nan_null, infinity_null))
    pattern = Pattern.of_coords(row, col, x.shape)
    return SparseArray(pattern, fnp.asarray(x[row, col])).tocsr()


@_docs
def csgraph_masked_from_dense(
    graph: Any,
    null_value: float | None = 0,
    nan_null: bool = True,
    infinity_null: bool = True,
    copy: bool = True,
) -> Any:
    """Returns a NumPy array in which only edges are not masked.

    Args:
      copy: has no effect.

    Returns:
      `numpy.ma.MaskedArray`.

    Example:
      >>> print(csgraph_masked_from_dense(np.array([[0.0, 2.0], [1.0, 0.0]])))
      [[-- 2.0]
       [1.0 --]]
    """
    x = _square("csgraph_masked_from_dense", graph)
    x = x if x.dtype.kind == "f" else x.astype(float)
    return np.ma.masked_array(x, ~_edges(x, null_value, nan_null, infinity_null))


def csgraph_from_masked(graph: Any) -> SparseArray:
    """Returns the sparse array of a NumPy masked array.

    Args:
      graph: `numpy.ma.MaskedArray`, (n, n): what is not masked is an edge.

    Returns:
      A sparse csr array.

    Raises:
      ShapeError: it is not a square matrix.

    Example:
      >>> held = np.ma.masked_equal(np.array([[0.0, 2.0], [1.0, 0.0]]), 0)
      >>> csgraph_from_masked(held).nnz
      2

    Source: `scipy.sparse.csgraph.csgraph_from_masked`.
    """
    x = np.ma.asanyarray(_square("csgraph_from_masked", graph))
    row, col = np.nonzero(~np.ma.getmaskarray(x))
    values = np.ma.getdata(x)[row, col]
    values = values if values.dtype.kind == "f" else values.astype(float)
    return SparseArray(
        Pattern.of_coords(row, col, x.shape), fnp.asarray(values)
    ).tocsr()


def csgraph_to_dense(csgraph: Any, null_value: float = 0) -> Array:
    """Returns a graph as a dense array.

    Args:
      csgraph: (n, n) sparse array; its values may be traced.
      null_value: what stands where there is no edge.

    Returns:
      Array[n, n].

    Raises:
      ArgumentError: `csgraph` is not a matrix.
      ShapeError: it is not square.

    Example:
      >>> from fxflow.sparse import coo_array
      >>> A = coo_array((fnp.ones(1), ([0], [1])), shape=(2, 2))
      >>> csgraph_to_dense(A, np.inf).tolist()
      [[inf, 1.0], [inf, inf]]

    Source: `scipy.sparse.csgraph.csgraph_to_dense`.
    """
    A = _graph("csgraph_to_dense", csgraph).sum_duplicates()
    row, col = A.coords
    out = fnp.full(A.shape, null_value, A.dtype)
    return out.at[row, col].set(A.values)


def csgraph_to_masked(csgraph: Any) -> Any:
    """Returns a graph as a NumPy masked array.

    Args:
      csgraph: (n, n) sparse array, known.

    Returns:
      `numpy.ma.MaskedArray`, in which only edges are not masked.

    Raises:
      ArgumentError: `csgraph` is not a matrix.
      ConcretizationError: it is traced.
      ShapeError: it is not square.

    Example:
      >>> from fxflow.sparse import coo_array
      >>> A = coo_array((fnp.ones(1), ([0], [1])), shape=(2, 2))
      >>> print(csgraph_to_masked(A))
      [[-- 1.0]
       [-- --]]

    Source: `scipy.sparse.csgraph.csgraph_to_masked`.
    """
    A = _graph("csgraph_to_masked", csgraph).sum_duplicates()
    row, col = A.coords
    out = np.zeros(A.shape, A.dtype)
    absent = np.ones(A.shape, bool)
    out[row, col], absent[row, col] = A._host("csgraph_to_masked"), False
    return np.ma.masked_array(out, absent)
