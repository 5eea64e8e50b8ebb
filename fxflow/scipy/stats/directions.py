"""Summaries of angles and of directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.stats._samples import Sample, operands, statistic, taken
from fxflow.scipy.stats.results import DirectionalStats


def _turned(
    name: str, samples: Any, high: Any, low: Any, axis: Any, policy: str, keepdims: bool
) -> tuple[Sample, Any, Any, Any, Callable[[Any], Array]]:
    """Returns angles, means of their sines and cosines, the period, and `done`."""
    (x,), done = taken(name, (samples,), axis, policy, keepdims)
    (high, low), _ = operands(name, high, low)
    period = (high - low).astype(x.dtype)
    angle = (x.values - low.astype(x.dtype)) * (2 * math.pi / period)
    return x, x.mean(lax.sin(angle)), x.mean(lax.cos(angle)), period, done


def _length(sine: Any, cosine: Any) -> Any:
    return fnp.minimum(lax.sqrt(sine * sine + cosine * cosine), 1)


@statistic("axis", "keepdims")
def circmean(
    samples: ArrayLike,
    high: ArrayLike = 2 * math.pi,
    low: ArrayLike = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the mean direction of angles.

    Args:
      samples: real array-like[...]: the angles.
      high: a number: the end of a turn.
      low: a number: its beginning.

    Example:
      >>> circmean(np.array([0.1, 2 * np.pi - 0.3])).round(4)
      Array(6.1832, dtype=float32)
    """
    _, sine, cosine, period, done = _turned(
        "circmean", samples, high, low, axis, nan_policy, keepdims
    )
    low = operands("circmean", low)[0][0].astype(period.dtype)
    part = fnp.mod(lax.atan2(sine, cosine), 2 * math.pi) / (2 * math.pi)
    return done(part * period + low)


@statistic("axis", "keepdims")
def circvar(
    samples: ArrayLike,
    high: ArrayLike = 2 * math.pi,
    low: ArrayLike = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the variance of angles: 1 minus the length of their mean vector.

    Args:
      samples: real array-like[...]: the angles.
      high: a number: the end of a turn.
      low: a number: its beginning.

    Example:
      >>> circvar(np.array([0.1, 2 * np.pi - 0.3])).round(4)
      Array(0.0199, dtype=float32)
    """
    _, sine, cosine, _, done = _turned(
        "circvar", samples, high, low, axis, nan_policy, keepdims
    )
    return done(1 - _length(sine, cosine))


@statistic("axis", "normalize", "keepdims")
def circstd(
    samples: ArrayLike,
    high: ArrayLike = 2 * math.pi,
    low: ArrayLike = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    normalize: bool = False,
    keepdims: bool = False,
) -> Array:
    """Returns the standard deviation of angles: √(-2 log R), R the mean's length.

    Args:
      samples: real array-like[...]: the angles.
      high: a number: the end of a turn.
      low: a number: its beginning.
      normalize: whether it is in radians, not in units of the angles.

    Example:
      >>> circstd(np.array([0.1, 2 * np.pi - 0.3])).round(4)
      Array(0.2007, dtype=float32)
    """
    _, sine, cosine, period, done = _turned(
        "circstd", samples, high, low, axis, nan_policy, keepdims
    )
    value = lax.sqrt(-2 * lax.log(_length(sine, cosine)))
    return done(value if normalize else value * (period / (2 * math.pi)))


@statistic("axis", "normalize")
def directional_stats(
    samples: ArrayLike, *, axis: int = 0, normalize: bool = True
) -> DirectionalStats:
    """Returns the mean direction of vectors, and the length of their mean.

    Args:
      samples: real array-like[..., n], of at least two axes: vectors along the last.
      axis: over which the mean is taken.
      normalize: whether the vectors are scaled to length 1 before.

    Returns:
      A named tuple of `mean_direction` and `mean_resultant_length`.

    Raises:
      ShapeError: there is one axis.

    Example:
      >>> x = np.array([[0.6, 0.8], [0.8, 0.6]])
      >>> directional_stats(x).mean_resultant_length.round(3)
      Array(0.99, dtype=float32)
    """
    (x,), dtype = operands("directional_stats", samples)
    if x.aval.ndim < 2:
        raise ShapeError(
            "directional_stats: samples must have at least two axes, of which the last "
            f"one is that of a vector, got {x.aval}"
        )
    size: Any = lambda v: lax.sqrt(fnp.sum(v * v, axis=-1, keepdims=True))
    x = fnp.moveaxis(x, axis, 0)
    if normalize:
        x = x / size(x)
    mean = fnp.mean(x, axis=0)
    length = size(mean)
    return DirectionalStats((mean / length).astype(dtype), length[..., 0].astype(dtype))
