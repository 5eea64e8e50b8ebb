"""Averages of parameters over the steps: often better than the last ones.

Each is a pair of pure functions, and `value` reads the average::

    average = averages.exponential(0.999)
    state = average.init(params)
    state = average.update(state, params)  # after each step
    evaluated = average.value(state)

Averages of parameters of 16 bits are kept in float32, since the steps of an average are
smaller than their last digit; `value(state, params)` has the parameters' dtypes.
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
    """State of an average: a pytree.

    Attributes:
      sums: what `value` is made of, like the parameters; float32 at least.
      count: int32[], how many parameters were averaged.
    """

    sums: Params
    count: Array  # type: ignore[assignment] # hides tuple.count


class Average(NamedTuple):
    """How parameters are averaged.

    Attributes:
      init: gives the state for parameters.
      update: gives the next state, of a state and parameters.
      value: gives the average, of a state; float32 at least, or with the dtypes of a
        second argument, the parameters.
    """

    init: Callable[[Params], AverageState]
    update: Callable[[AverageState, Params], AverageState]
    value: Callable[..., Params]


def _is_float(leaf: Any) -> bool:
    return bool(dtypes.is_inexact(typeof(leaf).dtype))


def _zeros(params: Params) -> AverageState:
    # Leaves that are not floats (counters) are not averaged: the last one is kept.
    sums = tree.map(lambda x: fnp.zeros_like(widened(x)) if _is_float(x) else x, params)
    return AverageState(sums, fnp.int32(0))


def _number(value: Any, leaf: Any) -> Any:
    """Returns a number in the real dtype that a leaf is averaged in."""
    return value.astype(fnp.finfo(typeof(widened(leaf)).dtype).dtype)


def _like(average: Any, old: Any) -> Any:
    # An average that was saved in 16 bits stays so.
    return average.astype(typeof(old).dtype)


def _in_dtypes_of(params: Params | None, found: Params) -> Params:
    return found if params is None else tree.map(_like, found, params)


def exponential(decay: float, *, debias: bool = True, warmup: bool = False) -> Average:
    r"""Returns an average in which older parameters count less and less.

    .. math:: a_t = d\, a_{t-1} + (1 - d)\, p_t

    Args:
      decay: d in [0, 1).
      debias: whether to divide by :math:`1 - d^t`, so that the first value is the first
        parameters; the average starts from zeros.
      warmup: whether to use :math:`\min(d, (1 + t) / (10 + t))`, by which the first
        parameters are forgotten sooner; then it starts from the first parameters, and
        `debias` has nothing to do.

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
        # Without any parameters there is nothing to divide: zeros.
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
