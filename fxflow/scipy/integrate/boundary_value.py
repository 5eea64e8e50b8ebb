"""Boundary value problems: `solve_bvp`, by collocation on a mesh that is refined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import natural
from fxflow.lax.checking import debug_check
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.piecewise import PPoly
from fxflow.scipy.linalg import lu_factor, lu_solve
from fxflow.transforms.custom_derivatives import closure_convert
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.grad import jacfwd
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jit import jit
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vmap import vmap

#: Room for the nodes of the first meshes, if twice the given ones are not more. A
#: solution that needs more begins where the last one ended.
_ROOMS = (16, 96)
_MESSAGES = {
    0: "The algorithm converged to the desired accuracy.",
    1: "There is no room for more mesh nodes: increase max_nodes.",
    2: "A singular Jacobian was met when solving the collocation system.",
    3: "The boundary conditions could not be met to their tolerance.",
}


class BVPResult(NamedTuple):
    """What `solve_bvp` returns.

    Attributes:
      sol: the solution as a function: a `PPoly` to array[n, ...].
      p: the parameters, array[k]; None if there are none.
      x: float[max_nodes]: the nodes, the last one again after the last.
      y: array[n, max_nodes]: the solution there.
      yp: array[n, max_nodes]: its derivatives.
      rms_residuals: float[max_nodes - 1]: relative residuals of the intervals.
      num_nodes: int: the number of nodes.
      niter: int: how many meshes were tried.
      status: int: 0 it converged; 1 `max_nodes` are not enough; 2 a matrix was
        singular; 3 the boundary conditions are not met.
    """

    sol: PPoly
    p: Array | None
    x: Array
    y: Array
    yp: Array
    rms_residuals: Array
    num_nodes: Array
    niter: Array
    status: Array

    @property
    def success(self) -> Array:
        """Whether it converged."""
        return self.status == 0

    @property
    def message(self) -> str:
        """What the status means, once it is known."""
        return _MESSAGES[int(self.status)]


# -- linear systems of neighbours ------------------------------------------------------


class _Factors(NamedTuple):
    """The factorization of a system in which neighbours and both ends are coupled."""

    rotations: Array  # [m - 1, 2n, 2n]
    triangles: Array  # [m - 1, n, n]
    rows: Array  # [m - 1, n, 2n + k]: what remains beside the triangles
    ends: Any  # factors of the equations of both ends and the parameters


def _factored(left: Array, right: Array, more: Array, conditions: Array) -> _Factors:
    """Eliminates one unknown after the other by orthogonal transformations.

    Args:
      left: array[m - 1, n, n]: coefficients of the unknowns where intervals start.
      right: those where they end.
      more: array[m - 1, n, k]: those of the parameters.
      conditions: array[n + k, 2n + k]: of the first and last unknowns, and parameters.

    Source: S. J. Wright, Stable parallel algorithms for two-point boundary value
      problems, 1992.
    """
    n, k = left.shape[1], more.shape[2]
    eye, zero = fnp.eye(n, dtype=left.dtype), fnp.zeros((n, n), left.dtype)

    def eliminate(relation: Array, block: Any) -> Any:
        # The relation is between the first unknown, this one and the parameters.
        a, b, c = block
        first, this, others = (
            relation[:, :n],
            relation[:, n : 2 * n],
            relation[:, 2 * n :],
        )
        above = fnp.concatenate([this, first, zero, others, eye, zero], 1)
        below = fnp.concatenate([a, zero, b, c, zero, eye], 1)
        out = _reflected(fnp.concatenate([above, below]), n)
        triangle, rotated, rotation = fnp.split(out, [n, 3 * n + k], 1)
        return rotated[n:], (rotation, triangle[:n], rotated[:n])

    start = fnp.concatenate([-eye, eye, fnp.zeros((n, k), left.dtype)], 1)
    relation, kept = lax.scan(eliminate, start, (left, right, more))
    rotations, triangles, rows = kept
    ends = lu_factor(fnp.concatenate([relation, conditions]))
    return _Factors(rotations, triangles, rows, ends)


def _reflected(matrix: Array, columns: int) -> Array:
    """Returns a matrix whose first columns reflections have made triangular.

    Householder's reflections one after the other: for small blocks, of which a batch
    has many, LAPACK's calls take longer.
    """
    rows = np.arange(matrix.shape[0])

    def reflect(j: Array, m: Array) -> Array:
        column = fnp.where(rows >= j, m[:, j], 0)
        head = column[j]
        length = fnp.sqrt(fnp.sum(column**2))
        shift = fnp.where(head < 0, -length, length)
        v = fnp.where(rows == j, head + shift, column)
        square = fnp.sum(v**2)
        factor = 2 / fnp.where(square == 0, 1, square)
        return m - factor * v[:, None] * (v @ m)

    return lax.fori_loop(0, columns, reflect, matrix)


def _solved(factors: _Factors, residuals: Array, last: Array) -> tuple[Array, Array]:
    """Returns the unknowns array[m, n], and those of the parameters."""
    n = residuals.shape[1]

    def forward(q: Array, xs: Any) -> Any:
        rotation, r = xs
        both = rotation @ fnp.concatenate([q, r])
        return both[n:], both[:n]

    q, kept = lax.scan(
        forward, fnp.zeros_like(residuals[0]), (factors.rotations, residuals)
    )
    ends = lu_solve(factors.ends, fnp.concatenate([q, last]))
    first, final, params = ends[:n], ends[n : 2 * n], ends[2 * n :]

    def back(following: Array, xs: Any) -> Any:
        triangle, row, rhs = xs
        known = fnp.concatenate([first, following, params])
        out = lax.linalg.triangular_solve(
            triangle, (rhs - row @ known)[:, None], left_side=True
        )[:, 0]
        return out, out

    _, rest = lax.scan(
        back, final, (factors.triangles, factors.rows, kept), reverse=True
    )
    return fnp.concatenate([rest, final[None]]), params


# -- collocation -----------------------------------------------------------------------


class _System:
    """The equations of collocation at three points of each interval.

    Args:
      fun: of a point, the state and parameters to the slope.
      bc: of both end states and parameters to the residuals of the conditions.
    """

    def __init__(self, fun: Callable[..., Array], bc: Callable[..., Array]) -> None:
        self.fun, self.bc = fun, bc

    def interval(self, y: Array, after: Array, p: Array, x: Array, h: Array) -> Any:
        """Returns the residual of an interval, and the slope in its middle."""
        f, f_after = self.fun(x, y, p), self.fun(x + h, after, p)
        middle = (y + after) / 2 - h / 8 * (f_after - f)
        f_middle = self.fun(x + h / 2, middle, p)
        return after - y - h / 6 * (f + f_after + 4 * f_middle), f_middle

    def residuals(self, x: Array, y: Array, p: Array) -> tuple[Array, Array, Array]:
        """Returns residuals of the intervals, of the conditions, and middle slopes."""
        h = fnp.diff(x)
        each = vmap(self.interval, (0, 0, None, 0, 0))
        found, middle = each(y[:-1], y[1:], p, x[:-1], h)
        return found, self.bc(y[0], y[-1], p), middle

    def factors(self, x: Array, y: Array, p: Array) -> _Factors:
        """Returns the factorization of the Jacobian."""

        def residual(y: Array, after: Array, p: Array, x: Array, h: Array) -> Any:
            return self.interval(y, after, p, x, h)[0]

        parts = vmap(jacfwd(residual, (0, 1, 2)), (0, 0, None, 0, 0))
        left, right, more = parts(y[:-1], y[1:], p, x[:-1], fnp.diff(x))
        ends = jacfwd(self.bc, (0, 1, 2))(y[0], y[-1], p)
        return _factored(left, right, more, fnp.concatenate(ends, 1))


class _Newton(NamedTuple):
    y: Array
    p: Array
    residuals: Array
    last: Array
    step: tuple[Array, Array]
    factors: _Factors
    jacobians: Any
    count: Any
    stale: Any  # whether the Jacobian is to be computed anew
    going: Any


def _newton(
    system: _System, x: Array, y: Array, p: Array, tol: Array, bc_tol: Array, fix: Any
) -> tuple[Array, Array]:
    """Solves the equations by a damped Newton method, with Jacobians used again."""
    h = fnp.diff(x)
    enough = 2 / 3 * h * 5e-2 * tol

    def iterate(s: _Newton) -> _Newton:
        def renew() -> Any:
            factors = system.factors(x, s.y, s.p)
            return factors, _solved(factors, s.residuals, s.last)

        factors, step = lax.cond(s.stale, renew, lambda: (s.factors, s.step))
        cost = _square(step)

        def shorter(carry: Any) -> Any:
            alpha, trial, _ = carry
            alpha = alpha / 2
            y, p = fix(s.y - alpha * step[0]), s.p - alpha * step[1]
            residuals, last, middle = system.residuals(x, y, p)
            small = fnp.abs(residuals) <= enough[:, None] * (1 + fnp.abs(middle))
            fine = fnp.all(small) & fnp.all(fnp.abs(last) < bc_tol)
            new = _solved(factors, residuals, last)
            return alpha, trial + 1, (y, p, residuals, last, new, fine)

        def too_long(carry: Any) -> Any:
            alpha, trial, found = carry
            worse = ~(_square(found[4]) < (1 - 0.4 * alpha) * cost)
            return (trial < 5) & (worse | (trial == 0))

        two = fnp.full_like(cost, 2)
        none = s.y, s.p, s.residuals, s.last, step, fnp.asarray(False)
        alpha, _, found = lax.while_loop(too_long, shorter, (two, np.int32(0), none))
        y, p, residuals, last, new, fine = found
        jacobians = s.jacobians + s.stale
        going = ~fine & (jacobians < 4) & (s.count < 7) & fnp.isfinite(_square(new))
        return _Newton(
            *(y, p, residuals, last, new, factors),
            *(jacobians, s.count + 1, alpha < 1, going),
        )

    residuals, last, _ = system.residuals(x, y, p)
    empty = tree.map(
        lambda t: fnp.zeros(t.shape, t.dtype), eval_shape(system.factors, x, y, p)
    )
    zero, yes = np.int32(0), fnp.asarray(True)
    step = fnp.zeros_like(y), fnp.zeros_like(p)
    start = _Newton(y, p, residuals, last, step, empty, zero, zero, yes, yes)
    out = lax.while_loop(lambda s: s.going, iterate, start)
    return out.y, out.p


def _square(step: tuple[Array, Array]) -> Array:
    return fnp.sum(step[0] ** 2) + fnp.sum(step[1] ** 2)


def _cubics(x: Array, y: Array, f: Array) -> Array:
    """Returns coefficients of the cubic splines, array[4, m - 1, n]."""
    h = fnp.diff(x)[:, None]
    h = fnp.where(h == 0, 1, h)
    slope = fnp.diff(y, axis=0) / h
    bend = (f[:-1] + f[1:] - 2 * slope) / h
    return fnp.stack([bend / h, (slope - f[:-1]) / h - bend, f[:-1], y[:-1]])


def _at(c: Array, s: Array) -> tuple[Array, Array]:
    """Returns values and derivatives of cubics at distances from their nodes."""
    s = s[:, None]
    value = ((c[0] * s + c[1]) * s + c[2]) * s + c[3]
    return value, (3 * c[0] * s + 2 * c[1]) * s + c[2]


def _rms(system: _System, x: Array, y: Array, p: Array, c: Array) -> Array:
    """Returns the root mean squares of relative residuals, by Lobatto's rule."""
    h = fnp.diff(x)
    fun = vmap(system.fun, (0, 0, None))
    found, _, middle = system.residuals(x, y, p)
    safe = fnp.where(h == 0, 1, h)[:, None]

    def square(r: Array, f: Array) -> Array:
        return fnp.sum((r / (1 + fnp.abs(f))) ** 2, 1)

    total = 32 / 45 * square(1.5 * found / safe, middle)
    for sign in (1, -1):
        s = h / 2 * (1 + sign * (3 / 7) ** 0.5)
        value, slope = _at(c, s)
        f = fun(x[:-1] + s, value, p)
        total = total + 49 / 90 * square(slope - f, f)
    return fnp.where(h == 0, 0, fnp.sqrt(total / 2))


