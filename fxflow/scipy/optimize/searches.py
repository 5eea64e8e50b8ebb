"""`line_search`: a step along a direction that satisfies the Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.linesearch import Point, zoom_search
from fxflow.scipy.optimize._problems import problem_of, vector_of


class LineSearchResult(NamedTuple):
    """What `line_search` returns.

    Attributes:
      alpha: float: the step size; nan if none was found, where SciPy returns None.
      fc: int: the number of calls of the function.
      gc: int: the number of calls of the gradient.
      new_fval: float: the value at the new point.
      old_fval: float: the value at the first point.
      new_slope: float: the derivative along the direction at the new point.
    """

    alpha: Array
    fc: Array
    gc: Array
    new_fval: Array
    old_fval: Array
    new_slope: Array


def line_search(
    f: Callable[..., Any],
    myfprime: Callable[..., Any] | None,
    xk: Any,
    pk: ArrayLike,
    gfk: Any = None,
    old_fval: Any = None,
    old_old_fval: Any = None,
    args: tuple[Any, ...] = (),
    c1: float = 1e-4,
    c2: float = 0.9,
    amax: float | None = None,
    extra_condition: Callable[..., Any] | None = None,
    maxiter: int = 30,
) -> LineSearchResult:
    """Finds a step size that satisfies the strong Wolfe conditions.

    It is the search of `minimize` and of `optim.scale_by_zoom_linesearch`.

    Args:
      f: called as `f(x, *args)`; returns a real number.
      myfprime: its gradient, called as `f` is; None means to compute it.
      xk: float[n], the point.
      pk: float[n], the direction, along which `f` descends.
      gfk: the gradient at `xk`; None means to compute it.
      old_fval: the value at `xk`; likewise.
      old_old_fval: the value at the point before, from which the first step size is
        guessed; None means 1.
      args: extra arguments.
      c1: the constant of the first condition, sufficient decrease.
      c2: the constant of the second condition, on the slope.
      amax: the largest step size.
      extra_condition: called as `extra_condition(alpha, x, f, g)` with a step size, the
        point, and the value and the gradient there; a step size for which it returns
        False is not accepted.
      maxiter: the greatest number of step sizes that are tried.

    Returns:
      A `LineSearchResult`.

    Raises:
      ArgumentError: not 0 < c1 < c2 < 1.
      ShapeError: `pk` is not like `xk`.

    Special cases:
      nan where no step size was found, for example along a direction that ascends.

    Example:
      >>> found = line_search(lambda x: (x**2).sum(), None, [1.8, 1.7], [-1.0, -1.0])
      >>> float(found.alpha)
      1.0

    Source: `scipy.optimize.line_search`; J. Nocedal and S. Wright, Numerical
    Optimization, 2006.
    """
    name = "line_search"
    if not 0 < c1 < c2 < 1:
        raise ArgumentError(f"{name}: expected 0 < c1 < c2 < 1, got {c1} and {c2}")
    maxiter = natural(name, "maxiter", maxiter)
    problem = problem_of(name, f, xk, args, myfprime)
    way, _ = vector_of(name, pk)
    if way.shape != problem.x.shape:
        raise ShapeError(
            f"{name}: pk must be like xk, {problem.x.aval}, got {way.aval}"
        )
    dtype = problem.x.dtype
    way = way.astype(dtype)
    value = problem.value(problem.x) if old_fval is None else old_fval
    value = fnp.asarray(value, dtype)
    slope = problem.slope(problem.x) if gfk is None else vector_of(name, gfk)[0]
    rate = fnp.dot(way, slope)
    first = fnp.ones((), dtype)
    if old_old_fval is not None:
        guess = 1.01 * 2 * (value - fnp.asarray(old_old_fval, dtype)) / rate
        first = fnp.where(guess > 0, fnp.minimum(1, guess), 1).astype(dtype)
    longest = fnp.inf if amax is None else amax

    def tried(t: Any) -> Any:
        value, slope = problem.both(problem.x + t * way)
        return Point(t, value, fnp.dot(way, slope)), slope

    def accepted(at: Point, slope: Any) -> Any:
        if extra_condition is None:
            return True
        points = problem.unravel(problem.x + at.at * way), problem.unravel(slope)
        return fnp.asarray(extra_condition(at.at, points[0], at.value, points[1]), bool)

    end = zoom_search(
        tried,
        Point(fnp.zeros((), dtype), value, rate),
        slope,
        fnp.minimum(first, longest).astype(dtype),
        max_linesearch_steps=maxiter,
        longest=longest,
        slope_rtol=c1,
        curv_rtol=c2,
        approx_dec_rtol=None,
        stepsize_precision=0.0,
        accepted=None if extra_condition is None else accepted,
    )
    best = end.best
    good = (
        (best.at > 0)
        & (best.value <= value + c1 * best.at * rate)
        & (fnp.abs(best.slope) <= c2 * fnp.abs(rate))
        & (rate < 0)
        & accepted(best, end.grad)
    )
    pick: Any = lambda v: fnp.where(good, v, fnp.nan)
    return LineSearchResult(
        pick(best.at), end.count, end.count, pick(best.value), value, pick(best.slope)
    )
