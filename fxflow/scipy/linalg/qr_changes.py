"""QR decompositions of matrices of which a few rows or columns have changed."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.scipy.linalg.decompositions import qr

_docs = shared("""
    The product Q R is changed and decomposed anew: unlike SciPy's, whose cost is that
    of a few rotations, this has the cost of a decomposition, and a derivative.

    Args:
      Q: array-like[m, m], or of an economic decomposition [m, n].
      R: array-like[m, n], or [n, n].
      overwrite_qr: has no effect.
      check_finite: has no effect.

    Returns:
      Q and R of the new matrix, in the form of the given ones.

    Raises:
      ArgumentError: an index is out of range, or there is no such choice.
      ShapeError: the shapes are incompatible.

    Source: `scipy.linalg.{name}`.
""")


def _product(name: str, Q: Any, R: Any, *more: Any) -> tuple[Any, bool, list[Any]]:
    """Returns the matrix, whether its form is economic, and other operands."""
    q, r, *rest = promote_inexact(name, Q, R, *more)
    q, r = matrix_of(name, q), matrix_of(name, r)
    if q.aval.ndim != 2 or r.aval.ndim != 2 or q.aval.shape[1] != r.aval.shape[0]:
        raise ShapeError(f"{name}: Q, {q.aval}, and R, {r.aval}, do not fit")
    economic = q.aval.shape[0] != q.aval.shape[1]
    return matmul(q, r), economic, [convert(v, q.aval.dtype) for v in rest]


def _decomposed(x: Any, economic: bool) -> Any:
    return qr(x, mode="economic" if economic else "full")


def _place(name: str, which: str, k: Any, limit: int) -> int:
    """Returns an index from the front; negative ones count from the end."""
    if isinstance(k, int) and k < 0:
        k += limit
    at = natural(name, "k", k, 0)
    if at >= limit:
        raise ArgumentError(f"{name}: k must be a {which} below {limit}, got {k}")
    return at


def _axis_of(name: str, which: str) -> int:
    if which not in ("row", "col"):
        raise ArgumentError(f'{name}: which must be "row" or "col", got {which!r}')
    return 0 if which == "row" else 1


@library("k", "p", "which", "overwrite_qr", "check_finite")
@_docs
def qr_delete(
    Q: ArrayLike,
    R: ArrayLike,
    k: int,
    p: int = 1,
    which: str = "row",
    overwrite_qr: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns the QR decomposition without some rows or columns.

    Args:
      k: the number of the first row or column to leave out.
      p: how many of them.
      which: "row" or "col".

    Example:
      >>> q, r = qr_delete(np.eye(3), np.diag(np.array([1.0, 2.0, 3.0])), 1)
      >>> abs(q @ r)
      Array([[1., 0., 0.],
             [0., 0., 3.]], dtype=float32)
    """
    name = "qr_delete"
    x, economic, _ = _product(name, Q, R)
    axis = _axis_of(name, which)
    size = x.aval.shape[axis]
    at, count = _place(name, which, k, size), natural(name, "p", p)
    if at + count > size:
        raise ArgumentError(
            f"{name}: k + p must be at most {size}, the number of {which}s, got "
            f"{at + count}"
        )
    parts = (x[:at], x[at + count :]) if axis == 0 else (x[:, :at], x[:, at + count :])
    return _decomposed(fnp.concatenate(parts, axis=axis), economic)


@library("k", "which", "rcond", "overwrite_qru", "check_finite")
@_docs
def qr_insert(
    Q: ArrayLike,
    R: ArrayLike,
    u: ArrayLike,
    k: int,
    which: str = "row",
    rcond: float | None = None,
    overwrite_qru: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns the QR decomposition with some more rows or columns.

    Args:
      u: array-like[n] or [p, n], rows; or [m] or [m, p], columns.
      k: the number that the first of them gets.
      which: "row" or "col".
      rcond: has no effect.
      overwrite_qru: has no effect.

    Example:
      >>> q, r = qr_insert(np.eye(1), np.ones((1, 1)), np.array([2.0]), 1)
      >>> abs(q @ r).round(3)
      Array([[1.],
             [2.]], dtype=float32)
    """
    name = "qr_insert"
    x, economic, (rows,) = _product(name, Q, R, u)
    axis = _axis_of(name, which)
    if rows.aval.ndim == 1:
        rows = fnp.expand_dims(rows, axis)
    if rows.aval.ndim != 2 or rows.aval.shape[1 - axis] != x.aval.shape[1 - axis]:
        raise ShapeError(
            f"{name}: u, {rows.aval}, does not fit as {which}s of {x.aval}"
        )
    at = _place(name, which, k, x.aval.shape[axis] + 1)
    front, back = (x[:at], x[at:]) if axis == 0 else (x[:, :at], x[:, at:])
    return _decomposed(fnp.concatenate([front, rows, back], axis=axis), economic)


@library("overwrite_qruv", "check_finite")
@_docs
def qr_update(
    Q: ArrayLike,
    R: ArrayLike,
    u: ArrayLike,
    v: ArrayLike,
    overwrite_qruv: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns the QR decomposition of Q R + u vᴴ.

    Args:
      u: array-like[m] or [m, k].
      v: array-like[n] or [n, k].
      overwrite_qruv: has no effect.

    Example:
      >>> q, r = qr_update(np.eye(1), np.ones((1, 1)), np.ones(1), np.ones(1))
      >>> abs(q @ r)
      Array([[2.]], dtype=float32)
    """
    name = "qr_update"
    x, economic, (left, right) = _product(name, Q, R, u, v)
    left, right = (y[:, None] if y.aval.ndim == 1 else y for y in (left, right))
    product = (*left.aval.shape[:1], *right.aval.shape[:1])
    if product != x.aval.shape or left.aval.shape[1:] != right.aval.shape[1:]:
        raise ShapeError(
            f"{name}: u, {left.aval}, and v, {right.aval}, do not fit {x.aval}"
        )
    return _decomposed(x + matmul(left, adjoint(right)), economic)