class _Mesh(NamedTuple):
    x: Array
    y: Array
    p: Array
    number: Any
    count: Any
    status: Any
    rms: Array


def _refined(mesh: _Mesh, c: Array, added: Array) -> _Mesh:
    """Returns a mesh with up to two more nodes in each interval."""
    x, h = mesh.x, fnp.diff(mesh.x)
    size = x.size
    before = fnp.concatenate([fnp.zeros(1, np.int32), fnp.cumsum(added)])
    place = np.arange(size) + before
    new_x = fnp.full_like(x, x[-1]).at[place].set(x, mode="drop")
    new_y = fnp.broadcast_to(mesh.y[-1], mesh.y.shape)
    new_y = new_y.at[place].set(mesh.y, mode="drop")
    for i in (1, 2):
        part = h * i / (added + 1)
        at = fnp.where(added >= i, place[:-1] + i, size)
        new_x = new_x.at[at].set(x[:-1] + part, mode="drop")
        new_y = new_y.at[at].set(_at(c, part)[0], mode="drop")
    return mesh._replace(x=new_x, y=new_y, number=mesh.number + before[-1])


def _search(system: _System, mesh: _Mesh, tol: Array, bc_tol: Array, fix: Any) -> _Mesh:
    """Solves on finer and finer meshes until the residuals are small."""

    def attempt(mesh: _Mesh) -> _Mesh:
        y, p = _newton(system, mesh.x, mesh.y, mesh.p, tol, bc_tol, fix)
        f = vmap(system.fun, (0, 0, None))(mesh.x, y, p)
        c = _cubics(mesh.x, y, f)
        rms = _rms(system, mesh.x, y, p, c)
        added = (rms > tol).astype(np.int32) + (rms >= 100 * tol)
        total = fnp.sum(added)
        met = fnp.max(fnp.abs(system.bc(y[0], y[-1], p))) <= bc_tol
        finite = fnp.all(fnp.isfinite(y)) & fnp.all(fnp.isfinite(rms))
        full = mesh.number + total > mesh.x.size
        status = fnp.where(met, 0, fnp.where(mesh.count >= 9, 3, -1))
        status = fnp.where(total > 0, fnp.where(full, 1, -1), status)
        status = fnp.where(finite, status, 2).astype(np.int32)
        now = mesh._replace(y=y, p=p, count=mesh.count + 1, status=status, rms=rms)
        return lax.cond(
            (status < 0) & (total > 0), lambda: _refined(now, c, added), lambda: now
        )

    return lax.while_loop(lambda m: m.status < 0, attempt, mesh)


