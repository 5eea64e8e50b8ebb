"""Wrappers of a transformation: accumulation, injected hyperparameters, guards."""

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
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    Schedule,
    State,
    Updates,
    cast_like,
    safe_increment,
    with_extra_args_support,
    zero_count,
)
from fxflow.optim.numerics import all_finite, widened
from fxflow.optim.tree import zeros_like
from fxflow.transforms.arguments import as_names


class MultiStepsState(NamedTuple):
    """State of `MultiSteps`."""

    mini_step: Array
    gradient_step: Array
    inner_opt_state: State
    acc_grads: Updates
    skip_state: Any = ()


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
    hyperparams_states: dict[str, Any]
    inner_state: State


class StatefulSchedule:
    """Base class of schedules that depend on more than the number of updates.

    `inject_hyperparams` keeps its state and passes it the extra keyword arguments of
    `update`, such as `value`.
    """

    def init(self) -> Any:
        """Makes the state.

        Returns:
          A pytree of arrays.
        """
        raise NotImplementedError

    def update(self, state: Any, **extra_args: Any) -> Any:
        """Makes the next state.

        Args:
          state: the result of `init` or `update`.
          **extra_args: the extra arguments of the transformation's `update`.

        Returns:
          A pytree of the same types.
        """
        raise NotImplementedError

    def __call__(self, state: Any, **extra_args: Any) -> Any:
        """Returns the value for this update.

        Args:
          state: the result of `init` or `update`.
          **extra_args: the extra arguments of the transformation's `update`.
        """
        raise NotImplementedError


class WrappedSchedule(StatefulSchedule):
    """A schedule with its own count.

    Args:
      schedule_fn: a function of the number of updates so far.

    Example:
      >>> schedule = optim.WrappedSchedule(optim.linear_schedule(1.0, 0.0, 4))
      >>> float(schedule(schedule.update(schedule.init())))
      0.75
    """

    def __init__(self, schedule_fn: Schedule) -> None:
        self.schedule_fn = schedule_fn

    def init(self) -> Array:
        """Makes the count.

        Returns:
          int32[], 0.
        """
        return zero_count()

    def update(self, state: Array, **extra_args: Any) -> Array:
        """Increments the count.

        Args:
          state: int32[].
          **extra_args: ignored.

        Returns:
          int32[].
        """
        return safe_increment(state)

    def __call__(self, state: Array, **extra_args: Any) -> Any:
        """Returns the schedule's value for the count.

        Args:
          state: int32[].
          **extra_args: ignored.
        """
        return self.schedule_fn(state)


def _choose(which: Any, new: Any, old: Any) -> Any:
    return tree.map(lambda n, o: fnp.where(which, n, o), new, old)


