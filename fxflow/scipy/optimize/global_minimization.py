"""Global minimization: grids, basins, and annealing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural
from fxflow.scipy._callbacks import showing
from fxflow.scipy.optimize._problems import (
    arguments,
    at_solution,
    problem_of,
    report,
    within,
)
from fxflow.scipy.optimize.constraints import bounds_of, box_of
from fxflow.scipy.optimize.minimization import minimize
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.transforms.vmap import vmap


def brute(
    func: Callable[..., Any],
    ranges: Sequence[Any],
    args: tuple[Any, ...] = (),
    Ns: int = 20,
    full_output: bool = False,
    finish: str | None = "Nelder-Mead",
    disp: bool = False,
    workers: Any = 1,
) -> Any:
    """Minimizes a function on a grid, all of whose points are evaluated at once.

    Args:
      func: called as `func(x, *args)` with float[n]; returns a real number. It is
        vectorized by `vmap`.
      ranges: for each variable a pair (first, last), or a slice with a step: a number,
        or `Ns` times 1j as in `numpy.mgrid`.
      args: extra arguments.
      Ns: the number of points of a pair.
      full_output: whether to return the grid, too.
      finish: the method of `minimize` that improves the best point; None for none. The
        improved point has an implicit derivative with respect to `args` and what `func`
        closes over.
      disp: has no effect: nothing is printed.
      workers: has no effect.

    Returns:
      The best point, float[n], 0-d for one range; with `full_output` also its value,
      the grid, float[n, ...], and the values on it.

    Raises:
      ArgumentError: there are no ranges, or a range is neither a pair nor a slice.

    Example:
      >>> waves = lambda x: (x[0] ** 2 - 2 * fnp.cos(9 * x[0]))
      >>> bool(abs(brute(waves, [(-2.0, 3.0)], Ns=50)) < 1e-2)
      True

    Source: `scipy.optimize.brute`.
    """
    name = "brute"
    args = arguments(name, args)
    count = natural(name, "Ns", Ns)
    if not len(ranges):
        raise ArgumentError("brute: ranges must have a range for each variable")
    axes = [_axis(r, count) for r in ranges]
    dtype = fnp.promote_types(fnp.result_type(*axes), "float32")
    grid = fnp.stack(
        fnp.meshgrid(*(fnp.asarray(v, dtype) for v in axes), indexing="ij")
    )
    points = fnp.reshape(grid, (len(axes), -1)).T
    problem = problem_of(name, func, points[0], args)
    values = vmap(problem.value)(points)
    best = fnp.argmin(fnp.where(fnp.isnan(values), fnp.inf, values))
    x, value = points[best], values[best]
    if finish is not None:
        found = minimize(func, x, args, method=finish)
        better = found.fun <= value
        x, value = fnp.where(better, found.x, x), fnp.where(better, found.fun, value)
    if len(axes) == 1:
        x, grid = x[0], grid[0]
    if not full_output:
        return x
    return x, value, grid, fnp.reshape(values, [len(v) for v in axes])


def _axis(given: Any, count: int) -> Any:
    if isinstance(given, slice):
        return np.mgrid[given] + 0.0
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentError(
            f"brute: a range must be a pair (first, last) or a slice, got {given!r}"
        )
    return fnp.linspace(given[0], given[1], count)


class _Hop(NamedTuple):
    key: Any
    x: Any
    value: Any
    best: Any
    lowest: Any
    size: Any
    accepted: Any
    steps: Any
    since: Any
    calls: Any


def basinhopping(
    func: Callable[..., Any],
    x0: Any,
    niter: int = 100,
    T: float = 1.0,
    stepsize: float = 0.5,
    minimizer_kwargs: Mapping[str, Any] | None = None,
    take_step: Callable[[Any, Any], Any] | None = None,
    accept_test: Callable[..., Any] | None = None,
    callback: Callable[..., None] | None = None,
    interval: int = 50,
    disp: bool = False,
    niter_success: int | None = None,
    *,
    target_accept_rate: float = 0.5,
    stepwise_factor: float = 0.9,
    key: Array,
) -> OptimizeResults:
    """Minimizes a function globally, by random steps from one local minimum to others.

    A minimum that is found from a displaced point is accepted if it is lower, else with
    the probability exp(-difference / T). The solution has an implicit derivative with
    respect to what `func` closes over and the arguments: see `optim.implicit`.

    Args:
      func: called as `func(x, *args)`; returns a real number.
      x0: the initial guess: float[n] or a list of numbers.
      niter: the number of steps.
      T: the temperature; 0 accepts lower minima only.
      stepsize: the largest displacement of an element at first.
      minimizer_kwargs: arguments of `minimize`: `method`, `args`, `bounds`, ….
      take_step: called as `take_step(key, x)` in place of a uniform displacement.
      accept_test: called as `accept_test(f_new=, x_new=, f_old=, x_old=)`; a minimum
        for which it returns False is not accepted.
      callback: called on the host with the minimum of each step, its value and whether
        it is accepted, for its side effects (see `debug.callback`); it cannot stop the
        search.
      interval: after as many steps `stepsize` is adapted.
      disp: has no effect: nothing is printed.
      niter_success: ends after as many steps without a lower minimum.
      target_accept_rate: of the adaptation.
      stepwise_factor: by which it divides or multiplies.
      key: a key of `fxflow.random`.

    Returns:
      An `OptimizeResults`.

    Raises:
      ArgumentError: a number is out of range.

    Example:
      >>> waves = lambda x: (x**2 - 2 * fnp.cos(9 * x)).sum()
      >>> found = basinhopping(waves, [2.0], niter=30, key=random.key(0))
      >>> bool(fnp.abs(found.x[0]) < 1e-3)
      True

    Source: `scipy.optimize.basinhopping`; D. Wales and J. Doye 1997.
    """
    name = "basinhopping"
    shown = showing(name, callback)
    niter = natural(name, "niter", niter, 0)
    interval = natural(name, "interval", interval)
    patience = niter + 2 if niter_success is None else niter_success
    if not (0 < stepwise_factor < 1 and 0 < target_accept_rate < 1):
        raise ArgumentError(
            f"{name}: stepwise_factor and target_accept_rate must be between 0 and 1, "
            f"got {stepwise_factor} and {target_accept_rate}"
        )
    settings = dict(minimizer_kwargs or {})
    args = arguments(name, settings.pop("args", ()))
    problem = problem_of(name, func, x0, args, settings.get("jac"))
    dtype, n = problem.x.dtype, problem.x.size

    def local(x: Any) -> Any:
        end = minimize(func, problem.unravel(x), args, **settings)
        return _vector(end.x, n), end.fun, end.nfev, end.status

    def displaced(key: Any, s: _Hop) -> Any:
        if take_step is not None:
            return _vector(take_step(key, problem.unravel(s.x)), n).astype(dtype)
        return s.x + s.size * random.uniform(key, (n,), dtype, -1.0, 1.0)

    def step(s: _Hop) -> _Hop:
        key, first, second = random.split(s.key, 3)
        x, value, calls, status = local(displaced(first, s))
        drop = fnp.minimum(s.value - value, 0)
        chance = fnp.exp(drop / T) if T > 0 else fnp.where(drop < 0, 0.0, 1.0)
        take = random.uniform(second, (), dtype) <= chance
        take &= fnp.isfinite(value) & (status != 2)
        if accept_test is not None:
            take &= fnp.asarray(
                accept_test(f_new=value, x_new=x, f_old=s.value, x_old=s.x), bool
            )
        if shown is not None:
            shown(problem.unravel(x), value, take)
        better = take & (value < s.lowest)
        steps, accepted = s.steps + 1, s.accepted + take
        rate = accepted / steps
        factor = fnp.where(
            rate > target_accept_rate, 1 / stepwise_factor, stepwise_factor
        )
        size = fnp.where(steps % interval == 0, s.size * factor, s.size)
        pick: Any = lambda test, new, old: fnp.where(test, new, old)
        return _Hop(
            key,
            pick(take, x, s.x),
            pick(take, value, s.value),
            pick(better, x, s.best),
            pick(better, value, s.lowest),
            size.astype(dtype),
            accepted,
            steps,
            pick(better, 0, s.since + 1),
            s.calls + calls,
        )

    def solver() -> Any:
        x, value, calls, _ = local(problem.x)
        zero = lax.full((), 0, dtypes.int32)
        size = fnp.full((), stepsize, dtype)
        start = _Hop(key, x, value, x, value, size, zero, zero, zero, calls)
        end = lax.while_loop(
            lambda s: (s.steps < niter) & (s.since < patience), step, start
        )
        status = fnp.where(fnp.isfinite(end.lowest), 0, 2).astype(dtypes.int32)
        return end.best, (status, end.calls, end.steps)

    return told(name, problem, solver, settings.get("bounds"), x0)


def _vector(x: Any, n: int) -> Array:
    return fnp.reshape(fnp.asarray(x), (n,))


def told(name: str, problem: Any, solver: Any, bounds: Any, x0: Any) -> OptimizeResults:
    """Returns what a solver found, with an implicit derivative.

    Args:
      name: of the function, for messages.
      problem: what is minimized.
      solver: returns the point, and the status, the calls and the steps.
      bounds: as the user gave them.
      x0: likewise.
    """
    low, high = bounds_of(name, bounds, problem.x, x0)

    def conditions(x: Any) -> Any:
        slope = problem.slope(x)
        return slope if bounds is None else within(x, slope, low, high)

    x, (status, calls, steps) = at_solution(
        solver, conditions, problem.x, optional=True
    )
    report(name, status == 0, status)
    return OptimizeResults(
        x=problem.unravel(x),
        success=status == 0,
        status=status,
        fun=problem.value(x),
        jac=None,
        hess_inv=None,
        nfev=calls,
        njev=fnp.zeros_like(calls),
        nit=steps,
    )


class _Annealed(NamedTuple):
    key: Any
    x: Any
    value: Any
    best: Any
    lowest: Any
    age: Any  # steps since the temperature was the first one
    steps: Any
    calls: Any


def dual_annealing(
    func: Callable[..., Any],
    bounds: Any,
    args: tuple[Any, ...] = (),
    maxiter: int = 1000,
    minimizer_kwargs: Mapping[str, Any] | None = None,
    initial_temp: float = 5230.0,
    restart_temp_ratio: float = 2e-5,
    visit: float = 2.62,
    accept: float = -5.0,
    maxfun: float = 1e7,
    no_local_search: bool = False,
    callback: Callable[..., None] | None = None,
    x0: Any = None,
    *,
    key: Array,
) -> OptimizeResults:
    """Minimizes a function globally within bounds, by generalized simulated annealing.

    Each new best point is improved by a local search. The solution has an implicit
    derivative with respect to `args`, what `func` closes over, and active bounds: see
    `optim.implicit`.

    Args:
      func: called as `func(x, *args)`; returns a real number.
      bounds: `Bounds` with arrays, or a pair (min, max) for each variable; finite.
      args: extra arguments.
      maxiter: the number of temperatures; each has 2n new points.
      minimizer_kwargs: arguments of `minimize` for the local search; None means
        "L-BFGS-B" within the bounds.
      initial_temp: the first temperature, 0.01 to 5e4.
      restart_temp_ratio: the part of it at which the search begins again, from a random
        point.
      visit: how heavy the tails of steps are, 1 to 3.
      accept: the lower, the less likely a worse point is accepted; -1e4 to -5.
      maxfun: the number of calls after which no temperature is begun.
      no_local_search: whether there is no local search.
      callback: called on the host with the lowest minimum and its value after each
        temperature, for its side effects (see `debug.callback`); SciPy's third
        argument, which search found it, is missing, and it cannot stop the search.
      x0: the initial guess; None means a random point.
      key: a key of `fxflow.random`, in place of SciPy's `rng`.

    Returns:
      An `OptimizeResults`.

    Raises:
      ArgumentError: a number is out of range, or a bound is missing.

    Example:
      >>> waves = lambda x: (x**2 - 2 * fnp.cos(9 * x)).sum()
      >>> box = [(-2.0, 3.0)]
      >>> found = dual_annealing(waves, box, maxiter=50, key=random.key(0))
      >>> bool(fnp.abs(found.x[0]) < 1e-3)
      True

    Source: `scipy.optimize.dual_annealing`; C. Tsallis and D. Stariolo 1996.
    """
    name = "dual_annealing"
    shown = showing(name, callback)
    args = arguments(name, args)
    maxiter = natural(name, "maxiter", maxiter)
    for what, value, least, most in (
        ("visit", visit, 1.0, 3.0),
        ("initial_temp", initial_temp, 0.01, 5e4),
        ("restart_temp_ratio", restart_temp_ratio, 0.0, 1.0),
        ("accept", accept, -1e4, -1.0),
    ):
        if not least < value <= most:
            raise ArgumentError(
                f"{name}: {what} must be in ({least}, {most}], got {value}"
            )
    low, high = box_of(name, bounds)
    n = low.size
    key, first = random.split(key)
    start = low + (high - low) * random.uniform(first, (n,), low.dtype)
    start = start if x0 is None else fnp.asarray(x0, low.dtype)
    problem = problem_of(name, func, start, args)
    settings = dict(minimizer_kwargs or {"method": "L-BFGS-B", "bounds": bounds})

    def local(x: Any) -> Any:
        end = minimize(func, x, args, **settings)
        return end.x, end.fun, end.nfev

    fixed = lax.stop_gradient(low), lax.stop_gradient(high)
    stepped = _annealing(
        problem,
        *fixed,
        None if no_local_search else local,
        initial_temp,
        restart_temp_ratio,
        visit,
        accept,
    )

    def step(s: _Annealed) -> _Annealed:
        new = stepped(s)
        if shown is not None:
            shown(new.best, new.lowest)
        return new

    def solver() -> Any:
        x = fnp.clip(problem.x, *fixed)
        value = problem.value(x)
        zero = lax.full((), 0, dtypes.int32)
        calls = zero + 1
        if not no_local_search:
            x, value, calls = local(x)
        begin = _Annealed(key, x, value, x, value, zero, zero, calls)
        end = lax.while_loop(
            lambda s: (s.steps < maxiter) & (s.calls < maxfun), step, begin
        )
        status = fnp.where(fnp.isfinite(end.lowest), 0, 2).astype(dtypes.int32)
        return end.best, (status, end.calls, end.steps)

    return told(name, problem, solver, bounds, None)


def _annealing(
    problem: Any,
    low: Any,
    high: Any,
    local: Callable[[Any], Any] | None,
    initial_temp: float,
    restart_temp_ratio: float,
    visit: float,
    accept: float,
) -> Callable[[_Annealed], _Annealed]:
    """Returns the step of one temperature: 2n new points and a local search."""
    n = low.size

    def temperature(age: Any) -> Any:
        power = (age + 2.0) ** (visit - 1) - 1
        return initial_temp * (2.0 ** (visit - 1) - 1) / power

    def step(s: _Annealed) -> _Annealed:
        key, again, chain = random.split(s.key, 3)
        heat = temperature(s.age.astype(low.dtype))
        cold = heat < initial_temp * restart_temp_ratio
        fresh = low + (high - low) * random.uniform(again, (n,), low.dtype)
        x = fnp.where(cold, fresh, s.x)
        value = lax.cond(cold, problem.value, lambda _: s.value, fresh)
        age = fnp.where(cold, 0, s.age)
        heat = fnp.where(cold, initial_temp, heat).astype(low.dtype)

        def one(j: Any, c: Any) -> Any:
            x, value, best, lowest = c
            first, second, third = random.split(random.fold_in(chain, j), 3)
            move = _visits(first, second, heat, visit, (n,), low.dtype)
            whole = j < n
            move = fnp.where(whole | (fnp.arange(n) == j - n), move, 0)
            new = _wrapped(x + move, low, high)
            found = problem.value(new)
            found = fnp.where(fnp.isnan(found), fnp.inf, found)
            # The probability of a worse point, at a temperature that falls faster.
            share = 1 - (1 - accept) * (found - value) / (heat / (age + 1))
            chance = fnp.where(
                share <= 0,
                0,
                fnp.exp(fnp.log(fnp.maximum(share, 1e-30)) / (1 - accept)),
            )
            draw = random.uniform(third, (), low.dtype)
            take = (found < value) | (draw <= chance)
            better = found < lowest
            return (
                fnp.where(take, new, x),
                fnp.where(take, found, value),
                fnp.where(better, new, best),
                fnp.where(better, found, lowest),
            )

        x, value, best, lowest = lax.fori_loop(
            0, 2 * n, one, (x, value, s.best, s.lowest)
        )
        calls = s.calls + 2 * n
        if local is not None:

            def improved(_: Any) -> Any:
                near, least, more = local(best)
                better = least < lowest
                return (
                    fnp.where(better, near, best),
                    fnp.where(better, least, lowest),
                    more,
                )

            best, lowest, more = lax.cond(
                lowest < s.lowest,
                improved,
                lambda _: (best, lowest, lax.full((), 0, dtypes.int32)),
                0,
            )
            calls = calls + more
            x = fnp.where(lowest < s.lowest, best, x)
            value = fnp.where(lowest < s.lowest, lowest, value)
        return _Annealed(key, x, value, best, lowest, age + 1, s.steps + 1, calls)

    return step


def _visits(
    first: Any, second: Any, heat: Any, q: float, shape: Any, dtype: Any
) -> Any:
    """Returns steps of Tsallis's visiting distribution."""
    tail = 1 / (q - 1) - 0.5
    two = math.exp((4 - q) * math.log(q - 1))
    three = math.exp((2 - q) * math.log(2) / (q - 1))
    four = math.sqrt(math.pi) * two / (three * (3 - q))
    six = math.pi * (1 - tail) / math.sin(math.pi * (1 - tail))
    six /= math.exp(math.lgamma(2 - tail))
    scale = fnp.exp(
        -(q - 1) / (3 - q) * (math.log(six / four) - fnp.log(heat) / (q - 1))
    )
    x = scale * random.normal(first, shape, dtype)
    y = random.normal(second, shape, dtype)
    steps = x / fnp.exp((q - 1) / (3 - q) * fnp.log(fnp.abs(y)))
    return fnp.clip(steps, -1e8, 1e8)


def _wrapped(x: Any, low: Any, high: Any) -> Any:
    """Returns points that leave the box at one side and enter it at the other."""
    return low + fnp.mod(x - low, high - low)
