"""Random bits: the Threefry-2x32 counter-based generator, and keys as arrays of words.

A key is two 32-bit words; a typed key array is an array of `u32[..., 2]` in memory.
Every draw is a *function* of a key and of the position of the element: element `i` is
the block cipher's value at counter `i`. So a draw is the same on every device and
however the result is partitioned, and its bits are those of JAX's (partitionable)
Threefry.

Primitives other than `random_wrap` and `random_unwrap` work on the words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core.arrays import Array, Aval, Shape, dtypes, put_host, typeof
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir.primitive import Batched, Flags, Values, register
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax import rbg
from fxflow.lax.bitwise import shift_right_logical
from fxflow.lax.concatenation import concatenate
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.reshaping import reshape
from fxflow.lax.threefry import (
    HOST_BYTES,
    MASK,
    WORD,
    Discrete,
    block,
    blocks,
    call,
    host_words,
    key_words,
    lower_words,
    side_by_side,
)

_UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


# -- primitives ------------------------------------------------------------------------


class _Draw(Discrete):
    """What one key gives, for each key of an array of keys u32[*batch, 2]."""

    nondifferentiable = "random bits are integers"
    host_bytes = HOST_BYTES
    layout: Callable[..., Any] = layouts.drawn

    def keys_shape(self, data: Aval) -> Shape:
        """Returns the shape of the array of keys."""
        if data.dtype != WORD or data.shape[-1:] != (2,):
            raise ShapeError(
                f"{self.name}: takes key data, u32[..., 2], got {data}: "
                "random_unwrap gives the data of typed keys"
            )
        return data.shape[:-1]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more axis of keys."""
        return self.bind(*args, **params), True


@register
class RandomBits(_Draw):
    """Random bits from key data. dtypes: u32 to u8, u16, u32, u64.

    Params:
      shape: shape of what each key gives.
      bit_width: 8, 16, 32 or 64.
    """

    name = "random_bits"

    def abstract(self, *avals: Aval, shape: Shape, bit_width: int) -> Aval:
        """Unsigned integers of shape `(*keys, *shape)`."""
        return Aval((*self.keys_shape(avals[0]), *shape), _UNSIGNED[bit_width])

    def lower(self, ctx: Context, *operands: str, shape: Shape, bit_width: int) -> str:
        """The blocks at counters 0, 1, …; the two words of each are combined."""
        (out,) = ctx.avals_out
        words = Aval(out.shape, WORD).mlir
        high, low = lower_words(ctx, operands[0], shape)
        if bit_width == 64:
            convert = f": ({words}) -> {out.mlir}"
            high = ctx.emit(f"stablehlo.convert {high} {convert}")
            low = ctx.emit(f"stablehlo.convert {low} {convert}")
            half = ctx.constant(np.uint64(32), out)
            high = ctx.emit(f"stablehlo.shift_left {high}, {half} : {out.mlir}")
            return ctx.emit(f"stablehlo.or {high}, {low} : {out.mlir}")
        mixed = ctx.emit(f"stablehlo.xor {high}, {low} : {words}")
        if bit_width == 32:
            return str(mixed)
        return ctx.emit(f"stablehlo.convert {mixed} : ({words}) -> {out.mlir}")

    def evaluate(self, *values: Any, shape: Shape, bit_width: int) -> Any:
        """The same on the host."""
        high, low = host_words(np.asarray(values[0]), shape)
        if bit_width == 64:
            return high.astype(np.uint64) << np.uint64(32) | low
        mixed = np.asarray(high ^ low)
        return mixed if bit_width == 32 else mixed.astype(_UNSIGNED[bit_width])


@register
class RandomSplit(_Draw):
    """New keys from key data. dtypes: u32.

    Params:
      shape: shape of the new keys that each key gives.
    """

    name = "random_split"

    def abstract(self, *avals: Aval, shape: Shape) -> Aval:
        """Words of shape `(*keys, *shape, 2)`."""
        return Aval((*self.keys_shape(avals[0]), *shape, 2), WORD)

    def lower(self, ctx: Context, *operands: str, shape: Shape) -> str:
        """The blocks at counters 0, 1, …, their words side by side."""
        words = lower_words(ctx, operands[0], shape, makes_keys=True)
        return side_by_side(ctx, words)

    def evaluate(self, *values: Any, shape: Shape) -> Any:
        """The same on the host."""
        return np.stack(host_words(np.asarray(values[0]), shape), axis=-1)


