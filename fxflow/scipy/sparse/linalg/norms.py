"""Norms and bands of sparse arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.scipy.sparse.linalg.interface import matrix_of
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.interchange import is_scipy


def norm(x: Any, ord: Any = None, axis: int | None = None) -> Array:
    """Returns a norm of a sparse array, or of its rows or columns.

    Args:
      x: sparse array.
      ord: of the array: "fro" (None), 1, -1, inf or -inf; of rows and columns: 2
        (None), 1, inf, -inf, 0 (how many elements are not 0) or any other number.
      axis: None: of the array; 0: of each column; 1: of each row.

    Returns:
      A scalar, or a vector of norms.

    Raises:
      ArgumentError: unknown norm.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> A = csr_array(fnp.array([[3.0, 0.0], [4.0, 1.0]]))
      >>> norm(A, 1), norm(A, axis=1).round(3)
      (Array(7., dtype=float32), Array([3.   , 4.123], dtype=float32))

    Source: `scipy.sparse.linalg.norm`.
    """
    x = matrix_of("norm", "x", x, square=False)
    if not isinstance(x, SparseArray):
        found: Array = fnp.linalg.norm(x, ord, axis)
        return found
    sizes = abs(x)
    if axis is None:
        if ord in (None, "fro", "f"):
            return fnp.sqrt((sizes**2).sum())
        if ord in (1, -1):
            sums = sizes.sum(0)
        elif ord in (math.inf, -math.inf):
            sums = sizes.sum(1)
        else:
            raise ArgumentError(
                f"norm: ord of a sparse array is one of fro, 1, -1, inf, -inf: {ord!r}"
            )
        return fnp.max(sums) if ord > 0 else fnp.min(sums)
    if ord in (None, 2):
        return fnp.sqrt((sizes**2).sum(axis))
    if ord == 0:
        return x.count_nonzero(axis)
    if ord == math.inf:
        return sizes.max(axis)
    if ord == -math.inf:
        return sizes.min(axis)
    if not isinstance(ord, int | float) or ord < 0:
        raise ArgumentError(f"norm: there is no norm {ord!r} of rows and columns")
    powers = sizes if ord == 1 else sizes.power(ord)
    sums = powers.sum(axis)
    return sums if ord == 1 else sums ** (1 / ord)


def spbandwidth(A: Any) -> tuple[int, int]:
    """Returns how far entries lie from the main diagonal.

    Args:
      A: sparse array; what counts is its pattern, zeros that are stored included.

    Returns:
      How many diagonals below and above the main one have entries.

    Raises:
      ArgumentError: `A` is not a sparse array.

    Example:
      >>> from fxflow.sparse import diags_array
      >>> spbandwidth(diags_array([fnp.ones(3), fnp.ones(4)], offsets=[-1, 0]))
      (1, 0)

    Source: `scipy.sparse.linalg.spbandwidth`.
    """
    row, col = _sparse("spbandwidth", A).coords
    far = col.astype(np.int64) - row
    return max(0, -int(far.min(initial=0))), max(0, int(far.max(initial=0)))


def is_sptriangular(A: Any) -> tuple[bool, bool]:
    """Returns whether a sparse array is lower, and whether it is upper triangular.

    Args:
      A: sparse array; what counts is its pattern, zeros that are stored included.

    Returns:
      Both answers; both are true for a diagonal array.

    Raises:
      ArgumentError: `A` is not a sparse array.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> is_sptriangular(csr_array(fnp.array([[3.0, 0.0], [4.0, 1.0]])))
      (True, False)

    Source: `scipy.sparse.linalg.is_sptriangular`.
    """
    below, above = spbandwidth(A)
    return above == 0, below == 0


def _sparse(name: str, A: Any) -> SparseArray:
    if is_scipy(A):
        A = from_scipy(A)
    if not isinstance(A, SparseArray):
        raise ArgumentError(f"{name}: A must be a sparse array, got {A!r}")
    return A
