"""Least squares, pseudoinverses, bases of ranges and kernels, angles, rotations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy import linalg
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.numpy.polar_factors import unitary_factor
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.scipy.linalg.decompositions import qr, svd

_docs = shared("""
    Raises:
      ShapeError: an argument is not a matrix, or the shapes are incompatible.
      ...

    Source: `scipy.linalg.{name}`.
""")


@library("overwrite_a", "overwrite_b", "check_finite", "lapack_driver")
@_docs
def lstsq(
    a: ArrayLike,
    b: ArrayLike,
    cond: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Returns solutions of A x = b with the least squares.

    Args:
      a: array-like[m, n].
      b: array-like[m] or [m, k].
      cond: singular values below this part of the largest are taken for 0; None is the
        machine's precision times the larger side.
      overwrite_a: has no effect.
      overwrite_b: has no effect.
      check_finite: has no effect.
      lapack_driver: has no effect: the solution is by singular values.

    Returns:
      The shortest solution [n] or [n, k], the sums of squares that remain, the rank,
      and the singular values.

    Example:
      >>> lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))[0]
      Array([2.], dtype=float32)
    """
    if lapack_driver not in (None, "gelsd", "gelsy", "gelss"):
        raise ArgumentError(
            'lstsq: lapack_driver must be "gelsd", "gelsy" or "gelss", got '
            f"{lapack_driver!r}"
        )
    return linalg.lstsq(a, b, rcond=cond)


