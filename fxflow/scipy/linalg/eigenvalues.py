"""Eigenvalues of general, of pairs of and of banded matrices; singular values; RQ."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy import linalg
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.scipy.linalg.decompositions import eigh, qr, require_no_interval
from fxflow.scipy.linalg.matrix_equations import eigh_tridiagonal

_docs = shared("""
    Args:
      a: array-like[..., n, n].
      b: array-like[..., n, n], not singular; None is the identity.
      overwrite_a: has no effect.
      overwrite_b: has no effect.
      check_finite: has no effect.

    Raises:
      ShapeError: the matrices are not square, or their shapes are incompatible.
      ...

    Source: `scipy.linalg.{name}`.
""")


def _pencil(name: str, a: Any, b: Any, homogeneous: Any) -> Any:
    """Returns the matrix that has the eigenvalues of a pair."""
    if homogeneous:
        raise ArgumentError(
            f"{name}: homogeneous_eigvals=True is not supported: b must have an inverse"
        )
    if b is None:
        return matrix_of(name, a, square=True)
    x, y = promote_inexact(name, a, b)
    x, y = matrix_of(name, x, square=True), matrix_of(name, y, square=True)
    if x.aval.shape[-1] != y.aval.shape[-1]:
        raise ShapeError(f"{name}: a, {x.aval}, and b, {y.aval}, do not fit")
    return linalg.solve(y, x)


@library(
    "left", "right", "overwrite_a", "overwrite_b", "check_finite", "homogeneous_eigvals"
)
@_docs
def eig(
    a: ArrayLike,
    b: ArrayLike | None = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Returns eigenvalues and eigenvectors: a v = w b v.

    Args:
      left: whether to return the left eigenvectors, aᴴ v = conj(w) bᴴ v.
      right: whether to return the right ones.
      homogeneous_eigvals: not supported.

    Returns:
      Complex array[..., n], then complex arrays[..., n, n] of left and right
      eigenvectors in columns of length 1, those that are asked for.

    Raises:
      ArgumentError: `homogeneous_eigvals` is asked for.

    Special cases:
      Left eigenvectors are nan where the right ones are dependent. Derivatives are not
      finite at equal eigenvalues.

    Example:
      >>> eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))[0].imag
      Array([ 1., -1.], dtype=float32)
    """
    x = _pencil("eig", a, b, homogeneous_eigvals)
    w, v = linalg.eig(x)
    out = [w]
    if left:
        # Rows of the inverse are the left eigenvectors of b⁻¹ a.
        other = adjoint(linalg.inv(v))
        if b is not None:
            (y,) = promote_inexact("eig", b)
            other = linalg.solve(adjoint(y + 0 * other), other)
        out.append(other / linalg.norm(other, axis=-2, keepdims=True))
    if right:
        out.append(v)
    return tuple(out) if len(out) > 1 else w


@library("overwrite_a", "check_finite", "homogeneous_eigvals", "overwrite_b")
@_docs
def eigvals(
    a: ArrayLike,
    b: ArrayLike | None = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
    overwrite_b: bool = False,
) -> Array:
    """Returns eigenvalues: a v = w b v.

    Args:
      homogeneous_eigvals: not supported.

    Returns:
      Complex array[..., n].

    Raises:
      ArgumentError: `homogeneous_eigvals` is asked for.

    Example:
      >>> eigvals(np.array([[2.0, 0.0], [0.0, 3.0]])).real
      Array([2., 3.], dtype=float32)
    """
    return linalg.eigvals(_pencil("eigvals", a, b, homogeneous_eigvals))


@library(
    *("lower", "overwrite_a", "overwrite_b", "type", "check_finite"),
    *("subset_by_index", "subset_by_value", "driver"),
)
@_docs
def eigvalsh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Array:
    """Returns eigenvalues of Hermitian matrices, ascending.

    Args:
      lower: which triangle is read.
      type: 1: a v = w b v; 2: a b v = w v; 3: b a v = w v.
      subset_by_index: the numbers of the first and the last one; None is all.
      subset_by_value: must be None: how many eigenvalues are in an interval depends on
        the values. Take those of the result that are.
      driver: has no effect.

    Returns:
      Float array[..., n].

    Example:
      >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
      Array([1., 3.], dtype=float32)
    """
    require_no_interval("eigvalsh", subset_by_value)
    out: Array = eigh(
        a, b, lower=lower, eigvals_only=True, type=type, subset_by_index=subset_by_index
    )
    return out


