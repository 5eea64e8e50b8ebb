"""Numbers that say something of a matrix: determinant, rank, condition."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, ShapeError
from fxflow.numpy import diagonals
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
)
from fxflow.numpy.linalg._matrices import matrices, precision_of
from fxflow.numpy.linalg.decompositions import svd
from fxflow.numpy.linalg.solving import inv
from fxflow.numpy.norms import norm
from fxflow.numpy.reductions import any, max, prod, sum
from fxflow.numpy.selection import choose_between


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


def _diagonal(x: Any) -> Array:
    return diagonals.diagonal(x, 0, -2, -1)


@library("method")
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
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

    Special cases:
      A zero on the diagonal of the factors: sign 0 and -inf, whatever the others are.
      Where the determinant is nan, so is the sign.

    Example:
      >>> slogdet(np.array([[1.0, 0.0], [0.0, -1.0]]))
      SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))

    Source: `numpy.linalg.slogdet`.
    """
    (x,) = matrices("slogdet", a, square=True)
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
    total = sum(lax.log(size), axis=-1)
    singular = any(zero, axis=-1)
    total = choose_between(singular, lax.full_like(total, -math.inf), total)
    return SlogdetResult(turns * prod(signs, axis=-1), total)


def _parity(pivots: Any, dtype: Any) -> Array:
    """Returns 1 for an even number of row exchanges, -1 for an odd one."""
    shape = pivots.aval.shape
    numbers = lax.broadcasted_iota(pivots.aval.dtype, shape, len(shape) - 1)
    odd = sum(pivots != numbers, axis=-1) % 2
    return convert(1 - 2 * odd, dtype)


@library()
def det(a: ArrayLike) -> Array:
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
    (x,) = matrices("det", a, square=True)
    n = x.aval.shape[-1]
    if n <= 3:
        return _small_det(x, n)
    factors, pivots, _ = lax.linalg.lu(x)
    return _parity(pivots, x.aval.dtype) * prod(_diagonal(factors), axis=-1)


def _small_det(x: Array, n: int) -> Array:
    if n == 0:
        return lax.full(x.aval.shape[:-2], 1, x.aval.dtype)

    def e(i: int, j: int) -> Array:
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


# -- rank and condition --------------------------------------------------------------


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
        return convert(sum(x != 0) > 0, dtypes.default_int())
    (x,) = matrices("matrix_rank", x, square=hermitian)
    m, n = x.aval.shape[-2:]
    if not m or not n:
        return lax.full(x.aval.shape[:-2], 0, dtypes.default_int())
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is None:
        share = (m if m > n else n) * precision_of(x) if rtol is None else rtol
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
      ShapeError: `x` is no matrix, has no elements, or is not square with another norm
        than ±2.
      ArgumentError: there is no such norm.

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
