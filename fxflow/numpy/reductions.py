"""Reductions: sums, products, extrema and their indices, truth."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import Completes, shared
from fxflow.core.ir.arith import repeated
from fxflow.core.ir.primitive import table
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax import reduction
from fxflow.lax.axes import canonical_axes, canonical_axis
from fxflow.numpy._operands import (
    ArrayLike,
    Axes,
    DTypeLike,
    array_of,
    convert,
    joint_shape,
    no_out,
    size_of,
)
from fxflow.numpy.elementary import hypot
from fxflow.transforms.custom_jvp import custom_jvp


def _kept(value: Array, axes: tuple[int, ...], ndim: int, keepdims: bool) -> Array:
    """Returns a reduced array with the reduced axes of length 1, if asked for."""
    if not keepdims or not axes:
        return value
    return lax.expand_dims(value, axes)


def masked(name: str, a: Any, where: Any, neutral: Any) -> Any:
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
    a: Any, dtype: DTypeLike | None, *, promote_integers: bool = True
) -> tuple[Any, Any]:
    """Returns an array in the dtype to add up in, and the dtype of the result.

    Args:
      a: array or tracer.
      dtype: dtype of the result, as the user gave it.
      promote_integers: whether narrow integers become default integers, as bools do.
    """
    given = a.aval.dtype
    if dtype is not None:
        result = dtypes.dtype(dtype)
    elif dtypes.is_bool(given):
        result = dtypes.default_int()
    elif dtypes.is_integer(given) and promote_integers:
        wide = dtypes.default_int()
        if dtypes.is_unsigned(given):
            wide = dtypes.default_uint()
        result = wide if dtypes.bits(given) < dtypes.bits(wide) else given
    else:
        result = given
    compute = result
    # A sum in float16 overflows at 65504, one in bfloat16 stops growing after 256 ones.
    if dtypes.is_floating(result) and dtypes.bits(result) < 32:
        compute = np.dtype(np.float32)
    if compute == given and not a.aval.weak_type:
        return a, result
    return convert(a, compute), result


reduction_docs: Completes = shared("""
    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      dtype: dtype of the result; None: that of `a`, narrow integers and bools widened
        to the default integer.
      out: not supported: arrays are immutable.
      keepdims: whether to keep the reduced axes, with length 1.
      initial: a number to start from.
      where: bool array that broadcasts to `a`: the elements to include.
      promote_integers: whether narrow integers are widened.

    Returns:
      Array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or repeated.
      ...
      ArgumentError: `a` is not an array, or `out` is given.

    Source: `numpy.{name}`.
""")


@library("axis", "dtype", "out", "keepdims", "promote_integers")
@reduction_docs
def sum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Adds up elements.

    Special cases:
      No elements: 0. 16-bit floats are added up in 32 bits. With `dtype=bool`:
      whether any element is not zero.

    Example:
      >>> sum(np.array([[1, 2], [3, 4]]), axis=0)
      Array([4, 6], dtype=int32)
    """
    if out is not None:
        no_out("sum", out)  # type: ignore[unreachable]
    array = a if isinstance(a, Array) else array_of(a, "sum", dtype)
    axes = canonical_axes("sum", axis, array.aval.ndim)
    wide, result = accumulated(array, dtype, promote_integers=promote_integers)
    wide = masked("sum", wide, where, 0)
    bools = dtypes.is_bool(result)
    add_up = table["reduce_or" if bools else "reduce_sum"]
    total: Array = add_up.bind(wide, axes=tuple(sorted(axes)))
    if wide.aval.dtype != result:
        total = convert(total, result)
    if initial is not None:
        plus = lax.bitwise_or if bools else lax.add
        total = plus(total, _start("sum", initial, total))
    return _kept(total, axes, array.aval.ndim, keepdims)


def _start(name: str, initial: Any, like: Any) -> Any:
    value = array_of(initial, name)
    if value.aval.ndim:
        raise ShapeError(f"{name}: initial must be a number, got {value.aval}")
    value = convert(value, like.aval.dtype)
    return repeated(value, like.aval.shape) if like.aval.ndim else value


