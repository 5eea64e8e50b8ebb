"""Linear algebra: `fnp.linalg`. Matrices are the last two axes, the others are batch.

16-bit floats are computed and returned in 32 bits.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, ShapeError
from fxflow.lax.gradient_control import stop_gradient
from fxflow.numpy import contraction, diagonals
from fxflow.numpy._operands import (
    array_of,
    convert,
    promote_dtypes,
    promote_inexact,
    repeated,
    size_of,
)
from fxflow.numpy.contraction import (
    matmul,
    multi_dot,
    tensordot,
    vecdot,
)
from fxflow.numpy.index_functions import take_along_axis
from fxflow.numpy.norms import matrix_norm, norm, vector_norm
from fxflow.numpy.reductions import max, prod, sum
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import canonical_axis, matrix_transpose, reshape
from fxflow.transforms.custom_jvp import custom_jvp


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


def _computed(x: Any) -> Any:
    """Returns an array in a dtype that LAPACK knows."""
    if dtypes.bits(x.aval.dtype) < 32:
        return convert(x, dtypes.float32)
    return x


def _matrices(name: str, *args: Any, square: bool = False) -> list[Any]:
    """Returns float arrays of one dtype whose last two axes are matrices."""
    out = [_computed(x) for x in promote_inexact(name, *args)]
    for x in out:
        shape = x.aval.shape
        if len(shape) < 2:
            raise ShapeError(f"{name}: takes matrices [..., m, n], got {x.aval}")
        if square and shape[-1] != shape[-2]:
            raise ShapeError(f"{name}: takes square matrices [..., n, n], got {x.aval}")
    return out


def _adjoint(x: Any) -> Any:
    swapped = matrix_transpose(x)
    return lax.conj(swapped) if dtypes.is_complex(x.aval.dtype) else swapped


def _identity_like(a: Any, n: int) -> Any:
    eye = np.eye(n, dtype=np.float32).astype(a.aval.dtype)
    return repeated(array_of(eye, "eye"), (*a.aval.shape[:-2], n, n))


def _eps(x: Any) -> float:
    return float(dtypes.finfo(x.aval.dtype).eps)


# -- decompositions ------------------------------------------------------------------


@library("upper", "symmetrize_input")
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Returns the Cholesky factor: a = L Lᴴ.

    Args:
      a: array-like[..., n, n], Hermitian and positive definite.
      upper: whether to return U with a = Uᴴ U.
      symmetrize_input: whether to take the mean of `a` and aᴴ first.

    Returns:
      Float or complex array[..., n, n], triangular.

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      nan if a matrix is not positive definite.

    Example:
      >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
      Array([[2., 0.],
             [1., 1.]], dtype=float32)

    Source: `numpy.linalg.cholesky`.
    """
    (x,) = _matrices("cholesky", a, square=True)
    if upper and not symmetrize_input:
        # The upper triangle is the one that is read then.
        x = _adjoint(x)
    factor = lax.linalg.cholesky(x, symmetrize_input=symmetrize_input)
    return _adjoint(factor) if upper else factor  # type: ignore[no-any-return]


