"""Polyak's step size, which depends on the loss."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    EmptyState,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    ScalarOrSchedule,
    Updates,
    in_float32,
    need_extra,
    wide_chain,
)
from fxflow.optim.descents import sgd
from fxflow.optim.numerics import quotient, widened
from fxflow.optim.tree import norm


def scale_by_polyak(
    f_min: Scalar = 0.0,
    max_learning_rate: Scalar = 1.0,
    eps: Scalar = 0.0,
    variant: str = "sps",
) -> GradientTransformationExtraArgs:
    r"""Makes a transformation that scales by Polyak's step size.

    .. math:: u = g \min\left(\eta,\; \frac{f - f^*}{\lVert g\rVert^2 + \epsilon}\right)

    Args:
      f_min: f*, the minimum of the loss.
      max_learning_rate: η, the largest step size.
      eps: ε.
      variant: `"sps"`, or `"sps+"`, with steps of 0 for losses below f*.

    Returns:
      A transformation without state. Its `update` needs the loss, `value=`.

    Raises:
      ArgumentError: `variant` is unknown, or (from `update`) `value` is missing.

    Example:
      >>> tx = optim.scale_by_polyak()
      >>> tx.update(fnp.array([3.0, 4.0]), tx.init(0.0), value=5.0)[0].tolist()
      [0.6..., 0.8...]

    Reference: Loizou, Vaswani, Laradji, Lacoste-Julien 2021, "Stochastic Polyak
    step-size for SGD"; Garrigos et al. 2023 ("sps+").
    """
    if variant not in ("sps", "sps+"):
        raise ArgumentError(
            f'scale_by_polyak: variant must be "sps" or "sps+", got {variant!r}'
        )

    def init(params: Params) -> EmptyState:
        return EmptyState()

    def update(
        updates: Updates,
        state: EmptyState,
        params: Params | None = None,
        *,
        value: Any = None,
        **extra: Any,
    ) -> tuple[Updates, EmptyState]:
        value = widened(need_extra("scale_by_polyak", "value", value))
        gap = fnp.subtract(value, f_min)
        if variant == "sps+":
            gap = fnp.maximum(gap, 0.0)
        square = norm(updates, squared=True)
        flat = fnp.equal(square, 0)
        step = fnp.minimum(quotient(gap, fnp.add(square, eps)), max_learning_rate)
        step = fnp.where(flat, 0.0, step)
        return tree.map(lambda g: fnp.multiply(step, g), updates), state

    return in_float32(GradientTransformationExtraArgs(init, update))


def polyak_sgd(
    max_learning_rate: Scalar = 1.0,
    scaling: ScalarOrSchedule = 1.0,
    f_min: Scalar = 0.0,
    eps: Scalar = 0.0,
    variant: str = "sps",
) -> GradientTransformationExtraArgs:
    """Makes gradient descent with Polyak's step size.

    Args:
      max_learning_rate: the largest step size.
      scaling: factor of the steps: a number or a schedule.
      f_min: the minimum of the loss.
      eps: added to the squared norm of the gradient.
      variant: `"sps"`, or `"sps+"`, with steps of 0 for losses below `f_min`.

    Returns:
      A transformation. Its `update` needs the loss, `value=`.

    Example:
      >>> tx = optim.polyak_sgd()
      >>> p = fnp.array([3.0, 4.0])
      >>> tx.update(p, tx.init(p), p, value=12.5)[0].tolist()
      [-1.5, -2.0]

    Reference: Loizou, Vaswani, Laradji, Lacoste-Julien 2021, "Stochastic Polyak
    step-size for SGD".
    """
    return wide_chain(
        sgd(scaling), scale_by_polyak(f_min, max_learning_rate, eps, variant)
    )
