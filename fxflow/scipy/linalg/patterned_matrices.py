"""Matrices that repeat the numbers of one vector or two in a pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, array_of, promote_dtypes, promote_inexact

_docs = shared("""
    Raises:
      ArgumentError: an argument is not an array.
      ...
      ShapeError: a vector is 0-d or has the wrong length.

    Source: `scipy.linalg.{name}`. Axes in front of the last one are batch.
""")


def _rows(name: str, x: Any, least: int = 0) -> Any:
    """Returns vectors along the last axis, of a length that is asked for."""
    x = x if x.aval.ndim else x[None]
    if x.aval.shape[-1] < least:
        raise ShapeError(f"{name}: takes at least {least} elements, got {x.aval}")
    return x


@library()
@_docs
def circulant(c: ArrayLike) -> Array:
    """Returns the matrix whose columns are one vector, each turned by one more.

    Args:
      c: array-like[..., n]: the first column.

    Returns:
      Array[..., n, n].

    Example:
      >>> circulant(np.array([1, 2, 3]))
      Array([[1, 3, 2],
             [2, 1, 3],
             [3, 2, 1]], dtype=int32)
    """
    x = _rows("circulant", array_of(c, "circulant"))
    n = x.aval.shape[-1]
    out: Array = x[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]
    return out


@library()
@_docs
def companion(a: ArrayLike) -> Array:
    """Returns the matrix whose eigenvalues are the roots of a polynomial.

    Args:
      a: array-like[..., n], n ≥ 2: coefficients, that of the highest power first.

    Returns:
      Float or complex array[..., n - 1, n - 1].

    Example:
      >>> companion(np.array([1, -10, 31, -30]))
      Array([[ 10., -31.,  30.],
             [  1.,   0.,   0.],
             [  0.,   1.,   0.]], dtype=float32)
    """
    x = _rows("companion", promote_inexact("companion", a)[0], 2)
    n = x.aval.shape[-1] - 1
    top = -x[..., 1:] / x[..., :1]
    shape = (*x.aval.shape[:-1], n - 1, n)
    below = fnp.broadcast_to(fnp.eye(n - 1, n, dtype=x.aval.dtype), shape)
    return fnp.concatenate([top[..., None, :], below], axis=-2)


@library("n")
@_docs
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Returns the matrix that convolves a vector of length n with another one.

    Args:
      a: array-like[..., m], m ≥ 1.
      n: length of the vectors that are convolved.
      mode: "full", "same" or "valid"; see `fxflow.numpy.convolve`.

    Returns:
      Array[..., k, n], k by the mode: m + n - 1, max(m, n), or max - min + 1.

    Raises:
      ArgumentError: unknown mode, or `n` is not positive.

    Example:
      >>> convolution_matrix(np.array([1, 2]), 2)
      Array([[1, 0],
             [2, 1],
             [0, 2]], dtype=int32)
    """
    x = _rows("convolution_matrix", array_of(a, "convolution_matrix"), 1)
    m, n = x.aval.shape[-1], integer("convolution_matrix", "n", n)
    if n < 1:
        raise ArgumentError(f"convolution_matrix: n must be positive, got {n}")
    places = np.arange(m + n - 1)[:, None] - np.arange(n)
    if mode == "same":
        start = (min(m, n) - 1) // 2
        places = places[start : start + max(m, n)]
    elif mode == "valid":
        start = min(m, n) - 1
        places = places[start : start + max(m, n) - min(m, n) + 1]
    elif mode != "full":
        raise ArgumentError(
            f'convolution_matrix: mode must be "full", "same" or "valid", got {mode!r}'
        )
    inside = (places >= 0) & (places < m)
    return fnp.where(inside, x[..., np.where(inside, places, 0)], 0)


@library()
@_docs
def fiedler(a: ArrayLike) -> Array:
    """Returns the matrix of distances of numbers: |a_i - a_j|.

    Args:
      a: array-like[..., n].

    Returns:
      Array[..., n, n].

    Example:
      >>> fiedler(np.array([1, 4, 6]))
      Array([[0, 3, 5],
             [3, 0, 2],
             [5, 2, 0]], dtype=int32)
    """
    x = _rows("fiedler", array_of(a, "fiedler"))
    return fnp.abs(x[..., :, None] - x[..., None, :])


