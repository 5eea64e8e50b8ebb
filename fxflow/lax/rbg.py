"""Keys whose bits XLA's own generator makes: `rbg` and `unsafe_rbg`.

A key is four words, the state of `rng_bit_generator`. `rbg` derives new keys by
Threefry of both halves, `unsafe_rbg` by the generator itself: quicker, and never tested
for how independent the keys are. Both give the keys and bits that JAX's generators of
these names give.

They are for accelerators. The bits are those of the platform's generator, so that
another one may give others; a program that is divided over devices makes all bits on
each of them; and under `vmap` the bits of all keys come from the first.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow.core.arrays import Array, Shape, dtypes, typeof
from fxflow.core.ir.primitive import table
from fxflow.lax.axis_order import transpose
from fxflow.lax.bitwise import bitwise_xor
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.concatenation import concatenate
from fxflow.lax.reshaping import reshape
from fxflow.lax.rng_bit_generator import rng_bit_generator
from fxflow.lax.slicing import index_in_dim, slice_in_dim

# `unsafe_rbg` takes every tenth block for a new key.
_STRIDE = 10


def _of_first(data: Any, shape: Shape, dtype: Any) -> Any:
    """Returns bits `(*keys, *shape)` from key data `(*keys, 4)`."""
    keys = typeof(data).shape[:-1]
    if keys:
        flat = reshape(data, (math.prod(keys), 4))
        data = index_in_dim(flat, 0, 0, keepdims=False)
    return rng_bit_generator(data, (*keys, *shape), dtype)[1]


def bits(data: Any, bit_width: int, shape: Shape) -> Array:
    """Returns random bits of key data; see `random_bits`."""
    drawn: Array = _of_first(data, shape, dtypes.dtype(f"uint{bit_width}"))
    return drawn


def _halves(data: Any) -> Any:
    return reshape(data, (*typeof(data).shape[:-1], 2, 2))


def split(data: Any, shape: Shape, safe: bool) -> Any:
    """Returns the data `(*keys, *shape, 4)` of new keys.

    Args:
      data: `(*keys, 4)`.
      shape: shape of the new keys that each key gives.
      safe: whether by Threefry.
    """
    keys = typeof(data).shape[:-1]
    if not safe:
        count = math.prod(shape)
        every = _of_first(data, (count, _STRIDE, 4), dtypes.uint32)
        axis = len(keys) + 1
        return reshape(slice_in_dim(every, 0, 1, 1, axis), (*keys, *shape, 4))
    new = table["random_split"].bind(_halves(data), shape=shape)
    # The axis of the halves goes behind those of the new keys.
    at, last = len(keys), len(keys) + len(shape)
    order = (*range(at), *range(at + 1, last + 1), at, last + 1)
    return reshape(transpose(new, order), (*keys, *shape, 4))


def fold_in(data: Any, number: Any, safe: bool) -> Any:
    """Returns the data `(*keys, 4)` of keys made with integers u32[*keys]."""
    keys = typeof(data).shape[:-1]
    if not safe:
        seed = seeded(concatenate(_zero_and(number, keys), len(keys)))
        every = _of_first(seed, (_STRIDE, 4), dtypes.uint32)
        last = index_in_dim(every, _STRIDE - 1, len(keys), keepdims=False)
        return bitwise_xor(data, last)
    both = broadcast_in_dim(number, (*keys, 2), tuple(range(len(keys))))
    new = table["random_fold_in"].bind(_halves(data), both)
    return reshape(new, (*keys, 4))


def _zero_and(number: Any, keys: Shape) -> list[Any]:
    word = reshape(number, (*keys, 1))
    return [bitwise_xor(word, word), word]


def seeded(words: Any) -> Any:
    """Returns key data of the two words of a seed: twice the same."""
    return concatenate([words, words], typeof(words).ndim - 1)
