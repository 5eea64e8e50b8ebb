"""Means, variances and standard deviations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.ir import arith
from fxflow.core.ir.arith import repeated
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axes
from fxflow.numpy._operands import (
    ArrayLike,
    Axes,
    DTypeLike,
    array_of,
    convert,
    joint_shape,
    no_out,
    promote_inexact,
    size_of,
)
from fxflow.numpy.reductions import accumulated, length, masked, reduction_docs, sum


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
    if isinstance(count, int | float):
        return lax.div(total, arith.constant(count, dtype))
    return lax.div(total, convert(as_array(count), dtype))


@library("axis", "dtype", "out", "keepdims")
@reduction_docs
def mean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the arithmetic mean.

    Args:
      dtype: dtype of the result; None: that of `a`, made a float.

    Special cases:
      No elements: nan. 16-bit floats are added up in 32 bits.

    Example:
      >>> mean(np.array([[1, 2], [3, 5]]), axis=0)
      Array([2. , 3.5], dtype=float32)
    """
    no_out("mean", out)
    array = array_of(a, "mean", dtype)
    axes = canonical_axes("mean", axis, array.aval.ndim)
    chosen = dtypes.to_inexact(array.aval.dtype) if dtype is None else dtype
    # float16 and bfloat16 are summed in float32: their sums overflow or stop growing
    # long before the mean does.
    wide, result = accumulated(array, chosen)
    total = sum(wide, axis=axes, keepdims=keepdims, where=where)
    average = _divided(total, _count("mean", array, axes, where, keepdims))
    return convert(average, result)


def weights_of(name: str, array: Any, weights: ArrayLike, axis: Any) -> Any:
    """Returns weights of the shape of an array.

    Args:
      name: of the function, for messages.
      array: array or tracer.
      weights: array-like of its shape, or with the lengths of its axes `axis`.
      axis: as the user gave it.

    Raises:
      AxisError: an axis is out of range or repeated.
      ShapeError: the weights have the wrong shape.
    """
    scale = array_of(weights, name)
    shape = array.aval.shape
    if scale.aval.shape == shape:
        return scale
    axes = () if axis is None else canonical_axes(name, axis, len(shape))
    if axis is None or scale.aval.shape != tuple(shape[i] for i in axes):
        raise ShapeError(
            f"{name}: weights {scale.aval} must have the shape of the array, "
            f"{array.aval}, or the lengths of its axes {axis}"
        )
    # broadcast_in_dim wants increasing axes, the user may give them in any order.
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return lax.broadcast_in_dim(lax.transpose(scale, order), shape, tuple(sorted(axes)))


@library("axis", "returned", "keepdims")
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
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
      keepdims: whether to keep the reduced axes, with length 1.

    Returns:
      Array without the reduced axes, or a pair `(average, sum of weights)`.

    Raises:
      AxisError: an axis is out of range or repeated.
      ShapeError: the weights' shape does not fit.

    Example:
      >>> average(np.array([1.0, 2.0]), weights=np.array([3.0, 1.0]))
      Array(1.25, dtype=float32)

    Source: `numpy.average`.
    """
    if weights is None:
        array = array_of(a, "average")
        out = mean(array, axis=axis, keepdims=keepdims)
        axes = canonical_axes("average", axis, array.aval.ndim)
        count = size_of(tuple(array.aval.shape[i] for i in axes))
        return (out, lax.full_like(out, count)) if returned else out
    array, scale = promote_inexact("average", a, weights)
    scale = weights_of("average", array, scale, axis)
    (array, dtype), (scale, _) = accumulated(array, None), accumulated(scale, None)
    total = sum(scale, axis=axis, keepdims=keepdims)
    out = lax.div(sum(lax.mul(array, scale), axis=axis, keepdims=keepdims), total)
    out = convert(out, dtype)
    return (out, convert(total, dtype)) if returned else out


def _degrees(name: str, ddof: Any) -> Any:
    """Returns what is subtracted from a count as a Python number, unless it is traced.

    Raises:
      ArgumentError: it is not a real number.
    """
    if isinstance(ddof, Array | np.ndarray | np.generic) and not isinstance(
        ddof, Tracer
    ):
        aval = typeof(ddof)
        if not aval.ndim and not dtypes.is_key(aval.dtype):
            ddof = np.asarray(ddof).item()
    if not isinstance(ddof, int | float | Tracer):
        raise ArgumentError(f"{name}: ddof must be a real number, got {ddof!r}")
    return ddof


def _center(wide: Any, axes: tuple[int, ...], where: Any, known: Any) -> Any:
    """Returns the mean, computed or as the user gave it, of the shape of the array."""
    shape = wide.aval.shape
    if known is None:
        return repeated(mean(wide, axis=axes, keepdims=True, where=where), shape)
    given = array_of(known, "var")
    if dtypes.is_complex(given.aval.dtype) and not dtypes.is_complex(wide.aval.dtype):
        raise DtypeError(f"var: mean {given.aval} is complex, but {wide.aval} is not")
    if joint_shape("var", [wide.aval, given.aval]) != shape:
        raise ShapeError(
            f"var: mean {given.aval} does not broadcast to the array, {wide.aval}: "
            "compute it with keepdims=True"
        )
    return repeated(convert(given, wide.aval.dtype), shape)


def _joint(given: Any, result: Any) -> Any:
    """Returns the dtype to compute in: wide enough for both."""
    if dtypes.is_complex(given) and not dtypes.is_complex(result):
        return dtypes.to_complex(result)
    return result


_deviation_docs = shared("""
    Args:
      dtype: dtype of the result; None: that of `a`, made a (real) float.
      ddof: a number, subtracted from the number of elements in the divisor.
      mean: the mean, if it is known already: of a shape that broadcasts to `a`, as
        `mean(..., keepdims=True)` gives it.

    Returns:
      Real array without the reduced axes.

    Raises:
      ArgumentError: both `ddof` and `correction`, or `out`, are given.
      ShapeError: `mean` or `where` does not broadcast to `a`.

    Special cases:
      At most `ddof` elements: nan.
