"""Sequential quadratic programming: minimization with bounds and constraints.

Each step solves the quadratic program of a model of the Lagrangian and of linearized
constraints; a line search on the sum of the value and of weighted violations decides
its length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.scipy.optimize._interior_point import Program, Solution, solve
from fxflow.scipy.optimize._problems import Problem, at_solution, report, within
from fxflow.scipy.optimize.constraints import Rows
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.transforms.grad import grad, hessian, jacfwd


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    equal: Any
    above: Any
    memory: Any
    y: Any
    z: Any
    weight: Any
    calls: Any
    slopes: Any
    steps: Any
    status: Any


class _Attempt(NamedTuple):
    way: Any
    y: Any
    z: Any
    weight: Any
    rate: Any
    x: Any
    value: Any
    equal: Any
    above: Any
    good: Any
    count: Any


def minimize_constrained(
    problem: Problem,
    rows: Rows | None,
    low: Any,
    high: Any,
    run: Callable[[Rows, Callable[..., Any]], Any],
    free: bool = False,
) -> OptimizeResults:
    """Minimizes with bounds and constraints.

    Args:
      problem: what to minimize.
      rows: the constraints, or None.
      low: float[n].
      high: float[n].
      run: the method: function of the rows and of the Lagrangian; returns where it
        ended: `x`, `y`, `z`, `status`, `calls`, `slopes` and `steps`.
      free: whether the method needs no derivatives; the solution then has one only if
        the functions have.
    """
    dtype = problem.x.aval.dtype
    none = fnp.zeros(0, dtype)
    if rows is None:
        rows = Rows(lambda x: none, lambda x: none, lambda y, z: (), (0, 0))

    def lagrangian(x: Any, y: Any, z: Any) -> Any:
        return problem.value(x) + y @ rows.equal(x) - z @ rows.above(x)

    def slope_of(x: Any, y: Any, z: Any) -> Any:
        # The gradient of the user, if there is one, and those of the constraints.
        push = grad(lambda x: y @ rows.equal(x) - z @ rows.above(x))
        return problem.slope(x) + (push(x) if sum(rows.counts) else 0)

    def conditions(at: Solution) -> Solution:
        above = rows.above(at.x)
        return Solution(
            within(at.x, slope_of(at.x, at.y, at.z), low, high),
            rows.equal(at.x),
            at.z - fnp.maximum(at.z - above, 0),
        )

    def solver() -> Any:
        end = run(rows, lagrangian)
        return Solution(end.x, end.y, end.z), end

    y, z = (fnp.zeros(count, dtype) for count in rows.counts)
    found, end = at_solution(solver, conditions, Solution(problem.x, y, z), free)
    report("minimize", end.status == 0, end.status)
    if free:
        value, slope = problem.value(found.x), None
    else:
        value, slope = problem.both(found.x)
        slope = problem.unravel(slope)
    has_rows = bool(sum(rows.counts))
    worst = worst_violation(rows.equal(found.x), rows.above(found.x))
    return OptimizeResults(
        x=problem.unravel(found.x),
        success=end.status == 0,
        status=end.status,
        fun=value,
        jac=slope,
        hess_inv=None,
        nfev=end.calls,
        njev=end.slopes,
        nit=end.steps,
        multipliers=rows.multipliers(-found.y, found.z) if has_rows else None,
        maxcv=worst if has_rows else None,
    )


def sequential_programs(
    problem: Problem,
    rows: Rows,
    low: Any,
    high: Any,
    lagrangian: Callable[..., Any] | None,
    *,
    ftol: float,
    maxiter: int,
    estimate: Any = None,
) -> Any:
    """Minimizes by quadratic programs.

    Args:
      problem: what to minimize.
      rows: the constraints.
      low: float[n].
      high: float[n].
      lagrangian: function of the point and the multipliers, whose Hessian is in the
        model; None means to estimate that by BFGS.
      ftol: the predicted decrease and the violation at which to stop.
      maxiter: the maximum number of steps.
      estimate: how to estimate the Hessian, in place of both: `start(x)` returns a
        memory, `updated(memory, step, change)` one after a step, and `matrix(memory)`
        the estimate.
    """
    model = None
    if lagrangian is not None and estimate is None:

        def model(x: Any, y: Any, z: Any) -> Any:
            whole = (
                hessian(lagrangian)(x, y, z) if sum(rows.counts) else problem.hessian(x)
            )
            return positive(whole)

    return _run(problem, rows, low, high, model, ftol, maxiter, estimate or _Damped())


class _Damped:
    """BFGS's estimate of a Hessian, which Powell's damping keeps positive."""

    def start(self, x: Any) -> Any:
        """Returns the first estimate: 1."""
        return fnp.eye(x.aval.size, dtype=x.aval.dtype)

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns the estimate after a step."""
        return damped(memory, step, change)

    def matrix(self, memory: Any) -> Any:
        """Returns the estimate itself."""
        return memory


