"""GMRES with more directions than those of its last cycle: LGMRES and GCROT(m,k)."""

from __future__ import annotations

import functools
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import convert
from fxflow.numpy.linalg import lstsq
from fxflow.scipy.sparse.linalg.biorthogonal import docs
from fxflow.scipy.sparse.linalg.iterative import solved
from fxflow.scipy.sparse.linalg.vectors import (
    one_vector,
    orthonormal,
    quotient,
)


def _positive(name: str, **given: int) -> None:
    for what, number in given.items():
        if number < 1:
            raise ArgumentError(f"{name}: {what} must be positive, got {number}")


@docs
def lgmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = 1000,
    M: Any = None,
    inner_m: int = 30,
    outer_k: int = 3,
    callback: Any = None,
) -> tuple[Any, Array]:
    """Solves A x = b by restarted GMRES that keeps its last corrections.

    Args:
      maxiter: how often it begins again at most; None is ten times the size of `b`.
      inner_m: how many directions are found before it begins again. Static.
      outer_k: how many corrections of earlier cycles are directions too. Static.

    Example:
      >>> x, info = lgmres(fnp.array([[4.0, 1.0], [0.0, 2.0]]), fnp.array([6.0, 2.0]))
      >>> x.round(3), int(info)
      (Array([1.25, 1.  ], dtype=float32), 0)

    Source: `scipy.sparse.linalg.lgmres`; Baker, Jessup and Manteuffel 2005.
    """
    _positive("lgmres", inner_m=inner_m)
    if outer_k < 0:
        raise ArgumentError(f"lgmres: outer_k must not be negative, got {outer_k}")
    method = functools.partial(_lgmres, inner=inner_m, outer=outer_k)
    return solved("lgmres", method, A, b, x0, rtol, atol, maxiter, M, callback)


@docs
def gcrotmk(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = 1000,
    M: Any = None,
    m: int = 20,
    k: int | None = None,
    truncate: str = "oldest",
    callback: Any = None,
) -> tuple[Any, Array]:
    """Solves A x = b by GCROT(m,k): GMRES that keeps directions and their images.

    Args:
      maxiter: how often it begins again at most; None is ten times the size of `b`.
      m: how many directions are found before it begins again. Static.
      k: how many it keeps; None is `m`. Static.
      truncate: which it drops when there are `k`: the "oldest", or the "smallest" by
        the singular values of de Sturler.

    Raises:
      ArgumentError: `A` or `M` is neither a matrix nor a function, `m` or `k` is not
        positive, or there is no such `truncate`.

    Example:
      >>> x, info = gcrotmk(fnp.array([[4.0, 1.0], [0.0, 2.0]]), fnp.array([6.0, 2.0]))
      >>> x.round(3), int(info)
      (Array([1.25, 1.  ], dtype=float32), 0)

    Source: `scipy.sparse.linalg.gcrotmk`; Hicken and Zingg 2010.
    """
    k = m if k is None else k
    _positive("gcrotmk", m=m, k=k)
    if truncate not in ("oldest", "smallest"):
        raise ArgumentError(
            f'gcrotmk: truncate must be "oldest" or "smallest", got {truncate!r}'
        )
    smallest = truncate == "smallest"
    method = functools.partial(_gcrotmk, inner=m, kept=k, smallest=smallest)
    return solved("gcrotmk", method, A, b, x0, rtol, atol, maxiter, M, callback)


def _least(H: Any, size: Any) -> Any:
    """Returns the y of least ‖size e₁ - H y‖."""
    wide = fnp.promote_types(H.dtype, dtypes.float32)
    target = fnp.zeros(H.shape[0], wide).at[0].set(convert(size, wide))
    return convert(lstsq(convert(H, wide), target)[0], H.dtype)


