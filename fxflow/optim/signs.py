"""Optimizers that use only the signs of gradients: Rprop and Signum."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.numpy._operands import DTypeLike
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
from fxflow.optim.scaling import scale, scale_by_learning_rate, scale_by_sign
from fxflow.optim.traces import ema
from fxflow.optim.tree import full_like, zeros_like


class ScaleByRpropState(NamedTuple):
    """State of `scale_by_rprop`: step sizes, and the previous steps."""

    step_sizes: Updates
    prev_updates: Updates


def scale_by_rprop(
    learning_rate: Rate,
    eta_minus: Scalar = 0.5,
    eta_plus: Scalar = 1.2,
    min_step_size: Scalar = 1e-6,
    max_step_size: Scalar = 50.0,
) -> GradientTransformation:
    """Makes the transformation of Rprop: steps grow while the gradient's sign persists.

    When the sign changes, steps shrink. As in optax, and unlike in the paper, a step is
    taken at the next gradient, if that has the same sign.

    Args:
      learning_rate: the initial step size.
      eta_minus: factor of the step size when the sign changes, below 1.
      eta_plus: factor of the step size when the sign persists, above 1.
      min_step_size: the smallest step size.
      max_step_size: the largest step size.

    Returns:
      A transformation whose state is step sizes and steps. It is meant for full-batch
      gradients.

    Example:
      >>> tx = optim.scale_by_rprop(0.5)
      >>> g = fnp.array([3.0, -2.0])
      >>> _, state = tx.update(g, tx.init(fnp.zeros(2)))
      >>> tx.update(g, state)[0].tolist()
      [0.5, -0.5]

    Reference: Riedmiller and Braun 1993; Igel and Hüsken 2003.
    """

    def init(params: Params) -> ScaleByRpropState:
        return ScaleByRpropState(full_like(params, learning_rate), zeros_like(params))

    def update(
        updates: Updates, state: ScaleByRpropState, params: Params | None = None
    ) -> tuple[Updates, ScaleByRpropState]:
        def lasting(g: Any, before: Any) -> Any:
            # The product of signs, because that of small numbers underflows.
            return fnp.multiply(fnp.sign(g), fnp.sign(before))

        def size(g: Any, before: Any, old: Any) -> Any:
            lasts = lasting(g, before)
            larger, smaller = fnp.multiply(old, eta_plus), fnp.multiply(old, eta_minus)
            new = fnp.where(fnp.greater(lasts, 0), larger, smaller)
            new = fnp.clip(new, min_step_size, max_step_size)
            return fnp.where(fnp.equal(lasts, 0), old, new)

        def step(g: Any, before: Any, size: Any) -> Any:
            turns = fnp.less(lasting(g, before), 0)
            return fnp.where(turns, 0, fnp.multiply(fnp.sign(g), size))

        def taken(g: Any, before: Any) -> Any:
            return fnp.where(fnp.less(lasting(g, before), 0), 0, before)

        sizes = tree.map(size, updates, state.prev_updates, state.step_sizes)
        steps = tree.map(step, updates, state.prev_updates, sizes)
        out = tree.map(taken, updates, state.prev_updates)
        return out, ScaleByRpropState(sizes, steps)

    return in_float32(GradientTransformation(init, update))


def rprop(
    learning_rate: Rate,
    eta_minus: Scalar = 0.5,
    eta_plus: Scalar = 1.2,
    min_step_size: Scalar = 1e-6,
    max_step_size: Scalar = 50.0,
) -> GradientTransformation:
    """Makes Rprop, for full-batch gradients: it uses only their signs.

    Args:
      learning_rate: the initial step size.
      eta_minus: factor of the step size when the sign changes, below 1.
      eta_plus: factor of the step size when the sign persists, above 1.
      min_step_size: the smallest step size.
      max_step_size: the largest step size.

    Returns:
      A transformation.

    Example:
      >>> tx = optim.rprop(0.5)
      >>> tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Riedmiller and Braun 1993; Igel and Hüsken 2003.
    """
    return wide_chain(
        scale_by_rprop(
            learning_rate, eta_minus, eta_plus, min_step_size, max_step_size
        ),
        scale(-1.0),
    )


def signum(
    learning_rate: ScalarOrSchedule,
    beta: Scalar = 0.9,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformation:
    """Makes Signum: steps by the sign of the mean gradient.

    Args:
      learning_rate: the step size: a number or a schedule.
      beta: decay of the mean.
      accumulator_dtype: dtype of the mean; None means that of the parameters, but at
        least float32.

    Returns:
      A transformation.

    Example:
      >>> tx = optim.signum(0.5)
      >>> tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))[0].tolist()
      [-0.5, 0.5]

    Reference: Bernstein, Wang, Azizzadenesheli, Anandkumar 2018, "signSGD: compressed
    optimisation for non-convex problems".
    """
    return wide_chain(
        ema(beta, False, accumulator_dtype),
        scale_by_sign(),
        scale_by_learning_rate(learning_rate),
    )