@register
class RandomFoldIn(_Draw):
    """A new key from key data and an integer. dtypes: u32.

    Operands: the words u32[*keys, 2] of keys, and integers u32[*keys].
    """

    name = "random_fold_in"

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """Words of the keys' type."""
        keys, data = avals
        if data.dtype != WORD or data.shape != self.keys_shape(keys):
            raise ShapeError(
                f"random_fold_in: takes one u32 for each key, got {data} for {keys}"
            )
        return Aval(keys.shape, WORD)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The block at the counter 0, data."""
        keys, data = operands
        shape = ctx.avals_in[1].shape
        # The integer is the low word of a counter.
        zero = ctx.constant(np.uint32(0), Aval(shape, WORD))
        words = call(ctx, [*key_words(ctx, keys), zero, data], shape, makes_keys=True)
        return side_by_side(ctx, words)

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """The same on the host."""
        keys, data = map(np.asarray, values)
        if data.ndim == 0:
            k1, k2 = keys.tolist()
            return np.array(block(k1, k2, 0, int(data)), WORD)
        zero = np.zeros(1, WORD)
        return np.stack(blocks(keys[..., 0], keys[..., 1], zero, data), axis=-1)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more axis of keys and of integers."""
        both = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*both), True


@register
class RandomWrap(Discrete):
    """Typed keys from key data. dtypes: u32 to key. StableHLO: nothing.

    Params:
      dtype: the key dtype.
    """

    name = "random_wrap"
    nondifferentiable = "keys are not numbers"
    is_view = True
    layout: Callable[..., Any] = layouts.keys

    def abstract(self, *avals: Aval, dtype: Any) -> Aval:
        """The shape without the axis of words."""
        (data,) = avals
        suffix = dtype.suffix
        split = data.ndim - len(suffix)
        if data.dtype != dtype.base or data.shape[split:] != suffix or split < 0:
            words = ",".join(map(str, suffix))
            raise ShapeError(
                f"wrap_key_data: the data of {dtype} keys is "
                f"{dtypes.short_name(dtype.base)}[...,{words}], got {data}"
            )
        return Aval(data.shape[:split], dtype)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Keys are their data in memory."""
        return operands[0]

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Keys are their data in memory."""
        return values[0]

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Gives the operand."""
        return _same

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more axis of keys."""
        return self.bind(*args, **params), True


