"""Sorts on CPUs by integers, which take a sixth of the time of XLA's other sorts.

XLA's CPU compiler gives lines of one array of numbers, compared by `<`, to the C++
library. Any other comparison, of floats or of several arrays, is a function that is
called for each pair of elements. So keys become words of 32 bits that have the order of
the keys, and a word with its element's position below it is one integer of 64 bits: the
sorted integers say where each element comes from. Keys of several words are sorted by
the last one first. Positions make all integers different, so the order is stable.

Few elements are sorted by XLA, but also by integers: programs for CPUs compare floats
that are subnormal as zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.core.ir.primitive import table
from fxflow.core.runtime.lowering import Context
from fxflow.lax.bitcasting import bitcast_convert_type
from fxflow.lax.bitwise import (
    bitwise_and,
    bitwise_or,
    shift_left,
    shift_right_arithmetic,
)
from fxflow.lax.complex import imag, real
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full_like
from fxflow.lax.elementwise import sub
from fxflow.lax.gather_scatter.gather import take_along
from fxflow.lax.ordered_bits import sort_keys

_LOW = np.int64(2**32 - 1)
_HALF = np.int64(2**31)
# With more words, comparing pairs is as fast.
_MOST_WORDS = 4
# Fewer elements are sorted in less time than the longer program takes to compile.
_FEWEST = 1024


def applies(ctx: Context, avals: Sequence[Aval], dimension: int, num_keys: int) -> bool:
    """Returns whether a sort is one of words.

    Args:
      ctx: of the program.
      avals: types of the operands.
      dimension: the axis.
      num_keys: how many operands are compared.
    """
    shape = avals[0].shape
    if (
        ctx.platform != "cpu"
        or ctx.module.partitioned
        or not all(isinstance(n, int) for n in shape)
        or not 1 < shape[dimension] < 2**31
        or avals[0].size < _FEWEST
        or any(dtypes.bits(aval.dtype) < 8 for aval in avals)
    ):
        return False
    if len(avals) == 1 and not dtypes.is_inexact(avals[0].dtype):
        return False  # the C++ library sorts it
    return sum(_count(aval.dtype) for aval in avals[:num_keys]) <= _MOST_WORDS


def sort_by_words(operands: Sequence[Any], dimension: int, num_keys: int) -> list[Any]:
    """Returns the operands, sorted.

    Args:
      operands: arrays of one shape.
      dimension: the axis.
      num_keys: how many of them are compared.
    """
    words = [w for key in operands[:num_keys] for w in _words(key)]
    order: Any = None
    for word in reversed(words):
        if order is not None:
            word = take_along(word, order, dimension)
        place = _order(word, dimension)
        order = place if order is None else take_along(order, place, dimension)
    return [take_along(x, order, dimension) for x in operands]


def sort_by_integers(
    operands: Sequence[Any], dimension: int, is_stable: bool, num_keys: int
) -> list[Any]:
    """Returns the operands, sorted by XLA, which compares integers alone.

    Args:
      operands: arrays of one shape.
      dimension: the axis.
      is_stable: whether equal elements stay in order.
      num_keys: how many of them are compared.
    """
    keys: list[Any] = []
    places: dict[int, int] = {}  # of the operands that are keys themselves
    for i, x in enumerate(operands[:num_keys]):
        if not dtypes.is_inexact(typeof(x).dtype):
            places[i] = len(keys)
            keys.append(x)
        elif dtypes.is_complex(typeof(x).dtype):
            keys += [sort_keys(real(x)), sort_keys(imag(x))]
        else:
            keys.append(sort_keys(x))
    count = len(keys)
    for i, x in enumerate(operands):
        if i not in places:
            places[i] = len(keys)
            keys.append(x)
    outs = table["sort"].bind(
        *keys, dimension=dimension, is_stable=is_stable, num_keys=count
    )
    return [outs[places[i]] for i in range(len(operands))]


def _order(word: Any, dimension: int) -> Any:
    """Returns the positions, i32[...], that sort words, i64[...] of 32 bits."""
    shape = typeof(word).shape
    positions = broadcasted_iota(np.int64, shape, dimension)
    packed = bitwise_or(shift_left(word, full_like(word, 32)), positions)
    (ordered,) = table["sort"].bind(
        packed, dimension=dimension, is_stable=False, num_keys=1
    )
    low = bitwise_and(ordered, full_like(ordered, _LOW))
    return convert_element_type(low, np.int32)


def _count(dtype: Any) -> int:
    if dtypes.is_complex(dtype):
        return 2 * _count(dtypes.to_real(dtype))
    return 2 if dtypes.bits(dtype) == 64 else 1


def _words(key: Any) -> list[Any]:
    """Returns i64[...] from -2³¹ to 2³¹ - 1, the most significant first."""
    dtype = typeof(key).dtype
    if dtypes.is_complex(dtype):
        return [*_words(real(key)), *_words(imag(key))]
    if dtypes.is_floating(dtype):
        key = sort_keys(key)
    elif dtype == np.uint64:
        # Its bits less 2⁶³ are those of a signed integer of the same order.
        signed = bitcast_convert_type(key, np.int64)
        key = sub(signed, full_like(signed, np.iinfo(np.int64).min))
    else:
        key = convert_element_type(key, np.int64)
        if dtype == np.uint32:
            key = sub(key, full_like(key, _HALF))
    if dtypes.bits(dtype) < 64:
        return [convert_element_type(key, np.int64)]
    high = shift_right_arithmetic(key, full_like(key, 32))
    low = bitwise_and(key, full_like(key, _LOW))
    return [high, sub(low, full_like(low, _HALF))]
