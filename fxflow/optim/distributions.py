"""Normal distributions with a diagonal covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array, typeof
from fxflow.numpy._operands import ArrayLike


class MultiNormal:
    """A normal distribution of vectors with independent elements.

    Attributes:
      params: the means, and the logarithms of the standard deviations.
      log_scale: the logarithms of the standard deviations.
    """

    def __init__(self, loc: ArrayLike, log_scale: ArrayLike) -> None:
        """Makes a distribution; see `multi_normal`."""
        self._loc: Array = fnp.asarray(loc)
        self.log_scale: Array = fnp.asarray(log_scale)
        self._shape: tuple[int, ...] = fnp.broadcast_shapes(
            typeof(self._loc).shape, typeof(self.log_scale).shape
        )

    @property
    def params(self) -> list[Array]:
        """The means, and the logarithms of the standard deviations."""
        return [self._loc, self.log_scale]

    def sample(self, shape: Sequence[int], key: Array) -> Array:
        """Draws vectors.

        Args:
          shape: shape of the batch of vectors.
          key: a random key.

        Returns:
          float[*shape, ...]: `shape` and the shape of the distribution.
        """
        dtype = fnp.result_type(self._loc, self.log_scale, float)
        noise = random.normal(key, (*shape, *self._shape), dtype)
        return fnp.add(self._loc, fnp.multiply(fnp.exp(self.log_scale), noise))

    def log_prob(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the density.

        Args:
          x: float[..., n].

        Returns:
          float[...].
        """
        distance = fnp.divide(fnp.subtract(x, self._loc), fnp.exp(self.log_scale))
        each = fnp.multiply(-0.5, fnp.square(distance))
        each = fnp.subtract(each, fnp.add(self.log_scale, 0.5 * math.log(2 * math.pi)))
        return fnp.sum(each, -1)


def multi_normal(loc: ArrayLike, log_scale: ArrayLike) -> MultiNormal:
    """Makes a normal distribution of vectors with independent elements.

    Args:
      loc: float[..., n], the means.
      log_scale: the logarithms of the standard deviations, which broadcast against the
        means.

    Returns:
      The distribution, with `sample(shape, key)` and `log_prob(x)`.

    Raises:
      ShapeError: the shapes do not broadcast.

    Example:
      >>> float(optim.multi_normal(fnp.zeros(2), fnp.zeros(2)).log_prob(fnp.zeros(2)))
      -1.83787...
    """
    return MultiNormal(loc, log_scale)
