"""Reading an array between its elements."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
    promote_dtypes,
    promote_inexact,
)

_NAME = "map_coordinates"


def _mirror(i: Any, n: int) -> Any:
    """Returns places as in … 2 1 0 1 2 … n-2 n-1 n-2 …."""
    period = max(2 * (n - 1), 1)
    i = fnp.mod(i, period)
    return fnp.minimum(i, period - i)


def _reflect(i: Any, n: int) -> Any:
    """Returns places as in … 1 0 0 1 … n-1 n-1 …."""
    i = fnp.mod(i, 2 * n)
    return fnp.minimum(i, 2 * n - 1 - i)


_PLACES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, n: i,
    "nearest": lambda i, n: fnp.clip(i, 0, n - 1),
    "wrap": fnp.mod,
    "mirror": _mirror,
    "reflect": _reflect,
}


@library("order")
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Reads an array at places between its elements.

    Args:
      input: array-like[...].
      coordinates: for each axis of `input` a real array-like[*s]: where to read. Or one
        array of them.
      order: 0, the nearest element, the next one at halves, or 1, linear interpolation.
      mode: what is beyond the edges: "constant", `cval`; "nearest", the element at the
        edge; "wrap", the array again; "mirror", the array backwards, the edge once;
        "reflect", the array backwards, the edge twice.
      cval: a number.

    Returns:
      Array[*s] of the dtype of `input`; integers are rounded, halves away from 0.

    Raises:
      ArgumentError: there is no such order or mode.
      ShapeError: there are not as many coordinates as axes.

    Example:
      >>> x = np.array([0.0, 10.0, 20.0])
      >>> map_coordinates(x, [np.array([0.5, 1.75, 3.0])], 1)
      Array([ 5. , 17.5,  0. ], dtype=float32)

    Source: `scipy.ndimage.map_coordinates`, whose "constant" is "grid-constant" here,
    and "wrap" "grid-wrap".
    """
    x = array_of(input, _NAME)
    places = [promote_inexact(_NAME, c)[0] for c in coordinates]
    if len(places) != x.aval.ndim:
        raise ShapeError(
            f"{_NAME}: there must be coordinates for each axis of {x.aval}, got "
            f"{len(places)}"
        )
    if mode not in _PLACES:
        known = ", ".join(f'"{m}"' for m in _PLACES)
        raise ArgumentError(f"{_NAME}: mode must be one of {known}, got {mode!r}")
    if order not in (0, 1):
        raise ArgumentError(f"{_NAME}: order must be 0 or 1, got {order!r}")
    dtype = x.aval.dtype
    if order:
        x = promote_dtypes(_NAME, x, *places)[0]
    outside = array_of(cval, _NAME)
    if dtypes.is_integer(x.aval.dtype) and dtypes.is_floating(outside.aval.dtype):
        outside = lax.round(outside)
    outside = convert(outside, x.aval.dtype)
    # For each axis: places, whether they are inside, weights (order 0 has none and
    # reads elements as they are).
    axes: list[list[Any]] = []
    for c, n in zip(places, x.aval.shape, strict=True):
        if order:
            below = lax.floor(c)
            part = c - below
            taps: list[tuple[Any, Any]] = [(below, 1 - part), (below + 1, part)]
        else:
            # Halves go up, of what is beyond the edges once it is mirrored.
            if mode in ("mirror", "reflect"):
                c = _PLACES[mode](c, n)
            below = lax.floor(c)
            nearest = fnp.where(c - below >= 0.5, below + 1, below)
            if mode in ("mirror", "reflect"):
                nearest = fnp.clip(nearest, 0, n - 1)
            taps = [(nearest, None)]
        axis = []
        for place, weight in taps:
            i = _PLACES[mode](convert(place, dtypes.int32), n)
            axis.append((i, (i >= 0) & (i < n), weight))
        axes.append(axis)
    parts = []
    for corner in itertools.product(*axes):
        value = x[tuple(i for i, _, _ in corner)] if corner else x
        if mode == "constant":
            inside = functools.reduce(operator.and_, (ok for _, ok, _ in corner), True)
            value = fnp.where(inside, value, outside)
        weights = [w for _, _, w in corner if w is not None]
        parts.append(functools.reduce(operator.mul, weights, value))
    out = functools.reduce(operator.add, parts)
    if order and dtypes.is_integer(dtype):
        out = lax.round(out)  # halves go away from 0
    return convert(out, dtype)
