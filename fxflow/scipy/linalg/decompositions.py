"""LU, QR, singular value and eigenvalue decompositions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import pair
from fxflow.numpy import linalg
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.numpy.diagonals import tril, triu
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.numpy.linalg.solving import solve_factored
from fxflow.numpy.products import matmul
from fxflow.numpy.sorting import argsort
from fxflow.scipy.linalg._matrices import matrix_of, sides_of, way_of
from fxflow.scipy.linalg.solving import cholesky, solve_triangular


@library("overwrite_a", "check_finite")
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Returns the LU decomposition for `lu_solve`.

    Args:
      a: array-like[..., m, n].
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      L and U in one array[..., m, n], and the pivots i32[..., min(m, n)].

    Raises:
      ShapeError: `a` has fewer than two axes.

    Example:
      >>> lu_factor(np.array([[1.0, 2.0], [4.0, 4.0]]))[1]
      Array([1, 1], dtype=int32)

    Source: `scipy.linalg.lu_factor`.
    """
    factors, pivots, _ = lax.linalg.lu(matrix_of("lu_factor", a))
    return factors, pivots


@library("trans", "overwrite_b", "check_finite")
def lu_solve(
    lu_and_piv: Any,
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b, given the LU decomposition of a.

    Args:
      lu_and_piv: what `lu_factor` returned.
      b: array-like[n] or [..., n, k].
      trans: 0; 1 solves aᵀ x = b, 2 solves aᴴ x = b.
      overwrite_b: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array of the shape of `b`.

    Raises:
      ShapeError: the shapes are incompatible.
      ArgumentError: `trans` is something else.

    Example:
      >>> lu_solve(lu_factor(np.array([[4.0]])), np.array([8.0]))
      Array([2.], dtype=float32)

    Source: `scipy.linalg.lu_solve`.
    """
    way = way_of("lu_solve", trans)
    factors, pivots = pair("lu_solve", "lu_and_piv", lu_and_piv)
    x, y, vector = sides_of("lu_solve", factors, b)
    order = lax.linalg.lu_pivots_to_permutation(
        array_of(pivots, "lu_solve"), x.aval.shape[-1]
    )
    out = solve_factored(x, order, y, way)
    return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out


@library("permute_l", "overwrite_a", "check_finite", "p_indices")
def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """Returns the LU decomposition: a = P L U.

    Args:
      a: array-like[..., m, n].
      permute_l: whether to return P L in one.
      overwrite_a: has no effect.
      check_finite: has no effect.
      p_indices: whether to return P as indices p, such that a = L[p] U.

    Returns:
      P [..., m, m], or int32[..., m], L [..., m, k] and U [..., k, n] with k = min(m,
      n); or P L and U.

    Raises:
      ShapeError: `a` is not a matrix.

    Example:
      >>> lu(np.array([[1.0, 2.0], [4.0, 4.0]]))[2]
      Array([[4., 4.],
             [0., 1.]], dtype=float32)

    Source: `scipy.linalg.lu`.
    """
    x = matrix_of("lu", a)
    factors, _, order = lax.linalg.lu(x)
    m, n = x.aval.shape[-2:]
    k = m if m < n else n
    eye = np.eye(m, k).astype(x.aval.dtype)
    lower = tril(factors[..., :k], -1) + eye
    upper = triu(factors[..., :k, :])
    rows = lax.broadcasted_iota(
        order.aval.dtype, (*x.aval.shape[:-2], m, m), x.aval.ndim - 2
    )
    exchange = rows == order[..., None, :]
    if permute_l:
        return matmul(convert(exchange, x.aval.dtype), lower), upper
    if p_indices:
        # The inverse of the order in which rows were taken.
        return convert(argsort(order, axis=-1), dtypes.int32), lower, upper
    return convert(exchange, dtypes.to_real(x.aval.dtype)), lower, upper


@library("overwrite_a", "lwork", "mode", "pivoting", "check_finite")
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns the QR decomposition: a = Q R.

    Args:
      a: array-like[..., m, n].
      overwrite_a: has no effect.
      lwork: has no effect.
      mode: "full", "economic", or "r": R alone.
      pivoting: whether to exchange columns, such that the diagonal of R decreases.
      check_finite: has no effect.

    Returns:
      Q and R; or a tuple of R alone. With `pivoting` one more: p, int32[..., n], with
      a[..., p] = Q R.

    Raises:
      ArgumentError: unknown mode.
      ShapeError: `a` is not a matrix.

    Example:
      >>> qr(np.array([[3.0], [4.0]]), mode="r")[0].shape
      (2, 1)

    Source: `scipy.linalg.qr`.
    """
    if mode not in ("full", "economic", "r"):
        raise ArgumentError(f'qr: mode must be "full", "economic" or "r", got {mode!r}')
    x = matrix_of("qr", a)
    full = mode != "economic"
    q, *rest = lax.linalg.qr(x, pivoting=pivoting, full_matrices=full)
    return tuple(rest) if mode == "r" else (q, *rest)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Returns the singular value decomposition; see `fxflow.numpy.linalg.svd`.

    Args:
      a: array-like[..., m, n].
      full_matrices: whether U and Vᴴ are square.
      compute_uv: whether to return U and Vᴴ.
      overwrite_a: has no effect.
      check_finite: has no effect.
      lapack_driver: "gesdd" or "gesvd"; has no effect.

    Returns:
      U, s and Vᴴ; or s alone.

    Raises:
      ShapeError: `a` is not a matrix.
      ArgumentError: there is no such driver.

    Source: `scipy.linalg.svd`.
    """
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ArgumentError(
            f'svd: lapack_driver must be "gesdd" or "gesvd", got {lapack_driver!r}'
        )
    found = linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
    *,
    subset_by_index: Sequence[int] | None = None,
    subset_by_value: Sequence[float] | None = None,
    driver: str | None = None,
) -> Any:
    """Returns eigenvalues and eigenvectors of Hermitian matrices: a v = w b v.

    Args:
      a: array-like[..., n, n]; one triangle is read.
      b: array-like[..., n, n], Hermitian and positive definite; None is the identity.
      lower: which triangle.
      eigvals_only: whether to return eigenvalues alone.
      overwrite_a: has no effect.
      overwrite_b: has no effect.
      turbo: has no effect.
      eigvals: which eigenvalues to return: the first and the last index, from 0. None:
        all.
      type: 1 solves a v = w b v, 2 solves a b v = w v, 3 solves b a v = w v.
      check_finite: has no effect.
      subset_by_index: SciPy's later name of `eigvals`.
      subset_by_value: must be None: how many eigenvalues are in an interval depends on
        the values. Take those of the result that are.
      driver: has no effect.

    Returns:
      Eigenvalues [..., k], real and ascending, and eigenvectors [..., n, k] in columns,
      with vᴴ b v = 1 (of type 3: vᴴ b⁻¹ v = 1).

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: unknown type, there are no such eigenvalues, or they are to be
        chosen by their values.

    Example:
      >>> eigh(np.diag([3.0, 1.0, 2.0]), eigvals_only=True, eigvals=(1, 2))
      Array([2., 3.], dtype=float32)

    Source: `scipy.linalg.eigh`.
    """
    if type not in (1, 2, 3):
        raise ArgumentError(f"eigh: type must be 1, 2 or 3, got {type!r}")
    if eigvals is not None and subset_by_index is not None:
        raise ArgumentError("eigh: give eigvals or subset_by_index, not both")
    require_no_interval("eigh", subset_by_value)
    chosen = _chosen(a, subset_by_index if eigvals is None else eigvals)
    side = "L" if lower else "U"
    if b is None:
        values, vectors = linalg.eigh(a, side, symmetrize_input=False)
    else:
        values, vectors = _generalized(a, b, lower, type)
    values = values[..., chosen]
    return values if eigvals_only else (values, vectors[..., chosen])


def require_no_interval(name: str, subset_by_value: Any) -> None:
    """Raises if eigenvalues are to be chosen by their values.

    Raises:
      ArgumentError: they are.
    """
    if subset_by_value is not None:
        raise ArgumentError(
            f"{name}: how many eigenvalues are in an interval is not known when a "
            f"program is compiled: pass subset_by_index, not subset_by_value="
            f"{subset_by_value!r}, or take those of the result that are in it"
        )


def _chosen(a: Any, indices: Any) -> slice:
    """Returns the indices of the eigenvalues from a first to a last index."""
    if indices is None:
        return slice(None)
    n = matrix_of("eigh", a, square=True).aval.shape[-1]
    try:
        first, last = map(operator.index, indices)
    except (TypeError, ValueError):
        first, last = -1, -1
    if not 0 <= first <= last < n:
        raise ArgumentError(
            "eigh: eigenvalues are chosen by a first and a last index between 0 and "
            f"{n - 1}, got {indices!r}"
        )
    return slice(first, last + 1)


@library("lower", "type")
def _generalized(a: Any, b: Any, lower: bool, type: int) -> tuple[Array, Array]:
    x = matrix_of("eigh", a, square=True)
    half, rest = (tril(x), tril(x, -1)) if lower else (triu(x), triu(x, 1))
    whole = half + adjoint(rest)
    factor = cholesky(b, lower=True) if lower else adjoint(cholesky(b))
    if type == 1:
        # With b = L Lᴴ this is the eigenproblem of L⁻¹ a L⁻ᴴ, for Lᴴ v,
        inner = solve_triangular(factor, whole, lower=True)
        inner = adjoint(solve_triangular(factor, adjoint(inner), lower=True))
    else:
        # that of Lᴴ a L, also for Lᴴ v, or for L⁻¹ v.
        inner = matmul(matmul(adjoint(factor), whole), factor)
    values, vectors = linalg.eigh(inner)
    if type == 3:
        return values, matmul(factor, vectors)
    return values, solve_triangular(factor, vectors, trans=2, lower=True)
