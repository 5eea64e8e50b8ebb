"""Schedule-free optimizers: an average of the iterates replaces the schedule."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    ScalarOrSchedule,
    State,
    Updates,
    cast_like,
    chain,
    identity,
    need_params,
    safe_increment,
    with_extra_args_support,
)
from fxflow.optim.descents import sgd
from fxflow.optim.moments import scale_by_rms
from fxflow.optim.numerics import quotient, widened
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fxflow.optim.schedules import warmup_constant_schedule
from fxflow.optim.tree import cast


class ScheduleFreeState(NamedTuple):
    """State of `schedule_free`.

    Attributes:
      b1: the weight of the average in the parameters.
      weight_sum: sum of the weights of the steps.
      step_count: number of the next update, counted from 1.
      max_lr: the largest learning rate so far.
      base_optimizer_state: state of the inner optimizer.
      z: its iterates.
    """

    b1: Array
    weight_sum: Array
    step_count: Array
    max_lr: Array
    base_optimizer_state: State
    z: Params


def schedule_free_eval_params(state: ScheduleFreeState, params: Params) -> Params:
    """Returns the averaged parameters, for evaluation and checkpoints.

    Args:
      state: state of `schedule_free`.
      params: the parameters at which gradients are computed.

    Returns:
      A pytree of the same structure.

    Example:
      >>> tx = optim.contrib.schedule_free_sgd(0.5)
      >>> p = fnp.ones(2)
      >>> optim.contrib.schedule_free_eval_params(tx.init(p), p).tolist()
      [1.0, 1.0]
    """

    def one(y: Any, z: Any) -> Any:
        other = fnp.multiply(fnp.subtract(1.0, state.b1), widened(z))
        return cast_like(fnp.divide(fnp.subtract(widened(y), other), state.b1), y)

    return tree.map(one, params, state.z)


def schedule_free(
    base_optimizer: GradientTransformation,
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    weight_lr_power: Scalar = 2.0,
    state_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    r"""Makes an optimizer that needs no decreasing learning rate.

    Compute gradients at :math:`y = \beta x + (1 - \beta) z`, where z are the iterates
    of the inner optimizer and x their average, weighted by a power of the learning
    rate.

    Args:
      base_optimizer: an optimizer without momentum.
      learning_rate: its learning rate: a number or a schedule with a warm-up, which is
        a function of the number of updates so far. (optax 0.2.8 weights each step by
        the rate of the next one.)
      b1: β, above 0.
      weight_lr_power: the exponent of that power.
      state_dtype: dtype of z; None means that of the parameters, but at least float32.

    Returns:
      A transformation whose `update` needs the parameters y;
      `schedule_free_eval_params` returns x.

    Example:
      >>> tx = optim.contrib.schedule_free(optim.sgd(0.5), 0.5)
      >>> p = fnp.ones(2)
      >>> tx.update(fnp.ones(2), tx.init(p), p)[0].tolist()
      [-0.5, -0.5]

    Reference: Defazio et al. 2024, "The road less scheduled".
    """
    inner = with_extra_args_support(base_optimizer)

    def init(params: Params) -> ScheduleFreeState:
        return ScheduleFreeState(
            fnp.asarray(b1, "float32"),
            fnp.zeros((), "float32"),
            fnp.ones((), "int32"),
            fnp.zeros((), "float32"),
            inner.init(params),
            cast(tree.map(fnp.copy, tree.map(widened, params)), state_dtype),
        )

    def update(
        updates: Updates,
        state: ScheduleFreeState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, ScheduleFreeState]:
        params = need_params("schedule_free", params)
        rate: Any = learning_rate
        if callable(learning_rate):
            # The rate of this step: the inner optimizer counts from 0.
            rate = learning_rate(fnp.subtract(state.step_count, 1))
        most = fnp.maximum(state.max_lr, rate)
        weight = fnp.power(most, weight_lr_power)
        total = fnp.add(state.weight_sum, weight)
        share = quotient(weight, total)
        steps, own = inner.update(updates, state.base_optimizer_state, params, **extra)
        params = tree.map(widened, params)
        before = tree.map(widened, state.z)
        average = schedule_free_eval_params(state._replace(z=before), params)
        z = tree.map(lambda a, u: fnp.add(a, widened(u)), before, steps)

        def one(x: Any, z: Any, y: Any) -> Any:
            x = fnp.add(fnp.multiply(1.0 - share, x), fnp.multiply(share, z))
            new = fnp.add(fnp.multiply(b1, x), fnp.multiply(1.0 - b1, z))
            return fnp.subtract(new, y)

        out = tree.map(cast_like, tree.map(one, average, z, params), updates)
        z = tree.map(cast_like, z, state.z)
        count = safe_increment(state.step_count)
        kept = cast_like(total, state.weight_sum), cast_like(most, state.max_lr)
        return out, ScheduleFreeState(state.b1, kept[0], count, kept[1], own, z)

    return GradientTransformationExtraArgs(init, update)


def _warm(learning_rate: ScalarOrSchedule, steps: int | None) -> ScalarOrSchedule:
    if steps is None:
        return learning_rate
    return warmup_constant_schedule(0.0, learning_rate, steps)


def schedule_free_adamw(
    learning_rate: ScalarOrSchedule = 0.0025,
    warmup_steps: int | None = None,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    weight_decay: Scalar = 0.0,
    weight_lr_power: Scalar = 2.0,
    state_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Makes schedule-free AdamW.

    Args:
      learning_rate: a number, or without `warmup_steps` a schedule.
      warmup_steps: number of steps of a linear warm-up from 0; None means no warm-up.
      b1: weight of the average in the parameters.
      b2: decay of the second moments.
      eps: added to the square root.
      weight_decay: λ.
      weight_lr_power: exponent of the steps' weights.
      state_dtype: dtype of the iterates; None means that of the parameters, but at
        least float32.

    Returns:
      A transformation whose `update` needs the parameters; see `schedule_free`.

    Example:
      >>> tx = optim.contrib.schedule_free_adamw(0.5)
      >>> p = fnp.ones(2)
      >>> tx.update(fnp.ones(2), tx.init(p), p)[0].shape
      (2,)

    Reference: Defazio et al. 2024, "The road less scheduled".
    """
    rate = _warm(learning_rate, warmup_steps)
    base = chain(
        scale_by_rms(b2, eps, eps_in_sqrt=False, bias_correction=True),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(rate),
    )
    return schedule_free(base, rate, b1, weight_lr_power, state_dtype)


