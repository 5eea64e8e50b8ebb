"""`direct`: global minimization by dividing rectangles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural
from fxflow.scipy.optimize._problems import arguments, problem_of
from fxflow.scipy.optimize.constraints import box_of
from fxflow.scipy.optimize.global_minimization import told
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.transforms.vmap import vmap


class _Rectangles(NamedTuple):
    x: Any  # float[n], the best center, as the user's function takes it
    centers: Any  # float[room, n], in the unit cube
    levels: Any  # int32[room, n]: a side is 3 ** -level
    values: Any  # float[room], inf for no rectangle
    count: Any
    steps: Any
    status: Any  # -1 goes on, 0 done, 1 too many calls or iterations


def direct(
    func: Callable[..., Any],
    bounds: Any,
    *,
    args: tuple[Any, ...] = (),
    eps: float = 1e-4,
    maxfun: int | None = None,
    maxiter: int = 1000,
    locally_biased: bool = True,
    f_min: float = -math.inf,
    f_min_rtol: float = 1e-4,
    vol_tol: float = 1e-16,
    len_tol: float = 1e-6,
    callback: Callable[..., None] | None = None,
) -> OptimizeResults:
    """Minimizes a function globally within bounds, by dividing rectangles.

    No random numbers, and values only: rectangles that may hold the least value, by any
    bound of the function's slope, are divided into three along their longest sides. The
    solution has an implicit derivative with respect to `args`, what `func` closes over,
    and active bounds: see `optim.implicit`.

    Args:
      func: called as `func(x, *args)`; returns a real number. It is vectorized by
        `vmap`, over the new points of a rectangle.
      bounds: `Bounds` with arrays, or a pair (min, max) for each variable; finite.
      args: extra arguments.
      eps: the least relative improvement that a rectangle must promise.
      maxfun: the maximum number of calls; None means 1000 n. There is room for as many
        rectangles.
      maxiter: the maximum number of iterations.
      locally_biased: whether a rectangle's size is its longest side, which is faster if
        there are few minima; else half of its diagonal.
      f_min: the least value, if it is known.
      f_min_rtol: the relative difference to `f_min` at which to stop.
      vol_tol: the volume of the best rectangle, relative to the bounds, at which to
        stop.
      len_tol: likewise for its size: half of the longest side or of the diagonal,
        relative to those of the bounds.
      callback: called on the host with the best point after each iteration, for its
        side effects.

    Returns:
      An `OptimizeResults`: `status` is 0 if a tolerance is met, 1 after too many calls
      or iterations.

    Raises:
      ArgumentError: a number is out of range, or a bound is missing.

    Special cases:
      A value that is nan counts as inf.
      Under `checkify`, raises if there were too many calls or iterations.

    Example:
      >>> waves = lambda x: (x**2 - 2 * fnp.cos(9 * x)).sum()
      >>> found = direct(waves, [(-2.0, 3.0)])
      >>> bool(fnp.abs(found.x[0]) < 1e-3)
      True

    Source: `scipy.optimize.direct`; D. Jones, C. Perttunen and B. Stuckman 1993; J.
    Gablonsky and C. Kelley 2001.
    """
    name = "direct"
    args = arguments(name, args)
    maxiter = natural(name, "maxiter", maxiter)
    for what, given, least, most in (
        ("eps", eps, 0.0, math.inf),
        ("f_min_rtol", f_min_rtol, 0.0, 1.0),
        ("vol_tol", vol_tol, 0.0, 1.0),
        ("len_tol", len_tol, 0.0, 1.0),
    ):
        if not least <= given <= most:
            raise ArgumentError(
                f"{name}: {what} must be in [{least}, {most}], got {given}"
            )
    low, high = box_of(name, bounds)
    n = low.size
    most_calls = 1000 * n if maxfun is None else natural(name, "maxfun", maxfun)
    problem = problem_of(name, func, (low + high) / 2, args, callback=callback)
    fixed = lax.stop_gradient(low), lax.stop_gradient(high)

    def at(center: Any) -> Any:
        return fixed[0] + center * (fixed[1] - fixed[0])

    def value(center: Any) -> Any:
        found = problem.value(at(center))
        return fnp.where(fnp.isnan(found), math.inf, found)

    sizes = _Sizes(n, low.dtype, locally_biased, len_tol)
    goals = (f_min, f_min_rtol, vol_tol, len_tol)
    step = _step(sizes, at, value, eps, most_calls, maxiter, goals)

    def solver() -> Any:
        room = most_calls + 2 * n
        zero = lax.full((), 0, dtypes.int32)
        middle = fnp.full(n, 0.5, low.dtype)
        start = _Rectangles(
            at(middle),
            fnp.zeros((room, n), low.dtype).at[0].set(middle),
            fnp.zeros((room, n), dtypes.int32),
            fnp.full(room, math.inf, low.dtype).at[0].set(value(middle)),
            *(zero + 1, zero, zero - 1),
        )
        end = lax.while_loop(lambda s: s.status < 0, problem.watched(step), start)
        lost = ~fnp.isfinite(fnp.min(end.values))
        status = fnp.where(lost, 2, end.status).astype(dtypes.int32)
        return end.x, (status, end.count, end.steps)

    return told(name, problem, solver, bounds, None)


def _step(
    sizes: _Sizes,
    at: Any,
    value: Any,
    eps: float,
    most_calls: int,
    maxiter: int,
    goals: tuple[float, float, float, float],
) -> Callable[[_Rectangles], _Rectangles]:
    """Returns the step that divides the rectangles that may hold the least value."""
    n = sizes.n
    f_min, f_min_rtol, vol_tol, len_tol = goals

    def step(s: _Rectangles) -> _Rectangles:
        classes = sizes.classes(s)
        chosen, index = sizes.chosen(s, classes, eps)

        def divided(k: Any, s: _Rectangles) -> _Rectangles:
            out: _Rectangles = lax.cond(
                chosen[k] & (s.count + 2 * n <= s.values.size),
                lambda s: _divided(s, index[k], vmap(value), n),
                lambda s: s,
                s,
            )
            return out

        full = s.count >= most_calls
        s = lax.fori_loop(0, chosen.size, divided, s)
        best = fnp.argmin(s.values)
        least, levels = s.values[best], s.levels[best]
        volume = fnp.exp(-math.log(3) * fnp.sum(levels))
        met = (sizes.of(levels) < len_tol) | (volume < vol_tol)
        if f_min > -math.inf:
            scale = abs(f_min) if f_min else 1.0
            met |= (least - f_min) / scale < f_min_rtol
        # If nothing may be divided any more, that is as fine as it gets.
        met |= ~fnp.any(chosen)
        over = full | (s.count >= most_calls) | (s.steps + 1 >= maxiter)
        status = fnp.where(met, 0, fnp.where(over, 1, -1)).astype(dtypes.int32)
        return s._replace(x=at(s.centers[best]), steps=s.steps + 1, status=status)

    return step


class _Sizes:
    """How large rectangles are, and the classes of equal ones.

    Args:
      n: the number of variables.
      dtype: dtype of the points.
      biased: whether the longest side counts, or the diagonal.
      len_tol: rectangles need not be smaller.
    """

    def __init__(self, n: int, dtype: Any, biased: bool, len_tol: float) -> None:
        self.n, self.dtype, self.biased = n, dtype, biased
        least = max(len_tol, 8 * float(fnp.finfo(dtype).eps))
        self.deepest = math.ceil(-math.log(least) / math.log(3)) + 1
        self.count = self.deepest if biased else n * self.deepest

    def of(self, levels: Any) -> Any:
        """Returns the size of rectangles of levels int32[..., n]."""
        sides = fnp.exp(-math.log(3) * levels.astype(self.dtype))
        if self.biased:
            return fnp.max(sides, -1) / 2
        return fnp.sqrt(fnp.sum(sides**2, -1) / self.n) / 2

    def classes(self, s: _Rectangles) -> Any:
        """Returns the class of each rectangle; `count` for what is not one."""
        # Sides of one rectangle differ by a factor of 3 at most.
        number = fnp.min(s.levels, 1) if self.biased else fnp.sum(s.levels, 1)
        divisible = (fnp.min(s.levels, 1) < self.deepest) & fnp.isfinite(s.values)
        divisible |= (fnp.arange(s.values.size) < s.count) & (s.count == 1)
        return fnp.where(divisible, number, self.count)

    def chosen(self, s: _Rectangles, classes: Any, eps: float) -> tuple[Any, Any]:
        """Returns which classes have a rectangle to divide, and its index."""
        none = fnp.full(self.count, math.inf, self.dtype)
        best = none.at[classes].min(s.values, mode="drop")
        room = s.values.size
        is_best = s.values <= best[fnp.minimum(classes, self.count - 1)]
        numbers = fnp.where(is_best, fnp.arange(room), room)
        index = fnp.full(self.count, room, dtypes.int32)
        index = index.at[classes].min(numbers.astype(dtypes.int32), mode="drop")
        there = index < room
        index = fnp.minimum(index, room - 1)
        size = self.of(s.levels[index])
        # The lower right part of the hull of sizes and values.
        finite = fnp.where(there & fnp.isfinite(best), best, 1e30)
        rise = finite[:, None] - finite
        run = size[:, None] - size
        slope = rise / fnp.where(run == 0, 1, run)
        smaller, larger = (there & (run > 0)), (there & (run < 0))
        steepest = fnp.max(fnp.where(smaller, slope, -math.inf), 1)
        flattest = fnp.min(fnp.where(larger, slope, math.inf), 1)
        least = fnp.min(s.values)
        enough = least - eps * fnp.abs(least)
        last = ~fnp.any(larger, 1)
        promised = finite - fnp.where(last, 0, flattest) * size <= enough
        good = there & (flattest >= steepest) & (flattest > 0) & (last | promised)
        return good, index


def _divided(s: _Rectangles, i: Any, values: Any, n: int) -> _Rectangles:
    """Returns rectangles of which one is cut into three along its longest sides."""
    center, levels = s.centers[i], s.levels[i]
    level = fnp.min(levels)
    longest = levels == level
    shift = fnp.exp(-math.log(3) * (level + 1).astype(center.dtype))
    moves = shift * fnp.eye(n, dtype=center.dtype)
    points = fnp.concatenate([center + moves, center - moves])
    found = values(points)
    # The better a side's points are, the larger are their rectangles.
    worth = fnp.minimum(found[:n], found[n:])
    worth = fnp.where(longest, fnp.minimum(worth, fnp.finfo(center.dtype).max), fnp.inf)
    rank = fnp.argsort(fnp.argsort(worth)).astype(dtypes.int32)
    cut = longest & (rank <= rank[:, None])
    room = s.values.size
    places = [fnp.where(longest, s.count + 2 * rank + j, room) for j in (0, 1)]
    at = fnp.concatenate(places)
    made = levels + cut.astype(dtypes.int32)
    return s._replace(
        centers=s.centers.at[at].set(points, mode="drop"),
        levels=s.levels.at[at]
        .set(fnp.concatenate([made, made]), mode="drop")
        .at[i]
        .set(levels + longest.astype(dtypes.int32)),
        values=s.values.at[at].set(found, mode="drop"),
        count=s.count + 2 * fnp.sum(longest).astype(dtypes.int32),
    )
