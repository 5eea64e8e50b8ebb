"""Decompositions: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import lax
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.index_functions import take_along_axis
from fxflow.numpy.linalg._matrices import adjoint, matrices
from fxflow.numpy.selection import choose_between


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


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


@library("upper", "symmetrize_input")
def cholesky(
    a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True
) -> Array:
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
    (x,) = matrices("cholesky", a, square=True)
    if upper and not symmetrize_input:
        # The upper triangle is the one that is read then.
        x = adjoint(x)
    factor = lax.linalg.cholesky(x, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@library("mode")
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Returns the QR decomposition: a = Q R, the columns of Q orthonormal.

    Args:
      a: array-like[..., m, n].
      mode: "reduced": Q [..., m, k] and R [..., k, n] with k = min(m, n); "complete": Q
        [..., m, m] and R [..., m, n]; "r": R alone; "raw": Householder reflectors
        [..., n, m] and their factors [..., k].

    Returns:
      Named tuple `(Q, R)`; R alone; or a pair.

    Raises:
      ShapeError: `a` is not a matrix.
      ArgumentError: unknown mode.

    Example:
      >>> qr(np.array([[3.0], [4.0]])).R
      Array([[-5.]], dtype=float32)

    Source: `numpy.linalg.qr`.
    """
    (x,) = matrices("qr", a)
    if mode == "raw":
        reflectors, factors = lax.linalg.geqrf(x)
        return matrix_transpose(reflectors), factors
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            f'qr: mode must be "reduced", "complete", "r" or "raw", got {mode!r}'
        )
    q, r = lax.linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


# -- singular values -------------------------------------------------------------------


@library("full_matrices", "compute_uv", "hermitian", "subset_by_index")
def svd(
    a: ArrayLike,
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
      ShapeError: `a` is not a matrix, or not square and `hermitian`.
      ArgumentError: the range is out of bounds.

    Example:
      >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
      Array([2., 1.], dtype=float32)

    Source: `numpy.linalg.svd`.
    """
    (x,) = matrices("svd", a, square=hermitian)
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
    return SVDResult(u, s, adjoint(u * convert(sign, u.aval.dtype)[..., None, :]))


@library()
def svdvals(x: ArrayLike, /) -> Array:
    """Returns singular values.

    Args:
      x: array-like[..., m, n].

    Returns:
      Real array[..., min(m, n)], descending.

    Raises:
      ShapeError: `x` is not a matrix.

    Example:
      >>> svdvals(np.array([[0.0, 2.0], [1.0, 0.0]]))
      Array([2., 1.], dtype=float32)

    Source: `numpy.linalg.svdvals`.
    """
    values: Array = svd(x, compute_uv=False)
    return values


# -- eigenvalues -----------------------------------------------------------------------


@library()
def eig(a: ArrayLike) -> EigResult:
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
    (x,) = matrices("eig", a, square=True)
    return EigResult(*lax.linalg.eig(x, compute_left_eigenvectors=False))


@library()
def eigvals(a: ArrayLike) -> Array:
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
    (x,) = matrices("eigvals", a, square=True)
    return lax.linalg.eig(
        x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]


def _triangle(UPLO: Any) -> bool:
    if UPLO not in (None, "L", "U"):
        raise ArgumentError(f'eigh: UPLO must be "L" or "U", got {UPLO!r}')
    return bool(UPLO != "U")


@library("UPLO", "symmetrize_input")
def eigh(
    a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True
) -> EighResult:
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
      ArgumentError: unknown triangle.

    Example:
      >>> eigh(np.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
      Array([1., 2.], dtype=float32)

    Source: `numpy.linalg.eigh`.
    """
    (x,) = matrices("eigh", a, square=True)
    vectors, values = lax.linalg.eigh(
        x, lower=_triangle(UPLO), symmetrize_input=symmetrize_input
    )
    return EighResult(values, vectors)


@library("UPLO", "symmetrize_input")
def eigvalsh(
    a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True
) -> Array:
    """Returns eigenvalues of Hermitian matrices.

    Args:
      a: array-like[..., n, n].
      UPLO: which triangle is read, "L" or "U", if `symmetrize_input` is false.
      symmetrize_input: whether to take the mean of `a` and aᴴ first.

    Returns:
      Real array[..., n], ascending.

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: unknown triangle.

    Example:
      >>> eigvalsh(np.array([[2.0, 0.0], [0.0, 1.0]]))
      Array([1., 2.], dtype=float32)

    Source: `numpy.linalg.eigvalsh`.
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues
