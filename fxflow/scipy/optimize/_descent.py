"""Descents: a direction from the gradient, and a line search in it.

The searches are those of `fxflow.optim`, and so is the estimate of L-BFGS. With bounds
the points are projected into them, and variables at a bound that the gradient presses
against it take no part in the direction.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.errors import ShapeError
from fxflow.optim.linesearch import Point, zoom_search
from fxflow.optim.quasi_newton import two_loops
from fxflow.scipy.optimize._problems import Problem, within


class Outcome(NamedTuple):
    """Where a solver ended."""

    x: Any
    status: Any
    calls: Any
    slopes: Any
    steps: Any
    memory: Any = None


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    memory: Any
    calls: Any
    steps: Any
    status: Any
    drop: Any  # by how much the last step decreased the value


def descend(
    problem: Problem,
    rule: Any,
    *,
    gtol: Any,
    norm: Any = math.inf,
    maxiter: int,
    maxcalls: float = math.inf,
    searches: int = 30,
    ftol: Any = 0.0,
    xtol: Any = 0.0,
    xrtol: Any = 0.0,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> Outcome:
    """Minimizes by a rule for directions and searches along them.

    Args:
      problem: what to minimize.
      rule: `start(x)` returns its memory; `direction(memory, x, slope)` returns a
        direction and the memory, `updated(memory, step, change)` the memory after a
        step; `scaled` says whether a step of length 1 is its natural one.
      gtol: the size of the gradient at which to stop.
      norm: the order of the norm of the gradient.
      maxiter: the maximum number of steps.
      maxcalls: the maximum number of calls.
      searches: the maximum number of calls of a search.
      ftol: the relative decrease at which to stop.
      xtol: the mean length of a step's elements at which to stop.
      xrtol: the length of a step, relative to that of x, at which to stop.
      c1: the constant of Wolfe's first condition.
      c2: of the second one.
    """
    x = problem.x
    n, dtype = x.aval.size, x.aval.dtype
    tiny = float(fnp.finfo(dtype).eps)

    def is_small(slope: Any) -> Any:
        return fnp.linalg.norm(slope, ord=norm) < gtol if n else fnp.asarray(True)

    def step(s: _State) -> _State:
        way, memory = rule.direction(s.memory, s.x, s.slope)
        # A direction that does not descend is one of rounding errors.
        descends = fnp.dot(way, s.slope) < 0
        way = fnp.where(descends, way, -s.slope)
        rate = fnp.dot(way, s.slope)
        # The first step of all has length 1 at most.
        size = fnp.linalg.norm(way) if n else 1.0
        if rule.scaled:
            first = fnp.where(s.steps == 0, fnp.minimum(1, 1 / size), 1)
        else:
            guess = fnp.minimum(1, 2.02 * s.drop / -rate)
            first = fnp.where((s.steps == 0) | ~(guess > 0), 1 / size, guess)
        first = fnp.astype(first, dtype)

        def tried(t: Any) -> Any:
            value, slope = problem.both(s.x + t * way)
            return Point(t, value, fnp.dot(way, slope)), slope

        end = zoom_search(
            tried,
            Point(fnp.zeros((), dtype), s.value, rate),
            s.slope,
            first,
            max_linesearch_steps=searches,
            slope_rtol=c1,
            curv_rtol=c2,
            approx_dec_rtol=tiny,
            stepsize_precision=0.0,
        )
        value, slope = end.best.value, end.grad
        found = (end.decrease_error <= 0) & (end.best.at > 0)
        x = s.x + end.best.at * way
        moved = fnp.sum(fnp.abs(x - s.x)) / max(n, 1)
        memory = rule.updated(memory, x - s.x, slope - s.slope, x)
        scale = fnp.maximum(1, fnp.maximum(fnp.abs(s.value), fnp.abs(value)))
        status = fnp.where((s.value - value < ftol * scale) | (moved < xtol), 0, -1)
        if xrtol:
            long = fnp.linalg.norm(x - s.x) > xrtol * (xrtol + fnp.linalg.norm(x))
            status = fnp.where(long, status, 0)
        status = fnp.where(s.steps + 1 >= maxiter, 1, status)
        status = fnp.where(s.calls + end.count >= maxcalls, 1, status)
        status = fnp.where(fnp.isfinite(value), status, 2)
        status = fnp.where(found, status, 3)
        status = fnp.where(is_small(slope), 0, status)
        return _State(
            x,
            value,
            slope,
            memory,
            s.calls + end.count,
            s.steps + 1,
            status.astype(dtypes.int32),
            s.value - value,
        )

    value, slope = problem.both(x)
    start = _first(x, value, slope, rule, is_small(slope), maxiter, maxcalls)
    end = lax.while_loop(lambda s: s.status < 0, problem.watched(step), start)
    return Outcome(end.x, end.status, end.calls, end.calls, end.steps, end.memory)


def _first(
    x: Any, value: Any, slope: Any, rule: Any, done: Any, maxiter: Any, maxcalls: Any
) -> _State:
    spent = maxiter <= 0 or maxcalls <= 1
    status = fnp.where(done, 0, 1 if spent else -1)
    status = fnp.where(fnp.isfinite(value), status, 2).astype(dtypes.int32)
    one, zero = (lax.full((), k, dtypes.int32) for k in (1, 0))
    return _State(
        x, value, slope, rule.start(x), one, zero, status, fnp.zeros_like(value)
    )


def descend_within(
    problem: Problem,
    low: Any,
    high: Any,
    *,
    gtol: Any,
    ftol: Any,
    maxiter: int,
    maxcalls: float,
    rule: Any,
    searches: int,
    xtol: Any = 0.0,
) -> Outcome:
    """Minimizes within bounds, by directions of the variables that are free.

    Args:
      problem: what to minimize.
      low: float[n].
      high: float[n].
      gtol: the size of the projected gradient at which to stop.
      ftol: the relative decrease at which to stop.
      maxiter: the maximum number of steps.
      maxcalls: the maximum number of calls.
      rule: for directions: `LBFGS` or `NewtonCG`.
      searches: the maximum number of calls of a search.
      xtol: the mean length of a step's elements at which to stop.
    """
    x = fnp.clip(problem.x, low, high)
    n, dtype = x.aval.size, x.aval.dtype
    tiny = float(fnp.finfo(dtype).eps)

    def is_small(x: Any, slope: Any) -> Any:
        left = fnp.abs(within(x, slope, low, high))
        return fnp.max(left, initial=0.0) <= gtol

    def step(s: _State) -> _State:
        # Bounds that are near count as reached, so that they do not stop each step.
        near = fnp.minimum(
            fnp.max(fnp.abs(within(s.x, s.slope, low, high)), initial=0.0), 1e-3
        )
        at_low = (s.x <= low + near * fnp.minimum(1, high - low)) & (s.slope > 0)
        at_high = (s.x >= high - near * fnp.minimum(1, high - low)) & (s.slope < 0)
        free = ~(at_low | at_high)
        reduced = fnp.where(free, s.slope, 0)
        way = rule.masked_direction(s.memory, s.x, reduced, free)
        way = fnp.where(fnp.dot(way, reduced) < 0, way, -reduced)
        # What a bound stops goes there by the gradient.
        way = fnp.where(free, way, -s.slope)
        size = fnp.linalg.norm(way) if n else 1.0
        first = fnp.where(s.steps == 0, fnp.minimum(1, 1 / size), 1)

        def tried(t: Any) -> Any:
            x = fnp.clip(s.x + t * way, low, high)
            value, slope = problem.both(x)
            decrease = value - s.value - 1e-4 * fnp.dot(s.slope, x - s.x)
            # Hager and Zhang's condition where a decrease is lost in rounding.
            flat = value <= s.value + tiny * fnp.abs(s.value)
            flat &= fnp.dot(slope, x - s.x) <= 0
            good = (decrease <= 0) | flat
            return x, value, slope, good & fnp.isfinite(value)

        def shorter(c: Any) -> Any:
            t, count, _ = c
            return t / 2, count + 1, tried(t / 2)

        zero = lax.full((), 0, dtypes.int32)
        first = fnp.astype(first, dtype)
        _, count, (x, value, slope, good) = lax.while_loop(
            lambda c: ~c[2][3] & (c[1] < searches),
            shorter,
            (first, zero + 1, tried(first)),
        )
        memory = rule.updated(s.memory, x - s.x, slope - s.slope, x)
        scale = fnp.maximum(1, fnp.maximum(fnp.abs(s.value), fnp.abs(value)))
        status = fnp.where(s.value - value <= ftol * scale, 0, -1)
        moved = fnp.sum(fnp.abs(x - s.x)) / max(n, 1)
        status = fnp.where(moved < xtol, 0, status)
        status = fnp.where(s.steps + 1 >= maxiter, 1, status)
        status = fnp.where(s.calls + count >= maxcalls, 1, status)
        status = fnp.where(good, status, 3)
        choose: Any = lambda a, b: fnp.where(good, a, b)
        x, value, slope = (
            choose(new, old) for new, old in zip((x, value, slope), s[:3], strict=True)
        )
        status = fnp.where(is_small(x, slope), 0, status)
        return _State(
            x,
            value,
            slope,
            memory,
            s.calls + count,
            s.steps + 1,
            status.astype(dtypes.int32),
            s.value - value,
        )

    value, slope = problem.both(x)
    start = _first(x, value, slope, rule, is_small(x, slope), maxiter, maxcalls)
    end = lax.while_loop(lambda s: s.status < 0, problem.watched(step), start)
    return Outcome(end.x, end.status, end.calls, end.calls, end.steps)


# -- directions ------------------------------------------------------------------------


class BFGS:
    """The inverse of the Hessian, updated by a step and the gradient's change.

    Args:
      first: float[n, n], the first estimate; None means the identity.
    """

    scaled = True

    def __init__(self, first: Any = None) -> None:
        self.first = first

    def start(self, x: Any) -> Any:
        """Returns the first estimate.

        Raises:
          ShapeError: the user's is not float[n, n].
        """
        n = x.aval.size
        if self.first is None:
            return fnp.eye(n, dtype=x.aval.dtype)
        first = fnp.asarray(self.first, x.aval.dtype)
        if first.shape != (n, n):
            raise ShapeError(
                f"minimize: hess_inv0 must be float[{n}, {n}], got {first.aval}"
            )
        return first

    def direction(self, memory: Any, x: Any, slope: Any) -> Any:
        """Returns Newton's direction of the estimate."""
        return -(memory @ slope), memory

    def updated(self, memory: Any, step: Any, change: Any, x: Any) -> Any:
        """Returns the estimate that maps the change to the step."""
        product = fnp.dot(step, change)
        scale = 1 / fnp.where(product > 0, product, 1)
        left = fnp.eye(step.size, dtype=step.dtype) - scale * fnp.outer(step, change)
        new = left @ memory @ left.T + scale * fnp.outer(step, step)
        return fnp.where(product > 0, new, memory)


