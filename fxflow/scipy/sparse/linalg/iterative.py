"""Iterative solvers of linear systems.

The map is a matrix, dense or sparse, a linear operator, or a function of pytrees. A
solver is not differentiated itself: the derivative solves the same system again, the
transposed one in reverse mode.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import convert, promote_inexact
from fxflow.numpy.linalg import lstsq
from fxflow.scipy.sparse.linalg.interface import function_of
from fxflow.transforms.inspection import eval_shape

_docs = shared("""
    Args:
      A: the linear map: a matrix, dense or sparse, a `LinearOperator`, or a function of
        pytrees like `b`.
      b: right side: an array-like, or a pytree of them.
      x0: where to begin, like `b`; None is 0.
      tol: how small the residual is to get, relative to `b`.
      atol: or how small it is to get absolutely; the larger bound holds.
      maxiter: how many iterations are made at most; None is ten times the size of `b`.
      M: what is nearly the inverse of `A`, given as `A` is; None is 1.

    Raises:
      ArgumentError: `A` or `M` is neither a matrix nor a function.
      ShapeError: the shapes do not go together.
      TreeError: `A` returns another structure.

    Special cases:
      nan if `b` or the residual is not finite.
""")


@_docs
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
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
    return _solved("cg", _cg, A, b, x0, tol, atol, maxiter, M, symmetric=True), None


@_docs
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
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
    return _solved("bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M), None


@_docs
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
) -> tuple[Any, Array]:
    """Solves A x = b by the generalized minimal residual method: for any maps.

    Args:
      restart: how many directions are kept before it begins again where it is.
      maxiter: how often it begins at most; None is ten times the size of `b`.
      solve_method: "batched" or "incremental": has no effect.

    Returns:
      x, like `b`, of its float dtype, and an integer: 0, or -1 if there is a nan in x.

    Raises:
      ArgumentError: `A` or `M` is neither a matrix nor a function, or there is no such
        method.

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
    method = functools.partial(_gmres, restart=restart)
    x = _solved("gmres", method, A, b, x0, tol, atol, maxiter, M)
    lost = _total(tree.map(lambda v: fnp.sum(v != v), x)) > 0
    return x, fnp.where(lost, -1, 0)


# -- what they share -------------------------------------------------------------------


def _solved(
    name: str,
    method: Callable[..., Any],
    A: Any,
    b: Any,
    x0: Any,
    tol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    symmetric: bool = False,
) -> Any:
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

    def solve(matvec: Any, b: Any) -> Any:
        # A step to the solution from x0, in units in which squares are in range.
        r = b if x0 is None else _minus(b, matvec(x0))
        unit = _unit(r)
        b, r = (_times(1 / unit, v) for v in (b, r))
        square = _square(b)
        least = fnp.square(atol / convert(unit, square.dtype))
        bound = lax.max(square * tol**2, convert(least, square.dtype))
        x, rest = method(matvec, b, r, bound, maxiter, precondition)
        # A residual that is not finite would seem small enough.
        unit = fnp.where(fnp.isfinite(rest), unit, math.nan)
        x = _times(unit, x)
        return x if x0 is None else tree.map(operator.add, x0, x)

    # A preconditioner of the map is taken for one of the transposed map too.
    return lax.custom_linear_solve(
        matvec, b, solve, transpose_solve=solve, symmetric=symmetric
    )


def _total(values: Any) -> Any:
    return functools.reduce(operator.add, tree.leaves(values))


def _dot(x: Any, y: Any) -> Any:
    """Returns the inner product, complex if its operands are."""
    return _total(tree.map(fnp.vdot, x, y))


def _square(x: Any) -> Any:
    return fnp.real(_dot(x, x))


def _unit(x: Any) -> Any:
    """Returns a power of two near the largest element: products with it are exact."""
    sizes = [fnp.max(fnp.abs(v), initial=0) for v in tree.leaves(x)]
    dtype = fnp.result_type(*sizes) if sizes else dtypes.default_float()
    least = lax.full((), 8 * float(fnp.finfo(dtype).tiny), dtype)
    size = functools.reduce(fnp.maximum, [convert(v, dtype) for v in sizes], least)
    return fnp.ldexp(fnp.ones_like(size), fnp.frexp(size)[1] - 2)


def _times(scale: Any, x: Any) -> Any:
    return tree.map(lambda v: convert(scale, v.dtype) * v, x)


def _plus(x: Any, scale: Any, y: Any) -> Any:
    """Returns x + scale y."""
    return tree.map(lambda v, w: v + convert(scale, v.dtype) * w, x, y)


def _zeros(x: Any) -> Any:
    return tree.map(fnp.zeros_like, x)


def _minus(x: Any, y: Any) -> Any:
    return tree.map(operator.sub, x, y)


