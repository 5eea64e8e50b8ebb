"""Global minimization by differential evolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural
from fxflow.scipy.optimize._descent import LBFGS, descend_within
from fxflow.scipy.optimize._problems import (
    arguments,
    at_solution,
    problem_of,
    report,
    within,
)
from fxflow.scipy.optimize.constraints import box_of
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
    values: Any
    steps: Any
    calls: Any


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
    polish: bool = True,
    init: Any = "latinhypercube",
    atol: float = 0.0,
    x0: Any = None,
    *,
    key: Array,
) -> OptimizeResults:
    """Minimizes a function globally within bounds, by a population of points.

    Each generation is evaluated at once, by `vmap` (SciPy's `updating="deferred"`). The
    solution has an implicit derivative with respect to `args`, what `func` closes over,
    and active bounds, if `func` has a gradient: see `optim.implicit`.

    Args:
      func: called as `func(x, *args)`; returns a real number.
      bounds: `Bounds` with arrays, or a pair (min, max) for each variable; finite.
      args: more arguments.
      strategy: SciPy's names: "best1", "best2", "rand1", "rand2", "randtobest1" or
        "currenttobest1", with "bin" or "exp" behind it.
      maxiter: the greatest number of generations.
      popsize: the number of points for each variable.
      tol: the relative spread of values at which to stop.
      mutation: the factor of differences; a pair draws one for each generation.
      recombination: the probability that an element comes from the mutant.
      polish: whether to improve the best point by L-BFGS-B.
      init: "latinhypercube" or "random", or float[m, n], the first points.
      atol: the absolute spread of values at which to stop.
      x0: a point to put into the first population.
      key: a random key, in place of SciPy's `rng`.

    Returns:
      An `OptimizeResults`.

    Raises:
      ArgumentError: there is no such strategy or first population, bounds are missing,
        or a number is out of range.

    Example:
      >>> waves = lambda x: (x**2 - 2 * fnp.cos(9 * x)).sum()
      >>> found = differential_evolution(waves, [(-2.0, 3.0)], key=random.key(0))
      >>> bool(fnp.abs(found.x[0]) < 1e-3)
      True

    Source: `scipy.optimize.differential_evolution`; Storn and Price 1997.
    """
    name = "differential_evolution"
    args = arguments(name, args)
    if strategy not in _STRATEGIES:
        raise ArgumentError(
            f"{name}: strategy must be one of {', '.join(_STRATEGIES)}, got "
            f"{strategy!r}"
        )
    maxiter = natural(name, "maxiter", maxiter)
    popsize = natural(name, "popsize", popsize)
    low, high = box_of(name, bounds)
    n = low.size
    start = (low + high) / 2 if x0 is None else fnp.asarray(x0, low.dtype)
    problem = problem_of(name, func, start, args)
    count = max(5, popsize * n)
    fixed = [lax.stop_gradient(v) for v in (low, high)]

    def solver() -> Any:
        return _evolved(
            name,
            problem,
            *fixed,
            key=key,
            count=count,
            strategy=strategy,
            maxiter=maxiter,
            tol=tol,
            atol=atol,
            mutation=mutation,
            recombination=recombination,
            polish=polish,
            init=init,
            x0=x0,
        )

    def conditions(x: Any) -> Any:
        return within(x, problem.slope(x), low, high)

    x, (status, calls, slopes, steps) = at_solution(
        solver, conditions, problem.x, optional=True
    )
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
    )


def _population(
    name: str,
    first: Any,
    second: Any,
    problem: Any,
    low: Any,
    high: Any,
    count: int,
    init: Any,
    x0: Any,
) -> Array:
    """Returns the first points, float[count, n]."""
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
        points = points.at[0].set(fnp.clip(problem.x, low, high))
    out: Array = points
    return out


def _evolved(
    name: str,
    problem: Any,
    low: Any,
    high: Any,
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
    n, dtype = low.size, low.dtype
    width = high - low
    key, first, second = random.split(key, 3)
    points = _population(name, first, second, problem, low, high, count, init, x0)
    count = points.shape[0]
    value = vmap(problem.value)

    def cleaned(values: Any) -> Any:
        return fnp.where(fnp.isnan(values), math.inf, values)

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
        best = s.points[fnp.argmin(s.values)]
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
        values = cleaned(value(trial))
        better = values <= s.values
        return _State(
            key,
            fnp.where(better[:, None], trial, s.points),
            fnp.where(better, values, s.values),
            s.steps + 1,
            s.calls + count,
        )

    zero = lax.full((), 0, dtypes.int32)
    start = _State(key, points, cleaned(value(points)), zero, zero + count)
    end = lax.while_loop(
        lambda s: ~settled(s.values) & (s.steps < maxiter), step, start
    )
    x = end.points[fnp.argmin(end.values)]
    lowest = fnp.min(end.values)
    status = fnp.where(settled(end.values), 0, 1)
    status = fnp.where(fnp.isfinite(lowest), status, 2).astype(dtypes.int32)
    calls, slopes = end.calls, zero
    if polish:
        out = descend_within(
            problem._replace(x=x),
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
