"""Reductions that leave out nan."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import DtypeError, ShapeError
from fxflow.numpy import means, reductions
from fxflow.numpy._operands import ArrayLike, Axes, DTypeLike, array_of
from fxflow.numpy.comparisons import logical_and
from fxflow.numpy.number_kinds import isnan
from fxflow.numpy.reductions import reduction_docs
from fxflow.numpy.selection import choose_between


def _valid(name: str, a: Any, where: Any, dtype: Any) -> tuple[Any, Any]:
    """Returns the array, and where it counts: not nan and not masked."""
    array = array_of(a, name, dtype)
    if not dtypes.is_inexact(array.aval.dtype):
        return array, where
    mask = lax.bitwise_not(isnan(array))
    if where is not None and where is not True:
        wanted = array_of(where, name)
        if not dtypes.is_bool(wanted.aval.dtype):
            raise DtypeError(f"{name}: where must be a bool array, got {wanted.aval}")
        mask = logical_and(mask, wanted)
        if mask.aval.shape != array.aval.shape:
            raise ShapeError(
                f"{name}: where does not broadcast to the array, {array.aval}"
            )
    return array, mask


def without_nan(name: str, a: ArrayLike, neutral: Any, dtype: Any = None) -> Any:
    """Returns an array with a number in the place of nan.

    Args:
      name: of the function, for messages.
      a: array-like.
      neutral: the number.
      dtype: see `array_of`.
    """
    array = array_of(a, name, dtype)
    if not dtypes.is_inexact(array.aval.dtype):
        return array
    return choose_between(isnan(array), lax.full_like(array, neutral), array)


@library("axis", "dtype", "out", "keepdims")
@reduction_docs
def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Array:
    """Adds up the elements that are not nan.

    Args:
      dtype: dtype of the result, see `sum`.

    Special cases:
      All elements nan: 0.

    Example:
      >>> nansum(np.array([2.0, np.nan, 3.0]))
      Array(5., dtype=float32)
    """
    array = without_nan("nansum", a, 0, dtype)
    return reductions.sum(array, axis, dtype, out, keepdims, initial, where)


@library("axis", "dtype", "out", "keepdims")
@reduction_docs
def nanprod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Array:
    """Multiplies the elements that are not nan.

    Args:
      dtype: dtype of the result, see `prod`.

    Special cases:
      All elements nan: 1.

    Example:
      >>> nanprod(np.array([2.0, np.nan, 3.0]))
      Array(6., dtype=float32)
    """
    array = without_nan("nanprod", a, 1, dtype)
    return reductions.prod(array, axis, dtype, out, keepdims, initial, where)


# -- extrema ---------------------------------------------------------------------------


def _extremum(
    name: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    reduce = reductions.max if name == "nanmax" else reductions.min
    array = array_of(a, name)
    dtype = array.aval.dtype
    if not dtypes.is_inexact(dtype):
        return reduce(array, axis, out, keepdims, initial, where)
    worst = -np.inf if name == "nanmax" else np.inf
    fill = complex(worst, worst) if dtypes.is_complex(dtype) else worst
    best = reduce(without_nan(name, array, fill), axis, out, keepdims, initial, where)
    if initial is not None:
        return best
    nothing = reductions.all(isnan(array), axis=axis, keepdims=keepdims)
    return choose_between(nothing, lax.full_like(best, np.nan), best)


@library("axis", "out", "keepdims")
@reduction_docs
def nanmax(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the greatest elements that are not nan.

    Args:
      initial: a bound of the result; needed for no elements and with `where`.

    Special cases:
      All elements nan: nan.

    Example:
      >>> nanmax(np.array([2.0, np.nan, 3.0]))
      Array(3., dtype=float32)
    """
    return _extremum("nanmax", a, axis, out, keepdims, initial, where)


@library("axis", "out", "keepdims")
@reduction_docs
def nanmin(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the least elements that are not nan.

    Args:
      initial: a bound of the result; needed for no elements and with `where`.

    Special cases:
      All elements nan: nan.

    Example:
      >>> nanmin(np.array([2.0, np.nan, 3.0]))
      Array(2., dtype=float32)
    """
    return _extremum("nanmin", a, axis, out, keepdims, initial, where)


# -- argmin, argmax --------------------------------------------------------------------


def _arg_extremum(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    find = reductions.argmax if name == "nanargmax" else reductions.argmin
    array = array_of(a, name)
    if not dtypes.is_inexact(array.aval.dtype):
        return find(array, axis, out, keepdims)
    worst = -np.inf if name == "nanargmax" else np.inf
    index = find(without_nan(name, array, worst), axis, out, keepdims)
    # NumPy raises, which a traced value cannot: -1, as in JAX.
    nothing = reductions.all(isnan(array), axis=axis, keepdims=bool(keepdims))
    return choose_between(nothing, lax.full_like(index, -1), index)


_index_docs = shared("""
    Args:
      axis: the axis; None flattens the array first.

    Returns:
      Default integer array without the axis.

    Special cases:
      All elements nan: -1.
""")


@library("axis", "out", "keepdims")
@reduction_docs
@_index_docs
def nanargmax(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """Returns the index of the greatest element that is not nan.

    Example:
      >>> nanargmax(np.array([2.0, np.nan, 3.0]))
      Array(2, dtype=int32)
    """
    return _arg_extremum("nanargmax", a, axis, out, keepdims)


@library("axis", "out", "keepdims")
@reduction_docs
@_index_docs
def nanargmin(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """Returns the index of the least element that is not nan.

    Example:
      >>> nanargmin(np.array([2.0, np.nan, 3.0]))
      Array(0, dtype=int32)
    """
    return _arg_extremum("nanargmin", a, axis, out, keepdims)


# -- moments ---------------------------------------------------------------------------


@library("axis", "dtype", "out", "keepdims")
@reduction_docs
def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the arithmetic mean of the elements that are not nan.

    Args:
      dtype: dtype of the result, see `mean`.

    Special cases:
      All elements nan: nan.

    Example:
      >>> nanmean(np.array([2.0, np.nan, 3.0]))
      Array(2.5, dtype=float32)
    """
    array, mask = _valid("nanmean", a, where, dtype)
    return means.mean(array, axis, dtype, out, keepdims, where=mask)


_deviation_docs = shared("""
    Args:
      dtype: dtype of the result, see `var`.
      ddof: delta degrees of freedom: the divisor is the number of elements minus this.
      mean: the mean, if it is known already; see `var`.

    Returns:
      Real array without the reduced axes.

    Special cases:
      At most `ddof` elements that are not nan: nan.
""")


@library("axis", "dtype", "out", "ddof", "keepdims")
@reduction_docs
@_deviation_docs
def nanvar(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: Any = None,
) -> Array:
    """Returns the variance of the elements that are not nan.

    Example:
      >>> nanvar(np.array([1.0, np.nan, 3.0]))
      Array(1., dtype=float32)
    """
    array, mask = _valid("nanvar", a, where, dtype)
    return means.var(array, axis, dtype, out, ddof, keepdims, where=mask, mean=mean)


@library("axis", "dtype", "out", "ddof", "keepdims")
@reduction_docs
@_deviation_docs
def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: Any = None,
) -> Array:
    """Returns the standard deviation of the elements that are not nan.

    Example:
      >>> nanstd(np.array([1.0, np.nan, 3.0]))
      Array(1., dtype=float32)
    """
    array, mask = _valid("nanstd", a, where, dtype)
    return means.std(array, axis, dtype, out, ddof, keepdims, where=mask, mean=mean)
