"""`jax.experimental.random`: a generator that keeps its state in a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fxflow
from fxflow import Array, Ref, new_ref, random
from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.core import trace_state_clean
from fxflow.compat.jax.random import key as new_key

_Size = int | Sequence[int] | None


def _shape(size: _Size, *operands: Any) -> tuple[int, ...]:
    if size is None:
        return fnp.broadcast_shapes(*(np.shape(x) for x in operands))
    return (size,) if isinstance(size, int) else tuple(size)


@fxflow.tree.register_dataclass
@dataclass(frozen=True)
class StatefulPRNG:
    """A key, and a counter that each draw increments; `stateful_rng` makes one.

    It can be an argument of a transformed function, but not a result.
    """

    _base_key: Array
    _counter: Ref

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Returns new keys.

        Args:
          shape: shape of the array of keys; () is one.

        Returns:
          key[*shape].

        Raises:
          ValueError: this is what `split` returned, outside of `vmap`.
        """
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator")
        key = random.fold_in(self._base_key, self._counter[...])
        fxflow.ref.addupdate(self._counter, ..., 1)
        wanted = _shape(shape)
        return random.split(key, wanted) if wanted else key

    def random(self, size: _Size = None, dtype: Any = float) -> Array:
        """Draws floats from [0, 1).

        Args:
          size: shape of the result; None is ().
          dtype: dtype of the result.

        Returns:
          An array of `size`.
        """
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self, low: Any = 0, high: Any = 1, size: _Size = None, *, dtype: Any = float
    ) -> Array:
        """Draws floats from [low, high).

        Args:
          low: array.
          high: array.
          size: shape of the result; None is that of `low` and `high`, broadcast.
          dtype: dtype of the result.

        Returns:
          An array of `size`.
        """
        shape = _shape(size, low, high)
        return random.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(
        self, loc: Any = 0, scale: Any = 1, size: _Size = None, *, dtype: Any = float
    ) -> Array:
        """Draws normally distributed numbers.

        Args:
          loc: array of means.
          scale: array of standard deviations.
          size: shape of the result; None is that of `loc` and `scale`, broadcast.
          dtype: dtype of the result.

        Returns:
          An array of `size`.
        """
        drawn = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return fnp.asarray(loc + fnp.asarray(scale) * drawn, dtype)

    def integers(
        self, low: Any, high: Any = None, size: _Size = None, *, dtype: Any = int
    ) -> Array:
        """Draws integers from [low, high), or from [0, low) without `high`.

        Args:
          low: array.
          high: array, or None.
          size: shape of the result; None is that of `low` and `high`, broadcast.
          dtype: dtype of the result.

        Returns:
          An array of `size`.
        """
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Returns independent generators in one object, to be mapped over by `vmap`.

        Args:
          num: how many, or the shape of several axes.

        Returns:
          A generator whose key and counter have these axes.
        """
        return StatefulPRNG(self.key(num), new_ref(fnp.zeros(num, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Returns a list of independent generators.

        Args:
          n_children: the number of children.

        Returns:
          A list of generators.
        """
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """Makes a generator.

    Args:
      seed: an integer; None is drawn by NumPy, outside of transformations only.
      impl: the keys' generator by name.

    Returns:
      A `StatefulPRNG`.

    Raises:
      TypeError: there is no seed in a function that is being traced.
    """
    if seed is None:
        if not trace_state_clean():
            raise TypeError(
                "When used within transformed code, jax.experimental.random."
                "stateful_rng() requires an explicit seed to be set."
            )
        seed = np.random.SeedSequence().generate_state(1)[0]
    return StatefulPRNG(new_key(seed, impl=impl), new_ref(0))


__all__ = ["StatefulPRNG", "stateful_rng"]

listen(globals())
