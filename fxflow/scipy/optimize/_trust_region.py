"""Minimization in a region where a quadratic model is trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.scipy.optimize._descent import Outcome, truncated
from fxflow.scipy.optimize._problems import Problem

#: The largest dimension of a Krylov space.
_KRYLOV = 30


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    radius: Any
    calls: Any
    slopes: Any
    steps: Any
    status: Any
    rejected: Any


def trust_region(
    problem: Problem,
    subproblem: Callable[[Any, Any, Any], Any],
    *,
    gtol: Any,
    maxiter: int,
    initial_trust_radius: Any,
    max_trust_radius: Any,
    eta: Any,
) -> Outcome:
    """Minimizes by steps that minimize a model within a radius.

    Args:
      problem: what to minimize.
      subproblem: function of x, the gradient and the radius that returns a step.
      gtol: the size of the gradient at which to stop.
      maxiter: the maximum number of iterations.
      initial_trust_radius: the first radius.
      max_trust_radius: the largest radius.
      eta: the least ratio of actual to predicted decrease of a step that is taken.
    """
    x = problem.x
    dtype = x.aval.dtype
    tiny = float(fnp.finfo(dtype).eps)

    def step(s: _State) -> _State:
        way = subproblem(s.x, s.slope, s.radius)
        model = fnp.dot(s.slope, way) + fnp.dot(way, problem.product(s.x, way)) / 2
        value, slope = problem.both(s.x + way)
        actual = s.value - value
        # Near the minimum decreases are lost in rounding: the gradient decides.
        lost = -model <= 10 * tiny * fnp.abs(s.value)
        less = fnp.linalg.norm(slope) <= fnp.linalg.norm(s.slope)
        ratio = fnp.where(lost, fnp.where(less, 1.0, 0.0), actual / -model)
        ratio = fnp.where(fnp.isfinite(value) & (model < 0), ratio, 0.0)
        at_edge = fnp.linalg.norm(way) >= 0.99 * s.radius
        wider = (ratio > 0.75) & at_edge
        radius = fnp.where(ratio < 0.25, fnp.linalg.norm(way) / 4, s.radius)
        radius = fnp.where(wider, fnp.minimum(2 * s.radius, max_trust_radius), radius)
        good = ratio > eta
        x, value, slope = (
            fnp.where(good, new, old)
            for new, old in zip((s.x + way, value, slope), s[:3], strict=True)
        )
        status = fnp.where(s.steps + 1 >= maxiter, 1, -1)
        small = radius <= tiny * fnp.maximum(fnp.linalg.norm(x), 1)
        status = fnp.where(small, 3, status)
        status = fnp.where(fnp.linalg.norm(slope) < gtol, 0, status)
        return _State(
            x,
            value,
            slope,
            fnp.astype(radius, dtype),
            s.calls + 1,
            s.slopes + 1,
            s.steps + 1,
            status.astype(dtypes.int32),
            ~good,
        )

    value, slope = problem.both(x)
    status = fnp.where(fnp.linalg.norm(slope) < gtol, 0, 1 if maxiter <= 0 else -1)
    status = fnp.where(fnp.isfinite(value), status, 2).astype(dtypes.int32)
    one, zero = (lax.full((), k, dtypes.int32) for k in (1, 0))
    radius = fnp.full((), initial_trust_radius, dtype)
    start = _State(x, value, slope, radius, one, one, zero, status, lax.full((), False))
    end = lax.while_loop(lambda s: s.status < 0, problem.watched(step), start)
    return Outcome(end.x, end.status, end.calls, end.slopes, end.steps)


def by_conjugate_gradients(problem: Problem) -> Callable[[Any, Any, Any], Any]:
    """Returns the subproblem of Steihaug's method.

    Args:
      problem: what to minimize.
    """

    def subproblem(x: Any, slope: Any, radius: Any) -> Any:
        size = fnp.linalg.norm(slope)
        bound = fnp.minimum(0.5, fnp.sqrt(size)) * size
        return truncated(lambda v: problem.product(x, v), slope, bound, radius)

    return subproblem


def by_eigenvalues(problem: Problem) -> Callable[[Any, Any, Any], Any]:
    """Returns the subproblem that is solved exactly, by the Hessian's eigenvalues.

    Args:
      problem: what to minimize.
    """

    def subproblem(x: Any, slope: Any, radius: Any) -> Any:
        return _exact(problem.hessian(x), slope, radius)

    return subproblem


def by_lanczos(problem: Problem) -> Callable[[Any, Any, Any], Any]:
    """Returns the subproblem that is solved exactly in a Krylov space.

    Args:
      problem: what to minimize.
    """

    def subproblem(x: Any, slope: Any, radius: Any) -> Any:
        n, dtype = x.size, x.dtype
        count = min(n, _KRYLOV)
        size = fnp.linalg.norm(slope)
        tiny = float(fnp.finfo(dtype).eps)
        first = slope / fnp.where(size > 0, size, 1)

        def step(c: Any, k: Any) -> Any:
            basis, v = c
            basis = basis.at[k].set(v)
            image = problem.product(x, v)
            along = fnp.dot(v, image)
            rest = image
            for _ in range(2):
                rest = rest - (basis @ rest) @ basis
            length = fnp.linalg.norm(rest)
            fine = length > 100 * tiny * fnp.linalg.norm(image)
            following = fnp.where(fine, rest / fnp.where(fine, length, 1), 0)
            return (basis, following), (along, fnp.where(fine, length, 0))

        start = (fnp.zeros((count, n), dtype), first)
        (basis, _), (diagonal, beside) = lax.scan(step, start, fnp.arange(count))
        # Directions beyond the space have no slope: any positive curvature.
        used = fnp.sum(basis * basis, 1) > 0.5
        most = fnp.maximum(fnp.max(fnp.abs(diagonal)), tiny)
        diagonal = fnp.where(used, diagonal, most)
        model = fnp.diag(diagonal)
        model = model + fnp.diag(beside[:-1], 1) + fnp.diag(beside[:-1], -1)
        inner = fnp.zeros(count, dtype).at[0].set(size)
        return _exact(model, inner, radius) @ basis

    return subproblem


def _exact(hessian: Any, slope: Any, radius: Any) -> Any:
    """Returns the minimum of a quadratic model within a radius."""
    values, vectors = fnp.linalg.eigh((hessian + hessian.T) / 2)
    tiny = float(fnp.finfo(values.dtype).eps)
    g = vectors.T @ slope
    least = fnp.min(values)
    scale = fnp.maximum(fnp.max(fnp.abs(values)), tiny)

    def length(shift: Any) -> Any:
        return fnp.linalg.norm(g / (values + shift))

    # ‖step‖ falls with the shift: bisect between bounds, by the logarithm of the
    # distance to the singular shift.
    base = fnp.maximum(-least, 0)
    low = tiny * scale
    high = fnp.linalg.norm(g) / radius + scale

    def halve(_: Any, c: Any) -> Any:
        low, high = c
        middle = fnp.sqrt(low * high)
        long = length(base + middle) > radius
        return fnp.where(long, middle, low), fnp.where(long, high, middle)

    low, high = lax.fori_loop(0, 60, halve, (low, high))
    positive = least > tiny * scale
    newton = -g / fnp.where(positive, values, 1)
    inside = positive & (fnp.linalg.norm(newton) <= radius)
    bound = -g / (values + base + high)
    # The hard case: what is left of the radius goes along the least eigenvalue.
    rest = radius**2 - fnp.dot(bound, bound)
    sign = fnp.where(bound[0] < 0, -1.0, 1.0)
    along = sign * fnp.sqrt(fnp.maximum(rest, 0))
    bound = bound.at[0].add(fnp.where(least < 0, along, 0).astype(bound.dtype))
    return vectors @ fnp.where(inside, newton, bound)
