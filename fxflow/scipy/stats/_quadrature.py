"""Expectations by a double-exponential rule over quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes

# The step in the rule's own variable.
_STEP = {64: 0.09, 32: 0.16}


def _rule(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns probabilities in (0, ½) and weights, for integrals over (0, ½)."""
    step = _STEP[bits]
    least = math.log(1e-100 if bits == 64 else 1e-36)
    t = np.arange(-3.3, math.asinh(-least / (math.pi)), step)
    y = math.pi * np.sinh(t)
    # u = ½ / (1 + exp(y))
    low = np.exp(-np.logaddexp(0, y))
    weight = 0.5 * low * np.exp(-np.logaddexp(0, -y)) * math.pi * np.cosh(t) * step
    return 0.5 * low, weight


def expected(
    of: Callable[..., Any],
    ppf: Callable[..., Any],
    isf: Callable[..., Any],
    shapes: Any,
    more: Any,
) -> Any:
    """Returns the mean of a function of a variable with these quantiles.

    Args:
      of: a function of the variable and of `more`.
      ppf: the quantile function, of probabilities and shapes.
      isf: that of the upper tail.
      shapes: arrays.
      more: arrays, or None.

    Returns:
      An array of the joint shape.
    """
    return expected_between(of, ppf, isf, shapes, more, None)[0]


def expected_between(
    of: Callable[..., Any],
    ppf: Callable[..., Any],
    isf: Callable[..., Any],
    shapes: Any,
    more: Any,
    tails: Any,
) -> tuple[Any, Any]:
    """Returns an integral over the probabilities between two tails, and theirs.

    Args:
      of, ppf, isf, shapes, more: as `expected` takes them.
      tails: the probabilities below and above, which are left out; or None.
    """
    arrays = [fnp.asarray(a) for a in (*shapes, *more) if a is not None]
    dtype = fnp.result_type(*arrays) if arrays else dtypes.default_float()
    u, weight = (
        fnp.asarray(v, dtype) for v in _rule(64 if dtypes.bits(dtype) == 64 else 32)
    )
    wide: Any = lambda a: a if a is None or not fnp.ndim(a) else fnp.expand_dims(a, -1)
    shapes, more = [wide(a) for a in shapes], [wide(a) for a in more]
    mass: Any = 1
    if tails is None:
        low = high = u
    else:
        mass = fnp.maximum(1 - tails[0] - tails[1], 0)
        low, high = (wide(t) + wide(mass) * u for t in tails)
    total = of(ppf(low, *shapes), *more) + of(isf(high, *shapes), *more)
    return mass * fnp.sum(weight * total, axis=-1), mass
