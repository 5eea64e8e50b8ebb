"""Numbers that say something of a matrix: rank, condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.core.sizes import larger
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
)
from fxflow.numpy.linalg._matrices import matrices, precision_of
from fxflow.numpy.linalg.decompositions import svd
from fxflow.numpy.linalg.solving import inv
from fxflow.numpy.norms import norm
from fxflow.numpy.reductions import max, sum
from fxflow.numpy.selection import choose_between


@library("hermitian")
def matrix_rank(
    M: ArrayLike, rtol: Any = None, *, hermitian: bool = False, tol: Any = None
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
      ShapeError: `M` is not a matrix.
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
        return convert(sum(x != 0) > 0, dtypes.default_int())
    (x,) = matrices("matrix_rank", x, square=hermitian)
    m, n = x.aval.shape[-2:]
    if not m or not n:
        return lax.full(x.aval.shape[:-2], 0, dtypes.default_int())
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is None:
        share = larger(m, n) * precision_of(x) if rtol is None else rtol
        least = convert(array_of(share, "matrix_rank"), s.aval.dtype) * max(s, axis=-1)
    else:
        least = convert(array_of(tol, "matrix_rank"), s.aval.dtype)
    return sum(s > (least[..., None] if least.aval.ndim else least), axis=-1)


@library("p")
def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """Returns condition numbers.

    Args:
      x: array-like[..., m, n].
      p: which norm, see `norm`; None is 2.

    Returns:
      Real array[...].

    Raises:
      ShapeError: `x` is not a matrix, has no elements, or is not square with another
        norm than ±2.
      ArgumentError: unknown norm.

    Special cases:
      inf if a matrix is singular.

    Example:
      >>> cond(np.array([[2.0, 0.0], [0.0, 1.0]]))
      Array(2., dtype=float32)

    Source: `numpy.linalg.cond`.
    """
    if p in (None, 2, -2):
        (a,) = _filled_matrices(x)
        s = svd(a, compute_uv=False)
        out = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        (a,) = _filled_matrices(x, square=True)
        out = norm(a, ord=p, axis=(-2, -1)) * norm(inv(a), ord=p, axis=(-2, -1))
    # nan comes of 0 / 0 and of inverses that do not exist.
    bad = (out != out) & ~sum(a != a, axis=(-2, -1)).astype(bool)
    return choose_between(bad, lax.full_like(out, np.inf), out)


def _filled_matrices(x: Any, *, square: bool = False) -> Any:
    found = matrices("cond", x, square=square)
    if 0 in found[0].aval.shape[-2:]:
        raise ShapeError(
            f"cond: got {found[0].aval}: matrices without elements have no condition "
            "number"
        )
    return found
