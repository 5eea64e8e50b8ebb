"""Where the greatest and the least elements are."""

from __future__ import annotations

import functools
from typing import Any

from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.docs import shared
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.eager import library
from fxflow.errors import ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike, array_of, no_out


def _place(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    no_out(name, out)
    array = array_of(a, name)
    ndim = array.aval.ndim
    find = lax.argmax if name == "argmax" else lax.argmin
    if dtypes.is_complex(array.aval.dtype):
        find = functools.partial(_complex_place, name)
    if axis is None:
        flat = lax.reshape(array, (array.aval.size,))
        _require_elements(name, flat.aval, 0)
        index = find(flat, 0, dtypes.default_int())
        return lax.expand_dims(index, tuple(range(ndim))) if keepdims else index
    place = canonical_axis(name, axis, ndim)
    _require_elements(name, array.aval, place)
    index = find(array, place, dtypes.default_int())
    return lax.expand_dims(index, (place,)) if keepdims else index


def _complex_place(name: str, x: Array, axis: int, dtype: Any) -> Array:
    """Returns where the extremum by real, then imaginary part is, or the first nan."""
    best = (lax.reduce_max if name == "argmax" else lax.reduce_min)(x, (axis,))
    hits = lax.eq(x, repeated(lax.expand_dims(best, (axis,)), x.aval.shape))
    return lax.argmax(lax.bitwise_or(hits, lax.ne(x, x)), axis, dtype)


def _require_elements(name: str, aval: Any, axis: int) -> None:
    if not aval.shape[axis]:
        raise ShapeError(f"{name}: axis {axis} of {aval} is empty")


_index_docs = shared("""
    Args:
      a: array-like[...].
      axis: along which; None is over all elements in order.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Default integer array without the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: there are no elements.

    Special cases:
      The first of equal elements; the first nan if there is one. Complex numbers are
      ordered by real part, then by imaginary part.

    Source: `numpy.{name}`.
""")


@library("axis", "out", "keepdims")
@_index_docs
def argmax(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """Returns the index of the greatest element.

    Example:
      >>> argmax(np.array([[1, 9], [7, 3]]), axis=1)
      Array([1, 0], dtype=int32)
    """
    return _place("argmax", a, axis, out, keepdims)


@library("axis", "out", "keepdims")
@_index_docs
def argmin(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """Returns the index of the least element.

    Example:
      >>> argmin(np.array([[1, 9], [7, 3]]), axis=1)
      Array([0, 1], dtype=int32)
    """
    return _place("argmin", a, axis, out, keepdims)