@library("overwrite_a", "check_finite")
@_docs
def svdvals(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Returns singular values, descending.

    Args:
      a: array-like[..., m, n].

    Returns:
      Float array[..., min(m, n)].

    Example:
      >>> svdvals(np.array([[0.0, 2.0], [1.0, 0.0]]))
      Array([2., 1.], dtype=float32)
    """
    return linalg.svdvals(matrix_of("svdvals", a))


def _from_bands(name: str, a_band: Any, lower: bool) -> Any:
    """Returns Hermitian matrices, of which the bands are known."""
    (band,) = promote_inexact(name, a_band)
    band = matrix_of(name, band)
    m, n = band.aval.shape[-2:]
    out = fnp.zeros((*band.aval.shape[:-2], n, n), band.dtype)
    for d in range(min(m, n)):
        row = band[..., d, : n - d] if lower else band[..., m - 1 - d, d:]
        i = np.arange(n - d)
        if d:
            below = row if lower else fnp.conj(row)
            out = (
                out.at[..., i + d, i].set(below).at[..., i, i + d].set(fnp.conj(below))
            )
        else:
            out = out.at[..., i, i].set(row)
    return out


@library(
    "lower",
    "eigvals_only",
    "overwrite_a_band",
    "select_range",
    "max_ev",
    "check_finite",
)
@_docs
def eig_banded(
    a_band: ArrayLike,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """Returns eigenvalues and eigenvectors of Hermitian matrices with few diagonals.

    Args:
      a_band: array-like[..., m, n]: the diagonals, element (i, j) of the matrix at
        (m - 1 + i - j, j), or with `lower` at (i - j, j).
      lower: whether the diagonals are those below the main one.
      eigvals_only: whether to return the eigenvalues alone.
      overwrite_a_band: has no effect.
      select: "a", all of them; "i", those whose numbers are in `select_range`.
      select_range: the first and the last number.
      max_ev: has no effect.

    Returns:
      Float array[..., k], ascending, and array[..., n, k] of eigenvectors in columns.

    Raises:
      ArgumentError: there is no such way to select, or the range is wrong. By values,
        "v", the shape of the result would depend on them.

    Example:
      >>> eig_banded(np.array([[0.0, 1.0], [2.0, 2.0]]), eigvals_only=True)
      Array([1., 3.], dtype=float32)
    """
    if select not in ("a", "i"):
        raise ArgumentError(f'eig_banded: select must be "a" or "i", got {select!r}')
    x = _from_bands("eig_banded", a_band, lower)
    n = x.aval.shape[-1]
    first, last = 0, n - 1
    if select == "i":
        if select_range is None or not 0 <= select_range[0] <= select_range[1] < n:
            raise ArgumentError(
                f"eig_banded: select_range must be two numbers from 0 to {n - 1}, got "
                f"{select_range!r}"
            )
        first, last = int(select_range[0]), int(select_range[1])
    if eigvals_only:
        return linalg.eigvalsh(x)[..., first : last + 1]
    values, vectors = linalg.eigh(x)
    return values[..., first : last + 1], vectors[..., first : last + 1]


@library("lower", "overwrite_a_band", "select_range", "check_finite")
@_docs
def eigvals_banded(
    a_band: ArrayLike,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
    check_finite: bool = True,
) -> Array:
    """Returns eigenvalues of Hermitian matrices with few diagonals.

    Args:
      a_band: array-like[..., m, n]: as for `eig_banded`.
      lower: whether the diagonals are those below the main one.
      overwrite_a_band: has no effect.
      select: "a", all of them; "i", those whose numbers are in `select_range`.
      select_range: the first and the last number.

    Returns:
      Float array[..., k], ascending.

    Example:
      >>> eigvals_banded(np.array([[0.0, 1.0], [2.0, 2.0]]))
      Array([1., 3.], dtype=float32)
    """
    out: Array = eig_banded(
        a_band,
        lower=lower,
        eigvals_only=True,
        select=select,
        select_range=select_range,
    )
    return out


@library("select_range", "check_finite", "tol")
@_docs
def eigvalsh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Array:
    """Returns eigenvalues of symmetric tridiagonal matrices.

    Args:
      d: real array-like[..., n]: the diagonal.
      e: array-like[..., n - 1]: the one below it.
      select: "a", all of them; "i", those whose numbers are in `select_range`.
      select_range: the first and the last number.
      tol: has no effect.
      lapack_driver: has no effect.

    Returns:
      Float array[..., k], ascending.

    Example:
      >>> eigvalsh_tridiagonal(np.array([2.0, 2.0]), np.array([1.0]))
      Array([1., 3.], dtype=float32)
    """
    out: Array = eigh_tridiagonal(
        d, e, eigvals_only=True, select=select, select_range=select_range
    )
    return out


@library("overwrite_a", "lwork", "check_finite")
@_docs
def rq(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """Returns the RQ decomposition: a = R Q, the rows of Q orthonormal.

    Args:
      a: array-like[..., m, n].
      lwork: has no effect.
      mode: "full"; "economic", the parts that the product needs; "r", R alone.

    Returns:
      R [..., m, n], upper triangular from its lower right corner, and Q [..., n, n]; or
      with k = min(m, n) R [..., m, k] and Q [..., k, n].

    Raises:
      ArgumentError: unknown mode.

    Example:
      >>> r, q = rq(np.array([[1.0, 2.0], [3.0, 4.0]]))
      >>> (r @ q).round(3)
      Array([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    if mode not in ("full", "r", "economic"):
        raise ArgumentError(f'rq: mode must be "full", "r" or "economic", got {mode!r}')
    x = matrix_of("rq", a)
    # The QR decomposition of the adjoint, upside down.
    turned = adjoint(x[..., ::-1, :])
    if mode == "r":
        (r,) = qr(turned, mode="r")
    else:
        q, r = qr(turned, mode=mode)
    lower = adjoint(r)[..., ::-1, ::-1]
    if mode == "r":
        return lower
    return lower, adjoint(q)[..., ::-1, :]


@library()
@_docs
def bandwidth(a: ArrayLike) -> tuple[Array, Array]:
    """Returns how many diagonals below and above the main one are not all 0.

    Args:
      a: array-like[..., m, n].

    Returns:
      Two i32[...].

    Example:
      >>> bandwidth(np.array([[1.0, 2.0], [0.0, 1.0]]))
      (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    x = fnp.asarray(a)
    if x.aval.ndim < 2:
        raise ShapeError(f"bandwidth: takes matrices, got {x.aval}")
    m, n = x.aval.shape[-2:]
    off = np.arange(m, dtype=np.int32)[:, None] - np.arange(n, dtype=np.int32)
    some = x != 0
    below, above = (
        fnp.max(fnp.where(some, np.maximum(d, 0), 0), axis=(-2, -1), initial=0)
        for d in (off, -off)
    )
    return below, above


_docs_of_equality = shared("""
    Args:
      atol: the absolute difference that is allowed, as in `isclose`.
      rtol: the relative one. If both are None, elements must be equal.

    Returns:
      bool[...].
""")


def _equals_other(name: str, a: Any, other: Any, atol: Any, rtol: Any) -> Array:
    x = fnp.asarray(a)
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices, got {x.aval}")
    y = other(x)
    same = x == y
    if atol is not None or rtol is not None:
        same = fnp.isclose(
            x, y, atol=0 if atol is None else atol, rtol=0 if rtol is None else rtol
        )
    return fnp.all(same, axis=(-2, -1))


@library()
@_docs
@_docs_of_equality
def issymmetric(a: ArrayLike, atol: Any = None, rtol: Any = None) -> Array:
    """Returns whether matrices equal their transposes.

    Example:
      >>> bool(issymmetric(np.array([[1.0, 2.0], [2.0, 1.0]])))
      True
    """
    return _equals_other("issymmetric", a, matrix_transpose, atol, rtol)


@library()
@_docs
@_docs_of_equality
def ishermitian(a: ArrayLike, atol: Any = None, rtol: Any = None) -> Array:
    """Returns whether matrices equal their conjugate transposes.

    Example:
      >>> bool(ishermitian(np.array([[1, 2j], [-2j, 1]])))
      True
    """
    return _equals_other("ishermitian", a, adjoint, atol, rtol)
