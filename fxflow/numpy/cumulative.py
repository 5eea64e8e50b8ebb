"""Running sums and products."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike, DTypeLike, array_of, convert, no_out
from fxflow.numpy.nan_reductions import without_nan
from fxflow.numpy.reductions import accumulated


def _cumulated(name: str, array: Any, axis: int) -> Array:
    """Returns running sums or products; of bools, running or's and and's."""
    products = name.endswith("prod")
    if dtypes.is_bool(array.aval.dtype):
        return lax.cummin(array, axis) if products else lax.cummax(array, axis)
    return lax.cumprod(array, axis) if products else lax.cumsum(array, axis)


def _running(name: str, a: Any, axis: Any, dtype: Any, out: Any) -> Array:
    no_out(name, out)
    array = array_of(a, name, dtype)
    if axis is None:
        array = lax.reshape(array, (array.aval.size,))
        axis = 0
    axis = canonical_axis(name, axis, array.aval.ndim)
    if dtype is not None:
        array = convert(array, dtypes.dtype(dtype))
    elif dtypes.is_bool(array.aval.dtype):
        array = convert(array, dtypes.default_int())
    array = convert(array, array.aval.dtype)
    return _cumulated(name, array, axis)


_running_docs = shared("""
    Args:
      a: array-like[...].
      axis: the axis; None flattens the array first.
      dtype: dtype of the result; None: that of `a`, bools made integers. `bool` gives
        whether any (or all) of the elements so far are not zero.
      out: not supported: arrays are immutable.

    Returns:
      Array of the shape of `a`, or of one axis if `axis` is None.

    Raises:
      AxisError: the axis is out of range.
      ArgumentError: `a` is not an array, or `out` is given.

    Source: `numpy.{name}`.
""")


@library("axis", "dtype", "out")
@_running_docs
def cumsum(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sums the elements up to each one.

    Special cases:
      Narrow integers wrap around; give a dtype to prevent it.

    Example:
      >>> cumsum(np.array([2, 4, 3]))
      Array([2, 6, 9], dtype=int32)
    """
    return _running("cumsum", a, axis, dtype, out)


@library("axis", "dtype", "out")
@_running_docs
def cumprod(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Multiplies the elements up to each one.

    Special cases:
      Narrow integers wrap around; give a dtype to prevent it.

    Example:
      >>> cumprod(np.array([2, 4, 3]))
      Array([ 2,  8, 24], dtype=int32)
    """
    return _running("cumprod", a, axis, dtype, out)


@library("axis", "dtype", "out")
@_running_docs
def nancumsum(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sums the elements up to each one, leaving out nan.

    Special cases:
      nan counts as 0. Narrow integers wrap around; give a dtype to prevent it.

    Example:
      >>> nancumsum(np.array([2.0, np.nan, 3.0]))
      Array([2., 2., 5.], dtype=float32)
    """
    return _running(
        "nancumsum", without_nan("nancumsum", a, 0, dtype), axis, dtype, out
    )


@library("axis", "dtype", "out")
@_running_docs
def nancumprod(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Multiplies the elements up to each one, leaving out nan.

    Special cases:
      nan counts as 1. Narrow integers wrap around; give a dtype to prevent it.

    Example:
      >>> nancumprod(np.array([2.0, np.nan, 3.0]))
      Array([2., 2., 6.], dtype=float32)
    """
    return _running(
        "nancumprod", without_nan("nancumprod", a, 1, dtype), axis, dtype, out
    )


def _with_initial(
    name: str, x: Any, axis: Any, dtype: Any, include_initial: bool, first: int
) -> Array:
    array = array_of(x, name, dtype)
    if not array.aval.ndim:
        raise ShapeError(f"{name}: a number has no axis: got {array.aval}")
    if axis is None:
        if array.aval.ndim != 1:
            raise ArgumentError(f"{name}: axis is needed for {array.aval}")
        axis = 0
    axis = canonical_axis(name, axis, array.aval.ndim)
    # The array API widens narrow integers; `cumsum` above keeps them, as JAX.
    _, result = accumulated(array, dtype)
    array = convert(array, result)
    out = _cumulated(name, array, axis)
    if not include_initial:
        return out
    shape = list(out.aval.shape)
    shape[axis] = 1
    return lax.concatenate([lax.full(tuple(shape), first, result), out], axis)


_array_api_docs = shared("""
    Args:
      x: array-like[...].
      axis: the axis; may be None if there is only one.
      dtype: dtype of the result; None: that of `x`, narrow integers widened.

    Returns:
      Array of the shape of `x`, but for the initial element.

    Raises:
      AxisError: the axis is out of range.
      ArgumentError: `x` has several axes and none is named.
      ShapeError: `x` is a number.

    Source: the array API standard.
""")


@library("axis", "dtype", "include_initial")
@_array_api_docs
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Sums the elements up to each one along an axis.

    Args:
      include_initial: whether the result starts with 0, and is one longer.

    Example:
      >>> cumulative_sum(np.array([2, 4, 3]), include_initial=True)
      Array([0, 2, 6, 9], dtype=int32)
    """
    return _with_initial("cumulative_sum", x, axis, dtype, include_initial, 0)


@library("axis", "dtype", "include_initial")
@_array_api_docs
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Multiplies the elements up to each one along an axis.

    Args:
      include_initial: whether the result starts with 1, and is one longer.

    Example:
      >>> cumulative_prod(np.array([2, 4, 3]), include_initial=True)
      Array([ 1,  2,  8, 24], dtype=int32)
    """
    return _with_initial("cumulative_prod", x, axis, dtype, include_initial, 1)
