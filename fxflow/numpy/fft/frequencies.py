"""The frequencies of a transform, and their order."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, as_array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import canonical_axes, canonical_axis
from fxflow.numpy._operands import ArrayLike, DTypeLike, array_of, convert
from fxflow.numpy.arranging import roll
from fxflow.numpy.creation import asarray


def _frequencies(
    name: str, n: Any, d: Any, dtype: Any, device: Any, numbers: np.ndarray[Any, Any]
) -> Array:
    result = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
    if isinstance(d, int | float):
        return asarray((numbers / (n * d)).astype(result), device=device)
    step = convert(array_of(d, name), result)
    out: Array = as_array(numbers.astype(result)) / (step * n)
    return out


def _points(name: str, n: Any) -> int:
    try:
        count = operator.index(n)
    except TypeError as error:
        raise ArgumentError(f"{name}: n must be an integer, got {n!r}") from error
    if count < 1:
        raise ArgumentError(f"{name}: n must be positive, got {count}")
    return count


def fftfreq(
    n: int, d: Any = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """Returns the frequencies of `fft`.

    Args:
      n: number of points.
      d: distance of the points.
      dtype: dtype of the result; None is the default float.
      device: where the result is put.

    Returns:
      Float array[n]: 0, positive, then negative frequencies, in cycles.

    Raises:
      ArgumentError: `n` is not a positive integer.

    Example:
      >>> fftfreq(4)
      Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)

    Source: `numpy.fft.fftfreq`.
    """
    n = _points("fftfreq", n)
    numbers = np.r_[np.arange((n + 1) // 2), np.arange(-(n // 2), 0)].astype(np.float64)
    return _frequencies("fftfreq", n, d, dtype, device, numbers)


def rfftfreq(
    n: int, d: Any = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """Returns the frequencies of `rfft`.

    Args:
      n: number of points.
      d: distance of the points.
      dtype: dtype of the result; None is the default float.
      device: where the result is put.

    Returns:
      Float array[n // 2 + 1]: 0 and positive frequencies, in cycles.

    Raises:
      ArgumentError: `n` is not a positive integer.

    Example:
      >>> rfftfreq(4)
      Array([0.  , 0.25, 0.5 ], dtype=float32)

    Source: `numpy.fft.rfftfreq`.
    """
    n = _points("rfftfreq", n)
    numbers = np.arange(n // 2 + 1).astype(np.float64)
    return _frequencies("rfftfreq", n, d, dtype, device, numbers)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Array:
    array = array_of(x, name)
    shape = array.aval.shape
    if axes is None:
        dims = tuple(range(len(shape)))
    elif isinstance(axes, tuple | list):
        dims = canonical_axes(name, axes, len(shape))
    else:
        dims = (canonical_axis(name, axes, len(shape)),)
    steps = tuple(sign * shape[i] // 2 if sign > 0 else -(shape[i] // 2) for i in dims)
    return roll(array, steps, dims) if dims else array


@library("axes")
def fftshift(x: ArrayLike, axes: Any = None) -> Array:
    """Moves frequency 0 to the middle.

    Args:
      x: array-like[...].
      axes: int, sequence of ints, or None for all.

    Returns:
      Array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> fftshift(np.array([0, 1, 2, -2, -1]))
      Array([-2, -1,  0,  1,  2], dtype=int32)

    Source: `numpy.fft.fftshift`.
    """
    return _shifted("fftshift", x, axes, 1)


@library("axes")
def ifftshift(x: ArrayLike, axes: Any = None) -> Array:
    """Moves frequency 0 from the middle to the front.

    Args:
      x: array-like[...].
      axes: int, sequence of ints, or None for all.

    Returns:
      Array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> ifftshift(np.array([-2, -1, 0, 1, 2]))
      Array([ 0,  1,  2, -2, -1], dtype=int32)

    Source: `numpy.fft.ifftshift`.
    """
    return _shifted("ifftshift", x, axes, -1)