@library("mode")
def qr(a: Any, mode: str = "reduced") -> Any:
    """Returns the QR decomposition: a = Q R, the columns of Q orthonormal.

    Args:
      a: array-like[..., m, n].
      mode: "reduced": Q [..., m, k] and R [..., k, n] with k = min(m, n); "complete": Q
        [..., m, m] and R [..., m, n]; "r": R alone; "raw": Householder reflectors
        [..., n, m] and their factors [..., k].

    Returns:
      Named tuple `(Q, R)`; R alone; or a pair.

    Raises:
      ShapeError: `a` is no matrix.
      ArgumentError: there is no such mode.

    Example:
      >>> qr(np.array([[3.0], [4.0]])).R
      Array([[-5.]], dtype=float32)

    Source: `numpy.linalg.qr`.
    """
    (x,) = _matrices("qr", a)
    if mode == "raw":
        reflectors, factors = lax.linalg.geqrf(x)
        return matrix_transpose(reflectors), factors
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            f'qr: mode must be "reduced", "complete", "r" or "raw", got {mode!r}'
        )
    q, r = lax.linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@library("full_matrices", "compute_uv", "hermitian", "subset_by_index")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Returns the singular value decomposition: a = U diag(S) Vᴴ.

    Args:
      a: array-like[..., m, n].
      full_matrices: whether U is [m, m] and Vh [n, n], or [m, k] and [k, n] with
        k = min(m, n).
      compute_uv: whether to return U and Vh.
      hermitian: whether `a` is Hermitian, which is faster.
      subset_by_index: a range of singular values to return; None is all.

    Returns:
      Named tuple `(U, S, Vh)`, S real and descending; or S alone.

    Raises:
      ShapeError: `a` is no matrix, or not square and `hermitian`.
      ArgumentError: the range does not fit.

    Example:
      >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
      Array([2., 1.], dtype=float32)

    Source: `numpy.linalg.svd`.
    """
    (x,) = _matrices("svd", a, square=hermitian)
    if hermitian and subset_by_index is None:
        return _hermitian_svd(x, compute_uv)
    found = lax.linalg.svd(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset_by_index,
    )
    return SVDResult(*found) if compute_uv else found


def _hermitian_svd(x: Any, compute_uv: bool) -> Any:
    vectors, values = lax.linalg.eigh(x)
    size = lax.abs(values)
    order = lax.rev(lax.argsort(size, size.aval.ndim - 1), (size.aval.ndim - 1,))
    s = take_along_axis(size, order, axis=-1)
    if not compute_uv:
        return s
    sign = take_along_axis(lax.sign(values), order, axis=-1)
    # A zero has no sign, and either would do.
    sign = choose_between(sign == 0, lax.full_like(sign, 1), sign)
    u = take_along_axis(vectors, order[..., None, :], axis=-1)
    return SVDResult(u, s, _adjoint(u * convert(sign, u.aval.dtype)[..., None, :]))


@library()
def svdvals(x: Any, /) -> Array:
    """Returns singular values.

    Args:
      x: array-like[..., m, n].

    Returns:
      Real array[..., min(m, n)], descending.

    Raises:
      ShapeError: `x` is no matrix.

    Example:
      >>> svdvals(np.array([[0.0, 2.0], [1.0, 0.0]]))
      Array([2., 1.], dtype=float32)

    Source: `numpy.linalg.svdvals`.
    """
    return svd(x, compute_uv=False)  # type: ignore[no-any-return]


@library()
def eig(a: Any) -> EigResult:
    """Returns eigenvalues and eigenvectors of matrices.

    Args:
      a: array-like[..., n, n].

    Returns:
      Named tuple of complex eigenvalues [..., n], in no order, and eigenvectors
      [..., n, n], in columns.

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> eig(np.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
      Array([2.+0.j, 3.+0.j], dtype=complex64)

    Source: `numpy.linalg.eig`.
    """
    (x,) = _matrices("eig", a, square=True)
    return EigResult(*lax.linalg.eig(x, compute_left_eigenvectors=False))


@library()
def eigvals(a: Any) -> Array:
    """Returns eigenvalues of matrices.

    Args:
      a: array-like[..., n, n].

    Returns:
      Complex array[..., n], in no order.

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> eigvals(np.array([[2.0, 0.0], [0.0, 3.0]]))
      Array([2.+0.j, 3.+0.j], dtype=complex64)

    Source: `numpy.linalg.eigvals`.
    """
    (x,) = _matrices("eigvals", a, square=True)
    return lax.linalg.eig(  # type: ignore[no-any-return]
        x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]


def _triangle(UPLO: Any) -> bool:
    if UPLO not in (None, "L", "U"):
        raise ArgumentError(f'eigh: UPLO must be "L" or "U", got {UPLO!r}')
    return UPLO != "U"


@library("UPLO", "symmetrize_input")
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Returns eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: array-like[..., n, n].
      UPLO: which triangle is read, "L" or "U", if `symmetrize_input` is false.
      symmetrize_input: whether to take the mean of `a` and aᴴ first.

    Returns:
      Named tuple of real eigenvalues [..., n], ascending, and eigenvectors [..., n, n],
      in columns.

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: there is no such triangle.

    Example:
      >>> eigh(np.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
      Array([1., 2.], dtype=float32)

    Source: `numpy.linalg.eigh`.
    """
    (x,) = _matrices("eigh", a, square=True)
    vectors, values = lax.linalg.eigh(
        x, lower=_triangle(UPLO), symmetrize_input=symmetrize_input
    )
    return EighResult(values, vectors)


@library("UPLO", "symmetrize_input")
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Returns eigenvalues of Hermitian matrices.

    Args:
      a: array-like[..., n, n].
      UPLO: which triangle is read, "L" or "U", if `symmetrize_input` is false.
      symmetrize_input: whether to take the mean of `a` and aᴴ first.

    Returns:
      Real array[..., n], ascending.

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: there is no such triangle.

    Example:
      >>> eigvalsh(np.array([[2.0, 0.0], [0.0, 1.0]]))
      Array([1., 2.], dtype=float32)

    Source: `numpy.linalg.eigvalsh`.
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


# -- solving -------------------------------------------------------------------------


def solve_factored(factors: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """Solves equations with matrices given by their LU decomposition.

    Args:
      factors: float or complex[..., n, n]: L and U in one.
      permutation: i32[..., n] of the rows.
      b: of the same dtype, [..., n, k].
      trans: 0 for a x = b, 1 for aᵀ x = b, 2 for aᴴ x = b.

    Returns:
      Array[..., n, k].
    """
    lead = lax.broadcast_shapes(factors.aval.shape[:-2], b.aval.shape[:-2])
    n, k = b.aval.shape[-2:]
    factors = repeated(factors, (*lead, n, n))
    permutation = repeated(permutation, (*lead, n))[..., None]
    b = repeated(b, (*lead, n, k))
    if trans == 0:
        b = take_along_axis(b, permutation, axis=-2)
        b = lax.linalg.triangular_solve(
            factors, b, left_side=True, lower=True, unit_diagonal=True
        )
        return lax.linalg.triangular_solve(factors, b, left_side=True, lower=False)
    conjugate = trans == 2
    b = lax.linalg.triangular_solve(
        factors, b, left_side=True, lower=False, transpose_a=True, conjugate_a=conjugate
    )
    b = lax.linalg.triangular_solve(
        factors,
        b,
        left_side=True,
        lower=True,
        unit_diagonal=True,
        transpose_a=True,
        conjugate_a=conjugate,
    )
    inverse = lax.argsort(permutation, permutation.aval.ndim - 2)
    return take_along_axis(b, inverse, axis=-2)


def _solved(a: Any, b: Any) -> Any:
    """Solves a x = b for matrices b, with a derivative that needs one decomposition."""
    factors, _, permutation = lax.linalg.lu(stop_gradient(a))
    return lax.custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        solve=lambda _, y: solve_factored(factors, permutation, y),
        transpose_solve=lambda _, y: solve_factored(factors, permutation, y, 1),
    )


@library()
def solve(a: Any, b: Any) -> Array:
    """Solves a x = b.

    Args:
      a: array-like[..., n, n].
      b: array-like[n], or [..., n, k]; the axes before broadcast.

    Returns:
      Float or complex array[..., n], or [..., n, k].

    Raises:
      ShapeError: the matrices are not square, or the shapes do not fit.

    Special cases:
      inf or nan if a matrix is singular.

    Example:
      >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
      Array([1., 1.], dtype=float32)

    Source: `numpy.linalg.solve`.
    """
    matrix, right = (_computed(x) for x in promote_inexact("solve", a, b))
    (matrix,) = _matrices("solve", matrix, square=True)
    vector = right.aval.ndim == 1
    if vector:
        right = right[:, None]
    if right.aval.ndim < 2 or right.aval.shape[-2] != matrix.aval.shape[-1]:
        raise ShapeError(
            f"solve: b must be [n] or [..., n, k] with the n of {matrix.aval}, got "
            f"{array_of(b, 'solve').aval}"
        )
    try:
        lead = lax.broadcast_shapes(matrix.aval.shape[:-2], right.aval.shape[:-2])
    except (TypeError, ValueError):
        raise ShapeError(
            f"solve: batch axes of {matrix.aval} and {right.aval} do not broadcast"
        ) from None
    right = repeated(right, (*lead, *right.aval.shape[-2:]))
    out = _solved(matrix, right)
    return out[..., 0] if vector else out  # type: ignore[no-any-return]


@library()
def inv(a: Any) -> Array:
    """Returns inverses.

    Args:
      a: array-like[..., n, n].

    Returns:
      Float or complex array[..., n, n].

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      inf or nan if a matrix is singular.

    Example:
      >>> inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)

    Source: `numpy.linalg.inv`.
    """
    (x,) = _matrices("inv", a, square=True)
    return _solved(x, _identity_like(x, x.aval.shape[-1]))  # type: ignore[no-any-return]


@library("hermitian")
def pinv(
    a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None
) -> Array:
    """Returns pseudo-inverses.

    Args:
      a: array-like[..., m, n].
      rtol: singular values up to this times the largest count as zero; None is 10 times
        max(m, n) times the precision of the dtype.
      hermitian: whether `a` is Hermitian, which is faster.
      rcond: older name of `rtol`.

    Returns:
      Float or complex array[..., n, m].

    Raises:
      ShapeError: `a` is no matrix.
      ArgumentError: both `rtol` and `rcond` are given.

    Example:
      >>> pinv(np.array([[2.0], [0.0]]))
      Array([[0.5, 0. ]], dtype=float32)

    Source: `numpy.linalg.pinv`; G. Golub and V. Pereyra, The Differentiation of
    Pseudo-Inverses, 1973 (derivative).
    """
    if rcond is not None:
        if rtol is not None:
            raise ArgumentError("pinv: give rtol or rcond, not both")
        rtol = rcond
    (x,) = _matrices("pinv", a, square=hermitian)
    m, n = x.aval.shape[-2:]
    real = dtypes.to_real(x.aval.dtype)
    if rtol is None:
        rtol = 10.0 * (m if m > n else n) * _eps(x)
    if not m or not n:
        return lax.full((*x.aval.shape[:-2], n, m), 0, x.aval.dtype)  # type: ignore[no-any-return]
    least = convert(array_of(rtol, "pinv"), real)
    return _pinv(hermitian)(x, least)  # type: ignore[no-any-return]


def _pinv(hermitian: bool) -> Any:
    @custom_jvp
    def pseudo_inverse(x: Any, rtol: Any) -> Any:
        u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
        least = (rtol if not rtol.aval.ndim else rtol[..., None]) * s[..., :1]
        keep = s > repeated(least, s.aval.shape)
        one = lax.full_like(s, 1)
        inverse = choose_between(keep, 1 / choose_between(keep, s, one), 0 * one)
        scaled = _adjoint(vh) * convert(inverse, x.aval.dtype)[..., None, :]
        return matmul(scaled, _adjoint(u))

    def derivative(primals: Any, tangents: Any) -> Any:
        a, rtol = primals
        da, _ = tangents
        p = pseudo_inverse(a, rtol)
        ph, dh = _adjoint(p), _adjoint(da)
        out = -(p @ da @ p)
        first = p @ (ph @ dh)
        second = (dh @ ph) @ p
        out = out + first - (first @ a) @ p
        out = out + second - p @ (a @ second)
        return p, out

    pseudo_inverse.defjvp(derivative)
    return pseudo_inverse


@library("numpy_resid")
def lstsq(
    a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Solves a x ≈ b by least squares.

    Args:
      a: array-like[m, n].
      b: array-like[m] or [m, k].
      rcond: singular values smaller than this times the largest count as zero; None is
        max(m, n) times the precision of the dtype.
      numpy_resid: whether to return no residuals where NumPy returns none (the rank is
        less than n, or m ≤ n); for concrete arrays only.

    Returns:
      x [n] or [n, k], the sums of squared residuals [k], the rank, and the singular
      values [min(m, n)].

    Raises:
      ShapeError: the shapes do not fit.

    Example:
      >>> lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))[0].round(3)
      Array([2.], dtype=float32)

    Source: `numpy.linalg.lstsq`.
    """
    matrix, right = (_computed(x) for x in promote_inexact("lstsq", a, b))
    shape = matrix.aval.shape
    vector = right.aval.ndim == 1
    if (
        len(shape) != 2
        or right.aval.ndim not in (1, 2)
        or right.aval.shape[0] != shape[0]
    ):
        raise ShapeError(
            f"lstsq: takes a [m, n] and b [m] or [m, k], got {matrix.aval} and "
            f"{right.aval}"
        )
    if vector:
        right = right[:, None]
    m, n = shape
    k = right.aval.shape[1]
    real = dtypes.to_real(matrix.aval.dtype)
    if not m or not n:
        x = lax.full((n, k), 0, matrix.aval.dtype)
        rank = lax.full((), 0, dtypes.default_int())
        s = lax.full((0,), 0, real)
    else:
        if rcond is None:
            rcond = (m if m > n else n) * _eps(matrix)
        u, s, vh = svd(matrix, full_matrices=False)
        keep = (s > 0) & (s >= convert(array_of(rcond, "lstsq"), real) * s[0])
        rank = sum(keep)
        one = lax.full_like(s, 1)
        inverse = choose_between(keep, 1 / choose_between(keep, s, one), 0 * one)
        inverse = convert(inverse, matrix.aval.dtype)
        x = matmul(_adjoint(vh), inverse[:, None] * matmul(_adjoint(u), right))
    rest = right - matmul(matrix, x)
    residuals = sum(lax.square(lax.abs(rest)), axis=0)
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = lax.full((0,), 0, real)
    return (x[:, 0] if vector else x), residuals, rank, s


# -- determinants --------------------------------------------------------------------


def _diagonal(x: Any) -> Any:
    return diagonals.diagonal(x, 0, -2, -1)


@library("method")
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Returns sign and logarithm of the absolute value of determinants.

    Args:
      a: array-like[..., n, n].
      method: "lu" (None is the same) or "qr".

    Returns:
      Named tuple of the sign [...] (of complex matrices a number of length 1; 0 of
      singular ones) and the logarithm, real [...].

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: there is no such method.

    Example:
      >>> slogdet(np.array([[1.0, 0.0], [0.0, -1.0]]))
      SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))

    Source: `numpy.linalg.slogdet`.
    """
    (x,) = _matrices("slogdet", a, square=True)
    if method in (None, "lu"):
        factors, pivots, _ = lax.linalg.lu(x)
        turns = _parity(pivots, x.aval.dtype)
    elif method == "qr":
        factors, scale = lax.linalg.geqrf(x)
        # The determinant of a reflector I - t v vᴴ is -t / conj(t); of t = 0 it is 1.
        flat = scale == 0
        safe = choose_between(flat, lax.full_like(scale, 1), scale)
        mirrored = -safe
        if dtypes.is_complex(scale.aval.dtype):
            mirrored = -safe / lax.conj(safe)
        else:
            mirrored = lax.full_like(scale, -1)
        turns = prod(choose_between(flat, lax.full_like(scale, 1), mirrored), axis=-1)
    else:
        raise ArgumentError(f'slogdet: method must be "lu" or "qr", got {method!r}')
    along = _diagonal(factors)
    size = lax.abs(along)
    zero = size == 0
    if dtypes.is_complex(along.aval.dtype):
        safe = choose_between(zero, lax.full_like(size, 1), size)
        signs = along / convert(safe, along.aval.dtype)
    else:
        signs = lax.sign(along)
    return SlogdetResult(turns * prod(signs, axis=-1), sum(lax.log(size), axis=-1))


