"""Matrices written in some of their own columns: interpolative decompositions.

A matrix A of low rank is nearly B P, where B has k of its columns and P the identity in
them. The columns are those that pivoted QR takes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural, number
from fxflow.numpy import linalg as numpy_linalg
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.linalg.decompositions import qr

__all__ = [
    "estimate_rank", "estimate_spectral_norm", "estimate_spectral_norm_diff",
    "id_to_svd", "interp_decomp", "reconstruct_interp_matrix",
    "reconstruct_matrix_from_id", "reconstruct_skel_matrix", "svd",
]  # fmt: skip


def _matrix(name: str, A: Any) -> Array:
    """Returns a matrix; that of a linear operator is made.

    Raises:
      ShapeError: it has not two axes, or is empty.
    """
    if hasattr(A, "matmat"):
        A = A.matmat(fnp.eye(A.shape[1]))
    (a,) = promote_inexact(name, fnp.asarray(A))
    if a.aval.ndim != 2 or not a.aval.size:
        raise ShapeError(f"{name}: A must be a matrix, not empty, got {a.aval}")
    return a


def _rank(name: str, a: Array, eps: Any) -> int:
    """Returns how many columns a relative error asks for.

    Raises:
      ArgumentError: the error is not between 0 and 1.
      ConcretizationError: the matrix is traced by `jit` or `vmap`.
    """
    eps = number(name, "eps", eps)
    if not 0 < eps < 1:
        raise ArgumentError(f"{name}: eps must be between 0 and 1, got {eps}")
    fixed = lax.stop_gradient(a)
    if isinstance(fixed, Tracer):
        raise ConcretizationError(
            f"{name}: the rank depends on the matrix, which is traced: give a rank "
            "instead of a precision"
        )
    size = np.abs(np.diagonal(np.asarray(qr(fixed, mode="r", pivoting=True)[0])))
    return int((size > eps * size[0]).sum()) if size[0] > 0 else 0


def _wanted(name: str, a: Array, eps_or_k: Any) -> tuple[int, bool]:
    """Returns a rank, and whether it was found of a precision."""
    if not isinstance(eps_or_k, Tracer) and 0 < eps_or_k < 1:
        return max(_rank(name, a, eps_or_k), 1), True
    k = natural(name, "eps_or_k", int(eps_or_k) if eps_or_k == 1 else eps_or_k)
    if k > min(a.aval.shape):
        raise ArgumentError(
            f"{name}: the rank must be at most {min(a.aval.shape)}, got {k}"
        )
    return k, False


@library("k")
def _decomposed(a: Array, k: int) -> tuple[Array, Array]:
    order = qr(lax.stop_gradient(a), mode="r", pivoting=True)[1]
    taken, left = a[:, order[:k]], a[:, order[k:]]
    q, r = fnp.linalg.qr(taken)
    right = fnp.matmul(fnp.conj(q.T), left, precision="highest")
    return order, lax.linalg.triangular_solve(r, right, left_side=True)


def interp_decomp(A: Any, eps_or_k: Any, rand: bool = True, rng: Any = None) -> Any:
    """Returns an interpolative decomposition.

    Args:
      A: float or complex array-like[m, n], or a linear operator.
      eps_or_k: the relative error, below 1, or the rank.
      rand: has no effect: pivoted QR chooses the columns.
      rng: has no effect.

    Returns:
      The rank k, if an error was given; int32[n], the order of the columns, the chosen
      ones first; and the coefficients of the others, array[k, n - k]. It is
      differentiable in the matrix.

    Raises:
      ArgumentError: the rank is not positive, or too great.
      ConcretizationError: an error is given for a matrix that is traced.
      ShapeError: `A` is not a matrix.

    Example:
      >>> order, proj = interp_decomp(np.outer([1.0, 2.0], [1.0, 4.0]), 1)
      >>> order, proj.round(3)
      (Array([1, 0], dtype=int32), Array([[0.25]], dtype=float32))

    Source: `scipy.linalg.interpolative.interp_decomp`; H. Cheng and others, On the
    Compression of Low Rank Matrices, 2005.
    """
    name = "interp_decomp"
    a = _matrix(name, A)
    k, found = _wanted(name, a, eps_or_k)
    idx, proj = _decomposed(a, k)
    return (k, idx, proj) if found else (idx, proj)


def reconstruct_interp_matrix(idx: ArrayLike, proj: ArrayLike) -> Array:
    """Returns the matrix by which chosen columns are multiplied.

    Args:
      idx: int array-like[n]: the order of the columns.
      proj: array-like[k, n - k]: coefficients.

    Returns:
      Array[k, n].

    Raises:
      ShapeError: the shapes are incompatible.

    Example:
      >>> reconstruct_interp_matrix(np.array([1, 0, 2]), np.array([[0.25, 0.5]]))
      Array([[0.25, 1.  , 0.5 ]], dtype=float32)

    Source: `scipy.linalg.interpolative.reconstruct_interp_matrix`.
    """
    order = fnp.asarray(idx)
    (p,) = promote_inexact("reconstruct_interp_matrix", fnp.asarray(proj))
    if p.aval.ndim != 2 or order.aval.shape != (sum(p.aval.shape),):
        raise ShapeError(
            "reconstruct_interp_matrix: expected an order [n] and coefficients "
            f"[k, n - k], got {order.aval} and {p.aval}"
        )
    eye = fnp.eye(p.aval.shape[0], dtype=p.aval.dtype)
    return fnp.concatenate([eye, p], 1)[:, fnp.argsort(order)]


def reconstruct_skel_matrix(A: ArrayLike, k: int, idx: ArrayLike) -> Array:
    """Returns the chosen columns of a matrix.

    Args:
      A: array-like[m, n].
      k: the number of columns.
      idx: int array-like[n]: the order of the columns.

    Returns:
      Array[m, k].

    Raises:
      ArgumentError: `k` is not positive.

    Example:
      >>> reconstruct_skel_matrix(np.array([[1.0, 4.0, 2.0]]), 1, np.array([1, 0, 2]))
      Array([[4.]], dtype=float32)

    Source: `scipy.linalg.interpolative.reconstruct_skel_matrix`.
    """
    k = natural("reconstruct_skel_matrix", "k", k)
    return fnp.asarray(A)[:, fnp.asarray(idx)[:k]]


def reconstruct_matrix_from_id(B: ArrayLike, idx: ArrayLike, proj: ArrayLike) -> Array:
    """Returns the matrix of a decomposition.

    Args:
      B: array-like[m, k]: the chosen columns.
      idx: int array-like[n]: the order of the columns.
      proj: array-like[k, n - k]: coefficients of the others.

    Returns:
      Array[m, n].

    Raises:
      ShapeError: the shapes are incompatible.

    Example:
      >>> order, proj = np.array([1, 0, 2]), np.array([[0.25, 0.5]])
      >>> reconstruct_matrix_from_id(np.array([[4.0], [8.0]]), order, proj)
      Array([[1., 4., 2.],
             [2., 8., 4.]], dtype=float32)

    Source: `scipy.linalg.interpolative.reconstruct_matrix_from_id`.
    """
    columns = reconstruct_interp_matrix(idx, proj)
    b = _matrix("reconstruct_matrix_from_id", B)
    if b.aval.shape[1] != columns.shape[0]:
        raise ShapeError(
            f"reconstruct_matrix_from_id: B, {b.aval}, must have {columns.shape[0]} "
            "columns"
        )
    return fnp.matmul(b, columns, precision="highest")


def id_to_svd(
    B: ArrayLike, idx: ArrayLike, proj: ArrayLike
) -> tuple[Array, Array, Array]:
    """Returns the singular values and vectors of a decomposition.

    Args:
      B: array-like[m, k]: the chosen columns.
      idx: int array-like[n]: the order of the columns.
      proj: array-like[k, n - k]: coefficients of the others.

    Returns:
      U[m, k], float array[k] descending and V[n, k], with A = U diag(S) Vᴴ.

    Raises:
      ShapeError: the shapes are incompatible.

    Example:
      >>> order, proj = np.array([1, 0, 2]), np.array([[0.25, 0.5]])
      >>> id_to_svd(np.array([[3.0], [4.0]]), order, proj)[1].round(3)
      Array([5.728], dtype=float32)

    Source: `scipy.linalg.interpolative.id_to_svd`.
    """
    columns = reconstruct_interp_matrix(idx, proj)
    b, columns = promote_inexact("id_to_svd", _matrix("id_to_svd", B), columns)
    if b.aval.shape[1] != columns.shape[0]:
        raise ShapeError(
            f"id_to_svd: B, {b.aval}, must have {columns.shape[0]} columns"
        )
    first, r = fnp.linalg.qr(b)
    last, t = fnp.linalg.qr(fnp.conj(columns.T))
    core = fnp.matmul(r, fnp.conj(t.T), precision="highest")
    u, s, vh = fnp.linalg.svd(core, full_matrices=False)
    left = fnp.matmul(first, u, precision="highest")
    return left, s, fnp.matmul(last, fnp.conj(vh.T), precision="highest")


def svd(
    A: Any, eps_or_k: Any, rand: bool = True, rng: Any = None
) -> tuple[Array, Array, Array]:
    """Returns the greatest singular values of a matrix and their vectors.

    Args:
      A: float or complex array-like[m, n], or a linear operator.
      eps_or_k: the relative error, below 1, or the rank.
      rand: has no effect: all singular values are computed.
      rng: has no effect.

    Returns:
      U[m, k], float array[k] descending and V[n, k], with A ≈ U diag(S) Vᴴ.

    Raises:
      ArgumentError: the rank is not positive, or too great.
      ConcretizationError: an error is given for a matrix that is traced.
      ShapeError: `A` is not a matrix.

    Example:
      >>> svd(np.diag([3.0, 2.0, 1.0]), 2)[1]
      Array([3., 2.], dtype=float32)

    Source: `scipy.linalg.interpolative.svd`.
    """
    name = "svd"
    a = _matrix(name, A)
    k, _ = _wanted(name, a, eps_or_k)
    u, s, vh = numpy_linalg.svd(a, full_matrices=False)
    return u[:, :k], s[:k], fnp.conj(vh[:k].T)


def estimate_rank(A: Any, eps: float, rng: Any = None) -> int:
    """Returns how many columns a matrix takes for a relative error, on the host.

    Args:
      A: float or complex array-like[m, n], or a linear operator.
      eps: the relative error, between 0 and 1.
      rng: has no effect: pivoted QR counts them.

    Returns:
      A Python int.

    Raises:
      ArgumentError: the error is not between 0 and 1.
      ConcretizationError: the matrix is traced by `jit` or `vmap`.
      ShapeError: `A` is not a matrix.

    Example:
      >>> estimate_rank(np.outer(np.arange(4.0), np.ones(5)), 1e-3)
      1

    Source: `scipy.linalg.interpolative.estimate_rank`.
    """
    return _rank("estimate_rank", _matrix("estimate_rank", A), eps)


@library("its")
def _power(a: Array, start: Array, its: int) -> Array:
    def step(x: Array, _: Any) -> tuple[Array, Any]:
        y = fnp.matmul(a, x, precision="highest")
        x = fnp.matmul(fnp.conj(a.T), y, precision="highest")
        size = fnp.linalg.norm(x)
        return x / fnp.where(size > 0, size, 1), None

    x, _ = lax.scan(step, start / fnp.linalg.norm(start), None, length=its)
    return fnp.linalg.norm(fnp.matmul(a, x, precision="highest"))


def estimate_spectral_norm(A: Any, its: int = 20, rng: Any = None) -> Array:
    """Returns the greatest singular value, by the power method.

    Args:
      A: float or complex array-like[m, n], or a linear operator.
      its: how many steps.
      rng: key of `fxflow.random` for the start; None is a fixed one.

    Returns:
      Float array[], at most the true value but for rounding.

    Raises:
      ArgumentError: `its` is not positive.
      ShapeError: `A` is not a matrix.

    Example:
      >>> estimate_spectral_norm(np.diag([3.0, 2.0, 1.0])).round(3)
      Array(3., dtype=float32)

    Source: `scipy.linalg.interpolative.estimate_spectral_norm`.
    """
    name = "estimate_spectral_norm"
    a = _matrix(name, A)
    its = natural(name, "its", its)
    key = random.key(0) if rng is None else rng
    real = dtypes.to_real(a.aval.dtype)
    start = random.normal(key, (a.aval.shape[1],), real).astype(a.aval.dtype)
    out: Array = _power(a, start, its)
    return out


def estimate_spectral_norm_diff(
    A: Any, B: Any, its: int = 20, rng: Any = None
) -> Array:
    """Returns the greatest singular value of a difference, by the power method.

    Args:
      A: float or complex array-like[m, n], or a linear operator.
      B: likewise, of the same shape.
      its: how many steps.
      rng: key of `fxflow.random` for the start; None is a fixed one.

    Returns:
      Float array[].

    Raises:
      ArgumentError: `its` is not positive.
      ShapeError: the shapes differ.

    Example:
      >>> estimate_spectral_norm_diff(np.diag([3.0, 2.0]), np.eye(2)).round(3)
      Array(2., dtype=float32)

    Source: `scipy.linalg.interpolative.estimate_spectral_norm_diff`.
    """
    name = "estimate_spectral_norm_diff"
    a, b = promote_inexact(name, _matrix(name, A), _matrix(name, B))
    if a.aval.shape != b.aval.shape:
        raise ShapeError(f"{name}: the shapes differ: {a.aval} and {b.aval}")
    return estimate_spectral_norm(a - b, its, rng)


_public(globals(), __all__)
