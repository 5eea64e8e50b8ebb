"""Bits, uniform numbers and uniform integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir import arith
from fxflow.errors import DtypeError
from fxflow.lax import sampling
from fxflow.lax.axes import shape_or_length
from fxflow.lax.gradient_control import stop_gradient
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import (
    arguments,
    fit,
    int_dtype,
    key_data_of,
    parameter,
    real_aval,
    result_shape,
)
from fxflow.random._layout import sampler


@sampler("shape", "dtype")
def bits(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws random bits: integers uniform over all values of an unsigned dtype.

    Args:
      shape: shape of the result.
      dtype: uint8, uint16, uint32 or uint64; None means uint32, or uint64 with
        `config.x64`.

    Raises:
      DtypeError: `dtype` is another.

    Example:
      >>> random.bits(random.key(0), (3,), "uint8")
      Array([167, 146,  40], dtype=uint8)

    Source: Salmon et al. 2011; the two words of the block at the element's position,
    combined by exclusive or.
    """
    chosen = dtypes.default_uint() if dtype is None else dtypes.dtype(dtype)
    if chosen not in sampling.UNSIGNED.values():
        raise DtypeError(
            "bits: dtype must be uint8, uint16, uint32 or uint64, got "
            f"{dtypes.short_name(chosen)}"
        )
    key_data = key_data_of("bits", key)
    drawn: Array = sampling.bits(
        key_data, dtypes.bits(chosen), shape_or_length("bits", shape)
    )
    return drawn