def _parity(pivots: Any, dtype: Any) -> Any:
    """Returns 1 for an even number of row exchanges, -1 for an odd one."""
    shape = pivots.aval.shape
    numbers = lax.broadcasted_iota(pivots.aval.dtype, shape, len(shape) - 1)
    odd = sum(pivots != numbers, axis=-1) % 2
    return convert(1 - 2 * odd, dtype)


@library()
def det(a: Any) -> Array:
    """Returns determinants.

    Args:
      a: array-like[..., n, n].

    Returns:
      Float or complex array[...].

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      The derivative at a singular matrix is nan, but for n ≤ 3.

    Example:
      >>> det(np.array([[1.0, 2.0], [3.0, 4.0]]))
      Array(-2., dtype=float32)

    Source: `numpy.linalg.det`.
    """
    (x,) = _matrices("det", a, square=True)
    n = x.aval.shape[-1]
    if n <= 3:
        return _small_det(x, n)  # type: ignore[no-any-return]
    factors, pivots, _ = lax.linalg.lu(x)
    return _parity(pivots, x.aval.dtype) * prod(_diagonal(factors), axis=-1)  # type: ignore[no-any-return]


def _small_det(x: Any, n: int) -> Any:
    if n == 0:
        return lax.full(x.aval.shape[:-2], 1, x.aval.dtype)

    def e(i: int, j: int) -> Any:
        return x[..., i, j]

    if n == 1:
        return e(0, 0)
    if n == 2:
        return e(0, 0) * e(1, 1) - e(0, 1) * e(1, 0)
    return (
        e(0, 0) * (e(1, 1) * e(2, 2) - e(1, 2) * e(2, 1))
        - e(0, 1) * (e(1, 0) * e(2, 2) - e(1, 2) * e(2, 0))
        + e(0, 2) * (e(1, 0) * e(2, 1) - e(1, 1) * e(2, 0))
    )


