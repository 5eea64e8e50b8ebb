"""Sharpness-aware minimization: uses gradients at the worst nearby point."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    State,
    Updates,
    need_extra,
    need_params,
    with_extra_args_support,
    zero_count,
)
from fxflow.optim.numerics import widened
from fxflow.optim.tree import add, cast_like, scale, sub, where


class SAMState(NamedTuple):
    """State of `sam`: the phase, both inner states, the parameters at its start."""

    steps_since_sync: Array
    opt_state: State
    adv_state: State
    cache: Params | None


def sam(
    optimizer: GradientTransformation,
    adv_optimizer: GradientTransformation,
    sync_period: int = 2,
    reset_state: bool = True,
    opaque_mode: bool = False,
    batch_axis_name: str | None = None,
) -> GradientTransformationExtraArgs:
    """Makes sharpness-aware minimization, which seeks flat minima.

    All updates of a period except the last ascend, with `adv_optimizer`. The last one
    descends from the start of the period, with the gradient at the ascended point.

    Args:
      optimizer: the optimizer that descends.
      adv_optimizer: the optimizer whose negative updates ascend; in the paper:
        `chain(contrib.normalize(), sgd(rho))`.
      sync_period: number of updates of a period, at least 2.
      reset_state: whether to reset the state of `adv_optimizer` in each period.
      opaque_mode: whether each update is a whole period. `update` then needs
        `grad_fn=`, a function of parameters and the number of the ascent step.
      batch_axis_name: a mapped axis over which to average gradients before the descent.

    Returns:
      A transformation whose `update` needs the parameters.

    Raises:
      ArgumentError: `sync_period` is below 2, or (from `update`) `grad_fn` is missing.

    Example:
      >>> up = optim.chain(optim.contrib.normalize(), optim.sgd(0.5))
      >>> tx = optim.contrib.sam(optim.sgd(0.1), up)
      >>> p = fnp.array([3.0, 4.0])
      >>> u, state = tx.update(p, tx.init(p), p)
      >>> u.tolist()
      [0.3..., 0.4...]

    Reference: Foret, Kleiner, Mobahi, Neyshabur 2021, "Sharpness-aware minimization for
    efficiently improving generalization".
    """
    if sync_period < 2:
        raise ArgumentError(f"sam: sync_period must be at least 2, got {sync_period}")

    def wide(values: Params) -> Params:
        return tree.map(widened, values)

    down = with_extra_args_support(optimizer)
    up = with_extra_args_support(adv_optimizer)

    def init(params: Params) -> SAMState:
        cache = None if opaque_mode else tree.map(fnp.copy, params)
        return SAMState(zero_count(), down.init(params), up.init(params), cache)

    def averaged(updates: Updates) -> Updates:
        return (
            updates if batch_axis_name is None else lax.pmean(updates, batch_axis_name)
        )

    def by_step(
        updates: Updates, state: SAMState, params: Params, extra: dict[str, Any]
    ) -> tuple[Updates, SAMState]:
        begins = fnp.equal(state.steps_since_sync, 0)
        last = fnp.equal(state.steps_since_sync, sync_period - 1)
        cache = where(begins, params, state.cache)
        steps, adv_state = up.update(updates, state.adv_state, params, **extra)
        new, opt_state = down.update(averaged(updates), state.opt_state, cache, **extra)
        back = sub(add(wide(cache), wide(new)), wide(params))
        if reset_state:
            adv_state = where(last, up.init(params), adv_state)
        else:
            adv_state = where(last, state.adv_state, adv_state)
        out = cast_like(where(last, back, scale(-1.0, steps)), updates)
        count = fnp.remainder(fnp.add(state.steps_since_sync, 1), sync_period)
        return out, SAMState(
            count, where(last, opt_state, state.opt_state), adv_state, cache
        )

    def at_once(
        updates: Updates, state: SAMState, params: Params, extra: dict[str, Any]
    ) -> tuple[Updates, SAMState]:
        grad_fn = need_extra("sam", "grad_fn", extra.pop("grad_fn", None))
        point, adv_state = params, state.adv_state
        for i in range(sync_period - 1):
            steps, adv_state = up.update(updates, adv_state, point, **extra)
            point = cast_like(sub(wide(point), wide(steps)), params)
            updates = grad_fn(point, i)
        out, opt_state = down.update(
            averaged(updates), state.opt_state, params, **extra
        )
        if reset_state:
            adv_state = up.init(params)
        return out, SAMState(state.steps_since_sync, opt_state, adv_state, None)

    def update(
        updates: Updates, state: SAMState, params: Params | None = None, **extra: Any
    ) -> tuple[Updates, SAMState]:
        step = at_once if opaque_mode else by_step
        return step(updates, state, need_params("sam", params), extra)

    return GradientTransformationExtraArgs(init, update)
