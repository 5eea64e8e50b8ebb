"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.lax.axes import canonical_axes
from fxflow.numpy._operands import ArrayLike, Axes, convert, promote_inexact
from fxflow.numpy.elementary import flat_at_zero
from fxflow.numpy.polar_factors import nuclear_norm
from fxflow.numpy.reductions import accumulated, length, max, min, sum
from fxflow.numpy.selection import choose_between


def _greatest(x: Array, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    """Returns the greatest of non-negative numbers; of none, 0."""
    empty = not all(x.aval.shape[i] for i in axes)
    return max(x, axis=axes, keepdims=keepdims, initial=0 if empty else None)


def _least(x: Array, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    return min(x, axis=axes, keepdims=keepdims)


def _vector(x: Array, order: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if order is None or order == 2:
        return length(x, axes, keepdims)
    if order == math.inf:
        return _greatest(lax.abs(x), axes, keepdims)
    if order == -math.inf:
        return min(lax.abs(x), axis=axes, keepdims=keepdims)
    if order == 0:
        counts = lax.ne(x, lax.full_like(x, 0))
        dtype = dtypes.to_real(x.aval.dtype)
        return sum(convert(counts, dtype), axis=axes, keepdims=keepdims)
    if order == 1:
        return sum(lax.abs(x), axis=axes, keepdims=keepdims)
    size = lax.abs(x)
    wide, dtype = accumulated(size, None)
    # By quotients with the element that counts most: powers would over- or underflow.
    if order > 0:
        most = max(wide, axis=axes, keepdims=True, initial=0)
    else:
        most = min(wide, axis=axes, keepdims=True, initial=math.inf)
    usable = (most > 0) & (most < math.inf)
    unit = lax.stop_gradient(choose_between(usable, most, lax.full_like(most, 1)))
    total = sum((wide / unit) ** order, axis=axes, keepdims=keepdims)
    unit = lax.reshape(unit, total.aval.shape)

    def root(x: Any) -> Any:
        return x ** (1 / order)

    # The p-th root is infinitely steep at 0, where the norm has 0 as a subgradient.
    out = flat_at_zero(root, total) if order > 0 else root(total)
    return convert(out * unit, dtype)


def _matrix(x: Array, order: Any, rows: int, columns: int, keepdims: bool) -> Array:
    if order is None or order == "fro":
        return _vector(x, 2, (rows, columns), keepdims)
    if order in (1, -1, math.inf, -math.inf):
        inner, outer = (rows, columns) if abs(order) == 1 else (columns, rows)
        pick: Callable[..., Array] = _greatest if order > 0 else _least
        # With keepdims, `outer` still names the right axis.
        total = sum(lax.abs(x), axis=inner, keepdims=True)
        out = pick(total, (outer,), True)
    elif order in (2, -2, "nuc"):
        rest = tuple(i for i in range(x.aval.ndim) if i not in (rows, columns))
        moved = lax.transpose(x, (*rest, rows, columns))
        if order == "nuc":
            out = nuclear_norm(moved)
        else:
            values: Any = lax.linalg.svd(moved, compute_uv=False)
            pick = _greatest if order > 0 else _least
            out = pick(values, (values.aval.ndim - 1,))
        if keepdims:
            out = lax.expand_dims(out, tuple(sorted((rows, columns))))
        return out
    else:
        raise ArgumentError(
            "norm: ord of a matrix must be None, 'fro', 'nuc', 1, -1, 2, -2, inf or "
            f"-inf, got {order!r}"
        )
    return out if keepdims else lax.squeeze(out, (rows, columns))


@library("ord", "axis", "keepdims")
def norm(
    x: ArrayLike,
    ord: float | str | None = None,
    axis: Axes = None,
    keepdims: bool = False,
) -> Array:
    """Returns the norm of vectors or matrices.

    Args:
      x: array-like[...].
      ord: of vectors: None or 2, inf, -inf, 0 (how many are not zero), or another
        number; of matrices: None or "fro", "nuc", 1, -1, 2, -2, inf, -inf.
      axis: int: vectors lie along it; pair: the axes of matrices; None: all elements
        are one vector, or, with `ord`, the array is one vector or matrix.
      keepdims: whether to keep the reduced axes, with length 1.

    Returns:
      Real array without the axes.

    Raises:
      ArgumentError: unknown norm.
      AxisError: an axis is out of range or repeated.
      ShapeError: the array is neither vector nor matrix, and `ord` is given; or the
        least of no elements is asked for.

    Special cases:
      The greatest of no elements is 0.

    Special cases:
      The derivative at 0 is 0, as a slope that the kink there has.

    Example:
      >>> norm(np.array([3.0, 4.0]))
      Array(5., dtype=float32)

    Source: `numpy.linalg.norm`.
    """
    (array,) = promote_inexact("norm", x)
    ndim = array.aval.ndim
    if axis is None and ord is None:
        return _vector(array, 2, tuple(range(ndim)), keepdims)
    if axis is None and ndim not in (1, 2):
        raise ShapeError(
            f"norm: with ord, the array is a vector or a matrix, or axis is given: got "
            f"{array.aval}"
        )
    axes = canonical_axes("norm", axis, ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ArgumentError(f"norm: ord {ord!r} is for matrices, got one axis")
        return _vector(array, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix(array, ord, *axes, keepdims)
    raise AxisError(f"norm: axis names one axis or two, got {axis}")


@library("axis", "keepdims", "ord")
def vector_norm(
    x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: float | str = 2
) -> Array:
    """Returns the norm of vectors.

    Args:
      x: array-like[...].
      axis: int, tuple of ints, or None: the axes along which a vector's elements lie.
      keepdims: whether to keep the reduced axes, with length 1.
      ord: number, inf or -inf; 0 counts what is not zero.

    Returns:
      Real array without the axes.

    Raises:
      ArgumentError: unknown norm.
      AxisError: an axis is out of range or repeated.

    Special cases:
      The derivative at 0 is 0, as a slope that the kink there has.

    Example:
      >>> vector_norm(np.array([3.0, -4.0]), ord=1)
      Array(7., dtype=float32)

    Source: the array API standard.
    """
    if isinstance(ord, str):
        raise ArgumentError(f"vector_norm: ord must be a number, got {ord!r}")
    (array,) = promote_inexact("vector_norm", x)
    axes = canonical_axes("vector_norm", axis, array.aval.ndim)
    return _vector(array, ord, axes, keepdims)


@library("keepdims", "ord")
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: float | str = "fro"
) -> Array:
    """Returns the norm of matrices in the last two axes.

    Args:
      x: array-like[..., m, n].
      keepdims: whether the two axes stay, with length 1.
      ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Returns:
      Real array[...].

    Raises:
      ArgumentError: unknown norm.
      ShapeError: there are fewer than two axes.

    Special cases:
      The derivative at 0 is 0, as a slope that the kink there has.

    Example:
      >>> matrix_norm(np.array([[3.0, 0.0], [0.0, 4.0]]), ord=2)
      Array(4., dtype=float32)

    Source: the array API standard.
    """
    (array,) = promote_inexact("matrix_norm", x)
    ndim = array.aval.ndim
    if ndim < 2:
        raise ShapeError(f"matrix_norm: matrices have two axes, got {array.aval}")
    return _matrix(array, ord, ndim - 2, ndim - 1, keepdims)
