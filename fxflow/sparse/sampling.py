"""Products of dense arrays at the entries of a pattern."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import typeof
from fxflow.errors import ShapeError
from fxflow.sparse import values as on_values
from fxflow.sparse.array import SparseArray
from fxflow.sparse.pattern import Pattern


def sampled_matmul(x: Any, y: Any, pattern: Pattern) -> SparseArray:
    """Returns the entries of a product of dense arrays that a pattern has.

    It takes time and memory for these entries only: for the scores of a graph's edges,
    or the gradient of `A @ y` with respect to the values of `A`.

    Args:
      x: (m, k), or (m,).
      y: (k, n), or (n,).
      pattern: of shape (m, n).

    Returns:
      A sparse array with the pattern.

    Example:
      >>> from fxflow.sparse import eye_array
      >>> A = eye_array(2, format="csr")
      >>> sampled_matmul(fnp.ones((2, 3)), fnp.ones((3, 2)), A.pattern).values
      Array([3., 3.], dtype=float32)
    """
    x, y = fnp.asarray(x), fnp.asarray(y)
    m, n = pattern.shape
    a, b = typeof(x).shape, typeof(y).shape
    fits = a[:1] == (m,) and b[-1:] == (n,) and len(a) == len(b)
    if not fits or not (len(a) == 1 or (len(a) == 2 and a[1] == b[0])):
        raise ShapeError(
            f"sampled_matmul: {typeof(x)} times {typeof(y)} is not a product of the "
            f"pattern's shape [{m},{n}]"
        )
    y = y if len(b) == 1 else fnp.swapaxes(y, 0, 1)
    return SparseArray(pattern, on_values.sampled(pattern, x, y))