class LBFGS:
    """The last steps and changes of the gradient, the newest first."""

    scaled = True

    def __init__(self, count: int) -> None:
        self.count = count

    def start(self, x: Any) -> Any:
        """Returns room for the steps and the changes."""
        return tuple(
            lax.full((self.count, x.aval.size), 0, x.aval.dtype) for _ in range(2)
        )

    def direction(self, memory: Any, x: Any, slope: Any) -> Any:
        """Returns Newton's direction of the estimate."""
        return self.masked_direction(memory, x, slope, True), memory

    def masked_direction(self, memory: Any, x: Any, slope: Any, free: Any) -> Any:
        """Returns the direction in the variables that are free."""
        steps, changes = (fnp.where(free, rows, 0) for rows in memory)
        products = fnp.sum(steps * changes, axis=1)
        known = products > 0
        scales = fnp.where(known, 1 / fnp.where(known, products, 1), 0)
        size = fnp.dot(changes[0], changes[0])
        gamma = fnp.where(known[0], products[0] / fnp.where(size > 0, size, 1), 1)
        return -two_loops(slope, (steps, changes, scales), gamma)

    def updated(self, memory: Any, step: Any, change: Any, x: Any) -> Any:
        """Returns the memory with one more step, if its curvature is positive."""
        new = fnp.dot(step, change) > 0
        return tuple(
            fnp.where(new, fnp.concatenate([row[None], old[:-1]]), old)
            for old, row in zip(memory, (step, change), strict=True)
        )


