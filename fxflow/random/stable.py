"""Stable numbers: sums of independent ones are of the same kind."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.lax import sampling
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import arguments, fit
from fxflow.random._layout import sampler


@sampler("shape", "dtype")
def levy_stable(
    key: Any,
    alpha: Any,
    beta: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws stable numbers, in the parametrization "S1" of `scipy.stats.levy_stable`.

    Sums of them are stable with the same `alpha`: 2 is the normal distribution of
    variance 2, 1 with `beta` 0 Cauchy's, 0.5 with `beta` 1 Lévy's. Tails fall as the
    power -`alpha` of the distance.

    Args:
      alpha: 0 < alpha ≤ 2, any shape.
      beta: the skewness, from -1 to 1, any shape.
      shape: shape of the result, to which both are broadcast; None means their common
        shape.

    Returns:
      An array of that shape and dtype; differentiable with respect to both parameters
      except by `alpha` at 1, where "S1" jumps and the derivative is taken for 0.

    Raises:
      ShapeError: a parameter does not broadcast to `shape`.

    Special cases:
      nan where a parameter is out of range.

    Example:
      >>> random.levy_stable(random.key(0), 1.7, 0.5, (3,)).shape
      (3,)

    Source: J. M. Chambers, C. L. Mallows and B. W. Stuck 1976, "A method for simulating
    stable random variables".
    """
    key_data, full, chosen, a, b = arguments(
        "levy_stable", key, shape, dtype, alpha, beta
    )
    wide = chosen if dtypes.bits(chosen) >= 32 else dtypes.float32
    a, b = (lax.convert_element_type(fit(p, full), wide) for p in (a, b))
    known = (a > 0) & (a <= 2) & (abs(b) <= 1)
    a, b = fnp.where(known, a, 1.5), fnp.where(known, b, 0)
    one, two, three = sampling.split(key_data, 3)
    # An angle, as its distance from an end of the half turn: from the lower end, where
    # no difference loses digits, or from the upper one with everything mirrored.
    sign = sampling.signs(one, full, wide)
    v = 0.5 * math.pi * sampling.positive_uniform(two, full, wide)
    w = -lax.log(sampling.positive_uniform(three, full, wide))
    b = b * sign
    drawn = sign * fnp.where(a == 1, _of_one(b, v, w), _of_others(a, b, v, w))
    return lax.convert_element_type(fnp.where(known, drawn, math.nan), chosen)


def _of_one(b: Any, v: Any, w: Any) -> Any:
    """Returns numbers of alpha 1, of angles and exponential numbers."""
    line = 0.5 * math.pi * (1 - b) + b * v
    log = lax.log(0.5 * math.pi * w * lax.sin(v)) - lax.log(line)
    return 2 / math.pi * (-line / lax.tan(v) - b * log)


def _of_others(a: Any, b: Any, v: Any, w: Any) -> Any:
    """Returns numbers of another alpha, of angles and exponential numbers."""
    a = fnp.where(a == 1, 1.5, a)
    half = 0.5 * math.pi
    # The tangent of half a turn times alpha, whose pole is at 1.
    beside = fnp.where((a >= 0.5) & (a <= 1.5), a - 1, 0.5)
    outer = lax.tan(half * fnp.where(a > 1.5, a - 2, fnp.minimum(a, 0.5)))
    t = fnp.where((a < 0.5) | (a > 1.5), outer, -1 / lax.tan(half * beside))
    skew = b * t
    end = lax.atan2((b - 1) * t, 1 + b * t * t)
    inner = lax.sin(a * v + end) * lax.sign(1 - a)
    rest = lax.sin(abs(1 - a) * v + abs(end))
    tiny = float(dtypes.finfo(v.aval.dtype).tiny)
    power = 0.5 * lax.log1p(skew * skew) - lax.log(lax.sin(v))
    power = power + (1 - a) * (lax.log(fnp.maximum(rest, tiny)) - lax.log(w))
    return inner * lax.exp(power / a)
