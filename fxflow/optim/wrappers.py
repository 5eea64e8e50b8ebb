"""Transformations around a transformation: accumulation, injected numbers, guards."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    State,
    Updates,
    cast_like,
    increment,
    with_extra_args_support,
    zero_count,
    zeros_like,
)
from fxflow.transforms.arguments import as_names


class MultiStepsState(NamedTuple):
    """State of `MultiSteps`."""

    mini_step: Array
    gradient_step: Array
    inner_opt_state: State
    acc_grads: Updates


class ApplyIfFiniteState(NamedTuple):
    """State of `apply_if_finite`."""

    notfinite_count: Array
    last_finite: Array
    total_notfinite: Array
    inner_state: State


class InjectHyperparamsState(NamedTuple):
    """State of `inject_hyperparams`."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    hyperparams: dict[str, Any]
    inner_state: State


def _choose(which: Any, new: Any, old: Any) -> Any:
    return tree.map(lambda n, o: fnp.where(which, n, o), new, old)


class MultiSteps:
    """Adds up the gradients of several small steps and updates once.

    Args:
      opt: the transformation that updates.
      every_k_schedule: of how many steps: a number, or a function of the number of
        updates so far.
      use_grad_mean: whether to take the mean of the gradients or their sum.
      accumulator_dtype: of the sum; None means that of the parameters.

    Example:
      >>> tx = optim.MultiSteps(optim.sgd(1.0), 2)
      >>> params = fnp.zeros(1)
      >>> state = tx.init(params)
      >>> first, state = tx.update(fnp.array([2.0]), state, params)
      >>> second, state = tx.update(fnp.array([4.0]), state, params)
      >>> first.tolist(), second.tolist(), bool(tx.has_updated(state))
      ([0.0], [-3.0], True)
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: int | Callable[[Any], Any],
        use_grad_mean: bool = True,
        accumulator_dtype: Any = dtypes.float32,
    ) -> None:
        if not callable(every_k_schedule) and (
            integer("MultiSteps", "every_k_schedule", every_k_schedule) < 1
        ):
            raise ArgumentError(
                f"MultiSteps: every_k_schedule must be positive, got {every_k_schedule}"
            )
        self._opt = with_extra_args_support(opt)
        self._every = every_k_schedule
        self._mean = use_grad_mean
        self._dtype = accumulator_dtype

    def init(self, params: Params) -> MultiStepsState:
        """Makes the state.

        Args:
          params: pytree of arrays.

        Returns:
          A state without gradients.
        """
        return MultiStepsState(
            zero_count(),
            zero_count(),
            self._opt.init(params),
            zeros_like(params, self._dtype),
        )

    def update(
        self,
        updates: Updates,
        state: MultiStepsState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, MultiStepsState]:
        """Adds gradients, and updates if these are the last ones.

        Args:
          updates: gradients.
          state: as `init` or `update` gave it.
          params: the parameters.
          **extra: what the inner transformation takes; it gets those of the last step.

        Returns:
          Updates, which are 0 for all but the last step, and the next state.
        """
        every = (
            self._every(state.gradient_step) if callable(self._every) else self._every
        )
        seen = fnp.add(state.mini_step, 1)

        def add(g: Any, total: Any) -> Any:
            g = cast_like(g, total)
            if not self._mean:
                return fnp.add(total, g)
            # A running mean: unlike a sum it stays of the gradients' size.
            step = fnp.divide(fnp.subtract(g, total), cast_like(seen, total))
            return fnp.add(total, step)

        total = tree.map(add, updates, state.acc_grads)

        def last(operands: Any) -> Any:
            total, inner = operands
            gradients = tree.map(cast_like, total, updates)
            new, inner = self._opt.update(gradients, inner, params, **extra)
            return tree.map(cast_like, new, updates), inner, zeros_like(total)

        def other(operands: Any) -> Any:
            total, inner = operands
            return zeros_like(updates), inner, total

        emit = fnp.greater_equal(seen, every)
        # Not `where`: the optimizer runs in the last of the small steps only.
        new, inner, total = lax.cond(emit, last, other, (total, state.inner_opt_state))
        return new, MultiStepsState(
            fnp.where(emit, 0, seen),
            fnp.where(emit, increment(state.gradient_step), state.gradient_step),
            inner,
            total,
        )

    def has_updated(self, state: MultiStepsState) -> Array:
        """Returns whether the last step updated the parameters.

        Args:
          state: as `update` gave it.

        Returns:
          bool[].
        """
        return fnp.logical_and(
            fnp.equal(state.mini_step, 0), fnp.greater(state.gradient_step, 0)
        )

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """Returns `init` and `update` as a pair, for `chain`.

        Returns:
          A transformation.
        """
        return GradientTransformationExtraArgs(self.init, self.update)


def apply_if_finite(
    inner: GradientTransformation, max_consecutive_errors: int
) -> GradientTransformationExtraArgs:
    """Makes a transformation that skips gradients with nan or infinity.

    Args:
      inner: the transformation.
      max_consecutive_errors: after so many skips in a row the gradients pass anyway, so
        that a lasting error is seen.

    Returns:
      A transformation whose state counts the errors.

    Example:
      >>> tx = optim.apply_if_finite(optim.sgd(1.0), 5)
      >>> u, state = tx.update(fnp.array([fnp.nan]), tx.init(fnp.zeros(1)))
      >>> u.tolist(), int(state.total_notfinite)
      ([0.0], 1)
    """
    inner = with_extra_args_support(inner)

    def init(params: Params) -> ApplyIfFiniteState:
        return ApplyIfFiniteState(
            zero_count(),
            fnp.full((), True),
            zero_count(),
            inner.init(params),
        )

    def update(
        updates: Updates,
        state: ApplyIfFiniteState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, ApplyIfFiniteState]:
        finite: Any = fnp.full((), True)
        for leaf in tree.leaves(updates):
            finite = fnp.logical_and(finite, fnp.all(fnp.isfinite(leaf)))
        errors = fnp.where(finite, 0, increment(state.notfinite_count))
        accept = fnp.logical_or(finite, fnp.greater(errors, max_consecutive_errors))
        new, inner_state = inner.update(updates, state.inner_state, params, **extra)
        new = _choose(accept, new, tree.map(fnp.zeros_like, new))
        total = fnp.where(
            finite, state.total_notfinite, increment(state.total_notfinite)
        )
        return new, ApplyIfFiniteState(
            errors, finite, total, _choose(accept, inner_state, state.inner_state)
        )

    return GradientTransformationExtraArgs(init, update)


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
) -> Callable[..., GradientTransformationExtraArgs]:
    """Puts the numbers of an optimizer into its state, where they can be changed.

    Args:
      inner_factory: makes a transformation, such as `adam`.
      static_args: names of arguments that are left alone. Others are numbers, which are
        kept in the state, or schedules, which are evaluated at each update.

    Returns:
      A function of the factory's arguments that makes a transformation whose state has
      `hyperparams`, a dictionary of arrays.

    Raises:
      ArgumentError: a static argument is none of the factory's.

    Example:
      >>> tx = optim.inject_hyperparams(optim.sgd)(learning_rate=0.5)
      >>> state = tx.init(fnp.zeros(1))
      >>> state.hyperparams["learning_rate"] = fnp.asarray(2.0)
      >>> tx.update(fnp.ones(1), state)[0].tolist()
      [-2.0]
    """
    fixed = set(as_names(static_args, "inject_hyperparams: static_args"))
    signature = inspect.signature(inner_factory)
    unknown = fixed - set(signature.parameters)
    if unknown:
        raise ArgumentError(
            f"inject_hyperparams: {inner_factory.__name__} has no arguments "
            f"{', '.join(sorted(unknown))}"
        )

    @functools.wraps(inner_factory)
    def make(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        schedules: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name in fixed or isinstance(value, bool):
                others[name] = value
            elif callable(value):
                schedules[name] = value
            elif is_arraylike(value):
                numbers[name] = value
            else:
                others[name] = value

        def at(count: Any) -> dict[str, Any]:
            return {name: _number(value(count)) for name, value in schedules.items()}

        def inner(hyperparams: dict[str, Any]) -> GradientTransformationExtraArgs:
            call = inspect.BoundArguments(signature, {**others, **hyperparams})
            return with_extra_args_support(inner_factory(*call.args, **call.kwargs))

        def init(params: Params) -> InjectHyperparamsState:
            count = zero_count()
            given = {name: _number(value) for name, value in numbers.items()}
            hyperparams = {**given, **at(count)}
            return InjectHyperparamsState(
                count, hyperparams, inner(hyperparams).init(params)
            )

        def update(
            updates: Updates,
            state: InjectHyperparamsState,
            params: Params | None = None,
            **extra: Any,
        ) -> tuple[Updates, InjectHyperparamsState]:
            kept = {name: state.hyperparams[name] for name in numbers}
            hyperparams = {**kept, **at(state.count)}
            new, own = inner(hyperparams).update(
                updates, state.inner_state, params, **extra
            )
            count = increment(state.count)
            return new, InjectHyperparamsState(count, hyperparams, own)

        return GradientTransformationExtraArgs(init, update)

    return make


def _number(value: Any) -> Any:
    """Returns a number as an array that is not weak: a state keeps its type."""
    return fnp.asarray(value, typeof(value).dtype)
