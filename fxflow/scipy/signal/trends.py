"""Taking trends out of data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import canonical_axis, int_tuple
from fxflow.numpy._operands import ArrayLike, promote_inexact

_TYPES = {"linear": "linear", "l": "linear", "constant": "constant", "c": "constant"}


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Any = 0,
    overwrite_data: None = None,
) -> Array:
    """Returns data without its mean, or without the line that fits it best.

    Args:
      data: array-like[...].
      axis: along which one.
      type: "linear" or "constant".
      bp: int or ints: where another line starts; "constant" ignores it.
      overwrite_data: has no meaning here.

    Returns:
      Float or complex array of the shape of `data`.

    Raises:
      ArgumentError: unknown type, a break lies beyond the data, or `overwrite_data` is
        given.
      AxisError: an axis is out of range.

    Example:
      >>> detrend(np.array([1.0, 2.0, 3.0, 6.0]), type="constant")
      Array([-2., -1.,  0.,  3.], dtype=float32)

    Source: `scipy.signal.detrend`.
    """
    if overwrite_data is not None:
        raise ArgumentError("detrend: arrays are immutable: omit overwrite_data")
    if type not in _TYPES:
        raise ArgumentError(
            f'detrend: type must be "linear" or "constant", got {type!r}'
        )
    breaks = bp.tolist() if isinstance(bp, np.ndarray) else bp
    if not isinstance(breaks, list | tuple):
        breaks = (breaks,)
    breaks = int_tuple("detrend", "bp", breaks)
    return _detrended(data, axis=axis, type=_TYPES[type], breaks=breaks)


@library("axis", "type", "breaks")
def _detrended(data: Any, *, axis: Any, type: str, breaks: tuple[int, ...]) -> Array:
    (x,) = promote_inexact("detrend", data)
    axis = canonical_axis("detrend", axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if not x.aval.size:
        return x
    if type == "constant":
        return x - fnp.mean(x, axis, keepdims=True)
    edges = sorted({0, n, *breaks})
    if edges[0] < 0 or edges[-1] > n:
        raise ArgumentError(
            f"detrend: bp must lie in 0 … {n}, the length of the data, got {breaks}"
        )
    lines = fnp.moveaxis(x, axis, -1)
    parts = []
    for start, stop in itertools.pairwise(edges):
        part = lines[..., start:stop]
        part = part - fnp.mean(part, -1, keepdims=True)
        # Times between -1 and 1, whose mean is 0: the slope is one quotient.
        times = np.linspace(-1, 1, stop - start) if stop - start > 1 else np.zeros(1)
        scale = times / max(float(times @ times), 1.0 if len(times) == 1 else 0.0)
        slope = fnp.sum(part * scale.astype(part.dtype), -1, keepdims=True)
        parts.append(part - slope * times.astype(part.dtype))
    return fnp.moveaxis(fnp.concatenate(parts, -1), -1, axis)
