"""`jax.extend.random`: keys by their generator, and Threefry's hash itself."""

from __future__ import annotations

import math
from typing import Any

import fxflow.numpy as fnp
from fxflow.compat.jax._composed import functions
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import by_name
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError

# fxflow's generators are known by their names.
threefry_prng_impl = "threefry2x32"
rbg_prng_impl = "rbg"
unsafe_rbg_prng_impl = "unsafe_rbg"

threefry2x32_p: Any = by_name("threefry2x32_p")


def random_seed(seeds: Any, impl: Any) -> Array:
    """Makes a key of each seed.

    Args:
      seeds: array of integers.
      impl: the generator.

    Returns:
      An array of keys of the shape of `seeds`.
    """
    keys: Array = functions["random_seed"](seeds, impl=impl)
    return keys


def seed_with_impl(impl: Any, seed: Any) -> Array:
    """Makes a key of each seed; see `random_seed`.

    Args:
      impl: the generator.
      seed: array of integers.

    Returns:
      An array of keys of the shape of `seed`.
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """Returns the bits that Threefry's block function makes of counters.

    Args:
      keypair: u32[2], or two words.
      count: u32[...]; the first half and the second are the words of the blocks.

    Returns:
      An array of the type of `count`.

    Raises:
      ArgumentError: there are more than two words in the key.
    """
    words, counts = fnp.asarray(keypair), fnp.asarray(count)
    if words.shape != (2,):
        raise ArgumentError(f"threefry_2x32: a key has 2 words, got {words.aval}")
    half = math.ceil(counts.size / 2)
    flat = fnp.pad(counts.ravel(), (0, 2 * half - counts.size))
    out = threefry2x32_p.bind(words[0], words[1], flat[:half], flat[half:])
    return fnp.concatenate(out)[: counts.size].reshape(counts.shape)


__all__ = [
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]

listen(globals())
