"""Uniform and normal numbers from key data, on which all samplers are built.

A key is data u32[2]; of an array of keys u32[*keys, 2], each gives numbers of its
own, so that results have the shape `(*keys, *shape)`. Keys of other generators than
Threefry come typed, since their data does not say of which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Shape, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import table
from fxflow.lax.bitcasting import bitcast_convert_type
from fxflow.lax.bitwise import bitwise_or, shift_right_logical
from fxflow.lax.comparison import lt
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.elementwise import add, max, mul, neg, sub
from fxflow.lax.exponential import log1p
from fxflow.lax.random_bits import (
    RandomBits,
    RandomSplit,
    random_bits,
    random_split,
)
from fxflow.lax.slicing import index_in_dim, slice_in_dim
from fxflow.lax.special import ErfInv

UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


def new_keys(key_data: Any, shape: Shape) -> Any:
    """Returns the data of new keys (typed ones, of typed keys): `(*keys, *shape)`."""
    if dtypes.is_key(typeof(key_data).dtype):
        return random_split(key_data, shape)
    return RandomSplit.bind(key_data, shape=shape)


def threefry_data(keys: Any) -> Any:
    """Returns data u32[..., 2] that Threefry takes, of key data or of typed keys."""
    if not dtypes.is_key(typeof(keys).dtype):
        return keys
    data = table["random_unwrap"].bind(keys)
    return slice_in_dim(data, 0, 2, 1, typeof(data).ndim - 1)


def split(key_data: Any, count: int) -> list[Any]:
    """Returns the data of `count` new keys (of each key, for an array of keys)."""
    aval = typeof(key_data)
    axis = aval.ndim - (not dtypes.is_key(aval.dtype))
    new = new_keys(key_data, (count,))
    return [index_in_dim(new, i, axis, keepdims=False) for i in range(count)]


def bits(key_data: Any, width: int, shape: Shape) -> Any:
    """Returns random bits of shape `(*keys, *shape)`."""
    if dtypes.is_key(typeof(key_data).dtype):
        return random_bits(key_data, width, shape)
    return RandomBits.bind(key_data, shape=shape, bit_width=width)


def uniform(key_data: Any, shape: Shape, dtype: Any) -> Any:
    """Returns uniform numbers in [0, 1): the multiples of 2 to the minus mantissa bits.

    Random bits fill the mantissa of a number in [1, 2), from which 1 is subtracted.
    """
    info = dtypes.finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    # Eight bits are enough for bfloat16's seven.
    drawn = 8 if mantissa < 8 else width
    number = bits(key_data, drawn, shape)
    if drawn != width:
        number = convert_element_type(number, UNSIGNED[width])
    one = int(np.ones((), dtype).view(UNSIGNED[width]))
    number = bitwise_or(shift_right_logical(number, drawn - mantissa), one)
    return sub(bitcast_convert_type(number, dtype), 1.0)


def uniform_between(
    key_data: Any, shape: Shape, dtype: Any, low: Any, high: Any
) -> Any:
    """Returns uniform numbers in [low, high), bounds of `dtype` that fit `shape`."""
    constant = type(low) is np.ndarray and type(high) is np.ndarray
    scale = high - low if constant else sub(high, low)
    moved = add(mul(uniform(key_data, shape, dtype), scale), low)
    return max(low, moved)  # rounding may give less


def open_uniform(key_data: Any, shape: Shape, dtype: Any) -> Any:
    """Returns uniform numbers in (-1, 1)."""
    below_one = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    low, high = arith.constant(below_one, dtype), arith.constant(1, dtype)
    return uniform_between(key_data, shape, dtype, low, high)


def positive_uniform(key_data: Any, shape: Shape, dtype: Any) -> Any:
    """Returns uniform numbers in (0, 1), from the smallest normal number on."""
    low = arith.constant(dtypes.finfo(dtype).tiny, dtype)
    return uniform_between(key_data, shape, dtype, low, arith.constant(1, dtype))


def normal(key_data: Any, shape: Shape, dtype: Any) -> Any:
    """Returns standard normal numbers, by the inverse of the distribution function."""
    return mul(ErfInv.bind(open_uniform(key_data, shape, dtype)), float(np.sqrt(2)))


def exponential(key_data: Any, shape: Shape, dtype: Any) -> Any:
    """Returns standard exponential numbers, by the inverse distribution function."""
    return neg(log1p(neg(uniform(key_data, shape, dtype))))


def signs(key_data: Any, shape: Shape, dtype: Any) -> Any:
    """Returns -1 and 1, each with probability one half."""
    positive = lt(uniform(key_data, shape, dtypes.default_float()), 0.5)
    return sub(mul(convert_element_type(positive, dtype), 2), 1)
