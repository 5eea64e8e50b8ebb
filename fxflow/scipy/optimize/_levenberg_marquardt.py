"""Levenberg's and Marquardt's method, projected into bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes


class Fit(NamedTuple):
    """Where the method ended: see `LeastSquaresResults` for the status."""

    x: Any
    residuals: Any
    jacobian: Any
    cost: Any
    damping: Any
    growth: Any
    scale: Any
    calls: Any
    slopes: Any
    status: Any


def levenberg_marquardt(
    both: Callable[[Any], tuple[Any, Any, Any]],
    residuals: Callable[[Any], tuple[Any, Any]],
    x: Any,
    low: Any,
    high: Any,
    *,
    ftol: Any,
    xtol: Any,
    gtol: Any,
    x_scale: Any,
    maxcalls: int,
    tau: float = 1e-3,
    watched: Callable[..., Any] = lambda step: step,
) -> Fit:
    """Minimizes half a sum of squares within bounds.

    Variables at a bound that the gradient presses against it are held. Each step is a
    linear least-squares problem, solved by a QR factorization.

    Args:
      both: function of x that returns the cost, the residuals and the Jacobian, as the
        model of the cost has them.
      residuals: function of x that returns the cost and the residuals.
      x: float[n], the initial guess, within the bounds.
      low: float[n].
      high: float[n].
      ftol: the relative decrease of the cost at which to stop.
      xtol: the relative length of a step at which to stop.
      gtol: the size of the projected gradient at which to stop.
      x_scale: float[n], the units of variables; None for norms of the Jacobian.
      maxcalls: the maximum number of calls.
      tau: the first damping, relative.
      watched: what makes a step call the user's callback.
    """
    n, dtype = x.aval.size, x.aval.dtype
    eps = float(fnp.finfo(dtype).eps)

    def held(x: Any, slope: Any) -> Any:
        return ((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0))

    def steepest(x: Any, slope: Any) -> Any:
        return fnp.max(fnp.abs(x - fnp.clip(x - slope, low, high)), initial=0)

    def units(jacobian: Any, before: Any) -> Any:
        if x_scale is not None:
            return before
        return fnp.maximum(before, fnp.sqrt(fnp.sum(jacobian * jacobian, 0)))

    def step(s: Fit) -> Fit:
        slope = s.jacobian.T @ s.residuals
        free = ~held(s.x, slope)
        jacobian = s.jacobian * free
        scale = fnp.where(s.scale > 0, s.scale, 1)
        damped = fnp.sqrt(s.damping) * scale
        rows = fnp.concatenate([jacobian, fnp.diag(fnp.where(free, damped, 1))])
        right = fnp.concatenate([-s.residuals, fnp.zeros(n, dtype)])
        q, r = fnp.linalg.qr(rows)
        way = lax.linalg.triangular_solve(r, (q.T @ right)[:, None], left_side=True)
        x = fnp.clip(s.x + way[:, 0], low, high)
        moved = x - s.x
        cost, _ = residuals(x)
        model = s.jacobian @ moved
        expected = -(slope @ moved) - model @ model / 2
        actual = s.cost - cost
        # Near the minimum differences are lost in rounding.
        lost = fnp.abs(expected) <= 4 * eps * s.cost
        ratio = actual / fnp.where(expected > 0, expected, 1)
        ratio = fnp.where(expected > 0, ratio, -1.0)
        ratio = fnp.where(lost & (actual >= -4 * eps * s.cost), 1.0, ratio)
        ratio = fnp.where(fnp.isfinite(cost), ratio, -1.0)
        good = ratio > 1e-4
        shrunk = fnp.maximum(1 / 3, 1 - (2 * ratio - 1) ** 3)
        damping = s.damping * fnp.where(good, shrunk, s.growth)
        growth = fnp.where(good, 2.0, 2 * s.growth)
        new = both(x)
        choose: Any = lambda a, b: fnp.where(good, a, b)
        cost, residuals_, jacobian = (
            choose(a, b)
            for a, b in zip(new, (s.cost, s.residuals, s.jacobian), strict=True)
        )
        at = choose(x, s.x)
        little = (actual <= ftol * s.cost) & (expected <= ftol * s.cost) & good
        size = fnp.linalg.norm(s.x / 1)
        short = fnp.linalg.norm(moved) <= xtol * (xtol + size)
        status = fnp.where(s.calls + 1 >= maxcalls, 0, -2)
        status = fnp.where(short, 3, status)
        status = fnp.where(little, fnp.where(short, 4, 2), status)
        flat = steepest(at, jacobian.T @ residuals_) <= gtol
        status = fnp.where(flat, 1, status)
        return Fit(
            at,
            residuals_,
            jacobian,
            cost,
            damping.astype(dtype),
            growth.astype(dtype),
            units(jacobian, s.scale),
            s.calls + 1,
            s.slopes + good,
            status.astype(dtypes.int32),
        )

    cost, values, jacobian = both(x)
    begin = fnp.zeros(n, dtype) if x_scale is None else 1 / x_scale
    one = lax.full((), 1, dtypes.int32)
    flat = steepest(x, jacobian.T @ values) <= gtol
    status = fnp.where(flat, 1, 0 if maxcalls <= 1 else -2)
    # What is lost at once is -1; the loop runs for -2.
    status = fnp.where(fnp.isfinite(cost), status, -1).astype(dtypes.int32)
    start = Fit(
        x,
        values,
        jacobian,
        cost,
        fnp.full((), tau, dtype),
        fnp.full((), 2.0, dtype),
        units(jacobian, begin),
        one,
        one,
        status,
    )
    end: Fit = lax.while_loop(lambda s: s.status == -2, watched(step), start)
    return end