def schedule_free_sgd(
    learning_rate: ScalarOrSchedule = 1.0,
    warmup_steps: int | None = None,
    b1: Scalar = 0.9,
    weight_decay: Scalar | None = None,
    weight_lr_power: Scalar = 2.0,
    state_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Makes schedule-free gradient descent.

    Args:
      learning_rate: a number, or without `warmup_steps` a schedule.
      warmup_steps: number of steps of a linear warm-up from 0; None means no warm-up.
      b1: weight of the average in the parameters.
      weight_decay: λ; None means no decay.
      weight_lr_power: exponent of the steps' weights.
      state_dtype: dtype of the iterates; None means that of the parameters, but at
        least float32.

    Returns:
      A transformation whose `update` needs the parameters; see `schedule_free`.

    Example:
      >>> tx = optim.contrib.schedule_free_sgd(0.5)
      >>> p = fnp.ones(2)
      >>> tx.update(fnp.ones(2), tx.init(p), p)[0].tolist()
      [-0.5, -0.5]

    Reference: Defazio et al. 2024, "The road less scheduled".
    """
    rate = _warm(learning_rate, warmup_steps)
    decay = identity() if weight_decay is None else add_decayed_weights(weight_decay)
    return schedule_free(
        chain(decay, sgd(rate)), rate, b1, weight_lr_power, state_dtype
    )