def _with_room(mesh: _Mesh, room: int) -> _Mesh:
    """Returns a mesh with room for more nodes, to go on if there was not enough."""
    more = room - mesh.x.size
    full = mesh.status == 1
    return mesh._replace(
        x=fnp.pad(mesh.x, (0, more), mode="edge"),
        y=fnp.pad(mesh.y, ((0, more), (0, 0)), mode="edge"),
        rms=fnp.pad(mesh.rms, (0, more)),
        count=mesh.count - full,
        status=fnp.where(full, -1, mesh.status).astype(np.int32),
    )


def _checked(
    name: str, x: Any, y: Any, p: Any, S: Any, max_nodes: int, tol: float
) -> tuple[Array, Array, Array, Array | None]:
    """Returns the mesh, the guess, the parameters and the singular term."""
    given = [x, y] + [v for v in (p, S) if v is not None]
    values = promote_inexact(name, *given)
    nodes, guess = values[:2]
    if dtypes.is_complex(nodes.dtype):
        raise DtypeError(f"{name}: arguments must be real, got {guess.aval}")
    if nodes.ndim != 1 or guess.ndim != 2 or guess.shape[1] != nodes.size:
        raise ShapeError(
            f"{name}: x must be float[m] and y float[n,m], got {nodes.aval} and "
            f"{guess.aval}"
        )
    n, m = guess.shape
    params = values[2] if p is not None else fnp.zeros(0, nodes.dtype)
    if params.ndim != 1:
        raise ShapeError(f"{name}: p must be a vector, got {params.aval}")
    room = natural(name, "max_nodes", max_nodes)
    if m > room or m < 2:
        raise ArgumentError(
            f"{name}: x must have 2 to max_nodes = {room} nodes, got {nodes.aval}"
        )
    if not isinstance(nodes, Tracer) and np.any(np.diff(np.asarray(nodes)) <= 0):
        raise ArgumentError(f"{name}: x must be strictly ascending")
    if not tol > 0:
        raise ArgumentError(f"{name}: tol must be positive, got {tol}")
    singular = None if S is None else values[-1]
    if singular is not None and singular.shape != (n, n):
        raise ShapeError(f"{name}: S must be float[{n},{n}], got {singular.aval}")
    return nodes, guess, params, singular


