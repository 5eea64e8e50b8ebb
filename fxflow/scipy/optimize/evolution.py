"""Global minimization by differential evolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.scipy.optimize._descent import LBFGS, descend_within
from fxflow.scipy.optimize._problems import (
    arguments,
    at_solution,
    is_traced,
    problem_of,
    report,
    within,
)
from fxflow.scipy.optimize._sequential_quadratic import worst_violation
from fxflow.scipy.optimize.constraints import Bounds, box_of, rows_of
from fxflow.scipy.optimize.minimization import minimize
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.transforms.vmap import vmap

_STRATEGIES = tuple(
    f"{base}{cross}"
    for base in ("best1", "best2", "rand1", "rand2", "randtobest1", "currenttobest1")
    for cross in ("bin", "exp")
)


class _State(NamedTuple):
    key: Any
    points: Any
    values: Any  # inf where constraints are violated
    lost: Any  # sums of violations
    steps: Any
    calls: Any
    x: Any  # the best point


class _Search(NamedTuple):
    """What is minimized, and where.

    Attributes:
      problem: the function of one point.
      many: function of float[count, n] that returns float[count].
      rows: the constraints, or None.
      low: float[n].
      high: float[n].
      whole: bool[n], the variables that are integers, or None.
    """

    problem: Any
    many: Any
    rows: Any
    low: Any
    high: Any
    whole: Any

    def rounded(self, x: Any) -> Any:
        """Points with integers where variables are."""
        if self.whole is None:
            return x
        low, high = fnp.ceil(self.low), fnp.floor(self.high)
        return fnp.where(self.whole, fnp.clip(fnp.round(x), low, high), x)

    def box(self) -> tuple[Any, Any]:
        """Where points are drawn: each integer has as much room as another."""
        if self.whole is None:
            return self.low, self.high
        return (
            fnp.where(self.whole, fnp.ceil(self.low) - 0.5, self.low),
            fnp.where(self.whole, fnp.floor(self.high) + 0.5, self.high),
        )

    def values(self, points: Any) -> tuple[Any, Any]:
        """The values of points, inf for none, and the sums of violations."""
        points = self.rounded(points)
        out = self.many(points)
        out = fnp.where(fnp.isnan(out), math.inf, out)
        if self.rows is None:
            return out, fnp.zeros_like(out)
        rows, tiny = self.rows, float(fnp.finfo(out.dtype).eps) ** 0.5

        def violation(x: Any) -> Any:
            equal, above = rows.equal(x), rows.above(x)
            return fnp.sum(fnp.abs(equal)) + fnp.sum(fnp.maximum(-above, 0))

        lost = vmap(violation)(points)
        lost = fnp.where(lost <= tiny, 0, fnp.where(fnp.isnan(lost), math.inf, lost))
        return fnp.where(lost > 0, math.inf, out), lost

    def best(self, values: Any, lost: Any) -> Any:
        """The index of the least value, or of the least violation."""
        none = ~fnp.any(fnp.isfinite(values))
        return fnp.argmin(fnp.where(none, lost, values))


def differential_evolution(
    func: Callable[..., Any],
    bounds: Any,
    args: tuple[Any, ...] = (),
    strategy: str = "best1bin",
    maxiter: int = 1000,
    popsize: int = 15,
    tol: float = 0.01,
    mutation: Any = (0.5, 1),
    recombination: float = 0.7,
    callback: Callable[..., None] | None = None,
    disp: bool = False,
    polish: bool = True,
    init: Any = "latinhypercube",
    atol: float = 0.0,
    updating: str = "deferred",
    workers: Any = 1,
    constraints: Any = (),
    x0: Any = None,
    *,
    integrality: Any = None,
    vectorized: bool = False,
    key: Array,
) -> OptimizeResults:
    """Minimizes a function globally within bounds, by a population of points.

    Each generation is evaluated at once, by `vmap` (SciPy's `updating="deferred"`). The
    solution has an implicit derivative with respect to `args`, what `func` closes over,
    and active bounds, if `func` has a gradient: see `optim.implicit`. With constraints
    it is that of `minimize`, which polishes.

    Args:
      func: called as `func(x, *args)`; returns a real number.
      bounds: `Bounds` with arrays, or a pair (min, max) for each variable; finite.
      args: extra arguments.
      strategy: SciPy's names: "best1", "best2", "rand1", "rand2", "randtobest1" or
        "currenttobest1", with "bin" or "exp" behind it.
      maxiter: the maximum number of generations.
      popsize: the number of points for each variable.
      tol: the relative spread of values at which to stop.
      mutation: the factor of differences; a pair draws one for each generation.
      recombination: the probability that an element comes from the mutant.
      callback: called on the host with the best point after each generation, for its
        side effects (see `debug.callback`); it cannot stop the search.
      disp: has no effect: nothing is printed.
      polish: whether to improve the best point by L-BFGS-B, or with constraints by
        SLSQP; integers are kept.
      init: "latinhypercube" or "random", or float[m, n], the first points; for SciPy's
        "sobol" and "halton" pass points of `stats.qmc` in the box.
      atol: the absolute spread of values at which to stop.
      updating: "deferred" or "immediate": both update a generation at once.
      workers: has no effect.
      constraints: `LinearConstraint`, `NonlinearConstraint` or a sequence of them. A
        point that meets them is better than one that does not, and of two that do not
        the one whose violations have the lesser sum is. Violations below √ε do not
        count.
      x0: a point to put into the first population.
      integrality: bool[n] or a bool: which variables are integers.
      vectorized: whether `func` takes float[n, m], points in columns, and returns
        float[m]; else it is vectorized by `vmap`.
      key: a random key, in place of SciPy's `rng`.

    Returns:
      An `OptimizeResults`; with constraints `maxcv` is the greatest violation.

    Raises:
      ArgumentError: unknown strategy, update or first population, bounds are missing,
        no integer lies between them, or a number is out of range.

    Example:
      >>> waves = lambda x: (x**2 - 2 * fnp.cos(9 * x)).sum()
      >>> found = differential_evolution(waves, [(-2.0, 3.0)], key=random.key(0))
      >>> bool(fnp.abs(found.x[0]) < 1e-3)
      True

    Source: `scipy.optimize.differential_evolution`; Storn and Price 1997; J. Lampinen
    2002 (constraints).
    """
    name = "differential_evolution"
    args = arguments(name, args)
    if strategy not in _STRATEGIES:
        raise ArgumentError(
            f"{name}: strategy must be one of {', '.join(_STRATEGIES)}, got "
            f"{strategy!r}"
        )
    if updating not in ("deferred", "immediate"):
        raise ArgumentError(
            f'{name}: updating must be "deferred" or "immediate", got {updating!r}'
        )
    maxiter = natural(name, "maxiter", maxiter)
    popsize = natural(name, "popsize", popsize)
    low, high = box_of(name, bounds)
    n = low.size
    start = (low + high) / 2 if x0 is None else fnp.asarray(x0, low.dtype)
    given = _of_one(func) if vectorized else func
    problem = problem_of(name, given, start, args, callback=callback)

    def together(points: Any) -> Any:
        values = fnp.asarray(func(points.T, *args), low.dtype)
        if values.shape != points.shape[:1]:
            raise ShapeError(
                f"{name}: func must return {points.shape[0]} values for as many "
                f"points, got {values.aval}"
            )
        return values

    many = together if vectorized else vmap(problem.value)
    rows = rows_of(name, constraints, problem.x, lambda x: x, args)
    whole = _integers(name, integrality, low, high)
    fixed = [lax.stop_gradient(v) for v in (low, high)]
    search = _Search(problem, many, rows, fixed[0], fixed[1], whole)
    count = max(5, popsize * n)

    def solver() -> Any:
        return _evolved(
            name,
            search,
            key=key,
            count=count,
            strategy=strategy,
            maxiter=maxiter,
            tol=tol,
            atol=atol,
            mutation=mutation,
            recombination=recombination,
            polish=polish and rows is None,
            init=init,
            x0=x0,
        )

    def conditions(x: Any) -> Any:
        moved = within(x, problem.slope(x), low, high)
        return moved if whole is None else fnp.where(whole, x - fnp.round(x), moved)

    worst = None
    if rows is None:
        x, (status, calls, slopes, steps) = at_solution(
            solver, conditions, problem.x, optional=True
        )
    else:
        x, (status, calls, slopes, steps) = lax.stop_gradient(solver())
        if polish:
            x, more = _polished(search, x, (low, high), given, args, constraints)
            calls, slopes = calls + more.nfev, slopes + more.njev
        worst = worst_violation(rows.equal(x), rows.above(x))
    report(name, status == 0, status)
    return OptimizeResults(
        x=x,
        success=status == 0,
        status=status,
        fun=problem.value(x),
        jac=problem.slope(x) if polish else None,
        hess_inv=None,
        nfev=calls,
        njev=slopes,
        nit=steps,
        maxcv=worst,
    )


def _of_one(func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of one point that calls one of points in columns."""
    return lambda x, *args: func(x[:, None], *args)[0]


def _integers(name: str, integrality: Any, low: Any, high: Any) -> Any:
    """Returns which variables are integers, or None."""
    if integrality is None:
        return None
    given = np.asarray(integrality, bool)
    if given.shape not in ((), low.shape):
        raise ArgumentError(
            f"{name}: integrality must be a bool or bool[{low.size}], got shape "
            f"{given.shape}"
        )
    given = np.broadcast_to(given, low.shape)
    if not given.any():
        return None
    if not is_traced(low, high):
        below, above = np.ceil(np.asarray(low)), np.floor(np.asarray(high))
        if np.any(given & (below > above)):
            raise ArgumentError(
                f"{name}: there is no integer between bounds, got {low} and {high}"
            )
    return given


def _polished(
    search: _Search, x: Any, box: Any, func: Any, args: Any, constraints: Any
) -> Any:
    """Returns a better point that meets the constraints, if there is one."""
    low, high = box
    if search.whole is not None:
        low, high = (fnp.where(search.whole, x, v) for v in (low, high))
    more = minimize(
        func,
        x,
        args,
        method="SLSQP",
        bounds=Bounds(low, high),
        constraints=constraints,
    )
    values, lost = search.values(fnp.stack([x, more.x]))
    tiny = float(fnp.finfo(x.dtype).eps) ** 0.5
    # A point that differs by rounding has the derivatives.
    near = values[1] <= values[0] + tiny * (1 + fnp.abs(values[0]))
    better = fnp.where(fnp.isfinite(values[0]), near, lost[1] < lost[0])
    return fnp.where(better, more.x, x), more


def _population(
    name: str,
    first: Any,
    second: Any,
    search: _Search,
    count: int,
    init: Any,
    x0: Any,
) -> Array:
    """Returns the first points, float[count, n]."""
    low, high = search.box()
    n, dtype = low.size, low.dtype
    width = high - low
    if isinstance(init, str):
        if init == "latinhypercube":
            rows = random.uniform(first, (count, n), dtype)
            places = vmap(lambda k: random.permutation(k, count))(
                random.split(second, n)
            ).T
            unit = (places + rows) / count
        elif init == "random":
            unit = random.uniform(first, (count, n), dtype)
        else:
            raise ArgumentError(
                f'{name}: init must be "latinhypercube", "random" or an array, got '
                f"{init!r}"
            )
        points = low + unit.astype(dtype) * width
    else:
        points = fnp.clip(fnp.asarray(init, dtype), low, high)
        count = points.shape[0]
        if points.ndim != 2 or points.shape[1] != n or count < 5:
            raise ArgumentError(
                f"{name}: init must be float[m, {n}] with 5 points at least, got "
                f"{points.aval}"
            )
    if x0 is not None:
        points = points.at[0].set(fnp.clip(search.problem.x, low, high))
    out: Array = points
    return out


def _evolved(
    name: str,
    search: _Search,
    *,
    key: Any,
    count: int,
    strategy: str,
    maxiter: int,
    tol: float,
    atol: float,
    mutation: Any,
    recombination: float,
    polish: bool,
    init: Any,
    x0: Any,
) -> Any:
    low, high = search.box()
    n, dtype = low.size, low.dtype
    width = high - low
    key, first, second = random.split(key, 3)
    points = _population(name, first, second, search, count, init, x0)
    count = points.shape[0]

    def settled(values: Any) -> Any:
        return fnp.std(values) <= atol + tol * fnp.abs(fnp.mean(values))

    def others(key: Any, row: Any) -> Any:
        """Five distinct points that are not the row's."""
        order = fnp.argsort(random.uniform(key, (count - 1,)))[:4]
        order = fnp.concatenate([order, order[:1]])
        return order + (order >= row)

    def step(s: _State) -> _State:
        key, *keys = random.split(s.key, 6)
        if isinstance(mutation, tuple | list):
            factor = random.uniform(
                keys[0], (), dtype, float(mutation[0]), float(mutation[1])
            )
        else:
            factor = fnp.asarray(mutation, dtype)
        rows = fnp.arange(count)
        picked = vmap(others)(random.split(keys[1], count), rows)
        a, b, c, d, _ = (s.points[picked[:, i]] for i in range(5))
        best = s.points[search.best(s.values, s.lost)]
        base = strategy[:-3]
        mutant = {
            "best1": lambda: best + factor * (a - b),
            "best2": lambda: best + factor * (a + b - c - d),
            "rand1": lambda: a + factor * (b - c),
            "rand2": lambda: a + factor * (b - c + d - best),
            "randtobest1": lambda: a + factor * (best - a + b - c),
            "currenttobest1": lambda: s.points + factor * (best - s.points + a - b),
        }[base]()
        draws = random.uniform(keys[2], (count, n))
        place = random.randint(keys[3], (count,), 0, n)
        sure = fnp.arange(n) == place[:, None]
        if strategy.endswith("bin"):
            crossed = (draws < recombination) | sure
        else:
            # A run of elements that begins at a random place.
            runs = fnp.cumprod(draws < recombination, 1)
            offsets = (fnp.arange(n) - place[:, None]) % n
            crossed = fnp.take_along_axis(runs, fnp.maximum(offsets - 1, 0), 1) > 0
            crossed = crossed | sure
        trial = fnp.where(crossed, mutant, s.points)
        # Elements outside the bounds are drawn again.
        again = low + random.uniform(keys[4], (count, n), dtype) * width
        trial = fnp.where((trial < low) | (trial > high), again, trial)
        values, lost = search.values(trial)
        better = (lost <= s.lost) & (values <= s.values)
        points = fnp.where(better[:, None], trial, s.points)
        values = fnp.where(better, values, s.values)
        lost = fnp.where(better, lost, s.lost)
        x = search.rounded(points[search.best(values, lost)])
        return _State(key, points, values, lost, s.steps + 1, s.calls + count, x)

    zero = lax.full((), 0, dtypes.int32)
    values, lost = search.values(points)
    x = search.rounded(points[search.best(values, lost)])
    start = _State(key, points, values, lost, zero, zero + count, x)
    end = lax.while_loop(
        lambda s: ~settled(s.values) & (s.steps < maxiter),
        search.problem.watched(step),
        start,
    )
    x, lowest = end.x, fnp.min(end.values)
    status = fnp.where(settled(end.values), 0, 1)
    violated = fnp.where(fnp.min(end.lost) > 0, 4, 2)
    status = fnp.where(fnp.isfinite(lowest), status, violated).astype(dtypes.int32)
    calls, slopes = end.calls, zero
    if polish:
        low, high = search.low, search.high
        if search.whole is not None:
            low, high = (fnp.where(search.whole, x, v) for v in (low, high))
        problem = search.problem
        out = descend_within(
            problem._replace(x=x, watched=lambda step, point=None: step),
            low,
            high,
            gtol=1e-8,
            ftol=0.0,
            maxiter=200 * n,
            maxcalls=math.inf,
            rule=LBFGS(10),
            searches=30,
        )
        better = problem.value(out.x) <= lowest
        x = fnp.where(better, out.x, x)
        calls, slopes = calls + out.calls, out.slopes
    return x, (status, calls, slopes, end.steps)