class ConjugateGradients:
    """The last gradient and direction: Polak and Ribière's rule, begun again at 0."""

    scaled = False

    def start(self, x: Any) -> Any:
        """Returns zeros."""
        return fnp.zeros_like(x), fnp.zeros_like(x)

    def direction(self, memory: Any, x: Any, slope: Any) -> Any:
        """Returns a direction conjugate to the last one, which it remembers."""
        before, way = memory
        square = fnp.dot(before, before)
        beta = fnp.dot(slope, slope - before) / fnp.where(square > 0, square, 1)
        way = fnp.maximum(beta, 0) * way - slope
        # The rounding of the last search may have left a direction that ascends.
        way = fnp.where(fnp.dot(way, slope) < 0, way, -slope)
        return way, (slope, way)

    def updated(self, memory: Any, step: Any, change: Any, x: Any) -> Any:
        """Returns the memory as it is."""
        return memory


class NewtonCG:
    """Newton's direction by conjugate gradients, as far as the curvature is positive.

    Args:
      problem: what to minimize, with the products of its Hessian.
    """

    scaled = True

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def start(self, x: Any) -> Any:
        """Returns nothing: there is no memory."""
        return ()

    def direction(self, memory: Any, x: Any, slope: Any) -> Any:
        """Returns an inexact solution of Newton's equation."""
        size = fnp.linalg.norm(slope)
        bound = fnp.minimum(0.5, fnp.sqrt(size)) * size
        return truncated(lambda v: self.problem.product(x, v), slope, bound), memory

    def masked_direction(self, memory: Any, x: Any, slope: Any, free: Any) -> Any:
        """Returns such a solution among the variables that are free."""
        size = fnp.linalg.norm(slope)
        bound = fnp.minimum(0.5, fnp.sqrt(size)) * size

        def product(v: Any) -> Any:
            return fnp.where(free, self.problem.product(x, fnp.where(free, v, 0)), 0)

        return truncated(product, slope, bound)

    def updated(self, memory: Any, step: Any, change: Any, x: Any) -> Any:
        """Returns the memory as it is."""
        return memory