def _differentiable(
    whole: _System, still: _System, mesh: _Mesh, a: Array, b: Array, fix: Any
) -> tuple[Array, Array, Array]:
    """Returns the last mesh, the solution there and the parameters, differentiable.

    Nodes are fixed parts of the interval. Two steps with a fixed matrix from the
    solution give its first and second derivatives.

    Args:
      whole: the system.
      still: the system with constants in place of what is differentiated.
      mesh: with the solution.
      a: where the interval begins.
      b: where it ends.
      fix: projects the solution at a singular beginning.
    """
    part = lax.stop_gradient((mesh.x - a) / (b - a))
    moved_a, moved_b = (v - lax.stop_gradient(v) for v in (a, b))
    at = lax.stop_gradient(mesh.x) + (1 - part) * moved_a + part * moved_b
    ys, ps = lax.stop_gradient((mesh.y, mesh.p))
    factors = lax.stop_gradient(still.factors(mesh.x, ys, ps))
    for _ in range(2):
        residuals, last, _ = whole.residuals(at, ys, ps)
        step = _solved(factors, residuals, last)
        ys, ps = fix(ys - step[0]), ps - step[1]
    return at, ys, ps


def _solution(system: Callable[..., _System], fix: Any) -> Any:
    """Returns a function to the mesh, the solution and parameters, differentiable.

    Args:
      system: of where the interval begins and of what `fun` and `bc` close over.
      fix: projects the solution at a singular beginning.
    """

    @custom_jvp
    def solution(a: Array, b: Array, in_fun: Any, in_bc: Any, mesh: _Mesh) -> Any:
        return mesh.x, mesh.y, mesh.p

    @solution.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        *given, mesh = primals

        def moved(a: Array, b: Array, in_fun: Any, in_bc: Any) -> Any:
            held = [lax.stop_gradient(v) for v in (a, in_fun, in_bc)]
            systems = system(a, in_fun, in_bc), system(*held)
            return _differentiable(*systems, mesh, a, b, fix)

        return solution(*primals), jvp(moved, tuple(given), tuple(tangents[:4]))[1]

    return solution


