"""Schedules that rise and fall: warm-ups, single cycles, warm restarts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fxflow.errors import ArgumentError
from fxflow.optim.base import Scalar, Schedule
from fxflow.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    exponential_decay,
    join_schedules,
    linear_schedule,
    piecewise_interpolate_schedule,
    require_positive,
)


def warmup_constant_schedule(
    init_value: Scalar, peak_value: Scalar, warmup_steps: int
) -> Schedule:
    """Makes a linear rise to a value that then stays.

    Args:
      init_value: the first value.
      peak_value: the last value.
      warmup_steps: how many updates the rise takes.

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
    """Makes a linear rise and then a decay along half a cosine.

    Args:
      init_value: the first value.
      peak_value: the largest value.
      warmup_steps: how many updates the rise takes.
      decay_steps: how many updates rise and decay take together.
      end_value: the last value.
      exponent: of the cosine.

    Returns:
      A function of the count.

    Raises:
      ArgumentError: there are no steps left for the decay.

    Example:
      >>> schedule = optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 110)
      >>> [round(float(schedule(count)), 6) for count in (5, 10, 60, 110)]
      [0.5, 1.0, 0.5, 0.0]

    Reference: Loshchilov and Hutter 2017, "SGDR".
    """
    if decay_steps <= warmup_steps:
        raise ArgumentError(
            "warmup_cosine_decay_schedule: decay_steps includes the warm-up and must "
            f"be more than it, got {decay_steps} and {warmup_steps}"
        )
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    return join_schedules(
        [
            _rise(init_value, peak_value, warmup_steps),
            cosine_decay_schedule(
                peak_value, decay_steps - warmup_steps, alpha, exponent
            ),
        ],
        [warmup_steps],
    )


def _rise(init_value: Scalar, peak_value: Scalar, steps: int) -> Schedule:
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
    """Makes a linear rise and then an exponential decay.

    Args:
      init_value: the first value.
      peak_value: the largest value.
      warmup_steps: how many updates the rise takes.
      transition_steps: in how many updates the rate acts once.
      decay_rate: not 0.
      transition_begin: how many updates after the rise the decay begins.
      staircase: whether the decay goes in steps.
      end_value: bound that is not passed.

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
        [_rise(init_value, peak_value, warmup_steps), decay], [warmup_steps]
    )


def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Makes one cycle: a linear rise, a linear fall, and a long way down.

    Args:
      transition_steps: how many updates the cycle takes.
      peak_value: the largest value.
      pct_start: share of the updates that the rise takes.
      pct_final: share of the updates after which the last part begins.
      div_factor: the first value is `peak_value` divided by it.
      final_div_factor: the last value is the first one divided by it.

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
    return piecewise_interpolate_schedule(
        "linear",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            int(pct_final * transition_steps): 1.0 / div_factor,
            transition_steps: 1.0 / final_div_factor,
        },
    )


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Makes one cycle: a rise and a fall along half cosines.

    Args:
      transition_steps: how many updates the cycle takes.
      peak_value: the largest value.
      pct_start: share of the updates that the rise takes.
      div_factor: the first value is `peak_value` divided by it.
      final_div_factor: the last value is the first one divided by it.

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
    return piecewise_interpolate_schedule(
        "cosine",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            transition_steps: 1.0 / (div_factor * final_div_factor),
        },
    )


def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Scalar]]) -> Schedule:
    """Makes a sequence of warm restarts: rises, each with a decay along a half cosine.

    Args:
      cosine_kwargs: for each restart the arguments of `warmup_cosine_decay_schedule`.

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
