"""Averages of parameters over steps, which often perform better than the last ones.

An average has pure functions `init` and `update`, and `value`, which reads it::

    average = averages.exponential(0.999)
    state = average.init(params)
    state = average.update(state, params)  # after each step
    evaluated = average.value(state)

Averages of 16-bit parameters are kept in float32, because an average changes by less
than 16 bits resolve; `value(state, params)` returns the parameters' dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError
from fxflow.lax.axes import number
from fxflow.optim.numerics import widened

Params = Any


class AverageState(NamedTuple):
    """The state of an average: a pytree.

    Attributes:
      sums: the running average, in the parameters' structure; at least float32.
      count: int32[], the number of updates.
    """

    sums: Params
    count: Array  # type: ignore[assignment] # hides tuple.count


class Average(NamedTuple):
    """A way to average parameters.

    Attributes:
      init: `init(params)` returns the initial state.
      update: `update(state, params)` returns the next state.
      value: `value(state)` returns the average, at least float32; `value(state,
        params)` returns it in the parameters' dtypes.
    """

    init: Callable[[Params], AverageState]
    update: Callable[[AverageState, Params], AverageState]
    value: Callable[..., Params]


def _is_float(leaf: Any) -> bool:
    return bool(dtypes.is_inexact(typeof(leaf).dtype))


def _zeros(params: Params) -> AverageState:
    # Leaves that are not floats (counters) are not averaged: the last value is kept.
    sums = tree.map(lambda x: fnp.zeros_like(widened(x)) if _is_float(x) else x, params)
    return AverageState(sums, fnp.int32(0))


def _number(value: Any, leaf: Any) -> Any:
    """Returns a number in the real dtype in which a leaf is averaged."""
    return value.astype(fnp.finfo(typeof(widened(leaf)).dtype).dtype)


def _like(average: Any, old: Any) -> Any:
    # An average that was restored in 16 bits keeps its dtype.
    return average.astype(typeof(old).dtype)


def _in_dtypes_of(params: Params | None, found: Params) -> Params:
    return found if params is None else tree.map(_like, found, params)


def exponential(decay: float, *, debias: bool = True, warmup: bool = False) -> Average:
    r"""Returns an exponential moving average.

    .. math:: a_t = d\, a_{t-1} + (1 - d)\, p_t

    Args:
      decay: d in [0, 1).
      debias: whether to divide by :math:`1 - d^t`, which corrects for the start from
        zeros: the first value is the first parameters.
      warmup: whether to use the decay :math:`\min(d, (1 + t) / (10 + t))`, which
        forgets the first parameters sooner. The average then starts from the first
        parameters, and `debias` has no effect.

    Returns:
      An `Average`.

    Raises:
      ArgumentError: `decay` is not in [0, 1).

    Example:
      >>> average = train.averages.exponential(0.5)
      >>> state = average.init(fnp.zeros(()))
      >>> for value in (1.0, 4.0):
      ...     state = average.update(state, fnp.array(value))
      >>> float(average.value(state))
      3.0
    """
    decay = number("exponential", "decay", decay)
    if not 0 <= decay < 1:
        raise ArgumentError(f"exponential: decay must be in [0, 1), got {decay}")

    def update(state: AverageState, params: Params) -> AverageState:
        count = state.count + 1
        t = state.count.astype(dtypes.float32)
        kept = fnp.minimum(decay, (1 + t) / (10 + t)) if warmup else fnp.float32(decay)
        if warmup:
            kept = fnp.where(state.count == 0, 0, kept)

        def leaf(old: Any, new: Any) -> Any:
            if not _is_float(new):
                return new
            share = _number(kept, old)
            return _like(share * widened(old) + (1 - share) * widened(new), old)

        return AverageState(tree.map(leaf, state.sums, params), count)

    def value(state: AverageState, params: Params | None = None) -> Params:
        if warmup or not debias:
            return _in_dtypes_of(params, state.sums)
        # Before the first update the value is zeros.
        weight = 1 - fnp.float32(decay) ** fnp.maximum(state.count, 1)

        def leaf(total: Any) -> Any:
            if not _is_float(total):
                return total
            return widened(total) / _number(weight, total)

        return _in_dtypes_of(params, tree.map(leaf, state.sums))

    return Average(_zeros, update, value)


def uniform() -> Average:
    """Returns the mean of all parameters so far.

    Returns:
      An `Average`.

    Reference:
      Polyak and Juditsky, *Acceleration of Stochastic Approximation by Averaging*,
      1992; Izmailov et al., *Averaging Weights Leads to Wider Optima*, 2018.

    Example:
      >>> average = train.averages.uniform()
      >>> state = average.init(fnp.zeros(()))
      >>> for value in (1.0, 4.0):
      ...     state = average.update(state, fnp.array(value))
      >>> float(average.value(state))
      2.5
    """

    def update(state: AverageState, params: Params) -> AverageState:
        count = state.count + 1

        def leaf(old: Any, new: Any) -> Any:
            if not _is_float(new):
                return new
            step = (widened(new) - widened(old)) / _number(count, old)
            return _like(widened(old) + step, old)

        return AverageState(tree.map(leaf, state.sums, params), count)

    def value(state: AverageState, params: Params | None = None) -> Params:
        return _in_dtypes_of(params, state.sums)

    return Average(_zeros, update, value)
