"""Finding elements: where a condition holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes
from fxflow.core.ir.arith import constant, repeated
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import (
    ArgumentError,
    ConcretizationError,
    ShapeError,
)
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.numpy.comparisons import truth
from fxflow.numpy.selection import choose_between
from fxflow.numpy.selection import where as _where
from fxflow.numpy.shapes import ravel


def _known_size(name: str, mask: Any, size: Any) -> int:
    """Returns how many indices are reported: `size`, or as many as there are."""
    if size is not None:
        return integer(name, "size", size)
    if isinstance(mask, Tracer):
        raise ConcretizationError(
            f"{name}: the shape of the result depends on the values, and {mask.aval} "
            "is "
            f"traced. {mask.origin()} Pass size=..., the number of indices to report, "
            "and fill_value=... for those that are missing."
        )
    return int(np.count_nonzero(np.asarray(mask)))


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]:
    """Finds the indices of elements that are not zero.

    Args:
      a: array-like of one axis or more.
      size: how many indices to report, so that the shape is known when tracing: there
        are never more, and missing ones are filled.
      fill_value: for missing indices (default: 0); a number, or one for each axis.

    Returns:
      For each axis an array of the default integer, of shape `(size,)`.

    Raises:
      ConcretizationError: `a` is traced and `size` is not given.
      ShapeError: `a` is 0-d.

    Example:
      >>> nonzero(np.array([0, 3, 0, 4]))
      (Array([1, 3], dtype=int32),)

    Source: `numpy.nonzero`.
    """
    mask = truth("nonzero", array_of(a, "nonzero"))
    if not mask.ndim:
        raise ShapeError(
            "nonzero: takes arrays of one axis or more; use nonzero(atleast_1d(x))"
        )
    count = _known_size("nonzero", mask, size)
    dtype = dtypes.default_int()
    if size is None:
        return tuple(
            as_array(indices.astype(dtype)) for indices in np.asarray(mask).nonzero()
        )
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * mask.ndim
    if len(fills) != mask.ndim:
        raise ArgumentError(
            f"nonzero: fill_value must be one number or one for each of {mask.ndim} "
            f"axes, got {len(fills)}"
        )
    fills = tuple(0 if f is None else f for f in fills)
    return tuple(convert(found, dtype) for found in _nonzero(mask, fills, count))


@library("size")
def _nonzero(mask: Any, fills: Sequence[Any], size: int) -> tuple[Array, ...]:
    shape = mask.aval.shape
    total = mask.aval.size
    dtype = dtypes.int32
    if not total or not size:
        return tuple(repeated(_int32(f), (size,)) for f in fills)
    flat = lax.reshape(mask, (total,))
    ranks = lax.cumsum(lax.convert_element_type(flat, dtype), 0)
    # The i-th index is where the count of true elements first exceeds i.
    starts = lax.broadcast_in_dim(constant(0, dtype), (size,), ())
    slots = lax.select(flat, lax.sub(ranks, 1), constant(size, dtype))
    # The i-th true element writes its index to slot i; false ones write beyond the end
    # and are dropped.
    indices = lax.scatter(
        starts,
        lax.reshape(slots, (total, 1)),
        lax.iota(dtype, total),
        lax.ScatterDimensionNumbers((), (0,), (0,)),
        mode="drop",
        unique_indices=False,
    )
    found = lax.lt(lax.iota(dtype, size), lax.index_in_dim(ranks, total - 1, 0, False))
    out = []
    rest = indices
    for d in range(len(shape)):
        below = math.prod(shape[d + 1 :])
        here = lax.div(rest, max(below, 1))
        rest = lax.rem(rest, max(below, 1))
        out.append(choose_between(found, here, _int32(fills[d])))
    return tuple(out)


def _int32(value: Any) -> Any:
    return convert(array_of(value, "nonzero"), dtypes.int32)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Finds the indices of elements that are not zero, counted along one axis.

    Args:
      a: array-like.
      size: see `nonzero`.
      fill_value: see `nonzero`.

    Returns:
      Array of the default integer, of shape `(size,)`.

    Raises:
      ConcretizationError: `a` is traced and `size` is not given.

    Example:
      >>> flatnonzero(np.array([[0, 2], [3, 0]]))
      Array([1, 2], dtype=int32)

    Source: `numpy.flatnonzero`.
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Finds the indices of elements that are not zero, one index vector each.

    Args:
      a: array-like.
      size: see `nonzero`.
      fill_value: see `nonzero`.

    Returns:
      Array of the default integer, of shape `(size, a.ndim)`.

    Raises:
      ConcretizationError: `a` is traced and `size` is not given.

    Example:
      >>> argwhere(np.array([[0, 3], [5, 0]]))
      Array([[0, 1],
             [1, 0]], dtype=int32)

    Source: `numpy.argwhere`.
    """
    x = array_of(a, "argwhere")
    if not x.ndim:
        count = 1 if size is None and bool(x) else (size or 0)
        return lax.full((count, 0), 0, dtypes.default_int())
    columns = nonzero(x, size=size, fill_value=fill_value)
    return lax.concatenate([lax.reshape(c, (c.size, 1)) for c in columns], 1)


@overload
def where(
    condition: Any,
    x: None = None,
    y: None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> tuple[Array, ...]: ...


@overload
def where(condition: Any, x: Any, y: Any, /) -> Array: ...


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array | tuple[Array, ...]:
    """Takes elements from `x` where a condition is true, from `y` elsewhere.

    Args:
      condition: array-like; numbers that are not zero count as true.
      x: array-like; without it and `y`, the result is `nonzero(condition)`.
      y: array-like.
      size: without `x` and `y`: see `nonzero`.
      fill_value: without `x` and `y`: see `nonzero`.

    Returns:
      Array of the shape to which all three broadcast, of the common dtype of `x`, `y`.

    Raises:
      ShapeError: the shapes do not broadcast.
      DtypeError: the dtypes cannot be promoted to a common one.
      ArgumentError: one of `x` and `y` is missing.

    Special cases:
      The derivative flows only into what was taken; but 0 * nan is nan, so a function
      that is not finite where it is not taken must be kept from there as well.

    Example:
      >>> where(np.array([True, False]), 1.0, np.zeros(2, "f4"))
      Array([1., 0.], dtype=float32)

    Source: `numpy.where`.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError("where: takes both x and y, or neither")
    if size is not None or fill_value is not None:
        raise ArgumentError("where: size and fill_value go without x and y")
    return _where(condition, x, y)


def nonzero_mask(name: str, mask: Any) -> Any:
    """Returns a mask that is concrete.

    Raises:
      ConcretizationError: it is traced.
    """
    _known_size(name, mask, None)
    return mask
