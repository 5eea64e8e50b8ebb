"""Schedules: functions of the number of updates so far.

Each takes an integer (a Python number or a traced array) and returns a number, so it
works in a compiled step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.optim.base import Scalar, Schedule


def require_positive(name: str, what: str, steps: Any) -> None:
    """Raises `ArgumentError` if a number of steps is not positive."""
    if not steps > 0:
        raise ArgumentError(f"{name}: {what} must be positive, got {steps}")


def _not_negative(name: str, begin: int) -> None:
    if begin < 0:
        raise ArgumentError(
            f"{name}: transition_begin must not be negative, got {begin}"
        )


def constant_schedule(value: Scalar) -> Schedule:
    """Makes a constant schedule.

    Args:
      value: number.

    Returns:
      A function of the count.

    Example:
      >>> optim.constant_schedule(0.1)(7)
      0.1
    """
    return lambda count: value


def polynomial_schedule(
    init_value: Scalar,
    end_value: Scalar,
    power: Scalar,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    r"""Makes a polynomial transition from one value to another.

    .. math:: v(t) = e + (i - e)\,(1 - t / n)^p

    Args:
      init_value: i, the value up to the beginning.
      end_value: e, the value after the end.
      power: p > 0.
      transition_steps: n, number of updates of the transition.
      transition_begin: number of updates before the transition.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of steps is not positive, or the beginning negative.

    Example:
      >>> float(optim.polynomial_schedule(1.0, 0.0, 2, 10)(5))
      0.25
    """
    require_positive("polynomial_schedule", "transition_steps", transition_steps)
    _not_negative("polynomial_schedule", transition_begin)

    def schedule(count: Any) -> Any:
        passed = fnp.clip(fnp.subtract(count, transition_begin), 0, transition_steps)
        left = fnp.subtract(1.0, fnp.divide(passed, transition_steps))
        return fnp.add(
            fnp.multiply(fnp.subtract(init_value, end_value), fnp.power(left, power)),
            end_value,
        )

    return schedule


def linear_schedule(
    init_value: Scalar,
    end_value: Scalar,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    """Makes a linear transition from one value to another.

    Args:
      init_value: the value up to the beginning.
      end_value: the value after the end.
      transition_steps: number of updates of the transition.
      transition_begin: number of updates before the transition.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of steps is not positive.

    Example:
      >>> float(optim.linear_schedule(0.0, 1.0, 10)(5))
      0.5
    """
    require_positive("linear_schedule", "transition_steps", transition_steps)
    _not_negative("linear_schedule", transition_begin)
    return polynomial_schedule(
        init_value, end_value, 1, transition_steps, transition_begin
    )


def exponential_decay(
    init_value: Scalar,
    transition_steps: int,
    decay_rate: Scalar,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Scalar | None = None,
) -> Schedule:
    r"""Makes an exponential decay (or growth): :math:`v(t) = i\, r^{t / n}`.

    Args:
      init_value: i, the value up to the beginning.
      transition_steps: n, number of updates for one factor r.
      decay_rate: r, not 0.
      transition_begin: number of updates before the decay.
      staircase: whether t / n is rounded down.
      end_value: bound of the value.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of steps is not positive, the beginning negative, or the
        rate 0.

    Example:
      >>> float(optim.exponential_decay(1.0, 10, 0.25)(5))
      0.5
    """
    require_positive("exponential_decay", "transition_steps", transition_steps)
    _not_negative("exponential_decay", transition_begin)
    if decay_rate == 0:
        raise ArgumentError("exponential_decay: decay_rate must not be 0")

    def schedule(count: Any) -> Any:
        passed = fnp.subtract(count, transition_begin)
        exponent = fnp.divide(passed, transition_steps)
        if staircase:
            exponent = fnp.floor(exponent)
        value = fnp.multiply(init_value, fnp.power(decay_rate, exponent))
        value = fnp.where(fnp.less_equal(passed, 0), init_value, value)
        if end_value is None:
            return value
        bound = fnp.maximum if decay_rate < 1 else fnp.minimum
        return bound(value, end_value)

    return schedule


def cosine_decay_schedule(
    init_value: Scalar, decay_steps: int, alpha: Scalar = 0.0, exponent: Scalar = 1.0
) -> Schedule:
    r"""Makes a decay along half a cosine.

    .. math:: v(t) = i\,((1-\alpha)\,(\tfrac12 (1 + \cos \pi t/n))^p + \alpha)

    Args:
      init_value: i, the initial value.
      decay_steps: n, number of updates of the decay.
      alpha: α, the final value as a fraction of the initial one.
      exponent: p.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of steps is not positive.

    Example:
      >>> round(float(optim.cosine_decay_schedule(1.0, 10)(5)), 6)
      0.5

    Reference: Loshchilov and Hutter 2017, "SGDR".
    """
    require_positive("cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(count: Any) -> Any:
        passed = fnp.minimum(count, decay_steps)
        angle = fnp.divide(fnp.multiply(math.pi, passed), float(decay_steps))
        wave = fnp.multiply(0.5, fnp.add(1.0, fnp.cos(angle)))
        fraction = fnp.multiply(1 - alpha, fnp.power(wave, exponent))
        return fnp.multiply(init_value, fnp.add(fraction, alpha))

    return schedule


def piecewise_constant_schedule(
    init_value: Scalar, boundaries_and_scales: Mapping[int, Scalar] | None = None
) -> Schedule:
    """Makes a schedule whose value is multiplied by a factor at each boundary.

    Args:
      init_value: the initial value.
      boundaries_and_scales: the factor for each boundary (a count).

    Returns:
      A function of the count.

    Raises:
      ArgumentError: a factor is negative.

    Example:
      >>> schedule = optim.piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.5})
      >>> [float(schedule(count)) for count in (9, 10, 20)]
      [1.0, 0.5, 0.25]
    """
    pieces = sorted((boundaries_and_scales or {}).items())
    if any(scale < 0 for _, scale in pieces):
        raise ArgumentError(
            "piecewise_constant_schedule: factors must not be negative, got "
            f"{dict(pieces)}"
        )

    def schedule(count: Any) -> Any:
        value: Any = fnp.asarray(init_value)
        for boundary, factor in pieces:
            later = fnp.greater_equal(count, boundary)
            value = fnp.where(later, fnp.multiply(value, factor), value)
        return value

    return schedule


def piecewise_interpolate_schedule(
    interpolate_type: str,
    init_value: Scalar,
    boundaries_and_scales: Mapping[int, Scalar] | None = None,
) -> Schedule:
    """Makes a schedule that interpolates between values at boundaries.

    Args:
      interpolate_type: `"linear"` or `"cosine"`, the kind of interpolation.
      init_value: the value at 0.
      boundaries_and_scales: for each boundary (a count > 0) the ratio of its value to
        the previous one.

    Returns:
      A function of the count; constant after the last boundary.

    Raises:
      ArgumentError: the type is unknown, a factor is negative, or a boundary is not
        positive.

    Example:
      >>> schedule = optim.piecewise_interpolate_schedule("linear", 1.0, {10: 3.0})
      >>> float(schedule(5))
      2.0
    """
    name = "piecewise_interpolate_schedule"
    if interpolate_type not in ("linear", "cosine"):
        raise ArgumentError(
            f'{name}: interpolate_type must be "linear" or "cosine", got '
            f"{interpolate_type!r}"
        )
    pieces = sorted((boundaries_and_scales or {}).items())
    if any(scale < 0 or boundary <= 0 for boundary, scale in pieces):
        raise ArgumentError(
            f"{name}: boundaries must be positive and factors not negative, got "
            f"{dict(pieces)}"
        )
    return _interpolated(interpolate_type, init_value, pieces)


def _interpolated(
    interpolate_type: str, init_value: Scalar, pieces: Sequence[tuple[int, Scalar]]
) -> Schedule:
    """Returns the schedule that interpolates between the ends of pieces.

    Args:
      interpolate_type: `"linear"` or `"cosine"`.
      init_value: the value at 0.
      pieces: the count at which each ends, in order, and the ratio of its values; a
        piece may be empty.
    """
    counts, values = [0], [init_value]
    for boundary, factor in pieces:
        counts.append(boundary)
        values.append(values[-1] * factor)

    def schedule(count: Any) -> Any:
        out: Any = fnp.asarray(values[-1], fnp.result_type(float))
        for i in range(len(pieces) - 1, -1, -1):
            start, end = counts[i], counts[i + 1]
            if start == end:
                continue
            share = fnp.divide(fnp.subtract(count, start), end - start)
            if interpolate_type == "cosine":
                share = fnp.multiply(
                    0.5, fnp.subtract(1.0, fnp.cos(fnp.multiply(math.pi, share)))
                )
            step = fnp.multiply(values[i + 1] - values[i], share)
            out = fnp.where(fnp.less(count, end), fnp.add(values[i], step), out)
        return out

    return schedule


def join_schedules(
    schedules: Sequence[Schedule], boundaries: Sequence[int]
) -> Schedule:
    """Joins schedules, which follow each other at boundaries.

    Args:
      schedules: functions of the count since their boundary.
      boundaries: the counts at which the schedules after the first begin, in order.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of boundaries is not one less than that of schedules.

    Example:
      >>> warm = optim.linear_schedule(0.0, 1.0, 10)
      >>> schedule = optim.join_schedules([warm, optim.constant_schedule(1.0)], [10])
      >>> [float(schedule(count)) for count in (5, 50)]
      [0.5, 1.0]
    """
    parts, starts = tuple(schedules), tuple(boundaries)
    if len(starts) != len(parts) - 1:
        raise ArgumentError(
            f"join_schedules: {len(parts)} schedules need {len(parts) - 1} boundaries, "
            f"got {len(starts)}"
        )

    def schedule(count: Any) -> Any:
        value = parts[0](count)
        for start, part in zip(starts, parts[1:], strict=True):
            later = part(fnp.subtract(count, start))
            value = fnp.where(fnp.less(count, start), value, later)
        return value

    return schedule


def warmup_constant_schedule(
    init_value: Scalar, peak_value: Scalar, warmup_steps: int
) -> Schedule:
    """Makes a linear warm-up to a constant value.

    Args:
      init_value: the initial value.
      peak_value: the final value.
      warmup_steps: number of updates of the warm-up.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of steps is not positive.

    Example:
      >>> float(optim.warmup_constant_schedule(0.0, 1.0, 10)(50))
      1.0
    """
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(
    init_value: Scalar,
    peak_value: Scalar,
    warmup_steps: int,
    decay_steps: int,
    end_value: Scalar = 0.0,
    exponent: Scalar = 1.0,
) -> Schedule:
    """Makes a linear warm-up, followed by a decay along half a cosine.

    Args:
      init_value: the initial value.
      peak_value: the largest value.
      warmup_steps: number of updates of the warm-up.
      decay_steps: number of updates of warm-up and decay together.
      end_value: the final value.
      exponent: exponent of the cosine.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: no steps are left for the decay.

    Example:
      >>> schedule = optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 110)
      >>> [round(float(schedule(count)), 6) for count in (5, 10, 60, 110)]
      [0.5, 1.0, 0.5, 0.0]

    Reference: Loshchilov and Hutter 2017, "SGDR".
    """
    if decay_steps <= warmup_steps:
        raise ArgumentError(
            "warmup_cosine_decay_schedule: decay_steps, which includes the warm-up, "
            f"must exceed warmup_steps, got {decay_steps} and {warmup_steps}"
        )
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    return join_schedules(
        [
            _warmup(init_value, peak_value, warmup_steps),
            cosine_decay_schedule(
                peak_value, decay_steps - warmup_steps, alpha, exponent
            ),
        ],
        [warmup_steps],
    )


def _warmup(init_value: Scalar, peak_value: Scalar, steps: int) -> Schedule:
    if steps <= 0:
        return constant_schedule(init_value)
    return linear_schedule(init_value, peak_value, steps)


def warmup_exponential_decay_schedule(
    init_value: Scalar,
    peak_value: Scalar,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Scalar,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Scalar | None = None,
) -> Schedule:
    """Makes a linear warm-up, followed by an exponential decay.

    Args:
      init_value: the initial value.
      peak_value: the largest value.
      warmup_steps: number of updates of the warm-up.
      transition_steps: number of updates for one factor `decay_rate`.
      decay_rate: a number, not 0.
      transition_begin: number of updates between the warm-up and the decay.
      staircase: whether the decay is piecewise constant.
      end_value: bound of the value.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: see `exponential_decay`.

    Example:
      >>> schedule = optim.warmup_exponential_decay_schedule(0.0, 1.0, 10, 5, 0.25)
      >>> [float(schedule(count)) for count in (5, 10, 15)]
      [0.5, 1.0, 0.25]
    """
    decay = exponential_decay(
        peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value
    )
    return join_schedules(
        [_warmup(init_value, peak_value, warmup_steps), decay], [warmup_steps]
    )


def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Makes one cycle: a linear rise, a linear fall, and a final linear fall.

    Args:
      transition_steps: number of updates of the cycle.
      peak_value: the largest value.
      pct_start: fraction of the updates before the peak.
      pct_final: fraction of the updates before the final fall.
      div_factor: ratio of `peak_value` to the initial value.
      final_div_factor: ratio of the initial value to the final value.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of steps is not positive.

    Example:
      >>> round(float(optim.linear_onecycle_schedule(100, 1.0)(30)), 6)
      1.0

    Reference: Smith and Topin 2018, "Super-convergence".
    """
    require_positive("linear_onecycle_schedule", "transition_steps", transition_steps)
    pieces = [
        (int(pct_start * transition_steps), div_factor),
        (int(pct_final * transition_steps), 1.0 / div_factor),
        (transition_steps, 1.0 / final_div_factor),
    ]
    return _interpolated("linear", peak_value / div_factor, pieces)


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Makes one cycle: a rise and a fall along half cosines.

    Args:
      transition_steps: number of updates of the cycle.
      peak_value: the largest value.
      pct_start: fraction of the updates before the peak.
      div_factor: ratio of `peak_value` to the initial value.
      final_div_factor: ratio of the initial value to the final value.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: the number of steps is not positive.

    Example:
      >>> round(float(optim.cosine_onecycle_schedule(100, 1.0)(30)), 6)
      1.0

    Reference: Smith and Topin 2018, "Super-convergence".
    """
    require_positive("cosine_onecycle_schedule", "transition_steps", transition_steps)
    pieces = [
        (int(pct_start * transition_steps), div_factor),
        (transition_steps, 1.0 / (div_factor * final_div_factor)),
    ]
    return _interpolated("cosine", peak_value / div_factor, pieces)


def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Scalar]]) -> Schedule:
    """Makes warm restarts: each a linear warm-up and a decay along half a cosine.

    Args:
      cosine_kwargs: the arguments of `warmup_cosine_decay_schedule` for each restart.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: see `warmup_cosine_decay_schedule`.

    Example:
      >>> one = dict(init_value=0.0, peak_value=1.0, warmup_steps=10, decay_steps=50)
      >>> schedule = optim.sgdr_schedule([one, one])
      >>> [float(schedule(count)) for count in (10, 60)]
      [1.0, 1.0]

    Reference: Loshchilov and Hutter 2017, "SGDR".
    """
    parts, starts, total = [], [], 0
    for kwargs in cosine_kwargs:
        parts.append(warmup_cosine_decay_schedule(**kwargs))
        total += int(kwargs["decay_steps"])
        starts.append(total)
    return join_schedules(parts, starts[:-1])
