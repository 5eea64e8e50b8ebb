"""Draws from the words of keys, on which the samplers are built."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core import arith, dtypes
from fxflow.core.aval import Shape
from fxflow.core.convert import typeof
from fxflow.lax.random_bits import RandomBits, RandomSplit

UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


def split(words: Any, count: int) -> list[Any]:
    """Returns the words of `count` new keys (of each key, for an array of keys)."""
    axis = typeof(words).ndim - 1
    new = RandomSplit.bind(words, shape=(count,))
    return [lax.index_in_dim(new, i, axis, keepdims=False) for i in range(count)]


def bits(words: Any, width: int, shape: Shape) -> Any:
    """Returns random bits of shape `(*keys, *shape)`."""
    return RandomBits.bind(words, shape=shape, bit_width=width)


def unit(words: Any, shape: Shape, dtype: Any) -> Any:
    """Returns uniform numbers in [0, 1): the multiples of 2 to the minus mantissa bits.

    Random bits fill the mantissa of a number in [1, 2), from which 1 is subtracted.
    """
    info = dtypes.finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    # Eight bits are enough for bfloat16's seven.
    drawn = 8 if mantissa < 8 else width
    number = bits(words, drawn, shape)
    if drawn != width:
        number = lax.convert_element_type(number, UNSIGNED[width])
    one = int(np.ones((), dtype).view(UNSIGNED[width]))
    number = lax.bitwise_or(lax.shift_right_logical(number, drawn - mantissa), one)
    return lax.sub(lax.bitcast_convert_type(number, dtype), 1.0)


def between(words: Any, shape: Shape, dtype: Any, low: Any, high: Any) -> Any:
    """Returns uniform numbers in [low, high), bounds of `dtype` that fit `shape`."""
    scale = lax.sub(high, low)
    moved = lax.add(lax.mul(unit(words, shape, dtype), scale), low)
    return lax.max(low, moved)  # rounding may have gone below


def open_unit(words: Any, shape: Shape, dtype: Any) -> Any:
    """Returns uniform numbers in (-1, 1)."""
    below_one = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    low, high = arith.constant(below_one, dtype), arith.constant(1, dtype)
    return between(words, shape, dtype, low, high)


def positive_unit(words: Any, shape: Shape, dtype: Any) -> Any:
    """Returns uniform numbers in (0, 1), from the smallest normal number on."""
    low = arith.constant(dtypes.finfo(dtype).tiny, dtype)
    return between(words, shape, dtype, low, arith.constant(1, dtype))


def normal(words: Any, shape: Shape, dtype: Any) -> Any:
    """Returns standard normal numbers, by the inverse of the distribution function."""
    return lax.mul(lax.erf_inv(open_unit(words, shape, dtype)), float(np.sqrt(2)))


def exponential(words: Any, shape: Shape, dtype: Any) -> Any:
    """Returns standard exponential numbers, by the inverse distribution function."""
    return lax.neg(lax.log1p(lax.neg(unit(words, shape, dtype))))


def signs(words: Any, shape: Shape, dtype: Any) -> Any:
    """Returns -1 and 1, each with probability one half."""
    positive = lax.lt(unit(words, shape, dtypes.default_float()), 0.5)
    return lax.sub(lax.mul(lax.convert_element_type(positive, dtype), 2), 1)