@library()
@_docs
def fiedler_companion(a: ArrayLike) -> Array:
    """Returns a matrix of five diagonals with the roots of a polynomial.

    Args:
      a: array-like[..., n]: coefficients, that of the highest power first.

    Returns:
      Float or complex array[..., n - 1, n - 1].

    Example:
      >>> fiedler_companion(np.array([1, -16, 86, -176]))
      Array([[ 16., -86.,   1.],
             [  1.,   0.,   0.],
             [  0., 176.,   0.]], dtype=float32)
    """
    x = _rows("fiedler_companion", promote_inexact("fiedler_companion", a)[0], 1)
    n = x.aval.shape[-1] - 1
    c = -x / x[..., :1]
    if n < 1:
        return lax.full((*x.aval.shape[:-1], 0, 0), 0, x.aval.dtype)
    # Where coefficients and where ones stand: a product of n - 1 elementary matrices
    # (Fiedler 2003, "A note on companion matrices").
    places, ones = np.zeros((n, n), np.int32), np.zeros((n, n), bool)
    places[0, 0] = 1
    for k in range(1, n):
        row, column = (k - 1, k) if k % 2 else (k, k - 1)
        places[row, column] = k + 1
    for k in range(0, n - 2, 2):
        ones[k, k + 2] = True
    for k in range(1, n - 2, 2):
        ones[k + 2, k] = True
    if n > 1:
        ones[1, 0] = True
    filled = fnp.where(places > 0, c[..., places], 0)
    return fnp.where(ones, 1, filled)


@library()
@_docs
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Returns the matrix with constant antidiagonals.

    Args:
      c: array-like[..., m]: the first column.
      r: array-like[..., n]: the last row, its first element not used; None is zeros.

    Returns:
      Array[..., m, n].

    Example:
      >>> hankel(np.array([1, 2, 3]), np.array([0, 7, 8]))
      Array([[1, 2, 3],
             [2, 3, 7],
             [3, 7, 8]], dtype=int32)
    """
    column = array_of(c, "hankel")
    column, row = promote_dtypes(
        "hankel", column, lax.full_like(column, 0) if r is None else r
    )
    column, row = _rows("hankel", column), _rows("hankel", row)
    m, n = column.aval.shape[-1], row.aval.shape[-1]
    lead = fnp.broadcast_shapes(column.aval.shape[:-1], row.aval.shape[:-1])
    column = fnp.broadcast_to(column, (*lead, m))
    line = fnp.concatenate([column, fnp.broadcast_to(row, (*lead, n))[..., 1:]], -1)
    return line[..., np.arange(m)[:, None] + np.arange(n)]


@library()
@_docs
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Returns the Leslie matrix of a population by age.

    Args:
      f: array-like[..., n]: fecundities: the first row.
      s: array-like[..., n - 1]: which part survives: below the diagonal.

    Returns:
      Array[..., n, n].

    Example:
      >>> leslie(np.array([0.1, 2.0]), np.array([0.5]))
      Array([[0.1, 2. ],
             [0.5, 0. ]], dtype=float32)
    """
    top, low = promote_dtypes("leslie", f, s)
    top, low = _rows("leslie", top, 1), _rows("leslie", low)
    n = top.aval.shape[-1]
    if low.aval.shape[-1] != n - 1:
        raise ShapeError(
            f"leslie: s must have one element less than f, got {low.aval} and "
            f"{top.aval}"
        )
    lead = fnp.broadcast_shapes(top.aval.shape[:-1], low.aval.shape[:-1])
    top, low = fnp.broadcast_to(top, (*lead, n)), fnp.broadcast_to(low, (*lead, n - 1))
    below = low[..., :, None] * fnp.eye(n - 1, n, dtype=low.aval.dtype)
    return fnp.concatenate([top[..., None, :], below], axis=-2)