class _Vectors:
    """The map and the preconditioner as functions of vectors."""

    def __init__(self, A: Any, b: Any, M: Any) -> None:
        self.ravel, self.unravel, self.n, self.dtype = one_vector(b)
        self._map, self._inverse = A, M

    def image(self, v: Any) -> Any:
        """Returns the product of the map and a vector."""
        return self.ravel(self._map(self.unravel(v)))

    def precondition(self, v: Any) -> Any:
        """Returns the product of the preconditioner and a vector."""
        return self.ravel(self._inverse(self.unravel(v)))

    def arnoldi(self, r: Any, toward: Any, steps: int, C: Any) -> Any:
        """Returns a basis beginning with r, directions, and their coefficients.

        Args:
          r: the residual.
          toward: from the number of a step and a basis vector to a direction.
          steps: the number of steps.
          C: orthonormal rows to stay orthogonal to.

        Returns:
          V, (steps + 1, n); Z, (steps, n); H, (steps + 1, steps); B, (rows of C,
          steps); the norm of r; with A Z = V H + C B.
        """
        n, dtype = self.n, self.dtype
        size = fnp.sqrt(fnp.real(fnp.vdot(r, r)))
        V = fnp.zeros((steps + 1, n), dtype)
        V = V.at[0].set(quotient(r, convert(size, dtype)))
        H = fnp.zeros((steps + 1, steps), dtype)
        B = fnp.zeros((C.shape[0], steps), dtype)

        def step(carry: Any, i: Any) -> Any:
            V, H, B = carry
            z = toward(i, V[i])
            w = self.image(z)
            c = fnp.conj(C) @ w
            w, h, length = orthonormal(V, w - c @ C)
            h = h.at[i + 1].set(convert(length, dtype))
            return (V.at[i + 1].set(w), H.at[:, i].set(h), B.at[:, i].set(c)), z

        (V, H, B), Z = lax.scan(step, (V, H, B), lax.iota(dtypes.int32, steps))
        return V, Z, H, B, size

    def result(self, state: Any, b: Any, bound: Any) -> Any:
        """Returns x as a pytree, the square of the residual's norm, and iterations."""
        if not self.n:
            return b, bound, 0
        return self.unravel(state[0]), _power(state[1]), state[2]


def _power(r: Any) -> Any:
    return fnp.real(fnp.vdot(r, r))


def _lgmres(
    A: Any,
    b: Any,
    r: Any,
    bound: Any,
    maxiter: int,
    M: Any,
    tell: Any,
    *,
    inner: int,
    outer: int,
) -> Any:
    on = _Vectors(A, b, M)
    inner = min(inner, on.n)
    steps = inner + outer
    none = fnp.zeros((0, on.n), on.dtype)
    first = on.ravel(r)

    def cycle(state: Any) -> Any:
        x, r, k, kept = state

        def toward(i: Any, v: Any) -> Any:
            if not outer:
                return on.precondition(v)
            old = kept[fnp.maximum(i - inner, 0)]
            return fnp.where(i < inner, on.precondition(v), old)

        _, Z, H, _, size = on.arnoldi(r, toward, steps, none)
        dx = _least(H, size) @ Z
        x = x + dx
        tell(on.unravel(x))
        length = convert(fnp.sqrt(_power(dx)), on.dtype)
        new = quotient(dx, length)
        kept = fnp.concatenate([new[None], kept[:-1]]) if outer else kept
        return x, first - on.image(x), k + 1, kept

    def more(state: Any) -> Any:
        return (_power(state[1]) > bound) & (state[2] < maxiter)

    kept = fnp.zeros((outer, on.n), on.dtype)
    state = (fnp.zeros(on.n, on.dtype), first, 0, kept)
    if on.n:
        state = lax.while_loop(more, cycle, state)
    return on.result(state, r, bound)


def _gcrotmk(
    A: Any,
    b: Any,
    r: Any,
    bound: Any,
    maxiter: int,
    M: Any,
    tell: Any,
    *,
    inner: int,
    kept: int,
    smallest: bool,
) -> Any:
    on = _Vectors(A, b, M)
    inner, kept = min(inner, on.n), min(kept, on.n)
    first = on.ravel(r)

    def cycle(state: Any) -> Any:
        x, r, k, C, U = state

        def toward(_: Any, v: Any) -> Any:
            return on.precondition(v)

        V, Z, H, B, size = on.arnoldi(r, toward, inner, C)
        y = _least(H, size)
        dx = y @ Z - (B @ y) @ U
        image = (H @ y) @ V
        length = convert(fnp.sqrt(_power(image)), on.dtype)
        c, u = quotient(image, length), quotient(dx, length)
        x = x + fnp.vdot(c, r) * u
        tell(on.unravel(x))
        C, U = _smallest(H, B, C, U) if smallest else (C, U)
        C = fnp.concatenate([c[None], C[:-1]])
        U = fnp.concatenate([u[None], U[:-1]])
        return x, first - on.image(x), k + 1, C, U

    def more(state: Any) -> Any:
        return (_power(state[1]) > bound) & (state[2] < maxiter)

    none = fnp.zeros((kept, on.n), on.dtype)
    state = (fnp.zeros(on.n, on.dtype), first, 0, none, none)
    if on.n:
        state = lax.while_loop(more, cycle, state)
    return on.result(state, r, bound)


def _smallest(H: Any, B: Any, C: Any, U: Any) -> Any:
    """Returns what is kept, those that matter least last."""
    wide = fnp.promote_types(H.dtype, dtypes.float32)
    _, R = fnp.linalg.qr(convert(H, wide))
    # B R⁻¹ by least squares: the last cycle may have ended early.
    D = lstsq(fnp.transpose(R), fnp.transpose(convert(B, wide)))[0].T
    W, _, _ = fnp.linalg.svd(D, full_matrices=True)
    W = convert(fnp.conj(W.T), C.dtype)
    return W @ C, W @ U
