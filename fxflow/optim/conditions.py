"""Transformations that act at some steps only, and tests that skip bad gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    State,
    Updates,
    cast_like,
    safe_increment,
    with_extra_args_support,
    zero_count,
)
from fxflow.optim.tree import norm, zeros_like


class ConditionallyTransformState(NamedTuple):
    """State of `conditionally_transform`: the inner state and the number of updates."""

    inner_state: State
    step: Array


class ConditionallyMaskState(NamedTuple):
    """State of `conditionally_mask`: the number of updates and the inner state."""

    step: Array
    inner_state: State


class ApplyEvery(NamedTuple):
    """State of `apply_every`: steps since the last output, and the sum of updates."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    grad_acc: Updates


def _conditional(
    inner: GradientTransformation,
    should_transform_fn: Callable[..., Any],
    forward_extra_args: bool,
    otherwise: Callable[[Updates], Updates],
) -> Callable[..., tuple[Updates, Any, Any]]:
    """Returns a function that applies `inner` if `should_transform_fn` returns True."""
    inner = with_extra_args_support(inner)

    def update(
        updates: Updates, step: Any, state: State, params: Params | None, extra: Any
    ) -> tuple[Updates, Any, Any]:
        seen = extra if forward_extra_args else {}

        def transform(operands: Any) -> Any:
            gradients, own = operands
            new, own = inner.update(gradients, own, params, **extra)
            return tree.map(cast_like, new, gradients), own

        def leave(operands: Any) -> Any:
            gradients, own = operands
            return otherwise(gradients), own

        new, own = lax.cond(
            should_transform_fn(step, **seen), transform, leave, (updates, state)
        )
        return new, own, safe_increment(step)

    return update


def conditionally_transform(
    inner: GradientTransformation,
    should_transform_fn: Callable[..., Any],
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Makes a transformation that acts at some steps and otherwise does nothing.

    Args:
      inner: the transformation.
      should_transform_fn: takes the number of updates so far; returns a bool.
      forward_extra_args: whether it also gets the further keyword arguments of
        `update`.

    Returns:
      A transformation that counts.

    Example:
      >>> tx = optim.conditionally_transform(optim.scale(2.0), lambda step: step > 0)
      >>> first, state = tx.update(fnp.ones(1), tx.init(fnp.ones(1)))
      >>> second, state = tx.update(fnp.ones(1), state)
      >>> first.tolist(), second.tolist()
      ([1.0], [2.0])
    """
    step = _conditional(inner, should_transform_fn, forward_extra_args, lambda g: g)

    def init(params: Params) -> ConditionallyTransformState:
        return ConditionallyTransformState(inner.init(params), zero_count())

    def update(
        updates: Updates,
        state: ConditionallyTransformState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, ConditionallyTransformState]:
        new, own, count = step(updates, state.step, state.inner_state, params, extra)
        return new, ConditionallyTransformState(own, count)

    return GradientTransformationExtraArgs(init, update)


def conditionally_mask(
    inner: GradientTransformation,
    should_transform_fn: Callable[..., Any],
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Makes a transformation that acts at some steps and otherwise returns 0.

    Args:
      inner: the transformation.
      should_transform_fn: takes the number of updates so far; returns a bool.
      forward_extra_args: whether it also gets the further keyword arguments of
        `update`.

    Returns:
      A transformation that counts.

    Example:
      >>> tx = optim.conditionally_mask(optim.scale(2.0), lambda step: step > 0)
      >>> first, state = tx.update(fnp.ones(1), tx.init(fnp.ones(1)))
      >>> second, state = tx.update(fnp.ones(1), state)
      >>> first.tolist(), second.tolist()
      ([0.0], [2.0])
    """
    step = _conditional(inner, should_transform_fn, forward_extra_args, zeros_like)

    def init(params: Params) -> ConditionallyMaskState:
        return ConditionallyMaskState(zero_count(), inner.init(params))

    def update(
        updates: Updates,
        state: ConditionallyMaskState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, ConditionallyMaskState]:
        new, own, count = step(updates, state.step, state.inner_state, params, extra)
        return new, ConditionallyMaskState(count, own)

    return GradientTransformationExtraArgs(init, update)


def apply_every(k: int = 1) -> GradientTransformation:
    """Makes a transformation that returns the sum of k updates, and 0 in between.

    Unlike with `MultiSteps`, transformations before it in a chain act at each step.

    Args:
      k: number of updates.

    Returns:
      A transformation whose state is their sum.

    Example:
      >>> tx = optim.apply_every(2)
      >>> first, state = tx.update(fnp.ones(1), tx.init(fnp.ones(1)))
      >>> second, state = tx.update(fnp.ones(1), state)
      >>> first.tolist(), second.tolist()
      ([0.0], [2.0])
    """

    def init(params: Params) -> ApplyEvery:
        return ApplyEvery(zero_count(), zeros_like(params))

    def update(
        updates: Updates, state: ApplyEvery, params: Params | None = None
    ) -> tuple[Updates, ApplyEvery]:
        first = fnp.equal(fnp.remainder(state.count, k), 0)
        last = fnp.equal(fnp.remainder(state.count, k), k - 1)

        def add(g: Any, total: Any) -> Any:
            return cast_like(fnp.add(g, fnp.where(first, 0, total)), total)

        total = tree.map(add, updates, state.grad_acc)
        out = tree.map(lambda t, g: cast_like(fnp.where(last, t, 0), g), total, updates)
        count = fnp.remainder(fnp.add(state.count, 1), k)
        return out, ApplyEvery(count, total)

    return GradientTransformation(init, update)


# -- tests of gradients, for MultiSteps ------------------------------------------------


def skip_not_finite(
    updates: Updates, gradient_step: Array, params: Params | None
) -> tuple[Array, dict[str, Array]]:
    """Returns whether to skip gradients, because they have nan or infinity.

    Args:
      updates: gradients.
      gradient_step: ignored.
      params: ignored.

    Returns:
      bool[] and, for the state of `MultiSteps`, `should_skip` and `num_not_finite`.

    Example:
      >>> skip, _ = optim.skip_not_finite([fnp.array([1.0, fnp.nan])], 0, None)
      >>> bool(skip)
      True
    """
    count: Any = zero_count()
    for g in tree.leaves(updates):
        count = fnp.add(count, fnp.sum(fnp.logical_not(fnp.isfinite(g)), dtype="int32"))
    skip = fnp.greater(count, 0)
    return skip, {"should_skip": skip, "num_not_finite": count}


def skip_large_updates(
    updates: Updates,
    gradient_step: Array,
    params: Params | None,
    max_squared_norm: Scalar,
) -> tuple[Array, dict[str, Array]]:
    """Returns whether to skip gradients, because they have a large norm or nan.

    Args:
      updates: gradients.
      gradient_step: ignored.
      params: ignored.
      max_squared_norm: the smallest squared norm to skip.

    Returns:
      bool[] and, for the state of `MultiSteps`, `should_skip` and `norm_squared`.

    Example:
      >>> skip, _ = optim.skip_large_updates([fnp.array([3.0, 4.0])], 0, None, 30.0)
      >>> bool(skip)
      False
    """
    square = norm(updates, squared=True)
    # Not greater_equal: skip nan.
    skip = fnp.logical_not(fnp.less(square, max_squared_norm))
    return skip, {"should_skip": skip, "norm_squared": square}
