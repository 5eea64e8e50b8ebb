"""Tukey's lambda distribution: the search for its lower tail, which has no formula."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.scipy.special._operands import expm1_over
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jvp import jvp


def tukey_quantile(t: Any, lam: Any) -> Any:
    """Returns Tukey's quantile of the probability exp(t), for t up to log ½."""
    return expm1_over(lam, t) - expm1_over(lam, lax.log1p(-lax.exp(t)))


def _tukey_search(z: Any, lam: Any) -> Any:
    """Returns the logarithm of the lower tail at z below 0, inside of the support."""

    def step(i: Any, state: Any) -> Any:
        t, low, high = state
        gap = tukey_quantile(t, lam) - z
        low, high = fnp.where(gap < 0, t, low), fnp.where(gap < 0, high, t)
        q = lax.exp(t)
        slope = lax.exp(lam * t) + lax.exp(t + (lam - 1) * lax.log1p(-q))
        new = t - gap / slope
        # From far away Newton's steps are short, so every other one is a bisection.
        inner = (new > low) & (new < high) & (lax.rem(i, 2) == 1)
        return fnp.where(inner, new, 0.5 * (low + high)), low, high

    least, most = lax.full_like(z, -745), lax.full_like(z, -math.log(2))
    return lax.fori_loop(0, 80, step, (lax.full_like(z, -2), least, most))[0]


tukey_log_tail: Any = custom_jvp(_tukey_search)


def _tukey_slope(primals: Any, tangents: Any) -> Any:
    (z, lam), (dz, dlam) = primals, tangents
    t = tukey_log_tail(z, lam)
    moved = jvp(lambda v: tukey_quantile(t, v), (lam,), (dlam,))[1]
    rate = jvp(lambda v: tukey_quantile(v, lam), (t,), (lax.full_like(t, 1),))[1]
    return t, (dz - moved) / rate


tukey_log_tail.defjvp(_tukey_slope)
