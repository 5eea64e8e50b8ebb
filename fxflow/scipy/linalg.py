"""Linear algebra of SciPy: `fxflow.scipy.linalg`.

Arguments that only save memory or time in SciPy (`overwrite_a`, `check_finite`, …) are
accepted and have no effect. Matrices are the last two axes, the others are batch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, ShapeError
from fxflow.numpy import linalg
from fxflow.numpy._operands import (
    array_of,
    convert,
    promote_dtypes,
    promote_inexact,
    repeated,
)
from fxflow.numpy.contraction import matmul
from fxflow.numpy.diagonals import tril, triu
from fxflow.numpy.linalg import det, inv, solve_factored
from fxflow.numpy.norms import norm
from fxflow.numpy.reductions import max, sum
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import matrix_transpose

_TRANS = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def _matrix(name: str, a: Any, *, square: bool = False) -> Any:
    (x,) = promote_inexact(name, a)
    if dtypes.bits(x.aval.dtype) < 32:
        x = convert(x, dtypes.float32)
    shape = x.aval.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        raise ShapeError(
            f"{name}: takes {'square ' if square else ''}matrices, got {x.aval}"
        )
    return x


def _sides(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Returns a matrix, right sides as matrices, and whether they were a vector."""
    x, y = promote_inexact(name, a, b)
    x = _matrix(name, x, square=True)
    y = convert(y, x.aval.dtype)
    vector = y.aval.ndim == 1
    if vector:
        y = lax.expand_dims(y, (1,))
    if y.aval.ndim < 2 or y.aval.shape[-2] != x.aval.shape[-1]:
        raise ShapeError(f"{name}: {x.aval} and b, {y.aval}, do not fit")
    lead = lax.broadcast_shapes(x.aval.shape[:-2], y.aval.shape[:-2])
    x = repeated(x, (*lead, *x.aval.shape[-2:]))
    return x, repeated(y, (*lead, *y.aval.shape[-2:])), vector


def _trans(name: str, trans: Any) -> int:
    if trans not in _TRANS:
        raise ArgumentError(f"{name}: trans must be 0, 1 or 2, got {trans!r}")
    return _TRANS[trans]


def _adjoint(x: Any) -> Any:
    swapped = matrix_transpose(x)
    return lax.conj(swapped) if dtypes.is_complex(x.aval.dtype) else swapped


# -- solving ------------------------------------------------------------------------


