"""Flat positions of elements, and their indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import constant
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, array_of, convert
from fxflow.numpy.creation import asarray


def unravel_index(indices: Any, shape: ShapeLike) -> tuple[Array, ...]:
    """Turns numbers of elements, counted in order, into indices along each axis.

    Args:
      indices: array-like of integers; those out of range are clipped.
      shape: int or sequence of ints.

    Returns:
      For each axis an array of the shape of `indices`.

    Raises:
      DtypeError: `indices` are not integers.

    Example:
      >>> unravel_index(7, (3, 4))
      (Array(1, dtype=int32, weak_type=True), Array(3, dtype=int32, weak_type=True))

    Source: `numpy.unravel_index`.
    """
    return _unravel_index(
        asarray(indices) if isinstance(indices, list | tuple) else indices,
        shape_or_length("unravel_index", shape),
    )


@library("shape")
def _unravel_index(indices: Any, shape: tuple[int, ...]) -> tuple[Array, ...]:
    x = array_of(indices, "unravel_index")
    if not dtypes.is_integer(x.aval.dtype):
        raise DtypeError(f"unravel_index: takes integers, got {x.aval}")
    total = math.prod(shape)
    if dtypes.is_signed(x.aval.dtype):
        x = lax.select(lax.lt(x, 0), lax.add(x, total), x)
    x = lax.clamp(0, x, max(total - 1, 0))
    out = []
    for length in shape[::-1]:
        out.append(lax.rem(x, max(length, 1)))
        x = lax.div(x, max(length, 1))
    return tuple(out[::-1])


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Any,
    mode: str | tuple[str, ...] = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Turns indices along each axis into numbers of elements, counted in order.

    Args:
      multi_index: sequence of array-likes of integers, one for each axis.
      dims: lengths of the axes.
      mode: what indices out of range mean: "raise" (an error; they must be concrete),
        "wrap" or "clip"; or one of these for each axis.
      order: "C" (last axis fastest) or "F" (first axis fastest).
      dtype: dtype of the result (default: that of the indices).

    Returns:
      Array of the shape to which the indices broadcast.

    Raises:
      ArgumentError: an index is out of range, or unknown mode or order.
      DtypeError: an index is not of integers.

    Example:
      >>> ravel_multi_index((np.array([0, 2]), np.array([1, 3])), (3, 4))
      Array([ 1, 11], dtype=int32)

    Source: `numpy.ravel_multi_index`.
    """
    shape = shape_or_length("ravel_multi_index", dims)
    given = [asarray(i) for i in multi_index]
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    if len(given) != len(shape) or len(modes) != len(shape):
        raise ArgumentError(
            f"ravel_multi_index: {len(given)} index arrays and {len(modes)} modes do "
            "not "
            f"fit {len(shape)} axes"
        )
    if order not in ("C", "F"):
        raise ArgumentError(
            f"ravel_multi_index: order must be 'C' or 'F', got {order!r}"
        )
    out: Any = None
    for d in range(len(shape)):
        i, length = given[d], shape[d]
        if not dtypes.is_integer(i.dtype):
            raise DtypeError(f"ravel_multi_index: takes integers, got {i.aval}")
        if modes[d] == "raise":
            values = np.asarray(i)
            if values.size and (values.min() < 0 or values.max() >= length):
                raise ArgumentError(
                    f"ravel_multi_index: an index is out of range for axis {d} of "
                    "length "
                    f"{length}: pass mode='wrap' or mode='clip'"
                )
        elif modes[d] == "clip":
            i = lax.clamp(0, i, length - 1)
        elif modes[d] == "wrap":
            i = i % length
        else:
            raise ArgumentError(
                "ravel_multi_index: mode must be 'raise', 'wrap' or 'clip', got "
                f"{modes[d]!r}"
            )
        rest = shape[d + 1 :] if order == "C" else shape[:d]
        term = i * math.prod(rest)
        out = term if out is None else out + term
    if out is None:
        out = constant(0, dtypes.default_int())
    return out if dtype is None else convert(out, dtypes.dtype(dtype))
