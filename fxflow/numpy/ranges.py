"""Evenly spaced numbers."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, overload

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.arrays.aval import require_room
from fxflow.core.arrays.promotion import result_type
from fxflow.core.ir.arith import constant, repeated
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.runtime.eager import EVAL
from fxflow.core.runtime.library import library
from fxflow.core.sizes import Size, is_symbolic, larger, length_of
from fxflow.errors import ArgumentError, ConcretizationError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import (
    ArrayLike,
    DTypeLike,
    array_of,
    broadcast,
    convert,
    joint_shape,
    promote_inexact,
)
from fxflow.numpy.axis_order import moveaxis
from fxflow.numpy.creation import astype_array, sharding_of, to_device, wrap_host

# -- ranges ----------------------------------------------------------------------------


def _concrete(name: str, what: str, value: Any) -> Any:
    """Returns a bound as a Python number."""
    if isinstance(value, Tracer):
        raise ConcretizationError(
            f"{name}: {what} must be known when tracing, because it gives the length "
            "of "
            f"the result, but {value.aval} is traced. {value.origin()} Make it static "
            "(jit(..., static_argnames=...)), or add it to an arange of fixed length."
        )
    if isinstance(value, Array | np.ndarray | np.generic):
        if value.ndim:
            raise ArgumentError(f"{name}: {what} must be a number, got {typeof(value)}")
        return np.asarray(value)[()].item()
    if isinstance(value, int | float | complex | Size):
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: {what} must be a number, got {value!r}") from None


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array of evenly spaced numbers in a half-open interval.

    Args:
      start: the first number; alone, it is `stop` and the range starts at 0.
      stop: behind the last number.
      step: between numbers (default: 1).
      dtype: dtype of the result (default: the common one of the bounds).
      device: where to put it.
      out_sharding: how to lay it over devices, in place of `device`: a `Sharding`, or
        a `PartitionSpec` over the current mesh.

    Returns:
      Array of shape `(ceil((stop - start) / step),)`.

    Raises:
      ConcretizationError: a bound is traced.
      ArgumentError: `step` is 0, or a bound is not a number; or both `device` and
        `out_sharding` are given.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> arange(2, 8, 3)
      Array([2, 5], dtype=int32)

    Source: `numpy.arange`.
    """
    if type(start) is int and stop is step is dtype is device is out_sharding is None:
        return _counted(dtypes.default_int(), 0, 1, max(start, 0))
    if out_sharding is not None:
        device = sharding_of("arange", device, out_sharding)
    first = _concrete("arange", "stop" if stop is None else "start", start)
    if stop is None:
        first, last = 0, first
    else:
        last = _concrete("arange", "stop", stop)
    by = 1 if step is None else _concrete("arange", "step", step)
    if by == 0:
        raise ArgumentError("arange: step must not be 0")
    given = [a for a in (start, stop, step) if a is not None]
    chosen = dtypes.dtype(dtype) if dtype is not None else _common_dtype(given)
    try:
        if is_symbolic((first, last, by)):
            length = larger(0, -((first - last) // by))
        else:
            length = max(0, math.ceil((last - first) / by))
    except (ValueError, OverflowError, TypeError):  # nan, infinite, complex
        if any(isinstance(v, complex | np.complexfloating) for v in (first, last, by)):
            raise ArgumentError(
                f"arange: start, stop and step must be real, got {first}, {last}, {by}"
            ) from None
        raise ArgumentError(
            f"arange: from {first} to {last} by {by} is not a finite number of steps"
        ) from None
    out = _counted(chosen, first, by, length)
    return out if device is None else to_device(out, device)


def _common_dtype(numbers: list[Any]) -> Any:
    if all(type(a) in (int, Size) for a in numbers):
        return dtypes.default_int()
    known = [a if is_arraylike(a) else int(a) for a in numbers]
    return result_type(*known)


def _counted(dtype: Any, first: Any, by: Any, length: int) -> Array:
    """Returns `first + by * i` for each i below a length."""
    if dtypes.is_bool(dtype) and length > 2:
        raise ArgumentError(
            f"arange: a range of bools has 2 numbers at most, this one has {length}"
        )
    if type(length) is int and length and dtypes.is_integer(dtype):
        for bound in (first, first + (length - 1) * by):
            dtypes.of_python(int(bound), dtype)
    if state.trace is EVAL:
        require_room((length,), dtypes.int64)
        if by == 1 and not first:
            return wrap_host(np.arange(length).astype(dtype))
        values = first + by * np.arange(length)
        with np.errstate(all="ignore"):
            return wrap_host(values.astype(dtype))
    out = lax.iota(dtype, length)
    if by != 1:
        out = lax.mul(out, constant(by, dtype))
    return out if not first else lax.add(out, constant(first, dtype))


@overload
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array: ...


@overload
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> tuple[Array, Array]: ...


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array | tuple[Array, Array]:
    """Makes evenly spaced numbers in a closed interval.

    Args:
      start: array-like, the first number.
      stop: array-like, the last number.
      num: how many, at least 0.
      endpoint: whether `stop` is one of them.
      retstep: whether to return the distance as well.
      dtype: dtype of the result (default: a float one); integers are rounded down.
      axis: where the new axis is in the result.
      device: where to put it.

    Returns:
      Array with a new axis of length `num`; with `retstep`, a pair with the distance.

    Raises:
      ArgumentError: `num` is negative.

    Example:
      >>> linspace(0, 1, 5)
      Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)

    Source: `numpy.linspace`.
    """
    count = length_of(num)
    if count < 0:
        raise ArgumentError(f"linspace: num must not be negative, got {num}")
    chosen = None if dtype is None else dtypes.dtype(dtype)
    numbers = isinstance(start, int | float) and isinstance(stop, int | float)
    compute = _between if numbers and state.trace is EVAL else _linspace
    out, step = compute(start, stop, count, bool(endpoint), chosen, axis)
    if device is not None:
        out = to_device(out, device)
    return (out, step) if retstep else out


def _between(
    start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> tuple[Array, Array]:
    """Returns `_linspace` of two numbers, rounded once, as NumPy does."""
    canonical_axis("linspace", axis, 1)
    both = (array_of(a, "linspace", dtype) for a in (start, stop))
    inner = promote_inexact("linspace", *both)[0].aval.dtype
    if dtype is not None and dtypes.is_inexact(dtype):
        inner = dtype
    require_room((num,), dtypes.float64)
    with np.errstate(all="ignore"):
        out, step = np.linspace(start, stop, num, endpoint, retstep=True)
        if dtype is not None and not dtypes.is_inexact(dtype):
            out = np.floor(out).astype(dtype)
        else:
            out = out.astype(inner)
        return wrap_host(out), wrap_host(np.asarray(step).astype(inner))


@library("num", "endpoint", "dtype", "axis")
def _linspace(
    start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> tuple[Array, Array]:
    start, stop = (array_of(a, "linspace", dtype) for a in (start, stop))
    start, stop = promote_inexact("linspace", start, stop)
    if dtype is not None and dtypes.is_inexact(dtype):
        start, stop = convert(start, dtype), convert(stop, dtype)
    inner = start.aval.dtype
    shape = joint_shape("linspace", [start.aval, stop.aval])
    start, stop = repeated(start, shape), repeated(stop, shape)
    parts = num - 1 if endpoint else num
    real = dtypes.to_real(inner)
    if is_symbolic((parts,)):
        among = constant(parts, real)
        among = lax.select(lax.gt(among, 0), among, lax.full_like(among, math.nan))
    else:
        among = constant(parts if parts > 0 else math.nan, real)
    step = lax.div(lax.sub(stop, start), convert(among, inner))
    ramp = lax.div(lax.iota(real, num), constant(larger(parts, 1), real))
    if inner != real:
        ramp = convert(ramp, inner)
    whole = (num, *shape)
    ramp = lax.broadcast_in_dim(ramp, whole, (0,))
    low, high = repeated(start, whole), repeated(stop, whole)
    # Weighing both ends is exact at both, unlike start + i * step.
    out = lax.add(lax.mul(low, lax.sub(1, ramp)), lax.mul(high, ramp))
    if endpoint and is_symbolic((num,)):
        # The one element of the shortest is the first, not the last.
        at = lax.eq(lax.iota(dtypes.int32, num), larger(num - 1, 1))
        out = lax.select(lax.broadcast_in_dim(at, whole, (0,)), high, out)
    elif endpoint and num > 1:
        last = lax.reshape(stop, (1, *shape))
        out = lax.concatenate([lax.slice_in_dim(out, 0, num - 1), last], 0)
    out = _along(out, axis, "linspace")
    if dtype is not None and not dtypes.is_inexact(dtype):
        out = convert(lax.floor(out), dtype)
    return _strong(out), _strong(step)


def _strong(x: Any) -> Array:
    return convert(x, x.aval.dtype)


def _along(x: Any, axis: int, name: str) -> Any:
    """Moves axis 0 to where the user wants it."""
    to = canonical_axis(name, axis, x.aval.ndim)
    return moveaxis(x, 0, to) if to else x


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Makes numbers whose logarithms are evenly spaced.

    Args:
      start: array-like, `base ** start` is the first number.
      stop: array-like, `base ** stop` is the last number.
      num: how many, at least 0.
      endpoint: whether the last number is one of them.
      base: array-like.
      dtype: dtype of the result (default: a float one).
      axis: where the new axis is in the result.

    Returns:
      Array with a new axis of length `num`.

    Raises:
      ArgumentError: `num` is negative.

    Example:
      >>> logspace(0, 3, 4)
      Array([   1.,   10.,  100., 1000.], dtype=float32)

    Source: `numpy.logspace`.
    """
    chosen = None if dtype is None else dtypes.dtype(dtype)
    start, stop, base = (array_of(a, "logspace", chosen) for a in (start, stop, base))
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    return _powers(base, exponents, chosen)


@library("dtype")
def _powers(base: Any, exponents: Any, dtype: Any) -> Array:
    out = lax.pow(*broadcast("logspace", promote_inexact("logspace", base, exponents)))
    return _strong(out) if dtype is None else astype_array(out, dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Makes numbers each of which is a constant multiple of the one before.

    Args:
      start: array-like, the first number; not 0.
      stop: array-like, the last number; not 0, and of the sign of `start`.
      num: how many, at least 0.
      endpoint: whether `stop` is one of them.
      dtype: dtype of the result (default: a float one).
      axis: where the new axis is in the result.

    Returns:
      Array with a new axis of length `num`.

    Raises:
      ArgumentError: `num` is negative.

    Example:
      >>> geomspace(1, 8, 4)
      Array([1., 2., 4., 8.], dtype=float32)

    Source: `numpy.geomspace`.
    """
    count = operator.index(num)
    if count < 0:
        raise ArgumentError(f"geomspace: num must not be negative, got {num}")
    chosen = None if dtype is None else dtypes.dtype(dtype)
    return _geomspace(start, stop, count, bool(endpoint), chosen, axis)


@library("num", "endpoint", "dtype", "axis")
def _geomspace(
    start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> Array:
    start, stop = (array_of(a, "geomspace", dtype) for a in (start, stop))
    start, stop = promote_inexact("geomspace", start, stop)
    shape = joint_shape("geomspace", [start.aval, stop.aval])
    start, stop = repeated(start, shape), repeated(stop, shape)
    # For real numbers the sign is taken out; complex ones turn as they grow.
    sign = lax.sign(start)
    exponents = _linspace(
        lax.log(lax.div(start, sign)),
        lax.log(lax.div(stop, sign)),
        num,
        endpoint,
        None,
        0,
    )[0]
    out = lax.mul(lax.exp(exponents), repeated(sign, (num, *shape)))
    if num:
        # The ends exactly as given: the way through logarithms rounds.
        rows = [lax.reshape(start, (1, *shape))]
        if endpoint and num > 1:
            rows += [
                lax.slice_in_dim(out, 1, num - 1),
                lax.reshape(stop, (1, *shape)),
            ]
        else:
            rows.append(lax.slice_in_dim(out, 1, num))
        rows = [convert(r, out.aval.dtype) for r in rows]
        out = lax.concatenate(rows, 0)
    out = _along(out, axis, "geomspace")
    return _strong(out) if dtype is None else astype_array(out, dtype)
