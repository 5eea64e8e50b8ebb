"""`jax.random`: keys may be raw, that is u32[2]; `PRNGKey` makes such."""

from typing import Any

from fxflow import random as _random
from fxflow.compat.jax._config import config
from fxflow.compat.jax._mirror import mirror
from fxflow.compat.jax._primitives import by_name
from fxflow.core.arrays import Array


def key(seed: Any, *, impl: Any = None) -> Array:
    """Makes a key.

    Args:
      seed: an integer.
      impl: the generator's name; None means `config.jax_default_prng_impl`.

    Returns:
      A key of dtype `key<...>`.
    """
    return _random.key(seed, impl=_implementation(impl))


def _implementation(impl: Any) -> Any:
    return config.jax_default_prng_impl if impl is None else impl


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """Makes a raw key.

    Args:
      seed: an integer.
      impl: the generator's name; None means `config.jax_default_prng_impl`.

    Returns:
      u32[2] or u32[4], the data of `key(seed)`.
    """
    return _random.key_data(key(seed, impl=impl))


def threefry_prng_key(seed: Any) -> Array:
    """Makes a raw key of the generator threefry2x32."""
    return PRNGKey(seed)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> Array:
    """Makes keys of their data.

    Args:
      key_bits_array: u32[..., 2].
      impl: the generator's name; None means `config.jax_default_prng_impl`.
    """
    return _random.wrap_key_data(key_bits_array, impl=_implementation(impl))


mirror(globals(), "fxflow.random")
_absent: Any = globals()["__getattr__"]


def __getattr__(name: str) -> Any:
    found = by_name(name)
    return _absent(name) if found is None else found