def _slope_of(
    name: str, fun: Callable[..., Any], takes: Any, n: int, singular: Array | None
) -> Callable[..., Array]:
    """Returns the slope at one point, with the singular term: of x, y, p and a."""

    def slope(x: Array, y: Array, p: Array, a: Array) -> Array:
        out = fnp.asarray(fun(x[None], y[:, None], *takes(p)))
        if out.shape != (n, 1):
            raise ShapeError(
                f"{name}: fun must return the shape of y, of m points array[{n},m], "
                f"got {out.aval} of one point"
            )
        out = fnp.astype(out[:, 0], y.dtype)
        if singular is None:
            return out
        # At a the limit: the slope there solves (I - S) y' = f.
        first = fnp.linalg.pinv(fnp.eye(n, dtype=y.dtype) - singular) @ out
        at = x == a
        rest = singular @ y / fnp.where(at, 1, x - a)
        return fnp.where(at, first, out + rest)

    return slope


def _conditions_of(
    name: str, bc: Callable[..., Any], takes: Any, count: int
) -> Callable[..., Array]:
    """Returns the residuals of the boundary conditions: of both ends and p."""

    def conditions(ya: Array, yb: Array, p: Array) -> Array:
        out = fnp.asarray(bc(ya, yb, *takes(p)))
        if out.shape != (count,):
            raise ShapeError(
                f"{name}: bc must return n + k = {count} numbers, got {out.aval}"
            )
        return fnp.astype(out, ya.dtype)

    return conditions


