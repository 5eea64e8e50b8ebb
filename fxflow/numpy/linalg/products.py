"""Products and powers of matrices; products and diagonals in the array API's form."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy import diagonals, outer_products
from fxflow.numpy._operands import ArrayLike, DTypeLike, array_of, promote_dtypes
from fxflow.numpy.linalg._matrices import identity_like
from fxflow.numpy.linalg.solving import inv
from fxflow.numpy.products import matmul


@library("n")
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Multiplies matrices with themselves, by repeated squaring.

    Args:
      a: array-like[..., n, n].
      n: how many times; of negative numbers the inverse is taken first.

    Returns:
      Array[..., n, n].

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: `n` is not an integer.

    Example:
      >>> matrix_power(np.array([[1, 1], [0, 1]]), 5)
      Array([[1, 5],
             [0, 1]], dtype=int32)

    Source: `numpy.linalg.matrix_power`.
    """
    try:
        n = operator.index(n)
    except TypeError as error:
        raise ArgumentError(f"matrix_power: n must be an integer, got {n!r}") from error
    x = array_of(a, "matrix_power")
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        raise ShapeError(f"matrix_power: takes square matrices, got {x.aval}")
    if n == 0:
        return identity_like(x, x.aval.shape[-1])
    if n < 0:
        x, n = inv(x), -n
    out = None
    while n > 1:
        if n % 2:
            out = x if out is None else matmul(out, x)
        x, n = matmul(x, x), n // 2
    return x if out is None else matmul(out, x)


# -- chains ----------------------------------------------------------------------------


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
    """Multiplies matrices in the order that takes the fewest operations.

    Args:
      arrays: array-likes with two axes; the first and the last may have one.
      precision: see `fxflow.lax.dot_general`.

    Returns:
      Array[m, n]; without the axis where the first or last operand is a vector.

    Raises:
      ArgumentError: there are fewer than two arrays.
      ShapeError: an operand has the wrong number of axes, or the shapes are
        incompatible.

    Example:
      >>> a = np.array([[1, 2], [3, 4]])
      >>> multi_dot([a, a, np.array([1, 0])])
      Array([ 7, 15], dtype=int32)

    Source: `numpy.linalg.multi_dot`; Cormen et al., Introduction to Algorithms, 15.2.
    """
    operands = list(arrays)
    if len(operands) < 2:
        raise ArgumentError(
            f"multi_dot: takes at least two arrays, got {len(operands)}"
        )
    return _multi_dot(precision, *operands)


@library("precision")
def _multi_dot(precision: Any, *arrays: Any) -> Array:
    given = promote_dtypes("multi_dot", *arrays)
    last = len(given) - 1
    for i, x in enumerate(given):
        if x.aval.ndim != 2 and not (x.aval.ndim == 1 and i in (0, last)):
            raise ShapeError(
                "multi_dot: operands must have two axes (the first and the last may "
                f"have one), got {x.aval}"
            )
    # Lengths of the axes between operands; a vector at an end counts as one row.
    first, end = given[0].aval.shape, given[last].aval.shape
    lengths = [first[0] if len(first) == 2 else 1]
    lengths += [x.aval.shape[0] for x in given[1:]]
    lengths.append(end[1] if len(end) == 2 else 1)
    split = _splits(tuple(lengths))

    def chain(i: int, j: int) -> Array:
        if i == j:
            return given[i]
        k = split[i, j]
        return matmul(chain(i, k), chain(k + 1, j), precision=precision)

    return chain(0, last)


@functools.lru_cache(256)
def _splits(lengths: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Returns where to split each part of a chain of matrices."""
    count = len(lengths) - 1
    # Dynamic programming over all parts (Cormen et al., 15.2).
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            cost[i, j], split[i, j] = min(
                (
                    cost[i, k]
                    + cost[k + 1, j]
                    + lengths[i] * lengths[k + 1] * lengths[j + 1],
                    k,
                )
                for k in range(i, j)
            )
    return split


# -- names of the array API standard ---------------------------------------------------


@library("offset")
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Returns diagonals of the last two axes.

    Args:
      x: array-like[..., m, n].
      offset: which diagonal: above (positive) or below the main one.

    Returns:
      Array[..., k].

    Raises:
      ShapeError: `x` is not a matrix.

    Example:
      >>> diagonal(np.array([[1, 2], [3, 4]]))
      Array([1, 4], dtype=int32)

    Source: `numpy.linalg.diagonal`.
    """
    return diagonals.diagonal(x, offset, -2, -1)


@library("offset", "dtype")
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sums diagonals of the last two axes.

    Args:
      x: array-like[..., m, n].
      offset: which diagonal: above (positive) or below the main one.
      dtype: dtype of the result, see `fxflow.numpy.sum`.

    Returns:
      Array[...].

    Raises:
      ShapeError: `x` is not a matrix.

    Example:
      >>> trace(np.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)

    Source: `numpy.linalg.trace`.
    """
    return diagonals.trace(x, offset, -2, -1, dtype)


@library()
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiplies each element of one vector by each of another.

    Args:
      x1: array-like[m].
      x2: array-like[n].

    Returns:
      Array[m, n].

    Raises:
      ShapeError: an operand is not a vector.

    Example:
      >>> outer(np.array([1, 2]), np.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)

    Source: `numpy.linalg.outer`.
    """
    x, y = promote_dtypes("outer", x1, x2)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ShapeError(f"outer: takes vectors, got {x.aval} and {y.aval}")
    return outer_products.outer(x, y)


@library("axis")
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Returns the cross product of vectors of 3 components.

    Args:
      x1: array-like[..., 3].
      x2: array-like[..., 3]; the other axes broadcast.
      axis: axis of the components.

    Returns:
      Array[..., 3].

    Raises:
      ShapeError: the vectors do not have 3 components.
      AxisError: the axis is out of range.

    Example:
      >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)

    Source: `numpy.linalg.cross`.
    """
    x, y = promote_dtypes("cross", x1, x2)
    for v in (x, y):
        if v.aval.shape[canonical_axis("cross", axis, v.aval.ndim)] != 3:
            raise ShapeError(f"cross: vectors must have 3 components, got {v.aval}")
    return outer_products.cross(x, y, axis=axis)