def positive(hessian: Any) -> Any:
    """Returns a matrix with the absolute eigenvalues, none of them near 0.

    Args:
      hessian: float[n, n], symmetric.
    """
    values, vectors = fnp.linalg.eigh((hessian + hessian.T) / 2)
    tiny = math.sqrt(float(fnp.finfo(values.dtype).eps))
    size = fnp.maximum(fnp.max(fnp.abs(values), initial=0), tiny)
    values = fnp.maximum(fnp.abs(values), tiny * size)
    return (vectors * values) @ vectors.T


def _violation(equal: Any, above: Any) -> Any:
    return fnp.sum(fnp.abs(equal)) + fnp.sum(fnp.maximum(-above, 0))


def without_noise(violations: Any) -> Any:
    """Returns violations with 0 for what is rounding errors.

    The solver of programs scales columns: one of rounding errors, that of the part of
    the violation that is left, would let a step do nothing.

    Args:
      violations: float[k].
    """
    tiny = float(fnp.finfo(violations.dtype).eps) ** (3 / 4)
    return fnp.where(fnp.abs(violations) > tiny, violations, 0)


def worst_violation(equal: Any, above: Any) -> Any:
    """Returns the largest violation of constraints: 0 where they are satisfied.

    Args:
      equal: float[k], 0 where the equations hold.
      above: float[m], at least 0 where the inequalities hold.
    """
    sizes = fnp.concatenate([fnp.abs(equal), fnp.maximum(-above, 0)])
    return fnp.max(sizes, initial=0)