@library("return_rank", "check_finite")
@_docs
def pinv(
    a: ArrayLike,
    *,
    atol: Any = None,
    rtol: Any = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns pseudoinverses (Moore and Penrose), by singular values.

    Args:
      a: array-like[..., m, n].
      atol: singular values up to this are taken for 0, with `rtol`.
      rtol: the part of the largest one that is added to `atol`; None is 0 if `atol` is
        given, else the machine's precision times the larger side.
      return_rank: whether to return the rank too.
      check_finite: has no effect.

    Returns:
      Float or complex array[..., n, m], and with `return_rank` i32[...].

    Example:
      >>> pinv(np.array([[2.0], [0.0]]))
      Array([[0.5, 0. ]], dtype=float32)
    """
    x = matrix_of("pinv", a)
    values = linalg.svdvals(lax.stop_gradient(x))
    largest = fnp.max(values, axis=-1, initial=0)
    if rtol is None:
        eps = float(fnp.finfo(values.aval.dtype).eps)
        rtol = 0.0 if atol is not None else max(x.aval.shape[-2:]) * eps
    (rtol,) = promote_inexact("pinv", rtol)
    bound = rtol * largest + (0.0 if atol is None else atol)
    bound = convert(bound, values.aval.dtype)
    part = bound / fnp.where(largest == 0, 1, largest)
    out = linalg.pinv(x, rtol=part)
    if not return_rank:
        return out
    return out, fnp.sum(values > bound[..., None], axis=-1, dtype=fnp.int32)


@library("lower", "return_rank", "check_finite")
@_docs
def pinvh(
    a: ArrayLike,
    atol: Any = None,
    rtol: Any = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns pseudoinverses of Hermitian matrices.

    Args:
      a: array-like[..., n, n], of which one triangle is read.
      atol: eigenvalues up to this size are taken for 0, with `rtol`.
      rtol: the part of the largest size that is added, as in `pinv`.
      lower: which triangle.
      return_rank: whether to return the rank too.
      check_finite: has no effect.

    Returns:
      Float or complex array[..., n, n], and with `return_rank` i32[...].

    Example:
      >>> pinvh(np.diag(np.array([2.0, 0.0])))
      Array([[0.5, 0. ],
             [0. , 0. ]], dtype=float32)
    """
    x = matrix_of("pinvh", a, square=True)
    part = fnp.tril(x, -1) if lower else adjoint(fnp.triu(x, 1))
    eye = np.eye(x.aval.shape[-1], dtype=x.aval.dtype)
    middle = convert(fnp.real(x), x.aval.dtype) * eye
    whole = part + middle + adjoint(part)
    out: Any = pinv(whole, atol=atol, rtol=rtol, return_rank=return_rank)
    return out


def _rank(name: str, s: Any, shape: Any, rcond: Any, rank: int | None) -> int:
    if rank is not None:
        return rank
    if rcond is None:
        rcond = float(fnp.finfo(s.aval.dtype).eps) * max(shape)
    return int(fnp.sum(s > rcond * fnp.max(s, initial=0)))


@_docs
def orth(A: ArrayLike, rcond: Any = None, *, rank: int | None = None) -> Array:
    """Returns an orthonormal basis of the range of a matrix.

    Args:
      A: array-like[m, n].
      rcond: singular values up to this part of the largest are taken for 0; None is the
        machine's precision times the larger side.
      rank: how many columns the basis has; None asks the values, which a traced matrix
        does not have: give it under `jit`.

    Returns:
      Float or complex array[m, rank].

    Example:
      >>> orth(np.array([[2.0, 0.0], [0.0, 0.0]])).shape
      (2, 1)
    """
    x = matrix_of("orth", A)
    u, s, _ = svd(x, full_matrices=False)
    out: Array = u[..., : _rank("orth", s, x.aval.shape[-2:], rcond, rank)]
    return out


@_docs
def null_space(
    A: ArrayLike,
    rcond: Any = None,
    *,
    rank: int | None = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array:
    """Returns an orthonormal basis of the kernel of a matrix.

    Args:
      A: array-like[m, n].
      rcond: singular values up to this part of the largest are taken for 0; None is the
        machine's precision times the larger side.
      rank: the rank of the matrix; None asks the values, which a traced matrix does not
        have: give it under `jit`.
      overwrite_a: has no effect.
      check_finite: has no effect.
      lapack_driver: has no effect.

    Returns:
      Float or complex array[n, n - rank].

    Example:
      >>> null_space(np.array([[1.0, 0.0]])).shape
      (2, 1)
    """
    x = matrix_of("null_space", A)
    _, s, vh = svd(x, full_matrices=True)
    rank = _rank("null_space", s, x.aval.shape[-2:], rcond, rank)
    out: Array = adjoint(vh[..., rank:, :])
    return out


@library()
@_docs
def subspace_angles(A: ArrayLike, B: ArrayLike) -> Array:
    """Returns the angles between the ranges of two matrices.

    Args:
      A: array-like[..., m, n], of independent columns.
      B: array-like[..., m, k], likewise.

    Returns:
      Float array[..., min(n, k)]: descending.

    Special cases:
      nan where there are more columns than rows, whose range is all.

    Example:
      >>> subspace_angles(np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]])).round(4)
      Array([0.7854], dtype=float32)

    Source: `scipy.linalg.subspace_angles`; Knyazev and Argentati 2002.
    """
    x, y = promote_inexact("subspace_angles", A, B)
    x, y = matrix_of("subspace_angles", x), matrix_of("subspace_angles", y)
    if x.aval.shape[-2] != y.aval.shape[-2]:
        raise ShapeError(
            f"subspace_angles: A, {x.aval}, and B, {y.aval}, differ in their rows"
        )
    first, second = (qr(z, mode="economic")[0] for z in (x, y))
    if first.aval.shape[-1] < second.aval.shape[-1]:
        first, second = second, first
    inner = matmul(adjoint(first), second)
    cosines = linalg.svdvals(inner)
    # The sines, which are exact for small angles.
    sines = linalg.svdvals(second - matmul(first, inner))[..., ::-1]
    small = cosines >= math.sqrt(0.5)
    by_sine = lax.asin(fnp.where(small, fnp.clip(sines, -1, 1), 0))
    by_cosine = lax.acos(fnp.where(small, 0, fnp.clip(cosines, -1, 1)))
    out: Array = fnp.where(small, by_sine, by_cosine)[..., ::-1]
    return out


@library("check_finite")
@_docs
def orthogonal_procrustes(
    A: ArrayLike, B: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """Returns the orthogonal matrix that maps one set of points to another best.

    Args:
      A: array-like[m, n].
      B: array-like[m, n].
      check_finite: has no effect.

    Returns:
      R [n, n], for which the norm of A R - B is least, and the sum of the singular
      values of Aᴴ B.

    Example:
      >>> orthogonal_procrustes(np.eye(2), np.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
      Array([[ 0.,  1.],
             [-1.,  0.]], dtype=float32)
    """
    x, y = promote_inexact("orthogonal_procrustes", A, B)
    x = matrix_of("orthogonal_procrustes", x)
    y = matrix_of("orthogonal_procrustes", y)
    if x.aval.shape != y.aval.shape:
        raise ShapeError(
            f"orthogonal_procrustes: A, {x.aval}, and B, {y.aval}, must have one shape"
        )
    both = matmul(adjoint(x), y)
    turn = unitary_factor(both)
    scale = fnp.sum(fnp.real(fnp.conj(turn) * both), axis=(-2, -1))
    return turn, scale


@library()
@_docs
def khatri_rao(a: ArrayLike, b: ArrayLike) -> Array:
    """Returns Kronecker products of the columns of two matrices.

    Args:
      a: array-like[..., m, k].
      b: array-like[..., n, k].

    Returns:
      Array[..., m n, k].

    Example:
      >>> khatri_rao(np.array([[1, 2]]), np.array([[3, 4], [5, 6]]))
      Array([[ 3,  8],
             [ 5, 12]], dtype=int32)
    """
    x, y = fnp.asarray(a), fnp.asarray(b)
    if x.aval.ndim < 2 or y.aval.ndim < 2 or x.aval.shape[-1] != y.aval.shape[-1]:
        raise ShapeError(
            "khatri_rao: takes two matrices with equally many columns, got "
            f"{x.aval} and {y.aval}"
        )
    out = x[..., :, None, :] * y[..., None, :, :]
    m, n, k = out.aval.shape[-3:]
    flat: Array = fnp.reshape(out, (*out.aval.shape[:-3], m * n, k))
    return flat
