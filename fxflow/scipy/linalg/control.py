"""Equations of Lyapunov and Riccati, continuous and discrete.

Riccati's are solved by the structure-preserving doubling algorithm, whose error falls
quadratically, and Newton's method (Kleinman's), whose steps are Lyapunov equations. The
derivatives are those of the steps: at the solution they are those of the solution.
"""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.numpy.linalg import solve
from fxflow.numpy.linalg._matrices import adjoint, identity_like
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.scipy.linalg.matrix_equations import solve_sylvester

# Doubling ends long before; Newton's steps take its rounding away.
_DOUBLINGS, _NEWTON = 40, 3
_DIRECT = 10

_docs = shared("""
    Raises:
      ShapeError: the matrices are not square, or their shapes are incompatible.
      ...

    Source: `scipy.linalg.{name}`, with derivatives with respect to all matrices.
""")


def _equal_squares(name: str, **given: Any) -> list[Any]:
    """Returns square matrices of one dtype and one size."""
    out = promote_inexact(name, *given.values())
    out = [matrix_of(name, x, square=True) for x in out]
    if len({x.aval.shape[-1] for x in out}) > 1:
        shapes = ", ".join(
            f"{key}: {x.aval}" for key, x in zip(given, out, strict=True)
        )
        raise ShapeError(f"{name}: matrices must have one size, got {shapes}")
    return out


@library()
@_docs
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """Solves A X + X Aᴴ = Q.

    Args:
      a: array-like[..., n, n].
      q: array-like[..., n, n].

    Returns:
      Float or complex array[..., n, n].

    Special cases:
      inf or nan where A and -Aᴴ have a common eigenvalue.

    Example:
      >>> solve_continuous_lyapunov(np.eye(1), np.array([[4.0]]))
      Array([[2.]], dtype=float32)
    """
    x, y = _equal_squares("solve_continuous_lyapunov", a=a, q=q)
    return solve_sylvester(x, adjoint(x), y)


solve_lyapunov = solve_continuous_lyapunov


@library("method")
@_docs
def solve_discrete_lyapunov(
    a: ArrayLike, q: ArrayLike, method: str | None = None
) -> Array:
    """Solves A X Aᴴ - X + Q = 0.

    Args:
      a: array-like[..., n, n].
      q: array-like[..., n, n].
      method: "direct", by n² linear equations, which matrices below 10 have by default,
        or "bilinear", by a continuous equation.

    Returns:
      Float or complex array[..., n, n].

    Raises:
      ArgumentError: unknown method.

    Special cases:
      inf or nan where the product of two eigenvalues of A is 1; by "bilinear" also
      where one is -1.

    Example:
      >>> solve_discrete_lyapunov(0.5 * np.eye(1), np.array([[3.0]]))
      Array([[4.]], dtype=float32)
    """
    name = "solve_discrete_lyapunov"
    if method not in (None, "direct", "bilinear"):
        raise ArgumentError(
            f'{name}: method must be "direct" or "bilinear", got {method!r}'
        )
    x, y = _equal_squares(name, a=a, q=q)
    out: Array = _discrete(x, y, method)
    return out


def _discrete(a: Any, q: Any, method: str | None = None) -> Any:
    n = a.aval.shape[-1]
    eye = identity_like(a, n)
    if method == "direct" or (method is None and n < _DIRECT):
        lead = fnp.broadcast_shapes(a.aval.shape[:-2], q.aval.shape[:-2])
        # The matrix kron(A, conj(A)) acts on the rows of X.
        left, right = a[..., :, None, :, None], fnp.conj(a)[..., None, :, None, :]
        system = fnp.reshape(left * right, (*a.aval.shape[:-2], n * n, n * n))
        system = identity_like(a, n * n) - system
        flat = fnp.reshape(q, (*q.aval.shape[:-2], n * n, 1))
        return fnp.reshape(solve(system, flat), (*lead, n, n))
    inverse = fnp.linalg.inv(adjoint(a) + eye)
    b = matmul(adjoint(a) - eye, inverse)
    c = 2 * matmul(solve(a + eye, q), inverse)
    return solve_sylvester(adjoint(b), b, -c)


# -- Riccati's equations ---------------------------------------------------------------