# -- properties ------------------------------------------------------------------------


@library("hermitian")
def matrix_rank(
    M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None
) -> Array:
    """Returns ranks: how many singular values are not zero.

    Args:
      M: array-like[..., m, n].
      rtol: singular values up to this times the largest count as zero; None is
        max(m, n) times the precision of the dtype.
      hermitian: whether `M` is Hermitian, which is faster.
      tol: singular values up to this count as zero.

    Returns:
      Default integer array[...].

    Raises:
      ShapeError: `M` is no matrix.
      ArgumentError: both `rtol` and `tol` are given.

    Example:
      >>> matrix_rank(np.array([[1.0, 1.0], [1.0, 1.0]]))
      Array(1, dtype=int32)

    Source: `numpy.linalg.matrix_rank`.
    """
    if tol is not None and rtol is not None:
        raise ArgumentError("matrix_rank: give rtol or tol, not both")
    x = array_of(M, "matrix_rank")
    if x.aval.ndim < 2:
        return convert(sum(x != 0) > 0, dtypes.default_int())  # type: ignore[no-any-return]
    (x,) = _matrices("matrix_rank", x, square=hermitian)
    m, n = x.aval.shape[-2:]
    if not m or not n:
        return lax.full(x.aval.shape[:-2], 0, dtypes.default_int())  # type: ignore[no-any-return]
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is None:
        share = (m if m > n else n) * _eps(x) if rtol is None else rtol
        least = convert(array_of(share, "matrix_rank"), s.aval.dtype) * max(s, axis=-1)
    else:
        least = convert(array_of(tol, "matrix_rank"), s.aval.dtype)
    return sum(s > (least[..., None] if least.aval.ndim else least), axis=-1)


