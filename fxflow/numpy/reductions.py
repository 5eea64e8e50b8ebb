"""Reductions: sums, products, extrema, means, truth, places of extrema."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy._operands import (
    array_of,
    convert,
    joint_shape,
    promote_dtypes,
    repeated,
    size_of,
)
from fxflow.numpy.shapes import canonical_axes, canonical_axis


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise ArgumentError(
            f"{name}: arrays are immutable, so out= has no meaning: use the result"
        )


def _axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    return canonical_axes(name, axis, ndim)


def _kept(value: Any, axes: tuple[int, ...], ndim: int, keepdims: bool) -> Any:
    """Returns a reduced array with the reduced axes of length 1, if asked for."""
    if not keepdims or not axes:
        return value
    return lax.expand_dims(value, axes)


def _masked(name: str, a: Any, where: Any, neutral: Any) -> Any:
    """Returns the array with `neutral` where the mask is False."""
    if where is None or where is True:
        return a
    mask = array_of(where, name)
    if not dtypes.is_bool(mask.aval.dtype):
        raise DtypeError(f"{name}: where must be a bool array, got {mask.aval}")
    shape = joint_shape(name, [a.aval, mask.aval])
    if shape != a.aval.shape:
        raise ShapeError(
            f"{name}: where {mask.aval} does not broadcast to the array, {a.aval}"
        )
    fill = lax.full_like(a, neutral)
    return lax.select(repeated(mask, shape), a, fill)


def accumulated(
    a: Any, dtype: Any, *, promote_integers: bool = True
) -> tuple[Any, Any]:
    """Returns an array in the dtype to add up in, and the dtype of the result.

    Args:
      a: array or tracer.
      dtype: of the result, as the user gave it.
      promote_integers: whether narrow integers and bools become default integers.
    """
    given = a.aval.dtype
    if dtype is not None:
        result = dtypes.dtype(dtype)
    elif dtypes.is_bool(given):
        result = dtypes.default_int() if promote_integers else given
    elif dtypes.is_integer(given) and promote_integers:
        wide = dtypes.default_int()
        if dtypes.is_unsigned(given):
            wide = dtypes.default_uint()
        result = wide if dtypes.bits(given) < dtypes.bits(wide) else given
    else:
        result = given
    compute = result
    if dtypes.is_floating(result) and dtypes.bits(result) < 32:
        compute = np.dtype(np.float32)
    return convert(a, compute, a.aval.weak_type and dtype is None), result


@library("axis", "dtype", "out", "keepdims", "promote_integers")
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Adds up elements.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      dtype: of the result; None is that of `a`, narrow integers and bools widened to
        the default integer.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.
      initial: a number to start from.
      where: bool array that broadcasts to `a`: which elements count.
      promote_integers: whether narrow integers are widened.

    Returns:
      Array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: `a` is no array, or `out` is given.

    Special cases:
      Of no elements: 0. 16-bit floats are added up in 32 bits.

    Example:
      >>> sum(np.array([[1, 2], [3, 4]]), axis=0)
      Array([4, 6], dtype=int32)

    Source: `numpy.sum`.
    """
    _no_out("sum", out)
    array = array_of(a, "sum")
    axes = _axes("sum", axis, array.aval.ndim)
    wide, result = accumulated(array, dtype, promote_integers=promote_integers)
    wide = _masked("sum", wide, where, 0)
    total = lax.reduce_sum(wide, axes)
    total = convert(total, result, total.aval.weak_type)
    if initial is not None:
        total = lax.add(total, _start("sum", initial, total))
    return _kept(total, axes, array.aval.ndim, keepdims)


def _start(name: str, initial: Any, like: Any) -> Any:
    value = array_of(initial, name)
    if value.aval.ndim:
        raise ShapeError(f"{name}: initial must be a number, got {value.aval}")
    value = convert(value, like.aval.dtype)
    return repeated(value, like.aval.shape) if like.aval.ndim else value


