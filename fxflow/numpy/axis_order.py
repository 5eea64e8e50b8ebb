"""The same elements with their axes in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.lax.axes import canonical_axes, canonical_axis, hashable
from fxflow.numpy._operands import ArrayLike, array_of


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Puts the axes in another order.

    Args:
      a: array-like.
      axes: axis `i` of the result is axis `axes[i]` of `a`. None reverses them.

    Returns:
      Array of the dtype of `a`, its lengths permuted.

    Raises:
      AxisError: `axes` does not name each axis once.

    Example:
      >>> transpose(np.zeros((2, 3))).shape
      (3, 2)

    Source: `numpy.transpose`.
    """
    if axes is not None and type(axes) is not tuple:
        axes = tuple(axes)
    return _transpose(a, axes)


@library("axes")
def _transpose(a: Any, axes: Any) -> Array:
    a = array_of(a, "transpose")
    ndim = a.aval.ndim
    if axes is None:
        order = tuple(range(ndim))[::-1]
    else:
        if len(axes) != ndim:
            raise AxisError(
                f"transpose: axes must name each of the {ndim} axes of {a.aval} once, "
                f"got {axes}"
            )
        order = canonical_axes("transpose", axes, ndim, "axes")
    return lax.transpose(a, order)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swaps the last two axes.

    Args:
      x: array-like with two axes or more.

    Returns:
      Array of shape `(..., n, m)`.

    Raises:
      ShapeError: `x` has fewer axes.

    Example:
      >>> matrix_transpose(np.zeros((2, 3, 4))).shape
      (2, 4, 3)

    Source: `numpy.matrix_transpose`; the array API standard.
    """
    return _matrix_transpose(x)


@library()
def _matrix_transpose(x: Any) -> Array:
    x = array_of(x, "matrix_transpose")
    ndim = x.aval.ndim
    if ndim < 2:
        raise ShapeError(f"matrix_transpose: needs two axes or more, got {x.aval}")
    return lax.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


@library("axis1", "axis2")
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Swaps two axes.

    Args:
      a: array-like.
      axis1: the first axis.
      axis2: the second axis.

    Returns:
      Array.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> swapaxes(np.zeros((2, 3, 4)), 0, 2).shape
      (4, 3, 2)

    Source: `numpy.swapaxes`.
    """
    a = array_of(a, "swapaxes")
    order = list(range(a.aval.ndim))
    i = canonical_axis("swapaxes", axis1, a.aval.ndim, "axis1")
    j = canonical_axis("swapaxes", axis2, a.aval.ndim, "axis2")
    order[i], order[j] = j, i
    return lax.transpose(a, order)


def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """Moves axes to other positions; the others keep their order.

    Args:
      a: array-like.
      source: int or sequence of ints: where the axes are.
      destination: as many: where they go.

    Returns:
      Array.

    Raises:
      AxisError: an axis is out of range or repeated.
      ArgumentError: the numbers of axes differ.

    Example:
      >>> moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
      (3, 4, 2)

    Source: `numpy.moveaxis`.
    """
    return _moveaxis(a, hashable(source), hashable(destination))


@library("source", "destination")
def _moveaxis(a: Any, source: Any, destination: Any) -> Array:
    a = array_of(a, "moveaxis")
    ndim = a.aval.ndim
    old = canonical_axes("moveaxis", source, ndim, "source")
    new = canonical_axes("moveaxis", destination, ndim, "destination")
    if len(old) != len(new):
        raise ArgumentError(
            f"moveaxis: source {source} and destination {destination} must name as "
            "many "
            "axes"
        )
    order = [d for d in range(ndim) if d not in old]
    # By destination, so that no later insertion moves an earlier one.
    for to, axis in sorted(zip(new, old, strict=True)):
        order.insert(to, axis)
    return lax.transpose(a, order)


@library("axis", "start")
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Moves an axis back until it lies before another.

    Args:
      a: array-like.
      axis: which.
      start: the axis before which it goes.

    Returns:
      Array.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> rollaxis(np.zeros((2, 3, 4)), 2).shape
      (4, 2, 3)

    Source: `numpy.rollaxis`.
    """
    a = array_of(a, "rollaxis")
    ndim = a.aval.ndim
    axis = canonical_axis("rollaxis", axis, ndim)
    if not -ndim <= start <= ndim:
        raise AxisError(f"rollaxis: start {start} is out of range for {a.aval}")
    start = start + ndim if start < 0 else start
    if axis < start:
        start -= 1
    order = [d for d in range(ndim) if d != axis]
    order.insert(start, axis)
    return lax.transpose(a, order)