@library("p")
def cond(x: Any, p: Any = None) -> Array:
    """Returns condition numbers.

    Args:
      x: array-like[..., m, n].
      p: which norm, see `norm`; None is 2.

    Returns:
      Real array[...].

    Raises:
      ShapeError: `x` is no matrix, or not square with another norm than ±2.
      ArgumentError: there is no such norm.

    Special cases:
      inf if a matrix is singular.

    Example:
      >>> cond(np.array([[2.0, 0.0], [0.0, 1.0]]))
      Array(2., dtype=float32)

    Source: `numpy.linalg.cond`.
    """
    if p in (None, 2, -2):
        (a,) = _matrices("cond", x)
        s = svd(a, compute_uv=False)
        out = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        (a,) = _matrices("cond", x, square=True)
        out = norm(a, ord=p, axis=(-2, -1)) * norm(inv(a), ord=p, axis=(-2, -1))
    # nan comes of 0 / 0 and of inverses that do not exist.
    bad = (out != out) & ~sum(a != a, axis=(-2, -1)).astype(bool)
    return choose_between(bad, lax.full_like(out, np.inf), out)  # type: ignore[no-any-return]


@library("n")
def matrix_power(a: Any, n: int) -> Array:
    """Multiplies matrices with themselves, by repeated squaring.

    Args:
      a: array-like[..., n, n].
      n: how many times; of negative numbers the inverse is taken first.

    Returns:
      Array[..., n, n].

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: `n` is no integer.

    Example:
      >>> matrix_power(np.array([[1, 1], [0, 1]]), 5)
      Array([[1, 5],
             [0, 1]], dtype=int32)

    Source: `numpy.linalg.matrix_power`.
    """
    try:
        n = operator.index(n)
    except TypeError as error:
        raise ArgumentError(f"matrix_power: n must be an integer, got {n!r}") from error
    x = array_of(a, "matrix_power")
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        raise ShapeError(f"matrix_power: takes square matrices, got {x.aval}")
    if n == 0:
        return _identity_like(x, x.aval.shape[-1])  # type: ignore[no-any-return]
    if n < 0:
        x, n = inv(x), -n
    out = None
    while True:
        if n % 2:
            out = x if out is None else matmul(out, x)
        n //= 2
        if not n:
            return out  # type: ignore[return-value]
        x = matmul(x, x)


# -- tensors ---------------------------------------------------------------------------


@library("axes")
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Solves tensordot(a, x, x.ndim) = b.

    Args:
      a: array-like of shape `b.shape + Q`, where the products of both are equal.
      b: array-like.
      axes: of `a` that are moved to the end first.

    Returns:
      Array of shape Q.

    Raises:
      ShapeError: the shapes do not fit.
      AxisError: an axis is out of range.

    Example:
      >>> tensorsolve(np.eye(6).reshape(2, 3, 6), np.ones((2, 3))).shape
      (6,)

    Source: `numpy.linalg.tensorsolve`.
    """
    matrix, right = promote_inexact("tensorsolve", a, b)
    if axes is not None:
        moved = [canonical_axis("tensorsolve", i, matrix.aval.ndim) for i in axes]
        rest = [i for i in range(matrix.aval.ndim) if i not in moved]
        matrix = lax.transpose(matrix, (*rest, *moved))
    shape = matrix.aval.shape[right.aval.ndim :]
    n = right.aval.size
    if size_of(shape) != n or matrix.aval.size != n * n:
        raise ShapeError(
            f"tensorsolve: {matrix.aval} is no square matrix for b, {right.aval}"
        )
    out = solve(reshape(matrix, (n, n)), reshape(right, (n,)))
    return reshape(out, shape)


@library("ind")
def tensorinv(a: Any, ind: int = 2) -> Array:
    """Returns the inverse for `tensordot` over some axes.

    Args:
      a: array-like; the products of the lengths of its first `ind` and of its other
        axes are equal.
      ind: how many axes are rows.

    Returns:
      Array of shape `a.shape[ind:] + a.shape[:ind]`.

    Raises:
      ShapeError: the products are not equal.
      ArgumentError: `ind` is not positive.

    Example:
      >>> tensorinv(np.eye(6).reshape(6, 2, 3), 1).shape
      (2, 3, 6)

    Source: `numpy.linalg.tensorinv`.
    """
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind must be positive, got {ind}")
    (x,) = promote_inexact("tensorinv", a)
    first, last = x.aval.shape[:ind], x.aval.shape[ind:]
    n = size_of(first)
    if size_of(last) != n:
        raise ShapeError(
            f"tensorinv: {x.aval} is no square matrix, split at axis {ind}"
        )
    return reshape(inv(reshape(x, (n, n))), last + first)


# -- names of the array API standard -------------------------------------------------


@library("offset")
def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Returns diagonals of the last two axes.

    Args:
      x: array-like[..., m, n].
      offset: which diagonal: above (positive) or below the main one.

    Returns:
      Array[..., k].

    Raises:
      ShapeError: `x` is no matrix.

    Example:
      >>> diagonal(np.array([[1, 2], [3, 4]]))
      Array([1, 4], dtype=int32)

    Source: `numpy.linalg.diagonal`.
    """
    return diagonals.diagonal(x, offset, -2, -1)