def _run(
    problem: Problem,
    rows: Rows,
    low: Any,
    high: Any,
    exact: Any,
    ftol: float,
    maxiter: int,
    estimate: Any,
) -> _State:
    x = fnp.clip(problem.x, low, high)
    n, dtype = x.aval.size, x.aval.dtype
    eps = float(fnp.finfo(dtype).eps)
    tol = max(ftol, 100 * eps)
    jacobian_equal, jacobian_above = jacfwd(rows.equal), jacfwd(rows.above)

    def program(s: _State, model: Any, A: Any, H: Any, equal: Any, above: Any) -> Any:
        """The step, how much of the violation is left, and the multipliers."""
        equal, below = without_noise(equal), without_noise(fnp.minimum(above, 0))
        size = 1 + fnp.max(fnp.abs(s.slope), initial=0)
        cost = 1e3 * size + 10 * (fnp.abs(s.y) @ fnp.abs(equal) - s.z @ below)
        one = fnp.ones((1,), dtype)
        square = fnp.zeros((n + 1, n + 1), dtype).at[:n, :n].set(model)
        given = Program(
            square.at[n, n].set(cost),
            fnp.concatenate([s.slope, cost[None]]),
            fnp.concatenate([A, -equal[:, None]], 1),
            -equal,
            fnp.concatenate([-H, below[:, None]], 1),
            above,
            fnp.concatenate([low - s.x, 0 * one]),
            fnp.concatenate([high - s.x, one]),
        )
        found, _, _ = solve(given, 50)
        return found.x[:n], found.x[n], found.y, found.z

    def step(s: _State) -> _State:
        A, H = jacobian_equal(s.x), jacobian_above(s.x)
        if exact is not None:
            model = exact(s.x, s.y, s.z)
        else:
            model = estimate.matrix(s.memory)
        violation = _violation(s.equal, s.above)

        def tried(x: Any, weight: Any) -> Any:
            value, equal, above = problem.value(x), rows.equal(x), rows.above(x)
            merit = value + weight * _violation(equal, above)
            return value, equal, above, merit

        def is_good(t: Any, merit: Any, weight: Any, rate: Any) -> Any:
            before = s.value + weight * violation
            little = 10 * eps * (fnp.abs(before) + 1e-3)
            return merit <= before + 1e-4 * t * fnp.minimum(rate, 0) + little

        def attempt(c: _Attempt) -> _Attempt:
            """The step; then one that takes the constraints' curvature into account."""
            first = c.count == 0
            equal = fnp.where(first, s.equal, c.equal - A @ c.way)
            above = fnp.where(first, s.above, c.above - H @ c.way)
            way, left, y, z = program(s, model, A, H, equal, above)
            largest = fnp.maximum(
                fnp.max(fnp.abs(y), initial=0), fnp.max(fnp.abs(z), initial=0)
            )
            larger = fnp.where(s.weight >= 1.1 * largest, s.weight, 2 * largest)
            weight = fnp.maximum(s.weight, larger)
            # The weight falls again slowly, if it was much too large.
            weight = fnp.where(weight > 100 * largest + 1, weight / 2, weight)
            rate = s.slope @ way - weight * (1 - left) * violation
            # The second step is judged as the first one.
            keep: Any = lambda new, old: fnp.where(first, new, old)
            weight, rate = keep(weight, c.weight), keep(rate, c.rate)
            x = fnp.clip(s.x + way, low, high)
            value, equal, above, merit = tried(x, weight)
            good = is_good(1.0, merit, weight, rate)
            return _Attempt(
                keep(way, c.way),
                keep(y, c.y),
                keep(z, c.z),
                weight,
                rate,
                x,
                value,
                equal,
                above,
                good,
                c.count + 1,
            )

        zero = lax.full((), 0, dtypes.int32)
        number = fnp.zeros((), dtype)
        begin = _Attempt(
            fnp.zeros_like(s.x),
            s.y,
            s.z,
            number,
            number,
            s.x,
            *(s.value, s.equal, s.above),
            fnp.asarray(False),
            zero,
        )
        attempts = 2 if sum(rows.counts) else 1
        made = lax.while_loop(lambda c: ~c.good & (c.count < attempts), attempt, begin)
        way, y, z, weight, rate = made[:5]
        count = s.calls + made.count
        start = (fnp.ones((), dtype), *made[5:10], zero)

        def shorter(c: Any) -> Any:
            t, tries = c[0] / 2, c[-1] + 1
            x = fnp.clip(s.x + t * way, low, high)
            value, equal, above, merit = tried(x, weight)
            good = is_good(t, merit, weight, rate)
            return t, x, value, equal, above, good, tries

        end = lax.while_loop(lambda c: ~c[5] & (c[6] < 40), shorter, start)
        _, x, value, equal, above, found, tries = end
        slope = problem.slope(x)
        if exact is None:
            change = slope - s.slope
            if sum(rows.counts):
                change = change + y @ (jacobian_equal(x) - A)
                change = change - z @ (jacobian_above(x) - H)
            memory = estimate.updated(s.memory, x - s.x, change)
        else:
            memory = s.memory
        expected = fnp.abs(s.slope @ way) + fnp.abs(y) @ fnp.abs(s.equal)
        expected = expected - z @ fnp.minimum(s.above, 0)
        scale = 1 + (0 if eps < 1e-10 else fnp.abs(value))
        met = worst_violation(equal, above) < tol * scale
        moved = fnp.linalg.norm(x - s.x)
        done = (expected < tol * scale) | (moved < eps * (1 + fnp.linalg.norm(x)))
        stuck = ~met & (moved < eps * (1 + fnp.linalg.norm(x)))
        status = fnp.where(s.steps + 1 >= maxiter, fnp.where(met, 1, 4), -1)
        status = fnp.where(stuck, 4, status)
        status = fnp.where(done & met, 0, status)
        lost = fnp.where(met, fnp.where(expected < 1e3 * tol * scale, 0, 3), 4)
        status = fnp.where(found, status, lost)
        status = fnp.where(fnp.isfinite(value) & fnp.isfinite(moved), status, 2)
        keep: Any = lambda new, old: fnp.where(found, new, old)
        return _State(
            keep(x, s.x),
            keep(value, s.value),
            keep(slope, s.slope),
            keep(equal, s.equal),
            keep(above, s.above),
            tree.map(keep, memory, s.memory),
            y,
            z,
            weight,
            count + tries,
            s.slopes + 1,
            s.steps + 1,
            status.astype(dtypes.int32),
        )

    value, slope = problem.both(x)
    equal, above = rows.equal(x), rows.above(x)
    one, zero = (lax.full((), k, dtypes.int32) for k in (1, 0))
    status = fnp.where(fnp.isfinite(value), 1 if maxiter <= 0 else -1, 2)
    start = _State(
        x,
        value,
        slope,
        equal,
        above,
        estimate.start(x) if exact is None else (),
        fnp.zeros_like(equal),
        fnp.zeros_like(above),
        fnp.ones((), dtype),
        one,
        one,
        zero,
        status.astype(dtypes.int32),
    )
    end: _State = lax.while_loop(lambda s: s.status < 0, problem.watched(step), start)
    return end


def mixed(change: Any, moved: Any, product: Any, square: Any, least: float) -> Any:
    """Returns Powell's mixture of the true change of the gradient and the model's.

    Args:
      change: float[n], of the gradient in a step.
      moved: float[n], the same by the model.
      product: the step times `change`.
      square: the step times `moved`.
      least: the part of `square` that the step times the mixture is at least.
    """
    small = product < least * square
    gap = fnp.where(small, square - product, 1)
    share = fnp.where(small, (1 - least) * square / gap, 1)
    return share * change + (1 - share) * moved


def damped(model: Any, step: Any, change: Any) -> Any:
    """Returns the BFGS estimate of a Hessian, kept positive by Powell's damping.

    Args:
      model: float[n, n], the estimate.
      step: float[n].
      change: float[n], of the gradient in the step.
    """
    moved = model @ step
    square = step @ moved
    change = mixed(change, moved, step @ change, square, 0.2)
    product = step @ change
    good = (square > 0) & (product > 0)
    new = model - fnp.outer(moved, moved) / fnp.where(good, square, 1)
    new = new + fnp.outer(change, change) / fnp.where(good, product, 1)
    return fnp.where(good, new, model)