def length(x: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Returns the root of the sum of squares, whose derivative at 0 is taken for 0.

    16-bit floats are made 32-bit ones.

    Args:
      x: float or complex array or tracer.
      axes: along which the elements of a vector lie.
      keepdims: whether they stay, with length 1.
    """
    if dtypes.is_complex(x.aval.dtype):
        parts = (length(part, axes, keepdims) for part in (lax.real(x), lax.imag(x)))
        return hypot.function(*parts)
    wide, dtype = accumulated(x, None)
    root: Array = convert(_length(wide, axes), dtype)
    return _kept(root, axes, x.aval.ndim, keepdims)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _length(x: Any, axes: tuple[int, ...]) -> Any:
    dtype = x.aval.dtype
    # Squares of very large and small numbers over- or underflow: these vectors are
    # scaled by powers of two. The sum of sizes is at least the root of the sum of
    # squares; for fewer than 2³⁰ elements it is not far above the largest one.
    size = lax.reduce_sum(lax.abs(x), axes)
    largest = int(dtypes.finfo(dtype).maxexp)
    high, down = 2.0 ** (largest // 2 - 4), 2.0 ** (largest * 5 // 8)
    low, up = 2.0 ** -(largest // 6), 2.0 ** -(largest // 2)
    unit = lax.select(lax.gt(size, high), down, lax.full_like(size, 1))
    unit = lax.select(lax.lt(size, low), up, unit)
    total = lax.reduce_sum(lax.square(_over(x, unit, axes)), axes)
    return lax.mul(lax.sqrt(total), unit)


@_length.defjvp
def _length_rule(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    root = _length(x, axes)
    direction = _over(x, lax.select(lax.eq(root, 0), 1, root), axes)
    return root, lax.reduce_sum(lax.mul(direction, dx), axes)


def _over(x: Any, unit: Any, axes: tuple[int, ...]) -> Any:
    return lax.div(x, repeated(lax.expand_dims(unit, axes), x.aval.shape))


@library("axis", "dtype", "out", "keepdims", "promote_integers")
@reduction_docs
def prod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Multiplies elements.

    Special cases:
      No elements: 1. With `dtype=bool`: whether no element is zero.

    Example:
      >>> prod(np.array([[1, 2], [3, 4]]), axis=1)
      Array([ 2, 12], dtype=int32)
    """
    no_out("prod", out)
    array = array_of(a, "prod", dtype)
    axes = canonical_axes("prod", axis, array.aval.ndim)
    wide, result = accumulated(array, dtype, promote_integers=promote_integers)
    wide = masked("prod", wide, where, 1)
    bools = dtypes.is_bool(result)
    total = (lax.reduce_and if bools else lax.reduce_prod)(wide, axes)
    total = convert(total, result)
    if initial is not None:
        times = lax.bitwise_and if bools else lax.mul
        total = times(total, _start("prod", initial, total))
    return _kept(total, axes, array.aval.ndim, keepdims)


# -- extrema ---------------------------------------------------------------------------


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
    no_out(name, out)
    array = array_of(a, name)
    aval = array.aval
    axes = canonical_axes(name, axis, aval.ndim)
    highest = name == "max"
    if where is not None and where is not True and initial is None:
        raise ArgumentError(f"{name}: where= needs initial=, a value for no elements")
    if initial is None and size_of(tuple(aval.shape[i] for i in axes)) == 0 and axes:
        raise ShapeError(
            f"{name}: an empty array has no {name}: {aval} has no elements"
            + ("" if axis is None else f" along axis {axis}")
            + "; pass initial="
        )
    array = convert(array, aval.dtype)
    if dtypes.is_complex(aval.dtype):
        best = _complex_extremum(array, axes, highest, where, initial, name)
        return _kept(best, axes, aval.ndim, keepdims)
    if where is not None and where is not True:
        array = masked(name, array, where, _extreme(aval.dtype, highest))
    reduce = lax.reduce_max if highest else lax.reduce_min
    best = reduce(array, axes)
    if initial is not None and not _is_least(initial, aval.dtype, highest):
        pick = lax.max if highest else lax.min
        best = pick(best, _start(name, initial, best))
    return _kept(best, axes, aval.ndim, keepdims)


def _is_least(initial: Any, dtype: Any, highest: bool) -> bool:
    """Returns whether that is the number that an extremum starts from anyway."""
    if type(initial) is not float or not dtypes.is_floating(dtype):
        return False
    identity = reduction.lowest if highest else reduction.highest
    return bool(initial == identity(dtype))


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
        array = masked(name, array, where, complex(infinity, infinity))
    reduce = lax.reduce_max if highest else lax.reduce_min
    real, imag = lax.real(array), lax.imag(array)
    best_real = reduce(real, axes)
    kept = repeated(lax.expand_dims(best_real, axes), real.aval.shape)
    # The imaginary part decides among those whose real part is the extremum.
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
@reduction_docs
def max(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the greatest elements.

    Args:
      initial: a lower bound of the result; needed for no elements and with `where`.

    Returns:
      Array of the dtype of `a` without the reduced axes.

    Raises:
      ShapeError: there are no elements, and no `initial`.

    Special cases:
      nan if any element is nan. Complex numbers are ordered by real, then imaginary
      part. The derivative is shared among equal greatest elements.

    Example:
      >>> max(np.array([[1, 5], [3, 4]]), axis=0)
      Array([3, 5], dtype=int32)
    """
    return _extremum("max", a, axis, out, keepdims, initial, where)


@library("axis", "out", "keepdims")
@reduction_docs
def min(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the least elements.

    Args:
      initial: an upper bound of the result; needed for no elements and with `where`.

    Returns:
      Array of the dtype of `a` without the reduced axes.

    Raises:
      ShapeError: there are no elements, and no `initial`.

    Special cases:
      nan if any element is nan. Complex numbers are ordered by real, then imaginary
      part. The derivative is shared among equal least elements.

    Example:
      >>> min(np.array([[1, 5], [3, 4]]), axis=0)
      Array([1, 4], dtype=int32)
    """
    return _extremum("min", a, axis, out, keepdims, initial, where)


@library("axis", "out", "keepdims")
@reduction_docs
def ptp(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False
) -> Array:
    """Returns the greatest elements minus the least.

    Returns:
      Array of the dtype of `a` without the reduced axes.

    Raises:
      ShapeError: there are no elements.

    Example:
      >>> ptp(np.array([1, 5, 3]))
      Array(4, dtype=int32)
    """
    no_out("ptp", out)
    return lax.sub(
        max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims)
    )


# -- truth -----------------------------------------------------------------------------


def _truth(a: Any, name: str) -> Any:
    array = array_of(a, name)
    if dtypes.is_bool(array.aval.dtype):
        return array
    if dtypes.is_key(array.aval.dtype):
        raise DtypeError(f"{name}: keys are neither true nor false, got {array.aval}")
    return lax.ne(array, lax.full_like(array, 0))


@library("axis", "out", "keepdims")
@reduction_docs
def all(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Returns whether all elements are true (not zero).

    Returns:
      bool array without the reduced axes.

    Special cases:
      No elements: True. nan is true.

    Example:
      >>> all(np.array([[True, False], [True, True]]), axis=1)
      Array([False,  True], dtype=bool)
    """
    no_out("all", out)
    array = masked("all", _truth(a, "all"), where, True)
    axes = canonical_axes("all", axis, array.aval.ndim)
    return _kept(lax.reduce_and(array, axes), axes, array.aval.ndim, keepdims)


@library("axis", "out", "keepdims")
@reduction_docs
def any(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Returns whether any element is true (not zero).

    Returns:
      bool array without the reduced axes.

    Special cases:
      No elements: False. nan is true.

    Example:
      >>> any(np.array([[True, False], [False, False]]), axis=1)
      Array([ True, False], dtype=bool)
    """
    no_out("any", out)
    array = masked("any", _truth(a, "any"), where, False)
    axes = canonical_axes("any", axis, array.aval.ndim)
    return _kept(lax.reduce_or(array, axes), axes, array.aval.ndim, keepdims)


@library("axis", "keepdims")
@reduction_docs
def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """Counts the elements that are not zero.

    Returns:
      Default integer array without the reduced axes.

    Raises:
      ArgumentError: `a` is not an array.

    Example:
      >>> count_nonzero(np.array([0, 3, 0, -1]))
      Array(2, dtype=int32)
    """
    return sum(_truth(a, "count_nonzero"), axis=axis, keepdims=keepdims)


def _arg_extremum(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    no_out(name, out)
    array = array_of(a, name)
    ndim = array.aval.ndim
    find = lax.argmax if name == "argmax" else lax.argmin
    if dtypes.is_complex(array.aval.dtype):
        find = functools.partial(_complex_arg_extremum, name)
    if axis is None:
        flat = lax.reshape(array, (array.aval.size,))
        _require_elements(name, flat.aval, 0)
        index = find(flat, 0, dtypes.default_int())
        return lax.expand_dims(index, tuple(range(ndim))) if keepdims else index
    dim = canonical_axis(name, axis, ndim)
    _require_elements(name, array.aval, dim)
    index = find(array, dim, dtypes.default_int())
    return lax.expand_dims(index, (dim,)) if keepdims else index


def _complex_arg_extremum(name: str, x: Array, axis: int, dtype: Any) -> Array:
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
      axis: the axis; None flattens the array first.
      out: not supported: arrays are immutable.
      keepdims: whether to keep the reduced axes, with length 1.

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
    return _arg_extremum("argmax", a, axis, out, keepdims)


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
    return _arg_extremum("argmin", a, axis, out, keepdims)
