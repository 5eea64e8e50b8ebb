"""Linear programs with variables that must be whole, by branch and bound.

Each node is a program with tighter bounds, solved by the interior-point method. Depth
first, so that a stack of static size holds the nodes that are left; the child nearer to
the node's solution is taken first.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.scipy.optimize._interior_point import Program, solve
from fxflow.transforms.jit import jit


class Whole(NamedTuple):
    """What `branch_and_bound` returns.

    Attributes:
      x: float[n]: the best point whose whole variables are whole, or nan.
      status: int32: 0 optimal; 1 too many nodes; 2 infeasible; 3 unbounded; 4 rounding
        errors.
      nodes: int32: the number of programs that were solved.
      bound: float: no point has a lower value than this.
      steps: int32: the number of iterations of all programs.
    """

    x: Any
    status: Any
    nodes: Any
    bound: Any
    steps: Any


class _Search(NamedTuple):
    low: Any  # float[room, n], of the nodes that are left
    high: Any
    bounds: Any  # float[room], the values of their parents
    count: Any
    x: Any
    value: Any
    nodes: Any
    steps: Any
    root: Any  # the status of the first program
    lost: Any  # whether a node was given up


def branch_and_bound(
    p: Program,
    kinds: Any,
    maxiter: int,
    tol: float | None,
    gap: float,
    most: int,
    room: int,
) -> Whole:
    """Returns the best point of a program some of whose variables are whole.

    Args:
      p: a linear program.
      kinds: int32[n]: 0 any number; 1 whole; 2 zero, or within the bounds; 3 that and
        whole.
      maxiter: the maximum number of iterations of each program.
      tol: their tolerance.
      gap: relative: a node that is better by less is left out.
      most: the maximum number of programs.
      room: for as many nodes that are left.
    """
    n, dtype = p.q.size, p.q.dtype
    near = 1e-6 if dtype == dtypes.float64 else 1e-3
    whole, jumps = (kinds == 1) | (kinds == 3), kinds >= 2
    low, high = _rounded_in(p.low, p.high, whole, near)
    # Within the relaxation a variable may go from zero to its bounds.
    widest = (
        fnp.where(jumps, fnp.minimum(low, 0), low),
        fnp.where(jumps, fnp.maximum(high, 0), high),
    )

    def violations(x: Any) -> Any:
        far = fnp.where(whole, fnp.abs(x - fnp.round(x)), 0)
        outside = fnp.maximum(fnp.maximum(low - x, x - high), 0)
        return fnp.maximum(far, fnp.where(jumps, fnp.minimum(fnp.abs(x), outside), 0))

    def is_feasible(x: Any) -> Any:
        size = 1 + fnp.max(fnp.abs(x), initial=0)
        sides = fnp.concatenate([p.G @ x - p.h, fnp.abs(p.A @ x - p.b)])
        within = (x >= widest[0] - near) & (x <= widest[1] + near)
        worst = fnp.max(sides, initial=-math.inf)
        return (worst <= near * size) & fnp.all(within & (violations(x) <= near))

    def cutoff(s: _Search) -> Any:
        size = fnp.where(fnp.isfinite(s.value), fnp.abs(s.value), 1)
        return s.value - gap * fnp.maximum(size, 1)

    def relaxed(low: Any, high: Any) -> Any:
        tighter = p._replace(low=low, high=high)
        found, status, steps = solve(tighter, maxiter, tol, polish=False)
        return fnp.clip(found.x, low, high), status, steps

    zero = lax.full((), 0, dtypes.int32)

    def step(s: _Search) -> _Search:
        at = s.count - 1
        low_, high_ = s.low[at], s.high[at]
        empty = fnp.any(low_ > high_)
        x, status, steps = lax.cond(
            (s.bounds[at] < cutoff(s)) & ~empty,
            relaxed,
            lambda low, high: (fnp.zeros(n, dtype), zero + 2, zero),
            low_,
            high_,
        )
        value = p.q @ x
        solved = status == 0
        hit = fnp.max(violations(x), initial=0) <= near
        exact = fnp.where(whole, fnp.round(x), x)
        exact = fnp.where(jumps & (fnp.abs(exact) <= near), 0, exact)
        # The nearest whole point may do, too, if nothing else moves with it.
        good = solved & (hit | is_feasible(exact))
        worth = p.q @ exact
        better = good & (worth < s.value)
        best = fnp.where(better, worth, s.value)
        s = s._replace(x=fnp.where(better, exact, s.x), value=best)
        branches = solved & ~hit & (value < cutoff(s))
        first, second, nearer = _children(
            (low_, high_), (low, high), x, violations(x), jumps, near
        )
        fits = at + 2 <= room
        pushed = branches & fits

        def put(stack: Any, a: Any, b: Any, at: Any) -> Any:
            later, sooner = fnp.where(nearer, b, a), fnp.where(nearer, a, b)
            new = stack.at[at].set(later, mode="drop")
            new = new.at[at + 1].set(sooner, mode="drop")
            return fnp.where(pushed, new, stack)

        return s._replace(
            low=put(s.low, first[0], second[0], at),
            high=put(s.high, first[1], second[1], at),
            bounds=put(s.bounds, value, value, at),
            count=at + 2 * pushed,
            nodes=s.nodes + (steps > 0),
            steps=s.steps + steps,
            root=fnp.where(s.nodes == 0, status, s.root),
            lost=s.lost | (branches & ~fits) | (status == 1) | (status == 4),
        )

    begin = _first_node(*widest, room)
    end = lax.while_loop(
        lambda s: (s.count > 0) & (s.nodes < most) & (s.root != 3), step, begin
    )
    left = fnp.arange(room) < end.count
    bound = fnp.min(fnp.where(left, end.bounds, math.inf), initial=math.inf)
    bound = fnp.where(end.lost, -math.inf, fnp.minimum(bound, end.value))
    limited = (end.count > 0) & (bound < cutoff(end))
    status = fnp.where(fnp.isfinite(end.value), 0, 2)
    status = fnp.where(end.lost, 4, status)
    status = fnp.where(limited, 1, status)
    status = fnp.where(end.root == 3, 3, status).astype(dtypes.int32)
    return Whole(end.x, status, end.nodes, bound, end.steps)


def _first_node(low: Any, high: Any, room: int) -> _Search:
    n, dtype = low.size, low.dtype
    zero = lax.full((), 0, dtypes.int32)
    return _Search(
        fnp.zeros((room, n), dtype).at[0].set(low),
        fnp.zeros((room, n), dtype).at[0].set(high),
        fnp.full(room, -math.inf, dtype),
        zero + 1,
        fnp.full(n, math.nan, dtype),
        fnp.full((), math.inf, dtype),
        *(zero, zero, zero, fnp.asarray(False)),
    )


def _children(
    node: tuple[Any, Any],
    whole: tuple[Any, Any],
    x: Any,
    violations: Any,
    jumps: Any,
    near: float,
) -> tuple[Any, Any, Any]:
    """Returns the bounds of both children of a node, and whether the first is nearer.

    Args:
      node: its bounds.
      whole: those of the problem.
      x: its solution.
      violations: by how much each variable is not what it has to be.
      jumps: which variables may be zero outside of their bounds.
      near: what counts as rounding errors.
    """
    low, high = node
    i = fnp.argmax(violations)
    one = fnp.arange(x.size) == i
    value = x[i]
    outside = (value < whole[0][i] - near) | (value > whole[1][i] + near)
    jump = jumps[i] & outside
    down = fnp.where(jump, 0, fnp.floor(value))
    up = fnp.where(jump, fnp.maximum(whole[0][i], low[i]), fnp.floor(value) + 1)
    first = fnp.where(one & jump, 0, low), fnp.where(one, down, high)
    second = fnp.where(one, up, low), high
    nearer = fnp.where(jump, fnp.abs(value) < up - value, value - down < 0.5)
    return first, second, nearer


#: One program for each shape, also when it is called eagerly.
search = jit(
    branch_and_bound, static_argnames=("maxiter", "tol", "gap", "most", "room")
)


def _rounded_in(low: Any, high: Any, whole: Any, near: float) -> tuple[Any, Any]:
    """Returns bounds of which those of whole variables are whole."""
    return (
        fnp.where(whole, fnp.ceil(low - near), low),
        fnp.where(whole, fnp.floor(high + near), high),
    )
