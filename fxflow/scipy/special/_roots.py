"""Roots of monotone functions: inverses of probabilities by a parameter.

Chandrupatla's method (1997), inverse quadratic interpolation with bisection, on a
coordinate in which the unknown has the whole line. Derivatives are those of implicit
functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jvp import jvp

_STEPS = 100
# From the coordinate to the unknown: a positive number, one
# up to 1e12, any number, one from 0 to 1.
_PLACES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "positive": (lax.exp, 690.0),
    "real": (lax.sinh, 690.0),
    "size": (lax.exp, 28.0),
    "unit": (lax.logistic, 690.0),
}


def _interpolated(state: Any) -> Any:
    """Returns where between a and b the next point is (0.5: in the middle)."""
    a, b, c, fa, fb, fc = state
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    good = (phi * phi < xi) & ((1 - phi) * (1 - phi) < 1 - xi)
    t = fa / (fb - fa) * fc / (fb - fc)
    t = t + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return fnp.where(good & (t - t == 0), t, 0.5)


def _bracket(height: Any, like: Any, most: float) -> tuple[Any, ...]:
    """Returns coordinates around the root, and the heights there."""
    zero = 0 * like
    start = height(zero)
    direction = fnp.where(start > 0, -1.0, 1.0)

    def going(state: Any) -> Any:
        k, *_, found = state
        return (k < 12) & ~fnp.all(found)

    def step(state: Any) -> Any:
        k, size, near, f_near, far, f_far, found = state
        new = fnp.minimum(size * direction, most)
        new = fnp.maximum(new, -most)
        value = height(new)
        near, f_near = fnp.where(found, near, far), fnp.where(found, f_near, f_far)
        far, f_far = fnp.where(found, far, new), fnp.where(found, f_far, value)
        found = found | ((f_far > 0) != (start > 0)) | (f_far != f_far)
        return k + 1, 2 * size, near, f_near, far, f_far, found

    first = (fnp.int32(0), zero + 1, zero, start, zero, start, start != start)
    _, _, near, f_near, far, f_far, found = lax.while_loop(going, step, first)
    return near, f_near, far, f_far, found


def _solve(height: Any, like: Any, most: float) -> Any:
    """Returns the coordinate where a rising function is 0, nan where it is nowhere."""
    b, fb, a, fa, found = _bracket(height, like, most)

    def going(state: Any) -> Any:
        return (state[0] < _STEPS) & fnp.any(state[2])

    def step(state: Any) -> Any:
        k, t, active, a, b, c, fa, fb, fc = state
        x = a + t * (b - a)
        f = height(x)
        same = (f > 0) == (fa > 0)
        new_c, new_fc = fnp.where(same, a, b), fnp.where(same, fa, fb)
        new_b, new_fb = fnp.where(same, b, a), fnp.where(same, fb, fa)
        now = (x, new_b, new_c, f, new_fb, new_fc)
        old = (a, b, c, fa, fb, fc)
        kept = [fnp.where(active, n, o) for n, o in zip(now, old, strict=True)]
        a, b, _, fa, fb, _ = kept
        best = fnp.where(lax.abs(fa) < lax.abs(fb), a, b)
        limit = 2.3e-16 * (lax.abs(best) + 0.1) / lax.abs(b - a)
        active = active & (limit <= 0.5) & (fa != 0)
        t = fnp.clip(_interpolated(kept), fnp.minimum(limit, 0.5), 1 - limit)
        return k + 1, t, active, *kept

    start = (fnp.int32(0), 0 * a + 0.5, found & (fa != 0), a, b, b, fa, fb, fb)
    _, _, _, a, b, _, fa, fb, _ = lax.while_loop(going, step, start)
    best = fnp.where(lax.abs(fa) <= lax.abs(fb), a, b)
    return fnp.where(found & (fa == fa), best, math.nan)


def inverse_by(
    function: Callable[..., Any], kind: str, *, rising: bool
) -> Callable[..., Any]:
    """Makes the inverse of a probability by one argument.

    Args:
      function: the probability, of the unknown and the other arguments: arrays of 64
        bits and of one shape.
      kind: "positive", "size", "real" or "unit": where the unknown is.
      rising: whether the probability grows with the unknown.

    Returns:
      A function of a probability and the other arguments, with derivatives with
      respect to all of them; nan where there is no root.
    """
    place, most = _PLACES[kind]
    sign = 1.0 if rising else -1.0

    def values(p: Any, *others: Any) -> Any:
        usual = (p > 0) & (p < 1)
        for other in others:
            usual = usual & (other == other)
        p = fnp.where(usual, p, 0.5)
        small = p <= 0.5
        target = lax.log(fnp.where(small, p, 1 - p))

        def height(u: Any) -> Any:
            value = function(place(u), *others)
            tail = fnp.where(small, value, 1 - value)
            gap = lax.log(fnp.maximum(tail, 0)) - target
            return sign * fnp.where(small, gap, -gap)

        return fnp.where(usual, place(_solve(height, p, most)), math.nan)

    found: Any = custom_jvp(values)

    def slope(primals: Any, tangents: Any) -> Any:
        (p, *others), (dp, *changes) = primals, tangents
        x = found(p, *others)
        usual = x == x
        at = fnp.where(usual, x, 0.5)
        rate = jvp(lambda x: function(x, *others), (at,), (lax.full_like(at, 1),))[1]
        of_others = lambda *others: function(at, *others)
        moved = jvp(of_others, tuple(others), tuple(changes))[1]
        return x, fnp.where(usual, (dp - moved) / rate, math.nan)

    found.defjvp(slope)
    out: Callable[..., Any] = found
    return out