def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: ArrayLike,
    y: ArrayLike,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
) -> BVPResult:
    """Solves dy/dx = fun(x, y, p) + S y / (x - a) with bc(y(a), y(b), p) = 0.

    Collocation at three points of each interval, of order 4; the mesh gets more nodes
    until the residuals are small. It can be differentiated with respect to what `fun`
    and `bc` close over and the ends of the interval, in both modes and twice: the
    derivative is that of the solution on the last mesh.

    Args:
      fun: called as `fun(x, y)` or `fun(x, y, p)` with float[m] and array[n, m];
        returns array[n, m]. Each column depends on its own column.
      bc: called as `bc(ya, yb)` or `bc(ya, yb, p)`; returns array[n + k].
      x: float[m]: the first mesh, ascending from a to b.
      y: real array[n, m]: a guess of the solution.
      p: real array[k]: a guess of unknown parameters.
      S: real array[n, n]: a singular term at a.
      fun_jac: not used: derivatives are exact.
      bc_jac: not used.
      tol: how small the relative residuals are to be.
      max_nodes: the maximum number of nodes. The work is that of all of them.
      verbose: not used.
      bc_tol: how small the residuals of `bc` are to be; None: `tol`.

    Returns:
      A `BVPResult`.

    Raises:
      ArgumentError: `x` does not ascend, or `max_nodes` are less than its nodes.
      DtypeError: `y` is complex.
      ShapeError: a shape is incompatible.
      CheckError: under `checkify`, if it does not converge.

    Example:
      >>> x = np.linspace(0.0, 1.0, 5)
      >>> found = solve_bvp(
      ...     lambda x, y: fnp.stack([y[1], -fnp.exp(y[0])]),
      ...     lambda ya, yb: fnp.stack([ya[0], yb[0]]),
      ...     *(x, np.zeros((2, 5))),
      ...     max_nodes=32,
      ... )
      >>> round(float(found.sol(0.5)[0]), 3), bool(found.success)
      (0.141, True)

    Source: `scipy.integrate.solve_bvp`; J. Kierzenka and L. F. Shampine, A BVP Solver
    Based on Residual Control and the MATLAB PSE, 2001.
    """
    name = "solve_bvp"
    nodes, guess, params, singular = _checked(name, x, y, p, S, max_nodes, tol)
    n, m = guess.shape
    room = natural(name, "max_nodes", max_nodes)
    small = max(float(tol), 100 * float(np.finfo(nodes.dtype).eps))
    bc_small = small if bc_tol is None else float(bc_tol)
    takes = (lambda p: (p,)) if p is not None else (lambda p: ())
    slope = _slope_of(name, fun, takes, n, singular)
    conditions = _conditions_of(name, bc, takes, n + params.size)
    one = nodes[0], guess[:, 0], params
    flat_fun, in_fun = closure_convert(slope, *one, nodes[0])
    flat_bc, in_bc = closure_convert(conditions, guess[:, 0], guess[:, -1], params)

    def system(a: Array, in_fun: Any, in_bc: Any) -> _System:
        return _System(
            lambda x, y, p: flat_fun(x, y, p, a, *in_fun),
            lambda ya, yb, p: flat_bc(ya, yb, p, *in_bc),
        )

    def fix(y: Array) -> Array:
        if singular is None:
            return y
        fixed = lax.stop_gradient(singular)
        project = fnp.eye(n, dtype=y.dtype) - fnp.linalg.pinv(fixed) @ fixed
        return y.at[0].set(project @ y[0])

    def search(x: Array, y: Array, p: Array, in_fun: Any, in_bc: Any) -> _Mesh:
        # Most solutions need few nodes, and the work is that of all there is room for.
        rooms = [max(2 * m, r) for r in _ROOMS]
        rooms = [*dict.fromkeys(r for r in rooms if 4 * r <= room), room]
        pad = rooms[0] - m
        start = _Mesh(
            fnp.concatenate([x, fnp.broadcast_to(x[-1], (pad,))]),
            fnp.concatenate([fix(y.T), fnp.broadcast_to(y[:, -1], (pad, n))]),
            *(p, np.int32(m), np.int32(0), np.int32(-1)),
            fnp.zeros(rooms[0] - 1, x.dtype),
        )
        tolerances = fnp.asarray(small, x.dtype), fnp.asarray(bc_small, x.dtype)
        equations = system(x[0], in_fun, in_bc)
        found = _search(equations, start, *tolerances, fix)
        for more in rooms[1:]:
            found = _search(equations, _with_room(found, more), *tolerances, fix)
        return found

    fixed = [lax.stop_gradient(v) for v in (nodes, guess, params, in_fun, in_bc)]
    mesh: _Mesh = jit(search)(*fixed)  # type: ignore[arg-type]
    debug_check(
        mesh.status == 0, f"{name}: it did not converge, see BVPResult.status: {{}}",
        mesh.status,
    )  # fmt: skip
    solution = _solution(system, fix)
    at, ys, ps = solution(nodes[0], nodes[-1], in_fun, in_bc, mesh)
    slopes = system(nodes[0], in_fun, in_bc).fun
    f = vmap(slopes, (0, 0, None))(at, ys, ps)
    sol = object.__new__(PPoly)
    sol._set(_cubics(at, ys, f), at, True, 1)
    return BVPResult(
        *(sol, ps if p is not None else None, at, ys.T, f.T),
        *(mesh.rms, mesh.number, mesh.count, mesh.status),
    )