@library("axis", "dtype", "out", "keepdims", "promote_integers")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Multiplies elements.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      dtype: of the result; None is that of `a`, narrow integers and bools widened to
        the default integer.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.
      initial: a number to start from.
      where: bool array that broadcasts to `a`: which elements count.
      promote_integers: whether narrow integers are widened.

    Returns:
      Array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: `a` is no array, or `out` is given.

    Special cases:
      Of no elements: 1.

    Example:
      >>> prod(np.array([[1, 2], [3, 4]]), axis=1)
      Array([ 2, 12], dtype=int32)

    Source: `numpy.prod`.
    """
    _no_out("prod", out)
    array = array_of(a, "prod")
    axes = _axes("prod", axis, array.aval.ndim)
    wide, result = accumulated(array, dtype, promote_integers=promote_integers)
    wide = _masked("prod", wide, where, 1)
    total = lax.reduce_prod(wide, axes)
    total = convert(total, result, total.aval.weak_type)
    if initial is not None:
        total = lax.mul(total, _start("prod", initial, total))
    return _kept(total, axes, array.aval.ndim, keepdims)


# -- extrema -----------------------------------------------------------------------


def _extreme(dtype: Any, lowest: bool) -> Any:
    if dtypes.is_bool(dtype):
        return not lowest
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return int(info.min if lowest else info.max)
    return -np.inf if lowest else np.inf


def _extremum(
    name: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    _no_out(name, out)
    array = array_of(a, name)
    aval = array.aval
    axes = _axes(name, axis, aval.ndim)
    highest = name == "max"
    if where is not None and where is not True and initial is None:
        raise ArgumentError(f"{name}: where= needs initial=, a value for no elements")
    if initial is None and size_of(tuple(aval.shape[i] for i in axes)) == 0 and axes:
        raise ShapeError(
            f"{name}: there is no {name} of no elements: {aval} is empty along axis "
            f"{axis}; pass initial="
        )
    if dtypes.is_complex(aval.dtype):
        best = _complex_extremum(array, axes, highest, where, initial, name)
        return _kept(best, axes, aval.ndim, keepdims)
    if where is not None and where is not True:
        array = _masked(name, array, where, _extreme(aval.dtype, highest))
    reduce = lax.reduce_max if highest else lax.reduce_min
    best = reduce(array, axes)
    if initial is not None:
        pick = lax.max if highest else lax.min
        best = pick(best, _start(name, initial, best))
    return _kept(best, axes, aval.ndim, keepdims)


def _complex_extremum(
    array: Any,
    axes: tuple[int, ...],
    highest: bool,
    where: Any,
    initial: Any,
    name: str,
) -> Any:
    """Complex numbers are ordered by real part, then imaginary part."""
    infinity = _extreme(dtypes.to_real(array.aval.dtype), highest)
    if where is not None and where is not True:
        array = _masked(name, array, where, complex(infinity, infinity))
    reduce = lax.reduce_max if highest else lax.reduce_min
    real, imag = lax.real(array), lax.imag(array)
    best_real = reduce(real, axes)
    kept = repeated(lax.expand_dims(best_real, axes), real.aval.shape)
    among = lax.select(lax.eq(real, kept), imag, lax.full_like(imag, infinity))
    best = lax.complex(best_real, reduce(among, axes))
    if initial is None:
        return best
    start = _start(name, initial, best)
    pick = lax.gt if highest else lax.lt
    same = lax.eq(lax.real(start), lax.real(best))
    better = lax.select(
        same,
        pick(lax.imag(start), lax.imag(best)),
        pick(lax.real(start), lax.real(best)),
    )
    return lax.select(better, start, best)


@library("axis", "out", "keepdims")
def max(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Returns the greatest elements.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.
      initial: a lower bound of the result; needed for no elements and with `where`.
      where: bool array that broadcasts to `a`: which elements count.

    Returns:
      Array of the dtype of `a` without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no elements, and no `initial`.
      ArgumentError: `a` is no array, or `out` is given.

    Special cases:
      nan if any element is nan. Complex numbers are ordered by real, then imaginary
      part. The derivative is shared among equal greatest elements.

    Example:
      >>> max(np.array([[1, 5], [3, 4]]), axis=0)
      Array([3, 5], dtype=int32)

    Source: `numpy.max`.
    """
    return _extremum("max", a, axis, out, keepdims, initial, where)