class MultiSteps:
    """Accumulates the gradients of several steps and updates once.

    Args:
      opt: the transformation that updates.
      every_k_schedule: the number of steps: a number, or a function of the number of
        updates so far.
      use_grad_mean: whether to use the mean of the gradients or their sum.
      should_skip_update_fn: `f(updates, gradient_step, params)` returns a bool and a
        pytree of arrays, which the state keeps as `skip_state`. If the bool is True,
        the gradients are skipped and not counted; see `skip_not_finite`.
      accumulator_dtype: dtype of the sum; None means that of the parameters, but at
        least float32.

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
        should_skip_update_fn: Callable[..., tuple[Any, Any]] | None = None,
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
        self._skip = should_skip_update_fn
        self._dtype = accumulator_dtype

    def init(self, params: Params) -> MultiStepsState:
        """Makes the state.

        Args:
          params: pytree of arrays.

        Returns:
          A state without gradients.
        """
        skipped: Any = ()
        if self._skip is not None:
            _, skipped = self._skip(zeros_like(params), zero_count(), params)
        return MultiStepsState(
            zero_count(),
            zero_count(),
            self._opt.init(params),
            zeros_like(tree.map(widened, params), self._dtype),
            skipped,
        )

    def update(
        self,
        updates: Updates,
        state: MultiStepsState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, MultiStepsState]:
        """Adds gradients, and updates at the last step.

        Args:
          updates: gradients.
          state: the result of `init` or `update`.
          params: the parameters.
          **extra: extra arguments of the inner transformation, used at the last step.

        Returns:
          Updates, which are 0 except at the last step, and the next state.
        """
        every = (
            self._every(state.gradient_step) if callable(self._every) else self._every
        )
        seen = fnp.add(state.mini_step, 1)
        skip, skipped = None, state.skip_state
        if self._skip is not None:
            skip, skipped = self._skip(updates, state.gradient_step, params)

        def add(g: Any, total: Any) -> Any:
            g, wide = widened(g), widened(total)
            if not self._mean:
                return cast_like(fnp.add(wide, g), total)
            # A running mean, which unlike a sum keeps the gradients' magnitude.
            step = fnp.divide(fnp.subtract(g, wide), cast_like(seen, wide))
            return cast_like(fnp.add(wide, step), total)

        total = tree.map(add, updates, state.acc_grads)
        if skip is not None:
            total, seen = _choose(
                skip, (state.acc_grads, state.mini_step), (total, seen)
            )

        def last(operands: Any) -> Any:
            total, inner = operands
            gradients = tree.map(cast_like, total, updates)
            new, inner = self._opt.update(gradients, inner, params, **extra)
            return tree.map(cast_like, new, updates), inner, zeros_like(total)

        def other(operands: Any) -> Any:
            total, inner = operands
            return zeros_like(updates), inner, total

        emit = fnp.greater_equal(seen, every)
        # Not `where`: the optimizer runs only at the last step.
        new, inner, total = lax.cond(emit, last, other, (total, state.inner_opt_state))
        return new, MultiStepsState(
            fnp.where(emit, 0, seen),
            fnp.where(emit, safe_increment(state.gradient_step), state.gradient_step),
            inner,
            total,
            skipped,
        )

    def has_updated(self, state: MultiStepsState) -> Array:
        """Returns whether the last step updated the parameters.

        Args:
          state: the result of `update`.

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
      max_consecutive_errors: number of consecutive skips after which gradients pass
        anyway, so that a persistent error becomes visible.

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
        finite = all_finite(updates)
        errors = fnp.where(finite, 0, safe_increment(state.notfinite_count))
        accept = fnp.logical_or(finite, fnp.greater(errors, max_consecutive_errors))
        new, inner_state = inner.update(updates, state.inner_state, params, **extra)
        new = _choose(accept, new, tree.map(fnp.zeros_like, new))
        total = fnp.where(
            finite, state.total_notfinite, safe_increment(state.total_notfinite)
        )
        return new, ApplyIfFiniteState(
            errors, finite, total, _choose(accept, inner_state, state.inner_state)
        )

    return GradientTransformationExtraArgs(init, update)


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: DTypeLike | None = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """Keeps an optimizer's hyperparameters in its state, where they can be changed.

    Args:
      inner_factory: makes a transformation, such as `adam`.
      static_args: names of arguments to pass on unchanged. The state keeps other
        numbers, and each update evaluates other schedules: functions of the number of
        updates, or `StatefulSchedule`s.
      hyperparam_dtype: dtype of the numbers in the state; None means their own.

    Returns:
      A function of the factory's arguments that makes a transformation whose state has
      `hyperparams`, a dictionary of arrays, and `hyperparams_states`, the states of
      the stateful schedules.

    Raises:
      ArgumentError: the factory does not have one of the static arguments.

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
        stateful: dict[str, StatefulSchedule] = {}
        numbers: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name in fixed or isinstance(value, bool):
                others[name] = value
            elif isinstance(value, StatefulSchedule):
                stateful[name] = value
            elif callable(value):
                schedules[name] = value
            elif is_arraylike(value):
                numbers[name] = value
            else:
                others[name] = value

        def at(count: Any, states: dict[str, Any], extra: Any) -> dict[str, Any]:
            found = {name: f(count) for name, f in schedules.items()}
            found |= {name: f(states[name], **extra) for name, f in stateful.items()}
            return {n: _number(x, hyperparam_dtype) for n, x in found.items()}

        def inner(hyperparams: dict[str, Any]) -> GradientTransformationExtraArgs:
            call = inspect.BoundArguments(signature, {**others, **hyperparams})
            return with_extra_args_support(inner_factory(*call.args, **call.kwargs))

        def init(params: Params) -> InjectHyperparamsState:
            count = zero_count()
            states = {name: schedule.init() for name, schedule in stateful.items()}
            given = {n: _number(x, hyperparam_dtype) for n, x in numbers.items()}
            hyperparams = {**given, **at(count, states, {})}
            return InjectHyperparamsState(
                count, hyperparams, states, inner(hyperparams).init(params)
            )

        def update(
            updates: Updates,
            state: InjectHyperparamsState,
            params: Params | None = None,
            **extra: Any,
        ) -> tuple[Updates, InjectHyperparamsState]:
            kept = {name: state.hyperparams[name] for name in numbers}
            states = state.hyperparams_states
            hyperparams = {**kept, **at(state.count, states, extra)}
            new, own = inner(hyperparams).update(
                updates, state.inner_state, params, **extra
            )
            count = safe_increment(state.count)
            states = {n: f.update(states[n], **extra) for n, f in stateful.items()}
            return new, InjectHyperparamsState(count, hyperparams, states, own)

        return GradientTransformationExtraArgs(init, update)

    return make


def _number(value: Any, dtype: DTypeLike | None) -> Any:
    """Returns a number as an array that is not weak: a state keeps its type."""
    return fnp.asarray(value, typeof(value).dtype if dtype is None else dtype)