""")


@library("axis", "dtype", "out", "ddof", "keepdims", "correction")
@reduction_docs
@_deviation_docs
def var(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: Any = None,
    correction: float | None = None,
) -> Array:
    """Returns the variance: the mean of squared distances from the mean.

    Args:
      correction: the same as `ddof`, the array API's name; None leaves it to `ddof`.

    Example:
      >>> var(np.array([1.0, 3.0]))
      Array(1., dtype=float32)
    """
    no_out("var", out)
    spread = _spread(a, axis, dtype, ddof, keepdims, where, mean, correction)
    distance = spread.distance
    if dtypes.is_complex(distance.aval.dtype):
        square = lax.real(lax.mul(distance, lax.conj(distance)))
    else:
        square = lax.square(distance)
    total = sum(square, axis=spread.axes, keepdims=keepdims)
    return convert(_over(total, spread.divisor), spread.dtype)


class _Spread(NamedTuple):
    """What a variance is made of.

    Attributes:
      distance: from the mean; 0 where an element does not count.
      axes: along which squares are added.
      divisor: of their sum: a number, or an array.
      dtype: dtype of the result.
    """

    distance: Any
    axes: tuple[int, ...]
    divisor: Any
    dtype: Any


def _spread(
    a: Any,
    axis: Axes,
    dtype: DTypeLike | None,
    ddof: Any,
    keepdims: bool,
    where: Any,
    mean: Any,
    correction: Any,
) -> _Spread:
    if correction is not None:
        if ddof:
            raise ArgumentError("var: give ddof or correction, not both")
        ddof = correction
    less = _degrees("var", ddof)
    array = array_of(a, "var", dtype)
    axes = canonical_axes("var", axis, array.aval.ndim)
    given = dtypes.to_inexact(array.aval.dtype)
    result = dtypes.to_real(given) if dtype is None else dtypes.dtype(dtype)
    wide, _ = accumulated(array, given if dtype is None else _joint(given, result))
    center = _center(wide, axes, where, mean)
    # Masked before it is squared: what does not count may be nan, and the derivative
    # of its square would be.
    distance = masked("var", lax.sub(wide, center), where, 0)
    divisor = _count("var", array, axes, where, keepdims)
    if isinstance(divisor, int) and not isinstance(less, Tracer):
        divisor = divisor - less
    else:
        real = dtypes.to_real(distance.aval.dtype)
        both = promote_inexact("var", divisor, less)
        divisor = lax.sub(*(convert(number, real) for number in both))
    return _Spread(distance, axes, divisor, result)


def _over(total: Any, divisor: Any) -> Any:
    """Returns a sum over its degrees of freedom, nan if there are none."""
    if isinstance(divisor, int | float):
        return _divided(total, divisor) if divisor > 0 else lax.full_like(total, np.nan)
    # A traced ddof or mask: whether any degree of freedom is left is known at run
    # time only.
    valid = lax.gt(divisor, lax.full_like(divisor, 0))
    return lax.select(valid, lax.div(total, divisor), lax.full_like(total, np.nan))


@library("axis", "dtype", "out", "ddof", "keepdims", "correction")
@reduction_docs
@_deviation_docs
def std(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: Any = None,
    correction: float | None = None,
) -> Array:
    """Returns the standard deviation, the square root of `var`.

    Args:
      correction: the same as `ddof`, the array API's name.

    Special cases:
      The derivative of a standard deviation of 0 is 0. Squares of distances that are
      very large or small do not over- or underflow.

    Example:
      >>> std(np.array([1.0, 3.0]))
      Array(1., dtype=float32)
    """
    no_out("std", out)
    spread = _spread(a, axis, dtype, ddof, keepdims, where, mean, correction)
    divisor = spread.divisor
    if isinstance(divisor, int | float):
        root: Any = math.sqrt(divisor) if divisor > 0 else 0
    else:
        valid = lax.gt(divisor, 0)
        root = lax.sqrt(lax.select(valid, divisor, 1))
        root = lax.select(valid, root, 0)
    distance = length(spread.distance, spread.axes, keepdims)
    return convert(_over(distance, root), spread.dtype)
