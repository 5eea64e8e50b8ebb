"""Least squares of unknowns that are not negative, by pivots on the normal equations.

Each step of the loop is one pivot, a product of a row and a column: mapped over
problems, it is elementwise work on all of them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes


class _State(NamedTuple):
    table: Any
    free: Any
    x: Any
    steps: Any
    done: Any


def not_negative(matrix: Any, right: Any, maxiter: int) -> tuple[Any, Any, Any]:
    """Minimizes |matrix x - right| over x ≥ 0.

    Args:
      matrix: float[m, n], whose columns have norms near 1, or 0.
      right: float[m], of a norm near 1.
      maxiter: the maximum number of pivots.

    Returns:
      x, float[n]; whether it is a solution up to rounding; the number of pivots.

    Source: C. Lawson and R. Hanson, Solving Least Squares Problems, 1974, chapter 23;
    the pivots are Beaton's sweeps.
    """
    m, n = matrix.aval.shape
    dtype = matrix.aval.dtype
    eps = float(fnp.finfo(dtype).eps)
    tol = 10 * max(m, n) * eps
    sides = fnp.concatenate([matrix, right[:, None]], axis=1)
    # By sums, which are faster than products of many small matrices.
    small = n < 32
    table = (
        fnp.sum(sides[:, :, None] * sides[:, None], axis=0)
        if small
        else sides.T @ sides
    )
    sizes = fnp.diagonal(table)[:n]
    one = lax.iota(dtypes.int32, n + 1)

    def pivot(table: Any, at: Any, sign: Any) -> Any:
        """Exchanges an unknown with its equation, or back if the sign is -1.

        It is an update of rank 1, but for 2 on the diagonal.
        """
        row = fnp.sum(fnp.where(at[:, None], table, 0), axis=0)
        d = fnp.sum(fnp.where(at, row, 0))
        unit = at.astype(dtype) * sign
        row = row - unit
        part = row / fnp.where(d == 0, 1, d)
        return table - row[:, None] * part - (2 * unit[:, None]) * at

    def step(s: _State) -> _State:
        # The last column holds the unknowns that are free, and slopes of the others.
        last, left = s.table[:n, n], fnp.diagonal(s.table)[:n]
        target = fnp.where(s.free, last, 0)
        crossing = s.free & (target <= 0)
        gap = s.x - target
        part = fnp.where(crossing, s.x / fnp.where(gap == 0, 1, gap), math.inf)
        blocked = fnp.any(crossing)
        length = fnp.where(blocked, fnp.min(part, initial=1.0), 1)
        x = s.x + length * (target - s.x)
        leaving = fnp.argmin(part)
        # A column that depends on the free ones has no pivot.
        able = ~s.free & (left > tol * sizes) & (last > tol * fnp.sqrt(sizes))
        slopes = fnp.where(able, last / fnp.sqrt(fnp.where(able, sizes, 1)), -math.inf)
        entering = fnp.argmax(slopes)
        k = fnp.where(blocked, leaving, entering).astype(dtypes.int32)
        done = ~blocked & ~fnp.any(able)
        sign = fnp.where(blocked, -1, 1).astype(dtype)
        at = (one == k) & ~done
        table = pivot(s.table, at, sign)
        at = at[:n]
        x = fnp.where(s.free & ~(at & blocked), x, 0)
        return _State(table, s.free ^ at, x, s.steps + 1, done)

    zero = fnp.zeros(n, dtype)
    start = _State(table, zero > 0, zero, fnp.int32(0), fnp.zeros((), bool))
    end = lax.while_loop(lambda s: ~s.done & (s.steps < maxiter), step, start)
    inverse = -end.table[:n, :n]
    x = end.x

    def slope_at(x: Any) -> Any:
        rest = right - fnp.sum(matrix * x, axis=1)
        return fnp.sum(matrix * rest[:, None], axis=0)

    for _ in range(2):
        # The normal equations lose half of the digits, these corrections do not.
        slope = fnp.where(end.free, slope_at(x), 0)
        more = fnp.where(end.free, fnp.sum(inverse * slope, axis=1), 0)
        x = fnp.where(end.free, fnp.maximum(x + more, 0), 0)
    slope = slope_at(x)
    wrong = fnp.where(x > 0, fnp.abs(slope), slope)
    good = end.done & (fnp.max(wrong, initial=0) <= 10 * tol)
    return x, good, end.steps
