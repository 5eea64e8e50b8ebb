"""Iterative solvers of linear systems.

The map is a matrix, dense or sparse, a linear operator, or a function of pytrees. A
solver is not differentiated itself: the derivative solves the same system again, the
transposed one in reverse mode.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import Completes, shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import convert, promote_inexact
from fxflow.numpy.linalg import lstsq
from fxflow.scipy._callbacks import showing
from fxflow.scipy.sparse.linalg.interface import (
    function_of,
    without_derivative,
)
from fxflow.scipy.sparse.linalg.vectors import (
    add,
    dot,
    minus,
    one_vector,
    orthonormal,
    plus,
    quotient,
    square,
    times,
    total,
    zeros,
)
from fxflow.transforms.inspection import eval_shape

docs_of_solvers: Completes = shared("""
    Args:
      A: the linear map: a matrix, dense or sparse, a `LinearOperator`, or a function of
        pytrees like `b`.
      b: right side: an array-like, or a pytree of them.
      x0: the initial guess, like `b`; None is 0.
      tol: relative tolerance of the residual: it is at most this times the norm of `b`.
      rtol: SciPy's name of `tol`, which it replaces if it is given.
      atol: absolute tolerance of the residual; the larger bound applies.
      maxiter: how many iterations are made at most; None is ten times the size of `b`.
      M: preconditioner: an approximate inverse of `A`, in any form that `A` takes; None
        is the identity.
      callback: called on the host with x after each iteration, for its side effects
        (see `debug.callback`); it cannot stop the solver. Systems that derivatives
        solve do not call it.

    Raises:
      ArgumentError: `A` or `M` is neither a matrix nor a function, or `callback` is not
        a function.
      ShapeError: the shapes are incompatible.
      TreeError: `A` returns another structure.

    Special cases:
      nan if `b` or the residual is not finite.