@library("axis", "out", "keepdims")
def min(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Returns the least elements.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.
      initial: an upper bound of the result; needed for no elements and with `where`.
      where: bool array that broadcasts to `a`: which elements count.

    Returns:
      Array of the dtype of `a` without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no elements, and no `initial`.
      ArgumentError: `a` is no array, or `out` is given.

    Special cases:
      nan if any element is nan. Complex numbers are ordered by real, then imaginary
      part. The derivative is shared among equal least elements.

    Example:
      >>> min(np.array([[1, 5], [3, 4]]), axis=0)
      Array([1, 4], dtype=int32)

    Source: `numpy.min`.
    """
    return _extremum("min", a, axis, out, keepdims, initial, where)


@library("axis", "out", "keepdims")
def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Array:
    """Returns the greatest elements minus the least.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Array of the dtype of `a` without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no elements.

    Example:
      >>> ptp(np.array([1, 5, 3]))
      Array(4, dtype=int32)

    Source: `numpy.ptp`.
    """
    _no_out("ptp", out)
    return lax.sub(
        max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims)
    )


# -- truth ---------------------------------------------------------------------------


def _truth(a: Any, name: str) -> Any:
    array = array_of(a, name)
    if dtypes.is_bool(array.aval.dtype):
        return array
    return lax.ne(array, lax.full_like(array, 0))


@library("axis", "out", "keepdims")
def all(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Returns whether all elements are true (not zero).

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.
      where: bool array that broadcasts to `a`: which elements count.

    Returns:
      bool array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: `a` is no array, or `out` is given.

    Special cases:
      Of no elements: True. nan is true.

    Example:
      >>> all(np.array([[True, False], [True, True]]), axis=1)
      Array([False,  True], dtype=bool)

    Source: `numpy.all`.
    """
    _no_out("all", out)
    array = _masked("all", _truth(a, "all"), where, True)
    axes = _axes("all", axis, array.aval.ndim)
    return _kept(lax.reduce_and(array, axes), axes, array.aval.ndim, keepdims)


@library("axis", "out", "keepdims")
def any(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Returns whether any element is true (not zero).

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.
      where: bool array that broadcasts to `a`: which elements count.

    Returns:
      bool array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: `a` is no array, or `out` is given.

    Special cases:
      Of no elements: False. nan is true.

    Example:
      >>> any(np.array([[True, False], [False, False]]), axis=1)
      Array([ True, False], dtype=bool)

    Source: `numpy.any`.
    """
    _no_out("any", out)
    array = _masked("any", _truth(a, "any"), where, False)
    axes = _axes("any", axis, array.aval.ndim)
    return _kept(lax.reduce_or(array, axes), axes, array.aval.ndim, keepdims)


@library("axis", "keepdims")
def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """Counts the elements that are not zero.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Default integer array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.

    Example:
      >>> count_nonzero(np.array([0, 3, 0, -1]))
      Array(2, dtype=int32)

    Source: `numpy.count_nonzero`.
    """
    return sum(_truth(a, "count_nonzero"), axis=axis, keepdims=keepdims)


# -- means -----------------------------------------------------------------------------


def _count(
    name: str, array: Any, axes: tuple[int, ...], where: Any, keepdims: bool
) -> Any:
    """Returns how many elements count: a number, or an array if there is a mask."""
    if where is None or where is True:
        return size_of(tuple(array.aval.shape[i] for i in axes))
    mask = array_of(where, name)
    return sum(repeated(mask, array.aval.shape), axis=axes, keepdims=keepdims)


def _divided(total: Any, count: Any) -> Any:
    dtype = total.aval.dtype
    if isinstance(count, int):
        return lax.div(total, np.asarray(count).astype(dtype)[()])
    return lax.div(total, convert(count, dtype))


@library("axis", "dtype", "out", "keepdims")
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Returns the arithmetic mean.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      dtype: of the result; None is that of `a`, made a float.
      out: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.
      where: bool array that broadcasts to `a`: which elements count.

    Returns:
      Array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: `a` is no array, or `out` is given.

    Special cases:
      Of no elements: nan. 16-bit floats are added up in 32 bits.

    Example:
      >>> mean(np.array([[1, 2], [3, 5]]), axis=0)
      Array([2. , 3.5], dtype=float32)

    Source: `numpy.mean`.
    """
    _no_out("mean", out)
    array = array_of(a, "mean")
    axes = _axes("mean", axis, array.aval.ndim)
    chosen = dtypes.to_inexact(array.aval.dtype) if dtype is None else dtype
    wide, result = accumulated(array, chosen)
    total = sum(wide, axis=axes, keepdims=keepdims, where=where)
    average = _divided(total, _count("mean", array, axes, where, keepdims))
    return convert(average, result, dtype is None and array.aval.weak_type)


@library("axis", "returned", "keepdims")
def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Returns the weighted mean.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      weights: array-like of the shape of `a`, or with one axis for each of `axis`; None
        is all ones.
      returned: whether to return the sum of the weights too.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Array without the reduced axes, or a pair `(average, sum of weights)`.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: the weights' shape does not fit.

    Example:
      >>> average(np.array([1.0, 2.0]), weights=np.array([3.0, 1.0]))
      Array(1.25, dtype=float32)

    Source: `numpy.average`.
    """
    if weights is None:
        array = array_of(a, "average")
        out = mean(array, axis=axis, keepdims=keepdims)
        axes = _axes("average", axis, array.aval.ndim)
        count = size_of(tuple(array.aval.shape[i] for i in axes))
        return (out, lax.full_like(out, count)) if returned else out
    array, scale = promote_dtypes("average", a, weights)
    dtype = dtypes.to_inexact(array.aval.dtype)
    array, scale = convert(array, dtype), convert(scale, dtype)
    ndim = array.aval.ndim
    if scale.aval.shape != array.aval.shape:
        axes = () if axis is None else _axes("average", axis, ndim)
        if scale.aval.shape != tuple(array.aval.shape[i] for i in axes):
            raise ShapeError(
                f"average: weights {scale.aval} must have the shape of the array, "
                f"{array.aval}, or the lengths of its axes {axis}"
            )
        order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        scale = lax.broadcast_in_dim(
            lax.transpose(scale, order), array.aval.shape, tuple(sorted(axes))
        )
    total = sum(scale, axis=axis, keepdims=keepdims)
    out = lax.div(sum(lax.mul(array, scale), axis=axis, keepdims=keepdims), total)
    return (out, total) if returned else out


@library("axis", "dtype", "out", "ddof", "keepdims", "correction")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> Array:
    """Returns the variance: the mean of squared distances from the mean.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      dtype: of the result; None is that of `a`, made a (real) float.
      out: not supported: arrays are immutable.
      ddof: what is subtracted from the number of elements in the divisor.
      keepdims: whether reduced axes stay, with length 1.
      where: bool array that broadcasts to `a`: which elements count.
      correction: the same as `ddof`, the array API's name.

    Returns:
      Real array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: both `ddof` and `correction`, or `out`, are given.

    Special cases:
      Of no more than `ddof` elements: nan.

    Example:
      >>> var(np.array([1.0, 3.0]))
      Array(1., dtype=float32)

    Source: `numpy.var`.
    """
    _no_out("var", out)
    if correction is not None:
        if ddof:
            raise ArgumentError("var: give ddof or correction, not both")
        ddof = correction
    array = array_of(a, "var")
    axes = _axes("var", axis, array.aval.ndim)
    given = dtypes.to_inexact(array.aval.dtype)
    result = dtypes.to_real(given) if dtype is None else dtypes.dtype(dtype)
    wide, _ = accumulated(array, given if dtype is None else _joint(given, result))
    shape = wide.aval.shape
    center = mean(wide, axis=axes, keepdims=True, where=where)
    # Masked before it is squared: what does not count may be nan, and the derivative
    # of its square would be.
    distance = _masked("var", lax.sub(wide, repeated(center, shape)), where, 0)
    if dtypes.is_complex(wide.aval.dtype):
        square = lax.real(lax.mul(distance, lax.conj(distance)))
    else:
        square = lax.square(distance)
    total = sum(square, axis=axes, keepdims=keepdims)
    count = _count("var", array, axes, where, keepdims)
    if isinstance(count, int):
        count = count - ddof
        spread = _divided(total, count) if count > 0 else lax.full_like(total, np.nan)
    else:
        divisor = lax.sub(convert(count, total.aval.dtype), ddof)
        valid = lax.gt(divisor, lax.full_like(divisor, 0))
        spread = lax.select(
            valid, lax.div(total, divisor), lax.full_like(total, np.nan)
        )
    return convert(spread, result, dtype is None and array.aval.weak_type)


def _joint(given: Any, result: Any) -> Any:
    """Returns the dtype to compute in: wide enough for both."""
    if dtypes.is_complex(given) and not dtypes.is_complex(result):
        return dtypes.to_complex(result)
    return result


@library("axis", "dtype", "out", "ddof", "keepdims", "correction")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> Array:
    """Returns the standard deviation, the square root of `var`.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      dtype: of the result; None is that of `a`, made a (real) float.
      out: not supported: arrays are immutable.
      ddof: what is subtracted from the number of elements in the divisor.
      keepdims: whether reduced axes stay, with length 1.
      where: bool array that broadcasts to `a`: which elements count.
      correction: the same as `ddof`, the array API's name.

    Returns:
      Real array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: both `ddof` and `correction`, or `out`, are given.

    Example:
      >>> std(np.array([1.0, 3.0]))
      Array(1., dtype=float32)

    Source: `numpy.std`.
    """
    spread = var(
        a,
        axis=axis,
        dtype=dtype,
        out=out,
        ddof=ddof,
        keepdims=keepdims,
        where=where,
        correction=correction,
    )
    return lax.sqrt(spread)


# -- places --------------------------------------------------------------------------


def _place(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    _no_out(name, out)
    array = array_of(a, name)
    ndim = array.aval.ndim
    find = lax.argmax if name == "argmax" else lax.argmin
    if axis is None:
        flat = lax.reshape(array, (array.aval.size,))
        _require_elements(name, flat.aval, 0)
        index = find(flat, 0, dtypes.default_int())
        return lax.expand_dims(index, tuple(range(ndim))) if keepdims else index
    place = canonical_axis(name, axis, ndim)
    _require_elements(name, array.aval, place)
    index = find(array, place, dtypes.default_int())
    return lax.expand_dims(index, (place,)) if keepdims else index


def _require_elements(name: str, aval: Any, axis: int) -> None:
    if not aval.shape[axis]:
        raise ShapeError(f"{name}: axis {axis} of {aval} is empty")


@library("axis", "out", "keepdims")
def argmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Returns the index of the greatest element.

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
      The first of equal elements; the first nan if there is one.

    Example:
      >>> argmax(np.array([[1, 9], [7, 3]]), axis=1)
      Array([1, 0], dtype=int32)

    Source: `numpy.argmax`.
    """
    return _place("argmax", a, axis, out, keepdims)


@library("axis", "out", "keepdims")
def argmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Returns the index of the least element.

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
      The first of equal elements; the first nan if there is one.

    Example:
      >>> argmin(np.array([[1, 9], [7, 3]]), axis=1)
      Array([0, 1], dtype=int32)

    Source: `numpy.argmin`.
    """
    return _place("argmin", a, axis, out, keepdims)