def truncated(product: Any, slope: Any, bound: Any, radius: Any = math.inf) -> Any:
    """Returns an inexact minimum of a quadratic model within a radius.

    Conjugate gradients end when the residual is small, at the radius, or at a direction
    of negative curvature, which they follow to the radius.

    Args:
      product: the product of the Hessian and a vector.
      slope: float[n], the gradient.
      bound: the norm of the residual at which to stop.
      radius: of the trust region; inf for none: at negative curvature they stop.
    """
    n = slope.aval.size
    bounded = not (isinstance(radius, float) and math.isinf(radius))

    def edge(z: Any, d: Any) -> Any:
        """The step along d from z to the radius."""
        a, b, c = fnp.dot(d, d), fnp.dot(z, d), fnp.dot(z, z) - radius**2
        root = fnp.sqrt(fnp.maximum(b * b - a * c, 0))
        return z + (root - b) / fnp.where(a > 0, a, 1) * d

    def more(c: Any) -> Any:
        _, _, _, count, done = c
        return ~done & (count < 2 * n + 10)

    def step(c: Any) -> Any:
        z, r, d, count, _ = c
        moved = product(d)
        curve, square = fnp.dot(d, moved), fnp.dot(r, r)
        bad = curve <= 0
        alpha = square / fnp.where(bad, 1, curve)
        new, rest = z + alpha * d, r + alpha * moved
        stop = fnp.sqrt(fnp.dot(rest, rest)) <= bound
        if bounded:
            out = bad | (fnp.sqrt(fnp.dot(new, new)) >= radius)
            new = fnp.where(out, edge(z, d), new)
        else:
            out = bad
            # The first direction is the gradient's.
            new = fnp.where(out, fnp.where(count == 0, d, z), new)
        beta = fnp.dot(rest, rest) / fnp.where(square > 0, square, 1)
        return new, rest, beta * d - rest, count + 1, stop | out

    count = lax.full((), 0, dtypes.int32)
    done = fnp.sqrt(fnp.dot(slope, slope)) <= bound
    start = (fnp.zeros_like(slope), slope, -slope, count, done)
    return lax.while_loop(more, step, start)[0]
