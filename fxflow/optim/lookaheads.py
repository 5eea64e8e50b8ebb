"""Lookahead: slow parameters that follow fast ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.core.boundary import shown
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    State,
    Updates,
    cast_like,
    with_extra_args_support,
    zero_count,
)
from fxflow.optim.numerics import rest_of, widened
from fxflow.optim.tree import where


class LookaheadState(NamedTuple):
    """State of `lookahead`.

    Attributes:
      fast_state: state of the optimizer of the fast parameters.
      steps_since_sync: number of updates since the last synchronization, int32[].
    """

    fast_state: State
    steps_since_sync: Array


class LookaheadParams(NamedTuple):
    """Parameters of `lookahead`: train with `fast`, evaluate with `slow`.

    Attributes:
      fast: the parameters at which to compute gradients.
      slow: the parameters that follow them.
    """

    fast: Params
    slow: Params

    @classmethod
    def init_synced(cls, params: Params) -> LookaheadParams:
        """Returns equal fast and slow parameters.

        Args:
          params: pytree of arrays.

        Returns:
          Both, as copies, so that they can be donated.
        """
        return cls(tree.map(fnp.copy, params), tree.map(fnp.copy, params))


def lookahead(
    fast_optimizer: GradientTransformation,
    sync_period: int,
    slow_step_size: Scalar,
    reset_state: bool = False,
) -> GradientTransformationExtraArgs:
    r"""Makes an optimizer with slow parameters that periodically follow the fast ones.

    Every k updates the slow parameters move to :math:`s + \alpha (f - s)`, and the fast
    ones are set to them.

    Args:
      fast_optimizer: the optimizer of the fast parameters.
      sync_period: k.
      slow_step_size: α.
      reset_state: whether to reset the fast optimizer's state every k updates.

    Returns:
      A transformation of `LookaheadParams`. `update` takes the gradients of the fast
      parameters.

    Raises:
      ArgumentError: `sync_period` is not positive, or (from `init` or `update`) the
        parameters are not `LookaheadParams`.

    Example:
      >>> tx = optim.lookahead(optim.sgd(1.0), 2, 0.5)
      >>> params = optim.LookaheadParams.init_synced(fnp.zeros(1))
      >>> state = tx.init(params)
      >>> for _ in range(2):
      ...     u, state = tx.update(fnp.ones(1), state, params)
      ...     params = optim.apply_updates(params, u)
      >>> params.fast.tolist(), params.slow.tolist()
      ([-1.0], [-1.0])

    Reference: Zhang, Lucas, Hinton, Ba 2019, "Lookahead optimizer: k steps forward, 1
    step back".
    """
    if sync_period < 1:
        raise ArgumentError(
            f"lookahead: sync_period must be positive, got {sync_period}"
        )
    fast_optimizer = with_extra_args_support(fast_optimizer)

    def checked(params: Any) -> LookaheadParams:
        if not isinstance(params, LookaheadParams):
            raise ArgumentError(
                "lookahead: needs LookaheadParams, as LookaheadParams.init_synced "
                f"makes them from parameters, got {shown(params)}"
            )
        return params

    def init(params: LookaheadParams) -> LookaheadState:
        return LookaheadState(fast_optimizer.init(checked(params).fast), zero_count())

    def update(
        updates: Updates,
        state: LookaheadState,
        params: LookaheadParams | None = None,
        **extra: Any,
    ) -> tuple[LookaheadParams, LookaheadState]:
        fast, slow = checked(params)
        steps, fast_state = fast_optimizer.update(
            updates, state.fast_state, fast, **extra
        )
        meet = fnp.equal(state.steps_since_sync, sync_period - 1)

        def distance(p: Any, u: Any, s: Any) -> Any:
            return fnp.subtract(fnp.add(widened(p), widened(u)), widened(s))

        ahead = tree.map(distance, fast, steps, slow)

        def of_fast(u: Any, d: Any) -> Any:
            back = fnp.multiply(rest_of(slow_step_size, d), d)
            new = fnp.subtract(widened(u), fnp.where(meet, back, 0))
            return cast_like(new, u)

        def of_slow(d: Any, s: Any) -> Any:
            return cast_like(fnp.where(meet, fnp.multiply(slow_step_size, d), 0), s)

        if reset_state:
            fast_state = where(meet, fast_optimizer.init(fast), fast_state)
        since = fnp.where(meet, 0, fnp.add(state.steps_since_sync, 1))
        new = LookaheadParams(
            tree.map(of_fast, steps, ahead), tree.map(of_slow, ahead, slow)
        )
        return new, LookaheadState(fast_state, since)

    return GradientTransformationExtraArgs(init, update)
