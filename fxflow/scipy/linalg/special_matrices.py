"""Matrices of a special structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    promote_dtypes,
)


@library()
def block_diag(*arrs: Any) -> Array:
    """Puts matrices on the diagonal of a larger one.

    Args:
      *arrs: array-likes with at most two axes; numbers and vectors are one row.

    Returns:
      Array[sum of rows, sum of columns], zero elsewhere.

    Raises:
      ShapeError: an array has more than two axes.

    Example:
      >>> block_diag(np.array([[1]]), np.array([[2, 3]]))
      Array([[1, 0, 0],
             [0, 2, 3]], dtype=int32)

    Source: `scipy.linalg.block_diag`.
    """
    given = promote_dtypes("block_diag", *(arrs or (fnp.zeros((1, 0)),)))
    blocks = []
    for x in given:
        if x.aval.ndim > 2:
            raise ShapeError(f"block_diag: matrices have two axes, got {x.aval}")
        shape = (1,) * (2 - x.aval.ndim) + x.aval.shape
        blocks.append(lax.reshape(x, shape))
    width = 0
    for x in blocks:
        width += x.aval.shape[1]
    rows, before = [], 0
    for x in blocks:
        n = x.aval.shape[1]
        zero = lax.full((), 0, x.aval.dtype)
        rows.append(lax.pad(x, zero, [(0, 0, 0), (before, width - before - n, 0)]))
        before += n
    return lax.concatenate(rows, 0)


@library()
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Returns the matrix with constant diagonals.

    Args:
      c: array-like[m]: first column.
      r: array-like[n]: first row, its first element not used; None is the conjugate of
        `c`.

    Returns:
      Array[m, n].

    Raises:
      ShapeError: an argument has more than one axis.

    Example:
      >>> toeplitz(np.array([1, 2]), np.array([1, 5, 6]))
      Array([[1, 5, 6],
             [2, 1, 5]], dtype=int32)

    Source: `scipy.linalg.toeplitz`.
    """
    column = array_of(c, "toeplitz")
    if r is None:
        r = lax.conj(column) if dtypes.is_complex(column.aval.dtype) else column
    column, row = promote_dtypes("toeplitz", column, r)
    if column.aval.ndim > 1 or row.aval.ndim > 1:
        raise ShapeError(f"toeplitz: takes vectors, got {column.aval} and {row.aval}")
    column = lax.reshape(column, (column.aval.size,))
    row = lax.reshape(row, (row.aval.size,))
    m, n = column.aval.size, row.aval.size
    rest = lax.slice_in_dim(row, min(1, n), n)
    line = lax.concatenate([lax.rev(column, (0,)), rest], 0)
    indices = (m - 1) - np.arange(m)[:, None] + np.arange(n)
    return line[indices]


@library("M", "N")
def diagsvd(s: ArrayLike, M: int, N: int) -> Array:
    """Returns the matrix of singular values, which stands between U and Vᴴ.

    Args:
      s: array-like[k].
      M: the number of rows.
      N: the number of columns; the smaller of both is k.

    Returns:
      Array[M, N], of the type of `s`.

    Raises:
      ShapeError: `s` is not a vector of the smaller size.

    Example:
      >>> diagsvd(np.array([3, 2]), 2, 3)
      Array([[3, 0, 0],
             [0, 2, 0]], dtype=int32)

    Source: `scipy.linalg.diagsvd`.
    """
    values = array_of(s, "diagsvd")
    rows, columns = natural("diagsvd", "M", M, 0), natural("diagsvd", "N", N, 0)
    k = min(rows, columns)
    if values.aval.shape != (k,):
        raise ShapeError(f"diagsvd: s must have {k} elements, got {values.aval}")
    full = fnp.zeros((rows, columns), values.aval.dtype)
    at = np.arange(k)
    out: Array = full.at[at, at].set(values)
    return out