def _arranged(name: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> list[Any]:
    """Returns a, b, q, r and s of an equation whose e is the identity."""
    given = promote_inexact(name, *(x for x in (a, b, q, r, e, s) if x is not None))
    rest = [matrix_of(name, x) for x in given]
    a, b, q, r = rest[:4]
    e = rest[4] if e is not None else None
    s = rest[-1] if s is not None else None
    n, m = b.aval.shape[-2:]
    wanted = {"a": (a, n, n), "q": (q, n, n), "r": (r, m, m)}
    wanted |= {} if e is None else {"e": (e, n, n)}
    wanted |= {} if s is None else {"s": (s, n, m)}
    for key, (x, rows, columns) in wanted.items():
        if x.aval.shape[-2:] != (rows, columns):
            raise ShapeError(
                f"{name}: {key} must be [..., {rows}, {columns}] for b, {b.aval}, got "
                f"{x.aval}"
            )
    if e is not None:
        a, b = solve(e, a), solve(e, b)
    if s is None:
        s = fnp.zeros_like(b)
    q, r = 0.5 * (q + adjoint(q)), 0.5 * (r + adjoint(r))
    lead = fnp.broadcast_shapes(*(x.aval.shape[:-2] for x in (a, b, q, r, s)))
    return [fnp.broadcast_to(x, (*lead, *x.aval.shape[-2:])) for x in (a, b, q, r, s)]


def _finished(x: Any, e: Any) -> Array:
    """Returns X of Eᴴ X E, Hermitian."""
    if e is not None:
        left = solve(adjoint(e), x)
        x = adjoint(solve(adjoint(e), adjoint(left)))
    out: Array = 0.5 * (x + adjoint(x))
    return out


def _doubled(a: Any, g: Any, h: Any) -> Any:
    """Returns the limit of H, of X = Aᴴ X (1 + G X)⁻¹ A + H."""
    eye = identity_like(a, a.aval.shape[-1])

    def going(state: Any) -> Any:
        return (state[0] < _DOUBLINGS) & fnp.any(state[1])

    def step(state: Any) -> Any:
        k, _, a, g, h = state
        both = solve(eye + matmul(g, h), fnp.concatenate([a, g], axis=-1))
        n = a.aval.shape[-1]
        new_a = matmul(a, both[..., :n])
        new_g = g + matmul(matmul(a, both[..., n:]), adjoint(a))
        more = matmul(matmul(adjoint(a), h), both[..., :n])
        new_h = h + 0.5 * (more + adjoint(more))
        eps = float(fnp.finfo(dtypes.to_real(h.aval.dtype)).eps)
        change = fnp.linalg.norm(new_h - h, axis=(-2, -1))
        busy = change > eps * fnp.linalg.norm(new_h, axis=(-2, -1))
        # What is found stays, also where its powers overflow later.
        keep = state[1][..., None, None]
        return (
            k + 1,
            state[1] & busy & fnp.all(fnp.isfinite(new_h), axis=(-2, -1)),
            fnp.where(keep, new_a, a),
            fnp.where(keep, new_g, g),
            fnp.where(keep, new_h, h),
        )

    busy = fnp.ones(a.aval.shape[:-2], bool)
    return lax.while_loop(going, step, (fnp.int32(0), busy, a, g, h))[4]


_riccati_docs = shared("""
    Args:
      a: array-like[..., n, n].
      b: array-like[..., n, m].
      q: Hermitian array-like[..., n, n].
      r: Hermitian array-like[..., m, m], not singular.
      e: array-like[..., n, n], not singular; None is the identity.
      s: array-like[..., n, m]; None is 0.
      balanced: has no effect.

    Returns:
      Hermitian float or complex array[..., n, n].

    Raises:
      ShapeError: the matrices have incompatible shapes.

    Special cases:
      Where no stabilising solution exists, the result solves nothing, or is nan.

    Source: `scipy.linalg.{name}`, with derivatives with respect to all matrices; Chu,
    Fan and Lin 2005, "A structure-preserving doubling algorithm for continuous-time
    algebraic Riccati equations".
""")


@library("balanced")
@_riccati_docs
def solve_continuous_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
    balanced: bool = True,
) -> Array:
    """Solves Aᴴ X E + Eᴴ X A - (Eᴴ X B + S) R⁻¹ (Bᴴ X E + Sᴴ) + Q = 0.

    Example:
      >>> one = np.eye(1)
      >>> solve_continuous_are(one, one, 3 * one, one).round(4)
      Array([[3.]], dtype=float32)
    """
    return _solve_continuous_are(
        e, *_arranged("solve_continuous_are", a, b, q, r, e, s)
    )


