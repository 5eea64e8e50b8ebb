"""Events in time: how well they keep to a period."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal._recursions import known, numbers


@library()
def _strength(events: Any, period: Any) -> tuple[Array, Array]:
    angles = 2 * math.pi * (events / period[..., None])
    real, imag = fnp.mean(fnp.cos(angles), -1), fnp.mean(fnp.sin(angles), -1)
    return fnp.hypot(real, imag), fnp.arctan2(imag, real)


def vectorstrength(events: ArrayLike, period: ArrayLike) -> tuple[Array, Array]:
    """Returns how well events keep to a period, and at which phase.

    Args:
      events: real array-like[n]: times.
      period: real array-like[] or [p]: positive.

    Returns:
      The strength, 0 … 1, and the phase in radians: float arrays of the shape of
      `period`.

    Raises:
      ArgumentError: a period is not positive.
      ShapeError: `events` or `period` has more axes.

    Example:
      >>> vectorstrength(np.array([0.0, 1.0, 2.0]), 1.0)[0].round(3)
      Array(1., dtype=float32)

    Source: `scipy.signal.vectorstrength`.
    """
    name = "vectorstrength"
    times, periods = promote_inexact(name, numbers(events), numbers(period))
    if times.ndim > 1 or periods.ndim > 1:
        raise ShapeError(
            f"{name}: events and period must be vectors or numbers, got {times.aval} "
            f"and {periods.aval}"
        )
    host = known(periods, name)
    if host is not None and not np.all(host > 0):
        raise ArgumentError(f"{name}: periods must be positive, got {host.tolist()}")
    return _strength(fnp.atleast_1d(times), periods)