@library("trans", "lower", "unit_diagonal", "overwrite_b", "check_finite")
def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b with a triangular matrix.

    Args:
      a: array-like[..., n, n]; one triangle is read.
      b: array-like[n] or [..., n, k].
      trans: 0 or "N"; 1 or "T" solves aᵀ x = b; 2 or "C" solves aᴴ x = b.
      lower: which triangle.
      unit_diagonal: whether the diagonal counts as ones.
      overwrite_b: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array of the shape of `b`.

    Raises:
      ShapeError: the shapes do not fit.
      ArgumentError: `trans` is something else.

    Example:
      >>> solve_triangular(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
      Array([1., 1.], dtype=float32)

    Source: `scipy.linalg.solve_triangular`.
    """
    way = _trans("solve_triangular", trans)
    x, y, vector = _sides("solve_triangular", a, b)
    out = lax.linalg.triangular_solve(
        x,
        y,
        left_side=True,
        lower=lower,
        transpose_a=way > 0,
        conjugate_a=way == 2,
        unit_diagonal=unit_diagonal,
    )
    return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out  # type: ignore[no-any-return]


@library("lower", "overwrite_a", "overwrite_b", "check_finite", "assume_a")
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solves a x = b.

    Args:
      a: array-like[..., n, n].
      b: array-like[n] or [..., n, k].
      lower: which triangle is read, if `assume_a` is not "gen".
      overwrite_a: has no effect.
      overwrite_b: has no effect.
      check_finite: has no effect.
      assume_a: "gen", "sym", "her", or "pos": positive definite, which is faster.

    Returns:
      Float or complex array of the shape of `b`.

    Raises:
      ShapeError: the shapes do not fit.
      ArgumentError: `assume_a` is something else.

    Example:
      >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
      Array([1., 1.], dtype=float32)

    Source: `scipy.linalg.solve`.
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ArgumentError(
            f'solve: assume_a must be "gen", "sym", "her" or "pos", got {assume_a!r}'
        )
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    if assume_a != "gen":
        x = _matrix("solve", a, square=True)
        half = tril(x) if lower else triu(x)
        rest = tril(x, -1) if lower else triu(x, 1)
        a = half + (_adjoint(rest) if assume_a == "her" else matrix_transpose(rest))
    return linalg.solve(a, b)


@library("lower", "overwrite_a", "check_finite")
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Returns the Cholesky factor: a = Uᴴ U, or L Lᴴ.

    Args:
      a: array-like[..., n, n], Hermitian and positive definite; one triangle is read.
      lower: whether to return L.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array[..., n, n], triangular.

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      nan if a matrix is not positive definite.

    Example:
      >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
      Array([[2., 1.],
             [0., 1.]], dtype=float32)

    Source: `scipy.linalg.cholesky`.
    """
    return linalg.cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Returns the Cholesky factor for `cho_solve`.

    Args:
      a: array-like[..., n, n], Hermitian and positive definite; one triangle is read.
      lower: whether the factor is lower triangular.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      The factor, and `lower`.

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> cho_factor(np.array([[4.0]]))
      (Array([[2.]], dtype=float32), False)

    Source: `scipy.linalg.cho_factor`.
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: Any,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b, given the Cholesky factor of a.

    Args:
      c_and_lower: what `cho_factor` returned.
      b: array-like[n] or [..., n, k].
      overwrite_b: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array of the shape of `b`.

    Raises:
      ShapeError: the shapes do not fit.

    Example:
      >>> cho_solve(cho_factor(np.array([[4.0]])), np.array([8.0]))
      Array([2.], dtype=float32)

    Source: `scipy.linalg.cho_solve`.
    """
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, 0 if lower else 2, lower)
    return solve_triangular(factor, first, 2 if lower else 0, lower)


# -- LU -----------------------------------------------------------------------------


@library("overwrite_a", "check_finite")
def lu_factor(
    a: Any, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Returns the LU decomposition for `lu_solve`.

    Args:
      a: array-like[..., n, n].
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      L and U in one array[..., n, n], and the pivots i32[..., n].

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> lu_factor(np.array([[1.0, 2.0], [4.0, 4.0]]))[1]
      Array([1, 1], dtype=int32)

    Source: `scipy.linalg.lu_factor`.
    """
    factors, pivots, _ = lax.linalg.lu(_matrix("lu_factor", a, square=True))
    return factors, pivots


@library("trans", "overwrite_b", "check_finite")
def lu_solve(
    lu_and_piv: Any,
    b: Any,
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
      ShapeError: the shapes do not fit.
      ArgumentError: `trans` is something else.

    Example:
      >>> lu_solve(lu_factor(np.array([[4.0]])), np.array([8.0]))
      Array([2.], dtype=float32)

    Source: `scipy.linalg.lu_solve`.
    """
    way = _trans("lu_solve", trans)
    factors, pivots = lu_and_piv
    x, y, vector = _sides("lu_solve", factors, b)
    order = lax.linalg.lu_pivots_to_permutation(
        array_of(pivots, "lu_solve"), x.aval.shape[-1]
    )
    out = solve_factored(x, order, y, way)
    return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out  # type: ignore[no-any-return]


@library("permute_l", "overwrite_a", "check_finite")
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns the LU decomposition: a = P L U.

    Args:
      a: array-like[..., m, n].
      permute_l: whether to return P L in one.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      P [..., m, m], L [..., m, k] and U [..., k, n] with k = min(m, n); or P L and U.

    Raises:
      ShapeError: `a` is no matrix.

    Example:
      >>> lu(np.array([[1.0, 2.0], [4.0, 4.0]]))[2]
      Array([[4., 4.],
             [0., 1.]], dtype=float32)

    Source: `scipy.linalg.lu`.
    """
    x = _matrix("lu", a)
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
    return convert(exchange, dtypes.to_real(x.aval.dtype)), lower, upper


# -- names that NumPy has too -------------------------------------------------------


def qr(
    a: Any,
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
      pivoting: not supported.
      check_finite: has no effect.

    Returns:
      Q and R; or a tuple of R alone.

    Raises:
      ArgumentError: there is no such mode, or `pivoting` is set.
      ShapeError: `a` is no matrix.

    Example:
      >>> qr(np.array([[3.0], [4.0]]), mode="r")[0].shape
      (2, 1)

    Source: `scipy.linalg.qr`.
    """
    if pivoting:
        raise ArgumentError("qr: exchanging columns (pivoting=True) is not supported")
    if mode not in ("full", "economic", "r"):
        raise ArgumentError(f'qr: mode must be "full", "economic" or "r", got {mode!r}')
    q, r = linalg.qr(a, "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns the singular value decomposition; see `fxflow.numpy.linalg.svd`.

    Args:
      a: array-like[..., m, n].
      full_matrices: whether U and Vᴴ are square.
      compute_uv: whether to return U and Vᴴ.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      U, s and Vᴴ; or s alone.

    Raises:
      ShapeError: `a` is no matrix.

    Source: `scipy.linalg.svd`.
    """
    found = linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns eigenvalues and eigenvectors of Hermitian matrices: a v = w b v.

    Args:
      a: array-like[..., n, n]; one triangle is read.
      b: array-like[..., n, n], Hermitian and positive definite; None is the identity.
      lower: which triangle.
      eigvals_only: whether to return eigenvalues alone.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      Eigenvalues [..., n], real and ascending, and eigenvectors [..., n, n] in columns.

    Raises:
      ShapeError: the matrices are not square.

    Source: `scipy.linalg.eigh`.
    """
    side = "L" if lower else "U"
    if b is None:
        values, vectors = linalg.eigh(a, side, symmetrize_input=False)
        return values if eigvals_only else (values, vectors)
    x = _matrix("eigh", a, square=True)
    half, rest = (tril(x), tril(x, -1)) if lower else (triu(x), triu(x, 1))
    whole = half + _adjoint(rest)
    factor = cholesky(b, lower=True) if lower else _adjoint(cholesky(b))
    # With b = L Lᴴ this is the eigenproblem of L⁻¹ a L⁻ᴴ.
    inner = solve_triangular(factor, whole, lower=True)
    inner = _adjoint(solve_triangular(factor, _adjoint(inner), lower=True))
    values, vectors = linalg.eigh(inner)
    if eigvals_only:
        return values
    return values, solve_triangular(factor, vectors, trans=2, lower=True)


# -- matrix functions ---------------------------------------------------------------

# Numerator coefficients of the diagonal Padé approximant of degree 13 of exp, and the
# norm up to which it is exact in 64 bits (Higham 2005, table 2.3).
_PADE = tuple(
    math.factorial(26 - j)
    * math.factorial(13)
    / (math.factorial(26) * math.factorial(13 - j) * math.factorial(j))
    for j in range(14)
)
_PADE_NORM = 5.371920351148152


@library("upper_triangular", "max_squarings")
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Returns exponentials of matrices.

    Args:
      A: array-like[..., n, n].
      upper_triangular: whether the matrices are, which is faster.
      max_squarings: how often squaring is tried; of larger matrices the result is nan.

    Returns:
      Float or complex array[..., n, n].

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> expm(np.zeros((2, 2)))
      Array([[1., 0.],
             [0., 1.]], dtype=float32)

    Source: `scipy.linalg.expm`; N. Higham, The Scaling and Squaring Method for the
    Matrix Exponential Revisited, 2005.
    """
    a = _matrix("expm", A, square=True)
    n = a.aval.shape[-1]
    if not n:
        return a  # type: ignore[no-any-return]
    size = lax.stop_gradient(max(sum(lax.abs(a), axis=-2), axis=-1))
    halvings = lax.ceil(lax.log(size / _PADE_NORM) / math.log(2.0))
    halvings = lax.max(halvings, lax.full_like(halvings, 0))
    # A norm of 0 has no logarithm.
    halvings = choose_between(size > 0, halvings, lax.full_like(halvings, 0))
    scale = convert(lax.exp2(-halvings), a.aval.dtype)[..., None, None]
    x = a * scale
    eye = np.eye(n).astype(a.aval.dtype)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    c = _PADE
    odd = matmul(x6, c[13] * x6 + c[11] * x4 + c[9] * x2)
    odd = matmul(x, odd + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * eye)
    even = matmul(x6, c[12] * x6 + c[10] * x4 + c[8] * x2)
    even = even + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * eye
    if upper_triangular:
        out = solve_triangular(even - odd, even + odd)
    else:
        out = linalg.solve(even - odd, even + odd)

    def square(i: Any, value: Any) -> Any:
        more = convert(i, halvings.aval.dtype) < halvings
        return choose_between(more[..., None, None], matmul(value, value), value)

    # Scanned over, and not a loop of unknown length, so that it has a gradient.
    steps = lax.iota(dtypes.int32, max_squarings)
    out, _ = lax.scan(lambda value, i: (square(i, value), None), out, steps)
    lost = (halvings > max_squarings)[..., None, None]
    return choose_between(lost, lax.full_like(out, math.nan), out)  # type: ignore[no-any-return]


# -- special matrices ---------------------------------------------------------------


@library()
def block_diag(*arrs: Any) -> Array:
    """Puts matrices on the diagonal of a larger one.

    Args:
      *arrs: array-likes with at most two axes; numbers and vectors are one row.

    Returns:
      Array[sum of rows, sum of columns], zero elsewhere.

    Raises:
      ShapeError: an array has more than two axes.

    Example:
      >>> block_diag(np.array([[1]]), np.array([[2, 3]]))
      Array([[1, 0, 0],
             [0, 2, 3]], dtype=int32)

    Source: `scipy.linalg.block_diag`.
    """
    given = promote_dtypes("block_diag", *(arrs or (np.zeros((1, 0), np.float32),)))
    blocks = []
    for x in given:
        if x.aval.ndim > 2:
            raise ShapeError(f"block_diag: matrices have two axes, got {x.aval}")
        shape = (1,) * (2 - x.aval.ndim) + x.aval.shape
        blocks.append(lax.reshape(x, shape))
    width = 0
    for x in blocks:
        width += x.aval.shape[1]
    rows, before = [], 0
    for x in blocks:
        n = x.aval.shape[1]
        zero = lax.full((), 0, x.aval.dtype)
        rows.append(lax.pad(x, zero, [(0, 0, 0), (before, width - before - n, 0)]))
        before += n
    return lax.concatenate(rows, 0)  # type: ignore[no-any-return]


@library()
def toeplitz(c: Any, r: Any = None) -> Array:
    """Returns the matrix with constant diagonals.

    Args:
      c: array-like[m]: first column.
      r: array-like[n]: first row, its first element not used; None is the conjugate of
        `c`.

    Returns:
      Array[m, n].

    Raises:
      ShapeError: an argument has more than one axis.

    Example:
      >>> toeplitz(np.array([1, 2]), np.array([1, 5, 6]))
      Array([[1, 5, 6],
             [2, 1, 5]], dtype=int32)

    Source: `scipy.linalg.toeplitz`.
    """
    column = array_of(c, "toeplitz")
    if r is None:
        r = lax.conj(column) if dtypes.is_complex(column.aval.dtype) else column
    column, row = promote_dtypes("toeplitz", column, r)
    if column.aval.ndim > 1 or row.aval.ndim > 1:
        raise ShapeError(f"toeplitz: takes vectors, got {column.aval} and {row.aval}")
    column = lax.reshape(column, (column.aval.size,))
    row = lax.reshape(row, (row.aval.size,))
    m, n = column.aval.size, row.aval.size
    line = lax.concatenate([lax.rev(column, (0,)), lax.slice_in_dim(row, 1, n)], 0)
    places = (m - 1) - np.arange(m)[:, None] + np.arange(n)
    return line[places]  # type: ignore[no-any-return]


__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "expm",
    "inv",
    "lu",
    "lu_factor",
    "lu_solve",
    "norm",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
    "toeplitz",
]
