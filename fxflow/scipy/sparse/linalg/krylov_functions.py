"""Products of matrix functions and vectors, by Krylov spaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.sparse.linalg.interface import Map, aslinearoperator

_STRUCTURES = ("hermitian", "general", "her", "gen")


def funm_multiply_krylov(
    f: Callable[[Any], Any],
    A: Any,
    b: Any,
    *,
    assume_a: str = "general",
    t: Any = 1.0,
    atol: float = 0.0,
    rtol: float = 1e-6,
    restart_every_m: int | None = None,
    max_restarts: int = 20,
) -> Array:
    """Returns f(t A) b for a function f of matrices, by a restarted Krylov method.

    The map is projected on Krylov spaces one after the other; f is called with the
    projection on all of them, of min(m max_restarts, n + m) rows. The result is
    differentiable in `A`, `t` and `b` if f is.

    Args:
      f: function of a square matrix, such as `fxflow.scipy.linalg.expm`.
      A: square matrix, dense or sparse, or `LinearOperator`.
      b: vector.
      assume_a: "general", "gen", "hermitian" or "her": with the last two the
        projections are Hermitian tridiagonal.
      t: number that the matrix is multiplied by.
      atol: absolute tolerance: it ends when what a space adds is not longer than this,
        or than `rtol` times the norm of `b`.
      rtol: relative tolerance.
      restart_every_m: m, the dimension of the spaces; None is min(20, n). Static.
      max_restarts: how many spaces there are at most. Static.

    Returns:
      Vector like `b`, of the common float dtype.

    Raises:
      ArgumentError: `A` is not a matrix or an operator, there is no such structure, or
        a number is not positive.
      ShapeError: `A` is not square, or `b` does not fit.

    Example:
      >>> from fxflow.scipy.linalg import expm
      >>> A = fnp.array([[0.0, 1.0], [-1.0, 0.0]])
      >>> funm_multiply_krylov(expm, A, fnp.array([1.0, 0.0]), t=1.0).round(4)
      Array([ 0.5403, -0.8415], dtype=float32)

    Source: `scipy.sparse.linalg.funm_multiply_krylov`; Eiermann and Ernst, A Restarted
    Krylov Subspace Method for the Evaluation of Matrix Functions, 2006.
    """
    name = "funm_multiply_krylov"
    if assume_a not in _STRUCTURES:
        raise ArgumentError(
            f"{name}: assume_a must be one of {', '.join(_STRUCTURES)}, got "
            f"{assume_a!r}"
        )
    if not callable(f):
        raise ArgumentError(f"{name}: f must be a function, got {f!r}")
    held = aslinearoperator(A)
    n = held.shape[0]
    (b,) = promote_inexact(name, b)
    if held.shape[1] != n:
        raise ShapeError(f"{name}: A must be square, got {list(held.shape)}")
    if typeof(b).shape != (n,):
        raise ShapeError(f"{name}: A of shape {[n, n]} does not fit b, {typeof(b)}")
    m = min(20, n) if restart_every_m is None else restart_every_m
    m = natural(name, "restart_every_m", m) if n else 1
    count = min(natural(name, "max_restarts", max_restarts), n // m + 1)
    kinds = [held.dtype] if dtypes.is_inexact(held.dtype) else []
    dtype = fnp.result_type(b, *kinds)
    b = b.astype(dtype)
    if not n:
        return fnp.zeros_like(b)
    hermitian = assume_a.startswith("her")
    scale = fnp.asarray(t, dtype if dtypes.is_complex(dtype) else None)
    return _product(f, held.matvec, b, scale.astype(dtype), (m, count, hermitian),
                    (atol, rtol))  # fmt: skip


def _norm(x: Any) -> Any:
    """Returns the norm of a vector; its derivative at 0 is 0."""
    square = fnp.sum(fnp.real(x) ** 2 + fnp.imag(x) ** 2)
    away = square > 0
    return fnp.where(away, fnp.sqrt(fnp.where(away, square, 1)), 0)


def _over(x: Any, size: Any) -> Any:
    """Returns x / size, 0 where size is."""
    return fnp.where(size == 0, 0, x / fnp.where(size == 0, 1, size).astype(x.dtype))


def _space(product: Map, v: Any, m: int, hermitian: bool) -> tuple[Any, Any, Any, Any]:
    """Returns an orthonormal basis of a Krylov space and the projection of the map.

    Args:
      product: the map.
      v: the first vector, of norm 1.
      m: the dimension of the space.
      hermitian: whether the map is Hermitian.

    Returns:
      V, (m, n), rows; H, (m, m); the length of the vector that comes after, and this
      vector, normed; 0 if the space is invariant.
    """
    n, dtype = typeof(v).size, v.dtype
    eps = float(fnp.finfo(dtype).eps)

    def step(carry: Any, j: Any) -> Any:
        V, v = carry
        V = V.at[j].set(v)
        w = product(v).astype(dtype)
        whole = lax.stop_gradient(_norm(w))
        # Twice is enough (Giraud, Langou and Rozložník 2005).
        h = fnp.conj(V) @ w
        w = w - h @ V
        again = fnp.conj(V) @ w
        w, h = w - again @ V, h + again
        size = _norm(w)
        # An invariant subspace: what is left are rounding errors.
        lost = size <= 10 * eps * whole
        size = fnp.where(lost, 0, size)
        v = fnp.where(lost, 0, _over(w, size))
        return (V, v), (h, size)

    start = (fnp.zeros((m, n), dtype), v)
    (V, after), (rows, sizes) = lax.scan(step, start, lax.iota(dtypes.int32, m))
    below = fnp.diag(sizes[:-1].astype(dtype), -1)
    H = rows.T
    if hermitian:
        diagonal = fnp.real(fnp.diag(H)).astype(dtype)
        return V, fnp.diag(diagonal) + below + below.T, sizes[-1], after
    return V, fnp.triu(H) + below, sizes[-1], after


def _product(
    f: Callable[[Any], Any],
    product: Map,
    b: Any,
    t: Any,
    sizes: tuple[int, int, bool],
    tolerances: tuple[float, float],
) -> Array:
    m, count, hermitian = sizes
    dtype, rows = b.dtype, m * count
    whole = _norm(b)
    v = _over(b, whole)
    bound = fnp.maximum(tolerances[0], tolerances[1] * lax.stop_gradient(whole))
    # Rows that are not known yet do not change the ones before: f of a block lower
    # triangular matrix has f of its blocks. Theirs is a number of the field of values.
    mean = fnp.vdot(v, product(v).astype(dtype))
    H = mean * fnp.eye(rows, dtype=dtype)
    none = fnp.zeros((), dtypes.int32)

    def more(state: Any) -> Any:
        return (state["k"] < count) & (state["change"] > bound)

    def step(s: Any) -> Any:
        at = s["k"] * m
        V, block, size, after = _space(product, s["v"], m, hermitian)
        H = lax.dynamic_update_slice(s["H"], block, (at, at))
        # The last vector of the space before leads to the first of this one.
        before = fnp.maximum(at - 1, 0)
        link = fnp.where(at > 0, s["size"].astype(dtype), H[at, before])
        H = H.at[at, before].set(link)
        column = f(t * H)[:, 0].astype(dtype)
        part = whole.astype(dtype) * lax.dynamic_slice(column, (at,), (m,))
        # Without a vector that comes after nothing is left to add.
        change = fnp.where(size == 0, 0, lax.stop_gradient(_norm(part)))
        return {
            "H": H,
            "v": after,
            "size": size,
            "y": s["y"] + part @ V,
            "change": change.astype(s["change"].dtype),
            "k": s["k"] + 1,
        }

    real = dtypes.to_real(dtype)
    start = {
        "H": H,
        "v": v,
        "size": fnp.zeros((), real),
        "y": fnp.zeros_like(b),
        "change": fnp.where(whole == 0, 0, fnp.full((), fnp.inf, real)),
        "k": none,
    }
    found: Array = lax.while_loop(more, step, start, max_steps=count)["y"]
    return found