@library("offset", "dtype")
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums diagonals of the last two axes.

    Args:
      x: array-like[..., m, n].
      offset: which diagonal: above (positive) or below the main one.
      dtype: of the result, see `fxflow.numpy.sum`.

    Returns:
      Array[...].

    Raises:
      ShapeError: `x` is no matrix.

    Example:
      >>> trace(np.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)

    Source: `numpy.linalg.trace`.
    """
    return contraction.trace(x, offset, -2, -1, dtype)


@library()
def outer(x1: Any, x2: Any, /) -> Array:
    """Multiplies each element of one vector by each of another.

    Args:
      x1: array-like[m].
      x2: array-like[n].

    Returns:
      Array[m, n].

    Raises:
      ShapeError: an operand is no vector.

    Example:
      >>> outer(np.array([1, 2]), np.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)

    Source: `numpy.linalg.outer`.
    """
    x, y = promote_dtypes("outer", x1, x2)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ShapeError(f"outer: takes vectors, got {x.aval} and {y.aval}")
    return contraction.outer(x, y)


@library("axis")
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Returns the cross product of vectors of 3 components.

    Args:
      x1: array-like[..., 3].
      x2: array-like[..., 3]; the other axes broadcast.
      axis: of the components.

    Returns:
      Array[..., 3].

    Raises:
      ShapeError: the vectors do not have 3 components.
      AxisError: the axis is out of range.

    Example:
      >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)

    Source: `numpy.linalg.cross`.
    """
    x, y = promote_dtypes("cross", x1, x2)
    for v in (x, y):
        if v.aval.shape[canonical_axis("cross", axis, v.aval.ndim)] != 3:
            raise ShapeError(f"cross: vectors must have 3 components, got {v.aval}")
    return contraction.cross(x, y, axis=axis)


__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