@register
class RandomUnwrap(Discrete):
    """The data of typed keys. dtypes: key to u32. StableHLO: nothing."""

    name = "random_unwrap"
    nondifferentiable = "keys are not numbers"
    is_view = True
    layout: Callable[..., Any] = layouts.keys

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The shape with an axis of words behind."""
        (keys,) = avals
        if not dtypes.is_key(keys.dtype):
            raise DtypeError(f"random_unwrap: takes typed keys, got {keys}")
        return keys.physical

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Keys are their data in memory."""
        return operands[0]

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Keys are their data in memory."""
        return values[0]

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Gives the operand."""
        return _same

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more axis of keys."""
        return self.bind(*args, **params), True


def _same(value: Any) -> Any:
    return value


# -- functions -------------------------------------------------------------------------


def random_wrap(data: Any, /, *, dtype: dtypes.KeyDtype = dtypes.key_fry) -> Array:
    """Returns typed keys made of key data.

    Args:
      data: u32[..., 2].
      dtype: the key dtype.

    Returns:
      Keys of shape `data.shape[:-1]`.

    Raises:
      ShapeError: `data` is not key data.

    Example:
      >>> random_wrap(np.zeros((3, 2), np.uint32)).shape
      (3,)

    Source: none; keys are their data in memory.
    """
    return RandomWrap.bind(data, dtype=dtype)


def random_unwrap(keys: Any, /) -> Array:
    """Returns the data of typed keys.

    Args:
      keys: typed keys of any shape.

    Returns:
      u32 of shape `(*keys.shape, 2)`.

    Raises:
      DtypeError: `keys` are not typed keys.

    Example:
      >>> random_unwrap(random_seed(7))
      Array([0, 7], dtype=uint32)

    Source: none; keys are their data in memory.
    """
    return RandomUnwrap.bind(keys)


def random_bits(key: Any, /, bit_width: int, shape: Sequence[int]) -> Array:
    """Returns random bits.

    Args:
      key: one typed key, or an array of them.
      bit_width: 8, 16, 32 or 64.
      shape: shape of what each key gives.

    Returns:
      Unsigned integers of that width, of shape `(*key.shape, *shape)`.

    Raises:
      ArgumentError: the width is another.

    Example:
      >>> random_bits(random_seed(0), 8, (3,))
      Array([167, 146,  40], dtype=uint8)

    Source: Salmon et al. 2011; the counter of an element is its flat position.
    """
    if bit_width not in _UNSIGNED:
        raise ArgumentError(
            f"random_bits: bit_width must be 8, 16, 32 or 64, got {bit_width!r}"
        )
    data = RandomUnwrap.bind(key)
    if typeof(key).dtype != dtypes.key_fry:
        return rbg.bits(data, bit_width, tuple(shape))
    return RandomBits.bind(data, shape=tuple(shape), bit_width=bit_width)


def random_split(key: Any, /, shape: Sequence[int]) -> Array:
    """Returns new keys derived from one.

    Args:
      key: one typed key, or an array of them.
      shape: shape of the new keys that each key gives.

    Returns:
      Keys of shape `(*key.shape, *shape)`.

    Example:
      >>> random_split(random_seed(0), (2,)).shape
      (2,)

    Source: Salmon et al. 2011; the counter of a new key is its flat position.
    """
    data, dtype = RandomUnwrap.bind(key), typeof(key).dtype
    if dtype == dtypes.key_fry:
        new = RandomSplit.bind(data, shape=tuple(shape))
    else:
        new = rbg.split(data, tuple(shape), dtype == dtypes.key_rbg)
    return RandomWrap.bind(new, dtype=dtype)


def random_fold_in(key: Any, data: Any, /) -> Array:
    """Returns a new key made from a key and an integer.

    Args:
      key: one typed key.
      data: a 0-d integer; taken modulo 2³².

    Returns:
      A key.

    Raises:
      DtypeError: `data` is not an integer.
      ShapeError: `data` is not 0-d.

    Example:
      >>> random_unwrap(random_fold_in(random_seed(0), 1))
      Array([ 928981903, 3453687069], dtype=uint32)

    Source: Salmon et al. 2011; the counter is the seed that `data` makes.
    """
    what = "fold_in: data"
    if isinstance(data, int) and not isinstance(data, np.generic):
        number = np.array(int(data) & MASK, WORD)
        word: Any = put_host(number, Aval((), WORD))
    else:
        word = convert_element_type(_integer(data, what), WORD)
    keys, dtype = RandomUnwrap.bind(key), typeof(key).dtype
    if dtype == dtypes.key_fry:
        out = RandomFoldIn.bind(keys, word)
    else:
        out = rbg.fold_in(keys, word, dtype == dtypes.key_rbg)
    return RandomWrap.bind(out, dtype=dtype)


def random_seed(seed: Any, /, *, dtype: dtypes.KeyDtype = dtypes.key_fry) -> Array:
    """Returns the key of a seed.

    Args:
      seed: a Python integer of at most 64 bits or a 0-d integer array; taken modulo
        2³², or with `config.x64` modulo 2⁶⁴.
      dtype: the key dtype.

    Returns:
      A key.

    Raises:
      DtypeError: `seed` is not an integer.
      ShapeError: `seed` is not 0-d.
      OverflowError: a Python integer needs more than 64 bits.

    Example:
      >>> random_unwrap(random_seed(-1))
      Array([         0, 4294967295], dtype=uint32)

    Source: Random123's key of a 64-bit integer: high word, low word.
    """
    words = _seed_words(seed)
    if dtype != dtypes.key_fry:
        words = rbg.seeded(words)
    return RandomWrap.bind(words, dtype=dtype)


def _seed_words(seed: Any) -> Any:
    """Returns the two words u32[2] of a seed."""
    if isinstance(seed, int) and not isinstance(seed, np.generic):
        value = int(seed)
        if not -(1 << 63) <= value < 1 << 64:
            raise OverflowError(f"key: the seed must fit 64 bits, got {value}")
        # As in JAX, a seed has 32 bits where integers do.
        high = (value >> 32) & MASK if config.x64 else 0
        return put_host(np.array([high, value & MASK], WORD), Aval((2,), WORD))
    array = _integer(seed, "key: the seed")
    low: Any = reshape(convert_element_type(array, WORD), (1,))
    if not dtypes.is_wide(array.dtype):
        return concatenate([np.zeros(1, WORD), low], 0)
    bits = convert_element_type(array, dtypes.uint64)
    top = convert_element_type(shift_right_logical(bits, 32), WORD)
    return concatenate([reshape(top, (1,)), low], 0)


def _integer(value: Any, what: str) -> Array:
    """Returns a 0-d integer array; `what` names it in messages."""
    if not is_arraylike(value):
        raise not_an_array(value, f"{what} is")
    if isinstance(value, np.integer) and not config.x64:
        # A NumPy integer of 64 bits stands for one of 32 here, taken modulo 2³².
        value = value.astype(value.dtype.str.replace("8", "4"))
    aval = typeof(value)
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise DtypeError(f"{what} must be an integer, got {aval}")
    if aval.ndim:
        raise ShapeError(
            f"{what} must be 0-d, got {aval}: use vmap for several, or split one key"
        )
    return value if isinstance(value, Tracer) else as_array(value)
