"""Gradient descent with differential privacy."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    ScalarOrSchedule,
    Updates,
    in_float32,
    wide_chain,
)
from fxflow.optim.clipping import per_example_global_norm_clip
from fxflow.optim.descents import sgd


class DifferentiallyPrivateAggregateState(NamedTuple):
    """State of `differentially_private_aggregate`: the next key."""

    rng_key: Array


def differentially_private_aggregate(
    l2_norm_clip: Scalar,
    noise_multiplier: Scalar,
    key: Any = None,
    *,
    seed: int | None = None,
) -> GradientTransformation:
    r"""Makes a transformation from the examples' gradients to their noisy mean.

    It clips the gradient of each example to norm C, adds normal noise of standard
    deviation :math:`\sigma C` to their sum, and divides by their number. It must be the
    first part of a chain, because its updates have no axis of examples.

    Args:
      l2_norm_clip: C, the largest norm of all arrays of an example together.
      noise_multiplier: σ.
      key: a random key.
      seed: seed of the key, in place of `key`.

    Returns:
      A transformation whose state is a key. It takes arrays with one gradient for each
      example along the first axis (for example from `vmap(grad(loss), (None, 0))`).

    Raises:
      ArgumentError: neither or both of `key` and `seed` are given, or (from `update`)
        the first axes differ.

    Example:
      >>> tx = optim.contrib.differentially_private_aggregate(1.0, 0.0, seed=0)
      >>> tx.update(fnp.array([[3.0, 4.0], [0.0, 0.5]]), tx.init(fnp.zeros(2)))[0]
      Array([0.3 , 0.65], dtype=float32)

    Reference: Abadi et al. 2016, "Deep learning with differential privacy".
    """
    if (key is None) == (seed is None):
        raise ArgumentError(
            "differentially_private_aggregate: pass either a random key or a seed"
        )
    first = random.key(seed) if key is None else key

    def init(params: Params) -> DifferentiallyPrivateAggregateState:
        return DifferentiallyPrivateAggregateState(fnp.copy(first))

    def update(
        updates: Updates,
        state: DifferentiallyPrivateAggregateState,
        params: Params | None = None,
    ) -> tuple[Updates, DifferentiallyPrivateAggregateState]:
        total, _ = per_example_global_norm_clip(updates, l2_norm_clip)
        count = max(typeof(tree.leaves(updates)[0]).shape[0], 1)
        leaves, treedef = tree.flatten(total)
        keys: Any = random.split(state.rng_key, len(leaves) + 1)
        deviation = fnp.multiply(l2_norm_clip, noise_multiplier)

        def noisy(i: int, x: Any) -> Any:
            aval = typeof(x)
            noise = random.normal(keys[i + 1], aval.shape, aval.dtype)
            return fnp.divide(fnp.add(x, fnp.multiply(deviation, noise)), count)

        new = [noisy(i, x) for i, x in enumerate(leaves)]
        return treedef.unflatten(new), DifferentiallyPrivateAggregateState(keys[0])

    return in_float32(GradientTransformation(init, update))


def dpsgd(
    learning_rate: ScalarOrSchedule,
    l2_norm_clip: Scalar,
    noise_multiplier: Scalar,
    seed: int,
    momentum: Scalar | None = None,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Makes gradient descent with differential privacy.

    Args:
      learning_rate: factor of the steps.
      l2_norm_clip: the largest norm of all arrays of an example together.
      noise_multiplier: standard deviation of the noise, in units of that norm.
      seed: seed of the random key.
      momentum: decay of the sum of steps; None means no momentum.
      nesterov: whether to use Nesterov momentum.

    Returns:
      A transformation of arrays with one gradient for each example along the first
      axis.

    Raises:
      ArgumentError: (from `update`) the first axes differ.

    Example:
      >>> tx = optim.contrib.dpsgd(0.5, 1.0, 0.0, seed=0)
      >>> tx.update(fnp.array([[3.0, 4.0]]), tx.init(fnp.zeros(2)))[0].tolist()
      [-0.3..., -0.4...]

    Reference: Abadi et al. 2016, "Deep learning with differential privacy".
    """
    return wide_chain(
        differentially_private_aggregate(l2_norm_clip, noise_multiplier, seed=seed),
        sgd(learning_rate, momentum, nesterov),
    )
