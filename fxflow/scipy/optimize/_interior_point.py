"""Convex quadratic programs by a primal-dual interior-point method.

The homogeneous embedding of Goulart and Chen, with Mehrotra's corrector: it ends with a
solution, or with a proof that there is none. All shapes are static, so that programs
are vectorized; a last Newton step on the conditions of the optimum makes a vertex
exact.

    minimize x' P x / 2 + q' x   where   A x = b,   G x ≤ h,   low ≤ x ≤ high
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.optim.implicit_derivatives import dense_solve
from fxflow.transforms.jit import jit


class Program(NamedTuple):
    """A quadratic program.

    Attributes:
      P: float[n, n], positive semidefinite.
      q: float[n].
      A: float[k, n].
      b: float[k].
      G: float[m, n].
      h: float[m], inf for a row that is always satisfied.
      low: float[n], or -inf.
      high: float[n], or inf.
    """

    P: Array
    q: Array
    A: Array
    b: Array
    G: Array
    h: Array
    low: Array
    high: Array


class Solution(NamedTuple):
    """The solution of a program, with its multipliers.

    Attributes:
      x: float[n].
      y: float[k], of the equations.
      z: float[m], of the inequalities, at least 0.
    """

    x: Any
    y: Any
    z: Any


def conditions(p: Program, at: Solution) -> Solution:
    """Returns what is 0 at a solution: projections of the Lagrangian's gradients.

    Args:
      p: the program.
      at: a point.
    """
    slope = reduced_costs(p, at)
    return Solution(
        at.x - fnp.clip(at.x - slope, p.low, p.high),
        p.A @ at.x - p.b,
        at.z - fnp.maximum(at.z - (p.h - p.G @ at.x), 0),
    )


def reduced_costs(p: Program, at: Solution) -> Array:
    """Returns the gradient of the Lagrangian without the bounds.

    Args:
      p: the program.
      at: a point.
    """
    out: Array = p.P @ at.x + p.q + p.A.T @ at.y + p.G.T @ at.z
    return out


class _State(NamedTuple):
    x: Any
    y: Any
    z: Any
    s: Any
    tau: Any
    kappa: Any
    steps: Any
    status: Any
    error: Any
    best: Any


class _Scaled(NamedTuple):
    """A program without fixed variables, in units of its rows and columns."""

    program: Program
    rows: tuple[Any, Any]
    columns: Any
    cost: Any


def _without_fixed(p: Program) -> tuple[Program, Any]:
    """Returns the program in which fixed variables have no part, and the variables."""
    fixed = p.low == p.high
    x = fnp.where(fixed, p.low, 0)
    free = ~fixed
    square = p.P * (free[:, None] & free)
    square = square + fnp.diag(fixed.astype(p.q.dtype))
    return (
        Program(
            square,
            fnp.where(fixed, 0, p.q + p.P @ x),
            p.A * free,
            p.b - p.A @ x,
            p.G * free,
            fnp.where(p.h == math.inf, math.inf, p.h - p.G @ x),
            fnp.where(fixed, -math.inf, p.low),
            fnp.where(fixed, math.inf, p.high),
        ),
        x,
    )


def _scaled(p: Program) -> _Scaled:
    """Returns the program whose rows and columns have largest elements near 1."""
    n = p.q.size
    dtype = p.q.dtype

    def factor(*matrices: Any, axis: int) -> Any:
        size = fnp.max(fnp.abs(fnp.concatenate(matrices)), axis=axis, initial=0)
        return fnp.where(size > 0, 1 / fnp.sqrt(fnp.where(size > 0, size, 1)), 1)

    def balanced(_: Any, scales: Any) -> Any:
        columns, rows = scales
        P = columns[:, None] * p.P * columns
        constraints = rows[:, None] * fnp.concatenate([p.A, p.G]) * columns
        return (
            columns * factor(P, constraints, axis=0),
            rows * factor(constraints, axis=1),
        )

    k = p.b.size
    start = fnp.ones(n, dtype), fnp.ones(k + p.h.size, dtype)
    columns, both = lax.fori_loop(0, 4, balanced, start)
    rows = both[:k], both[k:]
    P, q = columns[:, None] * p.P * columns, columns * p.q
    size = fnp.maximum(fnp.max(fnp.abs(q), initial=0), fnp.max(fnp.abs(P), initial=0))
    cost = 1 / fnp.where(size > 0, size, 1)
    A, G = (r[:, None] * m * columns for r, m in zip(rows, (p.A, p.G), strict=True))
    return _Scaled(
        Program(
            cost * P,
            cost * q,
            A,
            rows[0] * p.b,
            G,
            rows[1] * p.h,
            p.low / columns,
            p.high / columns,
        ),
        rows,
        columns,
        cost,
    )


def _inequalities(p: Program) -> tuple[Any, Any]:
    """Returns C and d with C x ≤ d: the rows, then the lower and upper bounds."""
    eye = fnp.eye(p.q.size, dtype=p.q.dtype)
    sides = fnp.concatenate([p.h, -p.low, p.high])
    real = fnp.isfinite(sides)
    # A row that is always satisfied is 0 ≤ 1.
    rows = fnp.where(real[:, None], fnp.concatenate([p.G, -eye, eye]), 0)
    return rows, fnp.where(real, sides, 1)


def solve(
    program: Program, maxiter: int, tol: float | None = None, polish: bool = True
) -> Any:
    """Returns the solution of a program, its status and the number of iterations.

    Args:
      program: what to solve.
      maxiter: the maximum number of iterations.
      tol: the relative tolerance; None is 1e-9, or 1e-5 in float32.
      polish: whether a vertex is made exact.

    Returns:
      A `Solution`, and int32 twice. The status is 0 (optimal), 1 (too many iterations),
      2 (infeasible), 3 (unbounded) or 4 (rounding errors).
    """
    free, fixed = _without_fixed(program)
    scaled = _scaled(free)
    p = scaled.program
    C, d = _inequalities(p)
    dtype = p.q.dtype
    eps = float(fnp.finfo(dtype).eps)
    wide = eps < 1e-10
    tol = (1e-9 if wide else 2e-5) if tol is None else max(tol, 100 * eps)
    near = 1e-6 if wide else 1e-3
    n, k = p.q.size, p.b.size
    m = d.size
    delta = eps**0.75 * (1e-2 if wide else 1e-1)

    def largest(*vectors: Any) -> Any:
        out = fnp.zeros((), dtype)
        for v in vectors:
            out = fnp.maximum(out, fnp.max(fnp.abs(v), initial=0))
        return out

    def residuals(s: _State) -> tuple[Any, Any, Any, Any]:
        return (
            p.P @ s.x + p.A.T @ s.y + C.T @ s.z + p.q * s.tau,
            p.A @ s.x - p.b * s.tau,
            C @ s.x + s.s - d * s.tau,
            s.kappa + p.q @ s.x + p.b @ s.y + d @ s.z + s.x @ (p.P @ s.x) / s.tau,
        )

    def judged(s: _State) -> tuple[Any, Any]:
        """The status of a point, and its error as a solution."""
        rx, ry, rz, _ = residuals(s)
        x = s.x / s.tau
        curve, cost = x @ (p.P @ x), p.q @ x
        sides = (p.b @ s.y + d @ s.z) / s.tau
        gap = fnp.abs(curve + cost + sides)
        value = fnp.minimum(fnp.abs(cost + curve / 2), fnp.abs(sides + curve / 2))
        primal = largest(ry, rz) / s.tau
        primal = primal / (1 + largest(x, s.s / s.tau, p.b))
        dual = largest(rx) / s.tau
        dual = dual / (1 + largest(p.q, p.P @ x, s.y / s.tau, s.z / s.tau))
        error = fnp.maximum(fnp.maximum(primal, dual), gap / (1 + value))
        # Farkas: a combination of the constraints that no point satisfies.
        certain = -(p.b @ s.y + d @ s.z)
        size = largest(s.y, s.z)
        combined = largest(p.A.T @ s.y + C.T @ s.z)
        infeasible = (certain > eps * size) & (combined <= tol * certain)
        # A direction along which the objective decreases for ever.
        decrease = -(p.q @ s.x)
        moved = largest(p.P @ s.x, p.A @ s.x, C @ s.x + s.s)
        unbounded = (decrease > eps * largest(s.x)) & (moved <= tol * decrease)
        status = fnp.where(unbounded, 3, -1)
        status = fnp.where(infeasible, 2, status)
        status = fnp.where(error <= tol, 0, status)
        return status, error

    def step(state: _State) -> _State:
        s = state
        rx, ry, rz, rt = residuals(s)
        weights = s.z / s.s
        matrix = p.P + (C.T * weights) @ C
        scale = 1 + largest(fnp.diag(p.P))
        whole = fnp.block([[matrix, p.A.T], [p.A, fnp.zeros((k, k), dtype)]])
        shift = fnp.concatenate(
            [fnp.full(n, delta * scale, dtype), fnp.full(k, -delta, dtype)]
        )
        # The inverse makes a short program; refinement makes up for its errors.
        inverse = fnp.linalg.inv(whole + fnp.diag(shift))

        def solved(r1: Any, r2: Any, r3: Any) -> tuple[Any, Any, Any]:
            right = fnp.concatenate([r1 + C.T @ (weights * r3), r2])
            found = inverse @ right
            for _ in range(2):
                found = found + inverse @ (right - whole @ found)
            x, y = found[:n], found[n:]
            return x, y, weights * (C @ x - r3)

        unit = s.x / s.tau
        moved = p.P @ unit
        row = p.q + 2 * moved
        dx, dy, dz = solved(-p.q, p.b, d)
        denominator = -s.kappa / s.tau + row @ dx + p.b @ dy + d @ dz - unit @ moved

        def direction(share: Any, ds: Any, dk: Any) -> Any:
            """With a share of the residuals, and of complementarity."""
            x, y, z = solved(-share * rx, -share * ry, -share * rz + ds / s.z)
            tau = -share * rt + dk / s.tau - row @ x - p.b @ y - d @ z
            tau = tau / denominator
            x, y, z = x + tau * dx, y + tau * dy, z + tau * dz
            slack = -ds / s.z - z / weights
            kappa = -(dk + s.kappa * tau) / s.tau
            return x, y, z, slack, tau, kappa

        def length(z: Any, slack: Any, tau: Any, kappa: Any) -> Any:
            def most(value: Any, change: Any) -> Any:
                ratio = -value / fnp.where(change < 0, change, -1)
                return fnp.min(fnp.where(change < 0, ratio, math.inf), initial=math.inf)

            ends = [most(s.z, z), most(s.s, slack)]
            ends += [most(s.tau, tau), most(s.kappa, kappa)]
            return fnp.minimum(fnp.min(fnp.stack(ends)), 1 / 0.99)

        mu = (s.s @ s.z + s.tau * s.kappa) / (m + 1)
        _, _, z, slack, tau, kappa = direction(1.0, s.s * s.z, s.kappa * s.tau)
        alpha = fnp.minimum(length(z, slack, tau, kappa), 1.0)
        sigma = (1 - alpha) ** 3
        ds = s.s * s.z + slack * z - sigma * mu
        dk = s.kappa * s.tau + kappa * tau - sigma * mu
        x, y, z, slack, tau, kappa = direction(1 - sigma, ds, dk)
        alpha = fnp.minimum(0.99 * length(z, slack, tau, kappa), 1.0)
        new = _State(
            s.x + alpha * x,
            s.y + alpha * y,
            s.z + alpha * z,
            s.s + alpha * slack,
            s.tau + alpha * tau,
            s.kappa + alpha * kappa,
            s.steps + 1,
            s.status,
            s.error,
            s.best,
        )
        # The embedding is homogeneous: any multiple will do.
        size = fnp.maximum(new.tau, new.kappa)
        new = _State._make([*(v / size for v in new[:6]), *new[6:]])
        status, error = judged(new)
        finite = fnp.isfinite(error) & fnp.isfinite(size) & (size > 0)
        stuck = ~finite | (alpha < 1e-8)
        better = finite & (error < s.error)
        point = (new.x / new.tau, new.y / new.tau, new.z / new.tau)
        best = tuple(
            fnp.where(better, a, b) for a, b in zip(point, s.best, strict=True)
        )
        error = fnp.where(better, error, s.error)
        end = fnp.where(error <= near, 0, 4)
        status = fnp.where(stuck & (status < 0), end, status)
        over = fnp.where(error <= near, 0, 1)
        status = fnp.where((new.steps >= maxiter) & (status < 0), over, status)
        return new._replace(status=status.astype(dtypes.int32), error=error, best=best)

    one = fnp.ones((), dtype)
    zero = lax.full((), 0, dtypes.int32)
    point = (fnp.zeros(n, dtype), fnp.zeros(k, dtype), fnp.ones(m, dtype))
    far = fnp.full((), math.inf, dtype)
    start = _State(*point, fnp.ones(m, dtype), one, one, zero, zero - 1, far, point)
    end = lax.while_loop(lambda s: s.status < 0, step, start)
    x, y, z = end.best
    found = Solution(
        x * scaled.columns + fixed,
        y * scaled.rows[0] / scaled.cost,
        z[: p.h.size] * scaled.rows[1] / scaled.cost,
    )
    found = _polished(program, found) if polish else found
    return found, end.status, end.steps


#: One program for each shape, also when it is called eagerly.
run = jit(solve, static_argnames=("maxiter", "tol"))


def _polished(p: Program, found: Solution) -> Solution:
    """Returns a solution after Newton's steps on its conditions, if they help."""
    found = found._replace(x=fnp.clip(found.x, p.low, p.high))
    polished: Solution = lax.fori_loop(0, 2, lambda _, at: _newton(p, at), found)
    return polished


def _newton(p: Program, found: Solution) -> Solution:
    def size(at: Solution) -> Any:
        return sum(fnp.sum(fnp.abs(v)) for v in conditions(p, at))

    # The derivative of the projections: which bounds and rows are active.
    slope = reduced_costs(p, found)
    target = found.x - slope
    at_bound = (target <= p.low) | (target >= p.high)
    active = found.z > p.h - p.G @ found.x
    left = conditions(p, found)

    def linear(d: Solution) -> Solution:
        moved = p.P @ d.x + p.A.T @ d.y + p.G.T @ d.z
        return Solution(
            fnp.where(at_bound, d.x, moved),
            p.A @ d.x,
            fnp.where(active, -(p.G @ d.x), d.z),
        )

    # conditions: an active row is h - G x = 0, and any other z = 0.
    right = Solution(left.x, left.y, left.z)
    step = dense_solve(linear, right)
    new = Solution(*(a - d for a, d in zip(found, step, strict=True)))
    new = new._replace(x=fnp.clip(new.x, p.low, p.high), z=fnp.maximum(new.z, 0))
    better = size(new) < size(found)
    return Solution(*(fnp.where(better, a, b) for a, b in zip(new, found, strict=True)))