def _solve_continuous_are(e: Any, a: Any, b: Any, q: Any, r: Any, s: Any) -> Array:
    if not a.aval.size:
        empty: Array = a
        return empty
    # Fixed: what the steps below begin with.
    fixed = [lax.stop_gradient(x) for x in (a, b, q, r, s)]
    x = _continuous_start(*fixed)
    for _ in range(_NEWTON):
        gain = solve(r, matmul(adjoint(b), x) + adjoint(s))
        closed = a - matmul(b, gain)
        cross = matmul(s, gain)
        side = q + matmul(matmul(adjoint(gain), r), gain) - cross - adjoint(cross)
        x = solve_sylvester(adjoint(closed), closed, -side)
        x = 0.5 * (x + adjoint(x))
    return _finished(x, _matched("solve_continuous_are", e, x))


def _matched(name: str, e: Any, x: Any) -> Any:
    if e is None:
        return None
    return convert(matrix_of(name, e, square=True), x.aval.dtype)


def _continuous_start(a: Any, b: Any, q: Any, r: Any, s: Any) -> Any:
    """Returns the solution by doubling, after Cayley's transformation."""
    a = a - matmul(b, solve(r, adjoint(s)))
    q = q - matmul(s, solve(r, adjoint(s)))
    g = matmul(b, solve(r, adjoint(b)))
    eye = identity_like(a, a.aval.shape[-1])
    size_a, size_g, size_q = (
        fnp.linalg.norm(x, axis=(-2, -1), keepdims=True) for x in (a, g, q)
    )
    shift = convert(size_a + lax.sqrt(size_g * size_q), a.aval.dtype)
    shift = fnp.where(shift == 0, 1, shift)
    inner = a - shift * eye
    inverse = fnp.linalg.inv(inner)
    w = adjoint(inner) + matmul(matmul(q, inverse), g)
    w_inverse = fnp.linalg.inv(w)
    start_a = eye + 2 * shift * adjoint(w_inverse)
    start_g = 2 * shift * matmul(matmul(inverse, g), w_inverse)
    start_h = 2 * shift * matmul(matmul(w_inverse, q), inverse)
    return _doubled(start_a, start_g, start_h)


@library("balanced")
@_riccati_docs
def solve_discrete_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
    balanced: bool = True,
) -> Array:
    """Solves Aᴴ X A - Eᴴ X E - (Aᴴ X B + S) (R + Bᴴ X B)⁻¹ (Bᴴ X A + Sᴴ) + Q = 0.

    Example:
      >>> one = np.eye(1)
      >>> solve_discrete_are(one, one, one, one).round(4)
      Array([[1.618]], dtype=float32)
    """
    return _solve_discrete_are(e, *_arranged("solve_discrete_are", a, b, q, r, e, s))


def _solve_discrete_are(e: Any, a: Any, b: Any, q: Any, r: Any, s: Any) -> Array:
    if not a.aval.size:
        empty: Array = a
        return empty
    fixed_a, fixed_b, fixed_q, fixed_r, fixed_s = (
        lax.stop_gradient(x) for x in (a, b, q, r, s)
    )
    changed = solve(fixed_r, adjoint(fixed_s))
    x = _doubled(
        fixed_a - matmul(fixed_b, changed),
        matmul(fixed_b, solve(fixed_r, adjoint(fixed_b))),
        fixed_q - matmul(fixed_s, changed),
    )
    for _ in range(_NEWTON):
        part = matmul(adjoint(b), x)
        gain = solve(r + matmul(part, b), matmul(part, a) + adjoint(s))
        closed = a - matmul(b, gain)
        cross = matmul(s, gain)
        side = q + matmul(matmul(adjoint(gain), r), gain) - cross - adjoint(cross)
        x = _discrete(adjoint(closed), side)
        x = 0.5 * (x + adjoint(x))
    return _finished(x, _matched("solve_discrete_are", e, x))