""")


@docs_of_solvers
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    rtol: float | None = None,
) -> tuple[Any, None]:
    """Solves A x = b by conjugate gradients: for symmetric, positive definite maps.

    Returns:
      x, like `b`, of its float dtype, and None. That the residual is small enough is
      not checked.

    Example:
      >>> x, _ = cg(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]))
      >>> x.round(4)
      Array([0.0909, 0.6364], dtype=float32)

    Source: `scipy.sparse.linalg.cg`; Hestenes and Stiefel 1952.
    """
    tol = tol if rtol is None else rtol
    given = (A, b, x0, tol, atol, maxiter, M, callback)
    return solved("cg", _cg, *given, symmetric=True)[0], None


@docs_of_solvers
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    rtol: float | None = None,
) -> tuple[Any, None]:
    """Solves A x = b by stabilized biconjugate gradients: for any maps.

    Returns:
      x, like `b`, of its float dtype, and None. That the residual is small enough is
      not checked.

    Example:
      >>> x, _ = bicgstab(np.array([[4.0, 1.0], [0.0, 2.0]]), np.array([6.0, 2.0]))
      >>> x.round(3)
      Array([1.25, 1.  ], dtype=float32)

    Source: `scipy.sparse.linalg.bicgstab`; van der Vorst 1992.
    """
    tol = tol if rtol is None else rtol
    given = (A, b, x0, tol, atol, maxiter, M, callback)
    return solved("bicgstab", _bicgstab, *given)[0], None


@docs_of_solvers
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
    callback: Any = None,
    callback_type: str = "pr_norm",
    rtol: float | None = None,
) -> tuple[Any, Array]:
    """Solves A x = b by the generalized minimal residual method: for any maps.

    Args:
      restart: how many directions are kept before it begins again where it is.
      maxiter: how often it begins at most; None is ten times the size of `b`.
      solve_method: "batched" or "incremental": has no effect.
      callback: called on the host, for its side effects; see `callback_type`.
      callback_type: what the callback gets: "pr_norm", after each direction the norm of
        the residual of the preconditioned system, relative to the right side's; or "x",
        x before it begins again.

    Returns:
      x, like `b`, of its float dtype, and an integer: 0, or -1 if there is a nan in x.

    Raises:
      ArgumentError: `A` or `M` is neither a matrix nor a function, or the method or the
        type of callback is unknown.

    Example:
      >>> x, _ = gmres(np.array([[4.0, 1.0], [0.0, 2.0]]), np.array([6.0, 2.0]))
      >>> x.round(3)
      Array([1.25, 1.  ], dtype=float32)

    Source: `scipy.sparse.linalg.gmres`; Saad and Schultz 1986.
    """
    if solve_method not in ("batched", "incremental"):
        raise ArgumentError(
            'gmres: solve_method must be "batched" or "incremental", got '
            f"{solve_method!r}"
        )
    if restart < 1:
        raise ArgumentError(f"gmres: restart must be positive, got {restart}")
    if callback_type not in ("pr_norm", "x"):
        raise ArgumentError(
            f'gmres: callback_type must be "pr_norm" or "x", got {callback_type!r}'
        )
    norms = None
    if callback_type == "pr_norm":
        norms, callback = showing("gmres", callback), None
    tol = tol if rtol is None else rtol
    method = functools.partial(_gmres, restart=restart, norms=norms)
    x, _ = solved("gmres", method, A, b, x0, tol, atol, maxiter, M, callback)
    lost = total(tree.map(lambda v: fnp.sum(v != v), x)) > 0
    return x, fnp.where(lost, -1, 0)


# -- what they share -------------------------------------------------------------------


def solved(
    name: str,
    method: Callable[..., Any],
    A: Any,
    b: Any,
    x0: Any,
    tol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    callback: Any = None,
    symmetric: bool = False,
) -> tuple[Any, Any]:
    """Returns the solution by a method, with an implicit derivative, and whether it is.

    Args:
      name: of the solver, for messages.
      method: takes the map, b, the residual, the bound of the square of its norm,
        `maxiter`, the preconditioner and a function that it calls with the solution
        after each iteration; returns the solution for the residual, the square of the
        norm that is left, and the number of iterations.
      A: see `cg`, as are the arguments from here on.
      b: right side.
      x0: the initial guess.
      tol: relative bound.
      atol: absolute bound.
      maxiter: bound of iterations.
      M: preconditioner.
      callback: called with x on the host.
      symmetric: whether the map is its own transpose.

    Returns:
      x, and an integer: 0, or the number of iterations if the residual is not small
      enough.
    """
    b = tree.map(lambda v: promote_inexact(name, v)[0], b)
    matvec = function_of(name, "A", A)
    # The right side of a complex map is complex, too.
    image = eval_shape(matvec, b)
    if tree.structure(image) == tree.structure(b):
        b = tree.map(
            lambda v, w: promote_inexact(name, v, fnp.zeros((), w.dtype))[0], b, image
        )
    if x0 is not None:
        x0 = tree.map(lambda v, w: convert(promote_inexact(name, v)[0], w.dtype), x0, b)
    for v, w in zip(tree.leaves(x0), tree.leaves(b), strict=x0 is not None):
        if v.shape != w.shape:
            raise ShapeError(
                f"{name}: x0 and b must have the same shapes, got {typeof(v)} and "
                f"{typeof(w)}"
            )
    precondition = (lambda v: v) if M is None else function_of(name, "M", M)
    if maxiter is None:
        maxiter = 10 * sum(v.size for v in tree.leaves(b))

    tell = showing(name, callback)

    def solve(
        matvec: Any, b: Any, precondition: Any = precondition, tell: Any = None
    ) -> Any:
        # A step to the solution from x0, in units in which squares are in range.
        r = b if x0 is None else minus(b, matvec(x0))
        unit = _unit(r)
        b, r = (times(1 / unit, v) for v in (b, r))
        size = square(b)
        least = fnp.square(atol / convert(unit, size.dtype))
        bound = lax.max(size * tol**2, convert(least, size.dtype))

        def seen(x: Any) -> None:
            if tell is not None:
                x = times(unit, x)
                tell(x if x0 is None else add(x0, x))

        x, rest, count = method(matvec, b, r, bound, maxiter, precondition, seen)
        info = fnp.where(rest <= bound, 0, fnp.maximum(count, 1))
        # A residual that is not finite would seem small enough.
        unit = fnp.where(fnp.isfinite(rest), unit, math.nan)
        x = times(unit, x)
        x = x if x0 is None else add(x0, x)
        return x, info.astype(dtypes.int32)

    if tell is not None:
        # Solved once, as if nothing had a derivative; those of the root solve again.
        fixed = lax.stop_gradient(b)
        x0 = lax.stop_gradient(x0)
        parts = [without_derivative(f, fixed) for f in (matvec, precondition)]
        x, info = solve(parts[0], fixed, parts[1], tell)
        again = (tol, atol, maxiter, M, None, symmetric)
        x = lax.custom_root(
            lambda x: minus(matvec(x), b),
            x,
            lambda f, x: x,
            lambda g, y: solved(name, method, g, y, None, *again)[0],
        )
        return x, info

    # A preconditioner of the map is taken for one of the transposed map too.
    found: tuple[Any, Any] = lax.custom_linear_solve(
        matvec, b, solve, transpose_solve=solve, symmetric=symmetric, has_aux=True
    )
    return found


def _unit(x: Any) -> Any:
    """Returns a power of two near the largest element: products with it are exact."""
    sizes = [fnp.max(fnp.abs(v), initial=0) for v in tree.leaves(x)]
    dtype = fnp.result_type(*sizes) if sizes else dtypes.default_float()
    least = lax.full((), 8 * float(fnp.finfo(dtype).tiny), dtype)
    size = functools.reduce(fnp.maximum, [convert(v, dtype) for v in sizes], least)
    return fnp.ldexp(fnp.ones_like(size), fnp.frexp(size)[1] - 2)


# Each returns the solution of A x = r, the square of the residual's norm, and how many
# iterations there were.


def _cg(A: Any, b: Any, r: Any, bound: Any, maxiter: int, M: Any, tell: Any) -> Any:
    z = M(r)

    def more(state: Any) -> Any:
        _, r, _, _, k = state
        return (square(r) > bound) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, p, gamma, k = state
        image = A(p)
        alpha = quotient(gamma, dot(p, image))
        x, r = plus(x, alpha, p), plus(r, -alpha, image)
        tell(x)
        z = M(r)
        now = dot(r, z)
        return x, r, plus(z, quotient(now, gamma), p), now, k + 1

    start = (zeros(r), r, z, dot(r, z), 0)
    x, r, _, _, k = lax.while_loop(more, step, start)
    return x, square(r), k


def _bicgstab(
    A: Any, b: Any, r: Any, bound: Any, maxiter: int, M: Any, tell: Any
) -> Any:
    shadow, rho = r, dot(r, r)

    def more(state: Any) -> Any:
        _, r, _, rho, k = state
        return (square(r) > bound) & (rho != 0) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, p, rho, k = state
        toward = M(p)
        v = A(toward)
        alpha = quotient(rho, dot(shadow, v))
        s = plus(r, -alpha, v)
        onward = M(s)
        t = A(onward)
        omega = quotient(dot(t, s), dot(t, t))
        x = plus(plus(x, alpha, toward), omega, onward)
        tell(x)
        r = plus(s, -omega, t)
        now = dot(shadow, r)
        beta = quotient(now, rho) * quotient(alpha, omega)
        return x, r, plus(r, beta, plus(p, -omega, v)), now, k + 1

    x, r, _, _, k = lax.while_loop(more, step, (zeros(r), r, r, rho, 0))
    return x, square(r), k


def _gmres(
    A: Any,
    b: Any,
    start: Any,
    bound: Any,
    maxiter: int,
    M: Any,
    tell: Any,
    *,
    restart: int,
    norms: Any,
) -> Any:
    ravel, unravel, n, dtype = one_vector(b)
    steps = min(restart, n)

    def residual(x: Any) -> Any:
        return ravel(M(minus(start, A(x))))

    def cycle(state: Any) -> Any:
        x, r, k = state
        size = fnp.sqrt(fnp.real(fnp.vdot(r, r)))
        V = lax.full((steps + 1, n), 0, dtype)
        V = V.at[0].set(quotient(r, convert(size, dtype)))

        def arnoldi(carry: Any, i: Any) -> Any:
            V, H = carry
            w, h, length = orthonormal(V, ravel(M(A(unravel(V[i])))))
            h = h.at[i + 1].set(convert(length, dtype))
            return (V.at[i + 1].set(w), H.at[:, i].set(h)), None

        H = lax.full((steps + 1, steps), 0, dtype)
        (V, H), _ = lax.scan(arnoldi, (V, H), lax.iota(dtypes.int32, steps))
        target = lax.full((steps + 1,), 0, dtype).at[0].set(convert(size, dtype))
        wide = fnp.promote_types(dtype, dtypes.float32)
        y = lstsq(convert(H, wide), convert(target, wide))[0]
        if norms is not None:
            _tell_norms(norms, convert(H, wide), size, bound, whole)
        x = add(x, unravel(convert(y, dtype) @ V[:-1]))
        tell(x)
        return x, residual(x), k + 1

    # The bound holds for the residual of the preconditioned system.
    scaled = ravel(M(b))
    size, other = fnp.real(fnp.vdot(scaled, scaled)), square(b)
    bound = fnp.where(other == 0, bound, bound * size / fnp.where(other == 0, 1, other))
    whole = fnp.sqrt(size)

    def more(state: Any) -> Any:
        _, r, k = state
        return (fnp.real(fnp.vdot(r, r)) > bound) & (k < maxiter)

    x = zeros(b)
    if not n:
        return x, bound, 0
    x, r, k = lax.while_loop(more, cycle, (x, ravel(M(start)), 0))
    return x, fnp.real(fnp.vdot(r, r)), k


def _tell_norms(tell: Any, H: Any, size: Any, bound: Any, whole: Any) -> None:
    """Tells the norms of residuals after each direction, as long as they are large.

    Args:
      tell: called with a norm.
      H: (k + 1, k), upper Hessenberg.
      size: norm of the residual before.
      bound: of the square of the norm.
      whole: what norms are divided by.
    """
    k = H.shape[1]
    real = dtypes.to_real(H.dtype)

    # A vector f with fᵀ H = 0 and f₀ = 1: the residual is size / ‖f‖.
    def step(carry: Any, j: Any) -> Any:
        f, before = carry
        after = H[j + 1, j]
        new = -(f @ H[:, j]) / fnp.where(after == 0, 1, after)
        f = f.at[j + 1].set(fnp.where(after == 0, fnp.inf, new))
        square = fnp.sum(fnp.real(f) ** 2 + fnp.imag(f) ** 2)
        norm = fnp.where(square < fnp.inf, size.astype(real) / fnp.sqrt(square), 0)
        share = quotient(norm, whole.astype(real))
        lax.cond(before**2 > bound, lambda: tell(share), lambda: None)
        return (f, norm), None

    first = fnp.zeros(k + 1, H.dtype).at[0].set(1)
    lax.scan(step, (first, size.astype(real)), lax.iota(dtypes.int32, k))
