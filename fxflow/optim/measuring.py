"""Transformations that measure updates and keep the measurements in their state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    State,
    Updates,
    stateless,
    with_extra_args_support,
)
from fxflow.optim.traces import EmaState, ema

Measure = Callable[[Updates], Any]


class SnapshotState(NamedTuple):
    """State of `snapshot`: the last measurement, by name."""

    measurement: dict[str, Any]


class MonitorState(NamedTuple):
    """State of `monitor`: the last measurements by name, and the measures' states."""

    measurements: dict[str, Any]
    measure_states: tuple[State, ...]


def snapshot(measure_name: str, measure: Measure) -> GradientTransformationExtraArgs:
    """Makes a transformation that keeps a measurement of the updates.

    Args:
      measure_name: its name, for `optim.tree.get(state, measure_name)`.
      measure: takes updates; returns a pytree of arrays.

    Returns:
      A transformation that does not change updates. Before the first update its state
      holds the measurement of the parameters.

    Example:
      >>> tx = optim.chain(optim.snapshot("norm", optim.tree.norm), optim.sgd(0.1))
      >>> _, state = tx.update(fnp.array([3.0, 4.0]), tx.init(fnp.zeros(2)))
      >>> float(optim.tree.get(state, "norm"))
      5.0
    """

    def init(params: Params) -> SnapshotState:
        return SnapshotState({measure_name: measure(params)})

    def update(
        updates: Updates,
        state: SnapshotState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, SnapshotState]:
        return updates, SnapshotState({measure_name: measure(updates)})

    return GradientTransformationExtraArgs(init, update)


def measure_with_ema(
    measure: Measure,
    decay: Any,
    debias: bool = True,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Makes an exponential moving average of measurements, for `monitor`.

    Args:
      measure: takes updates; returns a pytree of arrays.
      decay: decay of the average.
      debias: whether to correct its bias.
      accumulator_dtype: dtype of the average; None means that of the measurements, but
        at least float32.

    Returns:
      A transformation from updates to averages of their measurements.

    Example:
      >>> tx = optim.measure_with_ema(optim.tree.norm, 0.5)
      >>> u = fnp.array([3.0, 4.0])
      >>> float(tx.update(u, tx.init(u))[0])
      5.0
    """
    mean = ema(decay, debias, accumulator_dtype)

    def init(params: Params) -> EmaState:
        state: EmaState = mean.init(measure(params))
        return state

    def update(
        updates: Updates, state: EmaState, params: Params | None = None, **extra: Any
    ) -> tuple[Any, EmaState]:
        return mean.update(measure(updates), state)

    return GradientTransformationExtraArgs(init, update)


def monitor(
    measures: Mapping[str, Measure | GradientTransformation],
) -> GradientTransformationExtraArgs:
    """Makes a transformation that keeps measurements of the updates.

    Args:
      measures: by name, functions of updates, or transformations from updates to
        measurements, such as `measure_with_ema` makes.

    Returns:
      A transformation that does not change updates. Before the first update its state
      holds measurements of the parameters.

    Example:
      >>> tx = optim.monitor({"norm": optim.tree.norm, "size": optim.tree.size})
      >>> _, state = tx.update(fnp.array([3.0, 4.0]), tx.init(fnp.zeros(2)))
      >>> float(optim.tree.get(state, "norm"))
      5.0
    """
    parts = {
        name: with_extra_args_support(
            measure
            if isinstance(measure, GradientTransformation)
            else _measuring(measure)
        )
        for name, measure in measures.items()
    }

    def measured(
        updates: Updates,
        states: tuple[State, ...],
        params: Params | None,
        extra: dict[str, Any],
    ) -> MonitorState:
        found, new = {}, []
        for (name, part), own in zip(parts.items(), states, strict=True):
            found[name], own = part.update(updates, own, params, **extra)
            new.append(own)
        return MonitorState(found, tuple(new))

    def init(params: Params) -> MonitorState:
        states = tuple(part.init(params) for part in parts.values())
        return MonitorState(measured(params, states, params, {}).measurements, states)

    def update(
        updates: Updates,
        state: MonitorState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, MonitorState]:
        return updates, measured(updates, state.measure_states, params, extra)

    return GradientTransformationExtraArgs(init, update)


def _measuring(measure: Measure) -> GradientTransformation:
    return stateless(lambda updates, params: measure(updates))