def _quotient(x: Any, y: Any) -> Any:
    """Returns x / y, 0 where y is: the solution is found then."""
    return fnp.where(y == 0, 0 * x, x / fnp.where(y == 0, 1, y))


# Each returns the solution of A x = r and the square of the residual's norm.


def _cg(A: Any, b: Any, r: Any, bound: Any, maxiter: int, M: Any) -> Any:
    z = M(r)

    def more(state: Any) -> Any:
        _, r, _, _, k = state
        return (_square(r) > bound) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, p, gamma, k = state
        image = A(p)
        alpha = _quotient(gamma, _dot(p, image))
        x, r = _plus(x, alpha, p), _plus(r, -alpha, image)
        z = M(r)
        now = _dot(r, z)
        return x, r, _plus(z, _quotient(now, gamma), p), now, k + 1

    x, r, *_ = lax.while_loop(more, step, (_zeros(r), r, z, _dot(r, z), 0))
    return x, _square(r)


def _bicgstab(A: Any, b: Any, r: Any, bound: Any, maxiter: int, M: Any) -> Any:
    shadow, rho = r, _dot(r, r)

    def more(state: Any) -> Any:
        _, r, _, rho, k = state
        return (_square(r) > bound) & (rho != 0) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, p, rho, k = state
        toward = M(p)
        v = A(toward)
        alpha = _quotient(rho, _dot(shadow, v))
        s = _plus(r, -alpha, v)
        onward = M(s)
        t = A(onward)
        omega = _quotient(_dot(t, s), _dot(t, t))
        x = _plus(_plus(x, alpha, toward), omega, onward)
        r = _plus(s, -omega, t)
        now = _dot(shadow, r)
        beta = _quotient(now, rho) * _quotient(alpha, omega)
        return x, r, _plus(r, beta, _plus(p, -omega, v)), now, k + 1

    x, r, *_ = lax.while_loop(more, step, (_zeros(r), r, r, rho, 0))
    return x, _square(r)


def _gmres(
    A: Any, b: Any, start: Any, bound: Any, maxiter: int, M: Any, *, restart: int
) -> Any:
    leaves, treedef = tree.flatten(b)
    shapes = [v.shape for v in leaves]
    sizes = [v.size for v in leaves]
    n = sum(sizes)
    kinds = [v.dtype for v in leaves]
    dtype = fnp.result_type(*kinds) if kinds else dtypes.default_float()
    steps = min(restart, n)
    tiny = float(fnp.finfo(dtype).eps)

    def ravel(t: Any) -> Any:
        parts = [convert(fnp.ravel(v), dtype) for v in tree.leaves(t)]
        return fnp.concatenate(parts)

    def unravel(v: Any) -> Any:
        parts, at = [], 0
        for shape, size, kind in zip(shapes, sizes, kinds, strict=True):
            part = fnp.reshape(lax.slice_in_dim(v, at, at + size), shape)
            if dtypes.is_complex(dtype) and not dtypes.is_complex(kind):
                part = fnp.real(part)
            parts.append(convert(part, kind))
            at += size
        return treedef.unflatten(parts)

    def residual(x: Any) -> Any:
        return ravel(M(_minus(start, A(x))))

    def orthonormal(V: Any, w: Any) -> Any:
        # Twice is enough (Giraud, Langou and Rozložník 2005).
        h = fnp.conj(V) @ w
        w = w - h @ V
        again = fnp.conj(V) @ w
        w, h = w - again @ V, h + again
        size = fnp.sqrt(fnp.real(fnp.vdot(w, w)))
        lost = size <= tiny * fnp.sqrt(fnp.real(fnp.vdot(h, h)))
        size = fnp.where(lost, 0, size)
        return _quotient(w, convert(size, dtype)), h, size

    def cycle(state: Any) -> Any:
        x, r, k = state
        size = fnp.sqrt(fnp.real(fnp.vdot(r, r)))
        V = lax.full((steps + 1, n), 0, dtype)
        V = V.at[0].set(_quotient(r, convert(size, dtype)))

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
        x = tree.map(operator.add, x, unravel(convert(y, dtype) @ V[:-1]))
        return x, residual(x), k + 1

    # The bound holds for the residual of the preconditioned system.
    scaled = ravel(M(b))
    size, other = fnp.real(fnp.vdot(scaled, scaled)), _square(b)
    bound = fnp.where(other == 0, bound, bound * size / fnp.where(other == 0, 1, other))

    def more(state: Any) -> Any:
        _, r, k = state
        return (fnp.real(fnp.vdot(r, r)) > bound) & (k < maxiter)

    x = _zeros(b)
    if not n:
        return x, bound
    x, r, _ = lax.while_loop(more, cycle, (x, ravel(M(start)), 0))
    return x, fnp.real(fnp.vdot(r, r))
