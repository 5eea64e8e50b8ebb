"""Inverses of distribution functions that have no formula.

Newton's method on the logarithm of the smaller tail, as a function of a coordinate in
which the support is the whole line. A step that leaves the interval in which the root
is known to be is one of bisection; steps are short at first, and longer ones follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.ir.arith import repeated
from fxflow.numpy._operands import joint_shape
from fxflow.scipy.special.normal import ndtri
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jvp import jvp

_STEPS = 120


def _line(low: Any, high: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Returns a map of the real line onto an interval, and its slope.

    sinh onto the line, exp onto a half, a logistic function onto what is bounded.
    """
    below, above = abs(low) < math.inf, abs(high) < math.inf
    base = fnp.where(below, low, 0)
    top = fnp.where(above, high, 0)

    def place(t: Any) -> Any:
        part = lax.logistic(t)
        both = fnp.where(
            t < 0, base + (top - base) * part, top - (top - base) * lax.logistic(-t)
        )
        one = fnp.where(below, base + lax.exp(t), top - lax.exp(-t))
        # Slower than sinh near 0, and as fast far away.
        return fnp.where(
            below & above, both, fnp.where(below | above, one, lax.sinh(t))
        )

    def slope(t: Any) -> Any:
        both = (top - base) * lax.logistic(t) * lax.logistic(-t)
        one = lax.exp(fnp.where(below, t, -t))
        return fnp.where(
            below & above, both, fnp.where(below | above, one, lax.cosh(t))
        )

    return place, slope


def _start(q: Any, mean: Any, deviation: Any, low: Any, high: Any) -> Any:
    """Returns about where on the line the quantile of a probability is.

    Args:
      q: the lower tail.
      mean: of the distribution; where it is not finite the start is 0.
      deviation: its standard deviation.
      low: the lower end of the support.
      high: the upper one.
    """
    below, above = abs(low) < math.inf, abs(high) < math.inf
    z = ndtri(q) * deviation
    free = fnp.arcsinh(mean + z)
    lift, drop = (fnp.where(v > 0, v, 1) for v in (mean - low, high - mean))
    over = lax.log(lift) + fnp.clip(z / lift, -30, 30)
    under = -lax.log(drop) + fnp.clip(z / drop, -30, 30)
    both = fnp.clip(lax.log(lift / drop), -30, 30)
    one = fnp.where(below, over, under)
    t = fnp.where(below & above, both, fnp.where(below | above, one, free))
    return fnp.where(abs(t) < 80, t, 0)


def inverse_of(
    logs: Callable[..., tuple[Any, Any]],
    plain: tuple[Any, Any],
    pdf: Any,
    bounds: Any,
    upper: bool,
    center: Any = None,
) -> Callable[..., Any]:
    """Returns the quantile function of a standard distribution.

    Args:
      logs: logarithms of the lower and the upper tail, of a point and shapes.
      plain: the tails themselves, of which derivatives are taken.
      pdf: the density.
      bounds: the ends of the support, of shapes.
      upper: whether probabilities are those of the upper tail.
      center: the mean and the standard deviation, of shapes; or None.

    Returns:
      A function of probabilities and shapes, with derivatives with respect to all of
      them.
    """

    def solve(q: Any, *shapes: Any) -> Any:
        low, high = (fnp.asarray(b, q.dtype) for b in bounds(shapes))
        place, slope = _line(low, high)
        small = q <= 0.5
        is_upper = small if upper else ~small
        target = lax.log(fnp.where(small, q, 1 - q))
        most = 700.0 if dtypes.bits(q.dtype) == 64 else 87.0

        def height(t: Any) -> Any:
            z = place(t)
            lower, above = logs(z, *shapes)
            return z, fnp.where(is_upper, -above, lower)

        goal = fnp.where(is_upper, -target, target)

        def going(state: Any) -> Any:
            k, *_, active = state
            return (k < _STEPS) & fnp.any(active)

        def step(state: Any) -> Any:
            k, t, left, right, reach, active = state
            z, value = height(t)
            # An end of the support, where a tail is 0, is beyond every root.
            under = fnp.where(value == value, value < goal, t < 0)
            left = fnp.where(active & under, t, left)
            right = fnp.where(active & ~under, t, right)
            rate = pdf(z, *shapes) * slope(t) / lax.exp(-abs(value))
            # Far away the tail underflows before the density, or both do.
            good = (rate > 0) & (rate < math.inf) & (abs(value) < math.inf)
            move = (goal - value) / fnp.where(good, rate, 1)
            move = fnp.where(good, move, fnp.where(under, 1.0, -1.0) * math.inf)
            new = t + fnp.clip(move, -reach, reach)
            reach = fnp.where(abs(move) >= reach, 2 * reach, reach)
            inner = (new > left) & (new < right)
            new = fnp.where(inner, new, 0.5 * (left + right))
            eps = float(fnp.finfo(q.dtype).eps)
            done = (abs(new - t) <= 2 * eps * fnp.maximum(abs(new), 0.25)) | (
                value == goal
            )
            moved = fnp.where(active & (value != goal), new, t)
            return k + 1, moved, left, right, reach, active & ~done

        start = lax.full_like(q, 0)
        if center is not None:
            mean, deviation = center(*shapes)
            start = _start(1 - q if upper else q, mean, deviation, low, high)
        none = lax.full_like(q, 0)
        state = (
            fnp.int32(0), start, none - most, none + most, none + 2, q == q,
        )  # fmt: skip
        _, t, *_ = lax.while_loop(going, step, state)
        return place(t)

    found = custom_jvp(solve)

    @found.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        (q, *shapes), (dq, *dshapes) = primals, tangents
        z = found(q, *shapes)
        tail = plain[1] if upper else plain[0]
        change = dq
        if shapes:
            by_shapes = lambda *shapes: tail(z, *shapes)
            change = change - jvp(by_shapes, tuple(shapes), tuple(dshapes))[1]
        rate = pdf(z, *shapes)
        return z, (-change if upper else change) / rate

    def inverse(q: Any, *shapes: Any) -> Any:
        shape = joint_shape("ppf", [a.aval for a in (q, *shapes)])
        return found(*(repeated(a, shape) for a in (q, *shapes)))

    return inverse
