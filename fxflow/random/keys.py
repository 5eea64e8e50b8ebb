"""Random keys: made, split, folded, taken apart.

A key is the state of a generator that is never changed: a sampler is a pure function of
its key, so each draw needs a key of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import DTypeLike
from fxflow.random._arguments import one_key, typed_keys


def key_dtype(impl: Any = None) -> Any:
    """Returns the dtype of the keys of a generator.

    Args:
      impl: the generator's name, `"threefry2x32"`, `"rbg"` or `"unsafe_rbg"`, or a
        key dtype; None means the first.

    Returns:
      A key dtype.

    Raises:
      DtypeError: unknown generator.

    Example:
      >>> random.key_dtype()
      key<fry>
    """
    if impl is None:
        return dtypes.key_fry
    return impl if isinstance(impl, dtypes.KeyDtype) else dtypes.KeyDtype(impl)


def _chosen(name: str, impl: Any, dtype: Any) -> Any:
    """Returns the key dtype that a generator's name or a dtype says."""
    if impl is not None and dtype is not None:
        raise ArgumentError(f"{name}: give impl or dtype, not both")
    if dtype is not None and not isinstance(dtype, dtypes.KeyDtype):
        raise DtypeError(f"{name}: dtype must be a dtype of keys, got {dtype!r}")
    return key_dtype(impl if dtype is None else dtype)


def key(seed: Any, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Makes a random key of a seed.

    Args:
      seed: a Python integer of at most 64 bits, or a 0-d integer array. Taken modulo
        2³², or with `config.x64` modulo 2⁶⁴.
      impl: the generator's name. `"threefry2x32"` (None) gives the same numbers
        everywhere. `"rbg"` and `"unsafe_rbg"` draw by XLA's own generator, which is
        quicker on accelerators: another platform may give other numbers, under `vmap`
        all are drawn with the first key, and gamma numbers are drawn with the first
        half of a key by Threefry (those of JAX differ there).
      dtype: the dtype of the key, in place of `impl`.

    Returns:
      A 0-d array of dtype `key<fry>`.

    Raises:
      ArgumentError: both `impl` and `dtype` are given.
      DtypeError: the seed is not an integer, or the generator is unknown.
      ShapeError: the seed is not 0-d.
      OverflowError: the seed needs more than 64 bits.

    Example:
      >>> random.normal(random.key(0), (3,)).shape
      (3,)

    Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as
    1, 2, 3".
    """
    return lax.random_seed(seed, dtype=_chosen("key", impl, dtype))


@library("num")
def split(key: Any, num: int | Sequence[int] = 2) -> Array:
    """Makes new keys of one, which should not be used any more.

    Args:
      key: one key.
      num: how many new ones; or the shape of the array of new ones.

    Returns:
      Keys of shape `(num,)` or `num`; data u32[..., 2] if `key` came as data.

    Raises:
      ArgumentError: `key` is not a key, or `num` no integers.
      ShapeError: `key` is several keys.

    Example:
      >>> first, second = random.split(random.key(0))
      >>> first
      Array(key<fry>[]) overlaying:
      [1797259609, 2579123966]

      One key for each layer, and one for each step of a loop:

      >>> first, *layers = split(key(0), 4)
      >>> len(layers)
      3
      >>> from fxflow import lax
      >>> walk = lambda x, k: (x + random.normal(k), x)
      >>> lax.scan(walk, 0.0, split(first, 100))[1].shape
      (100,)

    Source: Salmon et al. 2011; key i is the block at counter i.
    """
    typed, raw = one_key("split", key)
    new = lax.random_split(typed, shape_or_length("split", num))
    return lax.random_unwrap(new) if raw else new


def fold_in(key: Any, data: Any) -> Array:
    """Makes a new key of a key and an integer: a step, a layer, a device.

    Args:
      key: one key.
      data: a 0-d integer, taken modulo 2³². A float is refused, as 0.1 and 0.9 would
        make one key.

    Returns:
      One key; data u32[2] if `key` came as data.

    Raises:
      ArgumentError: `key` is not a key.
      DtypeError: `data` is not an integer.
      ShapeError: `key` is several keys, or `data` is not 0-d.

    Example:
      >>> random.key_data(random.fold_in(random.key(0), 1))
      Array([ 928981903, 3453687069], dtype=uint32)

    Source: Salmon et al. 2011; the block at the counter that `data` is.
    """
    typed, raw = one_key("fold_in", key)
    new = lax.random_fold_in(typed, data)
    return lax.random_unwrap(new) if raw else new


def key_data(keys: Any) -> Array:
    """Returns key data.

    Args:
      keys: keys of any shape.

    Returns:
      u32[*keys.shape, 2].

    Raises:
      ArgumentError: they are not keys.

    Example:
      >>> random.key_data(random.key(7))
      Array([0, 7], dtype=uint32)
    """
    return lax.random_unwrap(typed_keys("key_data", keys)[0])


def wrap_key_data(
    data: Any, *, impl: Any = None, dtype: DTypeLike | None = None
) -> Array:
    """Returns keys made of key data.

    Args:
      data: u32[..., 2].
      impl: the generator's name; None means `"threefry2x32"`.
      dtype: the dtype of the keys, in place of `impl`.

    Returns:
      Keys of shape `data.shape[:-1]`.

    Raises:
      ShapeError: `data` is not key data.
      ArgumentError: both `impl` and `dtype` are given.

    Example:
      >>> random.wrap_key_data(random.key_data(random.key(7))).dtype
      key<fry>
    """
    return lax.random_wrap(data, dtype=_chosen("wrap_key_data", impl, dtype))


def key_impl(keys: Any) -> str:
    """Returns the name of the generator of keys.

    Args:
      keys: keys of any shape.

    Returns:
      Its name.

    Raises:
      ArgumentError: they are not keys.

    Example:
      >>> random.key_impl(random.key(0))
      'threefry2x32'
    """
    dtype = typeof(typed_keys("key_impl", keys)[0]).dtype
    return str(dtype.impl)


def clone(key: Any) -> Array:
    """Returns the same keys, to say that using them twice is meant.

    Args:
      key: keys of any shape.

    Returns:
      `key`.

    Raises:
      ArgumentError: they are not keys.

    Example:
      >>> k = random.key(0)
      >>> bool(random.uniform(k) == random.uniform(random.clone(k)))
      True
    """
    typed_keys("clone", key)
    if not isinstance(key, Array):
        raise ArgumentError(f"clone: expected an array of keys, got {key!r}")
    return key