@sampler("shape", "dtype")
def uniform(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws uniform numbers in [minval, maxval).

    Args:
      shape: shape of the result.
      minval: lower bound, included; broadcast to `shape`.
      maxval: upper bound, excluded; broadcast to `shape`.

    Returns:
      An array of that shape and dtype: multiples of (maxval - minval)·2⁻²³ (float32).

    Raises:
      ShapeError: the bounds do not broadcast to `shape`.

    Example:
      >>> bool((random.uniform(random.key(0), (1000,)) < 1.0).all())
      True

    Source: random bits as the mantissa of a number in [1, 2). Where rounding would
    reach `maxval`, or the difference of the bounds overflow, which in JAX gives
    `maxval` or inf, numbers are in the interval.
    """
    key_data, full, chosen = arguments("uniform", key, shape, dtype)
    if type(minval) is float is type(maxval) and (minval, maxval) == (0.0, 1.0):
        plain: Array = sampling.uniform(key_data, full, chosen)
        return plain
    low, high = (parameter("uniform", p, chosen) for p in (minval, maxval))
    full = result_shape("uniform", shape, low, high)
    drawn = _between(key_data, full, chosen, fit(low, full), fit(high, full))
    return drawn


def _between(key_data: Any, shape: Any, dtype: Any, low: Any, high: Any) -> Array:
    """Returns uniform numbers below `high`, whatever the bounds are."""
    drawn: Array = sampling.uniform_between(key_data, shape, dtype, low, high)
    if all(type(b) is Array and not b.ndim for b in (low, high)):
        first, end = np.asarray(low), np.asarray(high)
        with np.errstate(all="ignore"):
            last = (1 - dtypes.finfo(dtype).eps).astype(dtype) * (end - first) + first
        if first < last < end:
            return drawn
    half = (lax.mul(b, 0.5) for b in (low, high))
    halves = sampling.uniform_between(key_data, shape, dtype, *half)
    wide = lax.eq(lax.abs(lax.sub(high, low)), math.inf)
    drawn = lax.select(wide, lax.mul(halves, 2.0), drawn)
    least = lax.nextafter(stop_gradient(high), stop_gradient(low))
    out: Array = lax.select(lax.ge(drawn, high), least, drawn)
    return out


def randint(
    key: Any,
    shape: Any,
    minval: Any,
    maxval: Any,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws uniform integers in [minval, maxval).

    Args:
      key: one key.
      shape: shape of the result.
      minval: lower bound, included; integers, broadcast to `shape`.
      maxval: upper bound, excluded; it may be one more than the dtype's largest value.
      dtype: an integer dtype; None means the default.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out; each device makes its own part. None: on one device.

    Returns:
      An array of that shape and dtype. Where `maxval <= minval` it holds `minval`.

    Raises:
      ArgumentError: `key` is not a key.
      DtypeError: `dtype` is not an integer dtype.
      ShapeError: the bounds do not broadcast to `shape`.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Special cases:
      Bounds beyond the dtype's range are clipped to it. If `maxval - minval` does not
      divide 2³², small numbers are a little likelier; two draws are combined, so the
      bias is below 2⁻³² for ranges up to 2¹⁶.

    Example:
      >>> random.randint(random.key(0), (4,), 0, 10).dtype
      dtype('int32')

    Source: the remainder of a number of twice the width, taken in two halves.
    """
    chosen = int_dtype("randint", dtype)
    if _is_int(minval) and _is_int(maxval):
        low, span, factor = _static_range(int(minval), int(maxval), chosen)
        return _modular(
            key, low, span, factor, shape, chosen, out_sharding=out_sharding
        )
    return _ranged(key, minval, maxval, shape, chosen, out_sharding=out_sharding)


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _working(dtype: Any) -> tuple[Any, Any]:
    """Returns the dtype to compute in and its unsigned counterpart."""
    width = dtypes.bits(dtype)
    if width >= 32:
        return dtype, sampling.UNSIGNED[width]
    return dtypes.int32, dtypes.uint32


def _static_range(minval: int, maxval: int, dtype: Any) -> tuple[Any, Any, Any]:
    """Returns the lowest value, the count of values and the weight of the first draw.

    Args:
      minval: lower bound, included.
      maxval: upper bound, excluded.
      dtype: dtype of the result.
    """
    info = dtypes.iinfo(dtype)
    work, unsigned = _working(dtype)
    least, most = int(info.min), int(info.max)
    low = min(max(minval, least), most)
    span = min(max(maxval, least), most + 1) - low
    modulus = 1 << dtypes.bits(unsigned)
    # A span of the whole range is zero modulo 2ⁿ, and x % 0 leaves x, as it should.
    span = (span if span > 0 else 1) % modulus
    half = 1 << (dtypes.bits(unsigned) // 2)
    root = half % span if span else half
    factor = root * root % modulus
    factor = factor % span if span else factor
    return (
        arith.constant(low, work),
        arith.constant(span, unsigned),
        arith.constant(factor, unsigned),
    )


@sampler("shape", "dtype")
def _modular(
    key: Any,
    low: Any,
    span: Any,
    factor: Any,
    shape: Any,
    dtype: Any,
    *,
    out_sharding: Any = None,
) -> Array:
    key_data = key_data_of("randint", key)
    full = result_shape("randint", shape, low, span)
    work, unsigned = _working(dtype)
    width = dtypes.bits(unsigned)
    first, second = (sampling.bits(w, width, full) for w in sampling.split(key_data, 2))
    low, span, factor = (fit(p, full) for p in (low, span, factor))
    # (2ʷ first + second) mod span, in w bits: of 2w random bits the bias is negligible.
    high_part = lax.mul(lax.rem(first, span), factor)
    offset = lax.rem(lax.add(high_part, lax.rem(second, span)), span)
    drawn = lax.add(low, lax.convert_element_type(offset, work))
    return lax.convert_element_type(drawn, dtype)


@sampler("shape", "dtype")
def _ranged(
    key: Any,
    minval: Any,
    maxval: Any,
    shape: Any,
    dtype: Any,
    *,
    out_sharding: Any = None,
) -> Array:
    info = dtypes.iinfo(dtype)
    work, unsigned = _working(dtype)
    low, _ = _bound(minval, work, int(info.min), int(info.max))
    # Where numbers are wider than the result, the bound beyond its range is one too.
    narrow = work != dtype
    high, beyond = _bound(maxval, work, int(info.min), int(info.max) + narrow)
    if narrow:
        beyond = None
    full = lax.broadcast_shapes(*(real_aval("randint", p).shape for p in (low, high)))
    low, high = fit(low, full), fit(high, full)
    distance = lax.convert_element_type(lax.sub(high, low), unsigned)
    some = lax.gt(high, low)
    one = lax.full_like(distance, 1)
    if beyond is not None:
        more = lax.bitwise_and(some, fit(beyond, full))
        distance = lax.select(more, lax.add(distance, 1), distance)
    span = lax.select(some, distance, one)
    half = lax.full_like(span, 1 << (dtypes.bits(unsigned) // 2))
    root = lax.rem(half, span)
    factor = lax.rem(lax.mul(root, root), span)
    return _modular(key, low, span, factor, shape, dtype)


def _bound(value: Any, work: Any, least: int, most: int) -> tuple[Any, Any]:
    """Returns a bound clipped to a range, and whether it was above (None: never)."""
    own = real_aval("randint", value).dtype
    if not dtypes.is_integer(own):
        value, own = lax.convert_element_type(value, work), work
    info = dtypes.iinfo(own)
    above = lax.gt(value, most) if info.max > most else None
    if info.min < least:
        value = lax.max(value, least)
    if info.max > most:
        value = lax.min(value, most)
    return lax.convert_element_type(value, work), above
