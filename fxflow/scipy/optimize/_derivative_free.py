"""Minimization by values alone: Nelder and Mead's simplex, Powell's directions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ShapeError
from fxflow.scipy.optimize._descent import Outcome
from fxflow.scipy.optimize._problems import Problem
from fxflow.scipy.optimize.scalar_minimization import bracketed, brent_minimum
from fxflow.transforms.vmap import vmap

Limits = tuple[Array, Array] | None


def _clipped(x: Any, bounds: Limits) -> Any:
    return x if bounds is None else fnp.clip(x, *bounds)


class _Simplex(NamedTuple):
    points: Any
    values: Any
    calls: Any
    steps: Any


def nelder_mead(
    problem: Problem,
    bounds: Limits,
    *,
    xatol: Any,
    fatol: Any,
    maxiter: int,
    maxfev: int | None,
    initial_simplex: Any,
    adaptive: bool,
) -> Outcome:
    """Minimizes by a simplex that is reflected, expanded, contracted and shrunk.

    Args:
      problem: what to minimize.
      bounds: lower and upper bounds, or None.
      xatol: the size of the simplex at which to stop.
      fatol: the difference of values at which to stop.
      maxiter: the maximum number of steps.
      maxfev: the maximum number of calls; None is 200 n.
      initial_simplex: float[n + 1, n], or None.
      adaptive: whether the factors depend on n.
    """
    x = _clipped(problem.x, bounds)
    n, dtype = x.aval.size, x.aval.dtype
    most = math.inf if maxfev is None else maxfev
    # Reflection is by 1; expansion, contraction, shrinking.
    grow, contract, shrink = 2.0, 0.5, 0.5
    if adaptive:
        grow, contract, shrink = 1 + 2 / n, 0.75 - 1 / (2 * n), 1 - 1 / n
    if initial_simplex is None:
        # SciPy's: 5 % of each variable, 0.00025 of one that is 0.
        moved = fnp.where(x == 0, 0.00025, 1.05 * x)
        points = fnp.concatenate([x[None], x + fnp.diag(moved - x)])
        if bounds is not None:
            # A vertex beyond the upper bound is reflected into the interior.
            points = fnp.where(points > bounds[1], 2 * bounds[1] - points, points)
    else:
        points = fnp.asarray(initial_simplex, dtype)
        if points.shape != (n + 1, n):
            raise ShapeError(
                f"minimize: initial_simplex must be float[{n + 1}, {n}], got "
                f"{points.aval}"
            )
    points = _clipped(points, bounds)

    def ordered(points: Any, values: Any) -> tuple[Any, Any]:
        # A value that is not a number is the worst.
        order = fnp.argsort(fnp.where(fnp.isnan(values), math.inf, values))
        return points[order], values[order]

    def wide(s: _Simplex) -> Any:
        size = fnp.max(fnp.abs(s.points[1:] - s.points[0]), initial=0.0)
        spread = fnp.max(fnp.abs(s.values[1:] - s.values[0]), initial=0.0)
        return ~((size <= xatol) & (spread <= fatol))

    def step(s: _Simplex) -> _Simplex:
        middle = fnp.mean(s.points[:-1], axis=0)
        worst = s.points[-1]

        def at(factor: Any) -> tuple[Any, Any]:
            point = _clipped(middle + factor * (middle - worst), bounds)
            return point, problem.value(point)

        point, value = at(1.0)
        best = value < s.values[0]
        good = value < s.values[-2]
        outside = ~good & (value < s.values[-1])
        # A second point: expanded, or contracted outside or inside.
        factor = fnp.where(best, grow, fnp.where(outside, contract, -contract))
        second = best | ~good
        other, other_value = lax.cond(second, at, lambda _: (point, value), factor)
        bar = fnp.where(outside, value, s.values[-1])
        accepted = fnp.where(
            best,
            other_value < value,
            ~good & fnp.where(outside, other_value <= bar, other_value < bar),
        )
        shrinks = ~good & ~accepted
        new = fnp.where(accepted, other, point)
        new_value = fnp.where(accepted, other_value, value)

        def replaced() -> tuple[Any, Any]:
            return s.points.at[-1].set(new), s.values.at[-1].set(new_value)

        def shrunk() -> tuple[Any, Any]:
            first = s.points[0]
            points = _clipped(first + shrink * (s.points - first), bounds)
            values = vmap(problem.value)(points[1:])
            return points, fnp.concatenate([s.values[:1], values])

        points, values = lax.cond(shrinks, shrunk, replaced)
        calls = s.calls + 1 + second + n * shrinks
        return _Simplex(*ordered(points, values), calls, s.steps + 1)

    def more(s: _Simplex) -> Any:
        return wide(s) & (s.steps < maxiter) & (s.calls < most)

    values = vmap(problem.value)(points)
    zero = lax.full((), 0, dtypes.int32)
    start = _Simplex(*ordered(points, values), zero + n + 1, zero)
    step = problem.watched(step, lambda s: s.points[0])
    end = lax.while_loop(more, step, start)
    status = fnp.where(wide(end), 1, 0)
    status = fnp.where(fnp.isfinite(end.values[0]), status, 2).astype(dtypes.int32)
    return Outcome(end.points[0], status, end.calls, zero, end.steps)


class _Directions(NamedTuple):
    x: Any
    value: Any
    ways: Any
    calls: Any
    steps: Any
    status: Any


def powell(
    problem: Problem,
    bounds: Limits,
    *,
    xtol: Any,
    ftol: Any,
    maxiter: int,
    maxfev: int | None,
    direc: Any = None,
) -> Outcome:
    """Minimizes along directions, one of which is replaced after each round.

    Args:
      problem: what to minimize.
      bounds: lower and upper bounds, or None.
      xtol: the tolerance of searches along lines.
      ftol: the relative decrease of a round at which to stop.
      maxiter: the maximum number of rounds.
      maxfev: the maximum number of calls, or None.
      direc: float[n, n], rows that are the first directions; None means the axes.
    """
    x = _clipped(problem.x, bounds)
    n, dtype = x.aval.size, x.aval.dtype
    ways = fnp.eye(n, dtype=dtype) if direc is None else fnp.asarray(direc, dtype)
    if ways.shape != (n, n):
        raise ShapeError(f"minimize: direc must be float[{n}, {n}], got {ways.aval}")
    most = math.inf if maxfev is None else maxfev
    tiny = float(fnp.finfo(dtype).eps)

    def search(x: Any, value: Any, way: Any) -> Any:
        """The least value along a line; bounds make it constant beyond them."""

        def along(t: Any) -> Any:
            return problem.value(_clipped(x + t * way, bounds))

        three = bracketed(along, fnp.zeros((), dtype), fnp.ones((), dtype))
        left, right = fnp.minimum(three.a, three.c), fnp.maximum(three.a, three.c)
        tol = max(100 * xtol, math.sqrt(tiny))
        found = brent_minimum(along, left, right, three.b, three.fb, tol, 1e-11, 500)
        better = found.value < value
        moved = _clipped(x + fnp.where(better, found.x, 0) * way, bounds)
        calls = three.calls + found.steps
        return moved, fnp.where(better, found.value, value), calls

    def step(s: _Directions) -> _Directions:
        def one(i: Any, c: Any) -> Any:
            x, value, most_, which, calls = c
            moved, new, count = search(x, value, s.ways[i])
            most = value - new > most_
            return (
                moved,
                new,
                fnp.where(most, value - new, most_),
                fnp.where(most, i, which),
                calls + count,
            )

        zero = lax.full((), 0, dtypes.int32)
        begin = (s.x, s.value, fnp.zeros_like(s.value), zero, s.calls)
        x, value, largest, which, calls = lax.fori_loop(0, n, one, begin)
        done = 2 * (s.value - value) <= ftol * (fnp.abs(s.value) + fnp.abs(value))
        way = x - s.x
        far = problem.value(_clipped(2 * x - s.x, bounds))
        turn = 2 * (s.value + far - 2 * value) * (s.value - value - largest) ** 2
        use = (far < s.value) & (turn < largest * (s.value - far) ** 2) & ~done

        def replaced() -> Any:
            moved, new, count = search(x, value, way)
            ways = s.ways.at[which].set(s.ways[-1]).at[-1].set(moved - x)
            length = fnp.linalg.norm(moved - x)
            return moved, new, fnp.where(length > 0, ways, s.ways), count

        def kept() -> Any:
            return x, value, s.ways, zero

        x, value, ways, count = lax.cond(use, replaced, kept)
        calls = calls + count + 1
        status = fnp.where((s.steps + 1 >= maxiter) | (calls >= most), 1, -1)
        status = fnp.where(done, 0, status)
        status = fnp.where(fnp.isfinite(value), status, 2).astype(dtypes.int32)
        return _Directions(x, value, ways, calls, s.steps + 1, status)

    zero = lax.full((), 0, dtypes.int32)
    start = _Directions(x, problem.value(x), ways, zero + 1, zero, zero - 1)
    end = lax.while_loop(lambda s: s.status < 0, problem.watched(step), start)
    return Outcome(end.x, end.status, end.calls, zero, end.steps)
