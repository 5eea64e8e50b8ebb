"""Smooth approximations of functions: means over noisy inputs.

The mean of f over noise is smooth even if f is not (a rank, a choice, a shortest path),
and its derivatives need only values of f.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.boundary import public as _public
from fxflow.core.boundary import shown
from fxflow.core.source import at_fault
from fxflow.errors import ArgumentError, DtypeError
from fxflow.numpy._operands import ArrayLike, DTypeLike
from fxflow.optim.base import Scalar
from fxflow.optim.tree import split_key_like
from fxflow.transforms.vmap import vmap

__all__ = ["Gumbel", "Normal", "make_perturbed_fun"]


class Noise(Protocol):
    """A distribution of noise."""

    def sample(self, key: Array, sample_shape: Sequence[int], dtype: Any) -> Array:
        """Draws numbers."""
        ...

    def log_prob(self, inputs: Any) -> Array:
        """Returns the logarithm of the density, up to a constant."""
        ...


class Gumbel:
    """The standard Gumbel distribution: the limit of the maximum of many numbers.

    Example:
      >>> round(float(optim.perturbations.Gumbel().log_prob(0.0)), 3)
      -1.0
    """

    def sample(
        self, key: Array, sample_shape: Sequence[int] = (), dtype: DTypeLike = float
    ) -> Array:
        """Draws numbers.

        Args:
          key: a random key.
          sample_shape: shape of the result.
          dtype: dtype of the result.

        Returns:
          float[*sample_shape].
        """
        return random.gumbel(key, sample_shape, dtype)

    def log_prob(self, inputs: ArrayLike) -> Array:
        """Returns the logarithm of the density.

        Args:
          inputs: float[...].

        Returns:
          float[...].
        """
        return fnp.negative(fnp.add(inputs, fnp.exp(fnp.negative(inputs))))


class Normal:
    """The standard normal distribution.

    Example:
      >>> round(float(optim.perturbations.Normal().log_prob(1.0)), 3)
      -1.419
    """

    def sample(
        self, key: Array, sample_shape: Sequence[int] = (), dtype: DTypeLike = float
    ) -> Array:
        """Draws numbers.

        Args:
          key: a random key.
          sample_shape: shape of the result.
          dtype: dtype of the result.

        Returns:
          float[*sample_shape].
        """
        return random.normal(key, sample_shape, dtype)

    def log_prob(self, inputs: ArrayLike) -> Array:
        """Returns the logarithm of the density.

        Args:
          inputs: float[...].

        Returns:
          float[...].
        """
        half = fnp.multiply(-0.5, fnp.square(inputs))
        return fnp.subtract(half, 0.5 * math.log(2 * math.pi))


_GUMBEL = Gumbel()


def make_perturbed_fun(
    fun: Callable[[Any], Any],
    num_samples: int = 1000,
    sigma: Scalar = 0.1,
    noise: Noise = _GUMBEL,
    use_baseline: bool = True,
) -> Callable[[Array, Any], Any]:
    r"""Makes the mean of a function over noisy inputs, which is differentiable.

    It estimates :math:`F(x) = E[f(x + \sigma Z)]`, and derivatives of all orders by
    those of the noise's density p; the first is

    .. math:: E[-\nabla \log p(Z)\, (f(x + \sigma Z) - f(x))] / \sigma

    Args:
      fun: f, a function from a pytree of float arrays to a pytree of arrays; it may be
        piecewise constant.
      num_samples: number of samples.
      sigma: σ > 0, the scale of the noise.
      noise: a distribution with `sample(key, sample_shape, dtype)` and a differentiable
        `log_prob(inputs)`.
      use_baseline: whether to subtract f(x) in derivatives, which reduces their
        variance at the cost of one more call of f.

    Returns:
      A function of a random key and an input.

    Raises:
      ArgumentError: `fun` is not a function, or `num_samples` is below 1.
      DtypeError: (when called) an input is not a float array.

    Special cases:
      Derivatives with respect to variables that f closes over are those of the mean.

    Example:
      >>> hard = lambda x: nn.one_hot(fnp.argmax(x), 3)
      >>> soft = optim.perturbations.make_perturbed_fun(hard, 1000, 1.0)
      >>> x = fnp.array([0.0, 1.0, 2.0])  # the softmax of it, with Gumbel's noise
      >>> bool(fnp.allclose(soft(random.key(0), x), nn.softmax(x), atol=0.1))
      True

    Reference: Berthet et al. 2020, "Learning with differentiable perturbed optimizers";
    Foerster et al. 2018, "DiCE: the infinitely differentiable Monte Carlo estimator".
    """
    if not callable(fun):
        raise ArgumentError(
            f"{at_fault(fun)}make_perturbed_fun: expected a function, got {shown(fun)}"
        )
    if num_samples < 1:
        raise ArgumentError(
            f"make_perturbed_fun: num_samples must be at least 1, got {num_samples}"
        )

    def draw(key: Any, x: Any) -> Any:
        aval = typeof(x)
        if not dtypes.is_floating(aval.dtype):
            raise DtypeError(
                f"make_perturbed_fun: inputs must be float arrays, got {aval}"
            )
        return noise.sample(key, aval.shape, aval.dtype)

    def perturbed(key: Array, x: Any) -> Any:
        """Estimates the mean of the function over noisy inputs."""

        def one(own: Any) -> tuple[Any, Any]:
            z = tree.map(draw, split_key_like(own, x), x)
            # Reparametrized: the sample y does not depend on x, but its density does.
            y = tree.map(
                lambda a, b: lax.stop_gradient(fnp.add(a, fnp.multiply(sigma, b))), x, z
            )
            density: Any = 0.0
            for a, n in zip(tree.leaves(x), tree.leaves(z), strict=True):
                still = lax.stop_gradient(a)
                moved = fnp.add(n, fnp.divide(fnp.subtract(still, a), sigma))
                density = fnp.add(density, fnp.sum(noise.log_prob(moved)))
            return fun(y), density

        values, density = vmap(one)(random.split(key, num_samples))
        # Its value is 1; its derivatives are those of the density over the density.
        weight = fnp.exp(fnp.subtract(density, lax.stop_gradient(density)))

        def mean(value: Any, base: Any = None) -> Any:
            aval = typeof(value)
            own = weight
            if dtypes.is_inexact(aval.dtype):
                own = fnp.astype(weight, dtypes.to_real(aval.dtype))
            share = fnp.expand_dims(own, tuple(range(1, aval.ndim)))
            total = fnp.mean(fnp.multiply(share, value), 0)
            if base is None:
                return total
            rest = fnp.subtract(1.0, fnp.mean(own))
            return fnp.add(total, fnp.multiply(lax.stop_gradient(base), rest))

        if not use_baseline:
            return tree.map(mean, values)
        return tree.map(mean, values, fun(tree.map(lax.stop_gradient, x)))

    return perturbed


_public(globals(), __all__)
