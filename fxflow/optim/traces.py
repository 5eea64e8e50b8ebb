"""Moving sums and averages of gradients: momentum, and its signs.

A dtype argument is the dtype of the state; updates keep the dtype of the gradients. For
gradients of 16 bits, these transformations compute in float32: over 3,000 steps, a mean
in bfloat16 would reach only half its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Scalar,
    Updates,
    in_float32,
    safe_increment,
    zero_count,
)
from fxflow.optim.tree import bias_correction as unbiased
from fxflow.optim.tree import power_sum, update_moment, zeros_like


class TraceState(NamedTuple):
    """State of `trace`: the sum."""

    trace: Updates


class EmaState(NamedTuple):
    """State of `ema`: the number of updates and the average."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    ema: Updates


class ScaleByLionState(NamedTuple):
    """State of `scale_by_lion`: the number of updates and the average."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    mu: Updates


def trace(
    decay: Scalar, nesterov: bool = False, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformation:
    r"""Makes momentum: an exponentially decaying sum of gradients.

    .. math::
       m \leftarrow g + \beta m, \qquad u = m \text{ or, Nesterov's, } g + \beta m

    Args:
      decay: β.
      nesterov: whether to use Nesterov momentum.
      accumulator_dtype: dtype of the sum; None means that of the parameters, but at
        least float32.

    Returns:
      A transformation whose state is the sum.

    Example:
      >>> tx = optim.trace(0.5)
      >>> _, state = tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))
      >>> tx.update(fnp.ones(1), state)[0].tolist()
      [1.5]

    Reference: Sutskever, Martens, Dahl, Hinton 2013.
    """

    def add(g: Any, m: Any) -> Any:
        return fnp.add(g, fnp.multiply(decay, m))

    def init(params: Params) -> TraceState:
        return TraceState(zeros_like(params, accumulator_dtype))

    def update(
        updates: Updates, state: TraceState, params: Params | None = None
    ) -> tuple[Updates, TraceState]:
        new = tree.map(add, updates, state.trace)
        out = tree.map(add, updates, new) if nesterov else new
        return out, TraceState(new)

    return in_float32(GradientTransformation(init, update))


def ema(
    decay: Scalar, debias: bool = True, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformation:
    r"""Makes an exponential moving average: :math:`m \leftarrow (1-\beta) g + \beta m`.

    Args:
      decay: β.
      debias: whether to correct the bias, by dividing by :math:`1 - \beta^t`.
      accumulator_dtype: dtype of the average; None means that of the parameters, but at
        least float32.

    Returns:
      A transformation whose state is the average.

    Example:
      >>> tx = optim.ema(0.5)
      >>> tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))[0].tolist()
      [1.0]
    """

    def init(params: Params) -> EmaState:
        return EmaState(zero_count(), zeros_like(params, accumulator_dtype))

    def update(
        updates: Updates, state: EmaState, params: Params | None = None
    ) -> tuple[Updates, EmaState]:
        count = safe_increment(state.count)
        new = update_moment(updates, state.ema, decay, 1)
        out = unbiased(new, decay, count) if debias else new
        return out, EmaState(count, new)

    return in_float32(GradientTransformation(init, update))


def scale_by_lion(
    b1: Scalar = 0.9,
    b2: Scalar = 0.99,
    mu_dtype: DTypeLike | None = None,
    *,
    mode: str = "hard",
    smooth_beta: Scalar = 1.0,
) -> GradientTransformation:
    r"""Makes the transformation of Lion: the signs of an interpolated momentum.

    .. math:: u = \operatorname{sign}((1-\beta_1) g + \beta_1 m), \qquad
       m \leftarrow (1-\beta_2) g + \beta_2 m

    Args:
      b1: β₁, weight of the average in the direction.
      b2: β₂, decay of the average.
      mu_dtype: dtype of the average; None means that of the parameters, but at least
        float32.
      mode: `"hard"` for signs, `"smooth"` for :math:`\tanh(\beta x)`, `"refined"` for x
        clipped to [-1, 1].
      smooth_beta: β of `"smooth"`.

    Returns:
      A transformation whose state is the average.

    Raises:
      ArgumentError: `mode` is unknown.

    Example:
      >>> tx = optim.scale_by_lion()
      >>> tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))[0].tolist()
      [1.0, -1.0]

    Reference: Chen et al. 2023, "Symbolic discovery of optimization algorithms".
    """
    bounds: dict[str, Callable[[Any], Any]] = {
        "hard": fnp.sign,
        "smooth": lambda x: fnp.tanh(fnp.multiply(smooth_beta, x)),
        "refined": lambda x: fnp.clip(x, -1, 1),
    }
    if mode not in bounds:
        raise ArgumentError(
            f"scale_by_lion: mode must be one of {', '.join(bounds)}, got {mode!r}"
        )
    bounded = bounds[mode]

    def init(params: Params) -> ScaleByLionState:
        return ScaleByLionState(zero_count(), zeros_like(params, mu_dtype))

    def update(
        updates: Updates, state: ScaleByLionState, params: Params | None = None
    ) -> tuple[Updates, ScaleByLionState]:
        def direction(g: Any, m: Any) -> Any:
            return bounded(power_sum(g, b1, m, 1))

        out = tree.map(direction, updates, state.mu)
        mu = update_moment(updates, state.mu, b2, 1)
        return out, ScaleByLionState(safe_increment(state.count), mu)

    return in_float32(GradientTransformation(init, update))
