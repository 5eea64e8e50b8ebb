"""Optimistic steps, for games: extrapolate the next gradient from the last two."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.adams import adam_docs
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Rate,
    Scalar,
    ScalarOrSchedule,
    Updates,
    in_float32,
    wide_chain,
)
from fxflow.optim.moments import scale_by_adam
from fxflow.optim.scaling import scale, scale_by_learning_rate
from fxflow.optim.tree import zeros_like


class ScaleByOptimisticGradientState(NamedTuple):
    """State of `scale_by_optimistic_gradient`.

    Attributes:
      is_initial_step: whether there was no gradient yet, bool[].
      previous_gradient: the previous gradient.
    """

    is_initial_step: Array
    previous_gradient: Updates


def scale_by_optimistic_gradient(
    alpha: Scalar = 1.0, beta: Scalar = 1.0
) -> GradientTransformation:
    r"""Makes optimistic updates: :math:`u = \alpha g + \beta (g - g_{t-1})`.

    At the first step, the change is 0.

    Args:
      alpha: α.
      beta: β, the weight of the gradient's change.

    Returns:
      A transformation whose state is the previous gradient.

    Example:
      >>> tx = optim.scale_by_optimistic_gradient()
      >>> _, state = tx.update(fnp.array([1.0]), tx.init(fnp.zeros(1)))
      >>> tx.update(fnp.array([3.0]), state)[0].tolist()
      [5.0]

    Reference: Daskalakis, Ilyas, Syrgkanis, Zeng 2018, "Training GANs with optimism";
    Mokhtari, Ozdaglar, Pattathil 2020.
    """

    def init(params: Params) -> ScaleByOptimisticGradientState:
        return ScaleByOptimisticGradientState(fnp.full((), True), zeros_like(params))

    def update(
        updates: Updates,
        state: ScaleByOptimisticGradientState,
        params: Params | None = None,
    ) -> tuple[Updates, ScaleByOptimisticGradientState]:
        def one(g: Any, before: Any) -> Any:
            change = fnp.where(state.is_initial_step, 0, fnp.subtract(g, before))
            return fnp.add(fnp.multiply(alpha, g), fnp.multiply(beta, change))

        out = tree.map(one, updates, state.previous_gradient)
        return out, ScaleByOptimisticGradientState(fnp.full((), False), updates)

    return in_float32(GradientTransformation(init, update))


def optimistic_gradient_descent(
    learning_rate: ScalarOrSchedule, alpha: Scalar = 1.0, beta: Scalar = 1.0
) -> GradientTransformation:
    """Makes optimistic gradient descent, for games between two players.

    Args:
      learning_rate: a number or a schedule.
      alpha: weight of the gradient.
      beta: weight of its change.

    Returns:
      A transformation.

    Example:
      >>> tx = optim.optimistic_gradient_descent(0.5)
      >>> tx.update(fnp.array([1.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-0.5]

    Reference: Mokhtari, Ozdaglar, Pattathil 2020, "A unified analysis of extra-gradient
    and optimistic gradient methods for saddle point problems".
    """
    return wide_chain(
        scale_by_optimistic_gradient(alpha, beta),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def optimistic_adam(
    learning_rate: Rate,
    optimism: Scalar | None = None,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
) -> GradientTransformation:
    """Makes optimistic Adam.

    Args:
      learning_rate: a number; for a schedule see `optimistic_adam_v2`.
      optimism: weight of the change of Adam's step; None means the learning rate.

    Example:
      >>> tx = optim.optimistic_adam(0.5, eps=0.0)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Daskalakis, Ilyas, Syrgkanis, Zeng 2018, "Training GANs with optimism".
    """
    return wide_chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_optimistic_gradient(
            learning_rate, learning_rate if optimism is None else optimism
        ),
        scale(-1.0),
    )


@adam_docs
def optimistic_adam_v2(
    learning_rate: ScalarOrSchedule,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 1.0,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    nesterov: bool = True,
) -> GradientTransformation:
    """Makes optimistic Adam with a learning rate that may be a schedule.

    Args:
      alpha: weight of Adam's step.
      beta: weight of its change.

    Example:
      >>> tx = optim.optimistic_adam_v2(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Daskalakis, Ilyas, Syrgkanis, Zeng 2018, "Training GANs with optimism".
    """
    return wide_chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_optimistic_gradient(alpha, beta),
        scale_by_learning_rate(learning_rate),
    )
