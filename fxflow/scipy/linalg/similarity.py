"""Matrices that are similar and simpler: Schur and Hessenberg forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.numpy.diagonals import triu
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.numpy.products import matmul
from fxflow.numpy.selection import choose_between
from fxflow.scipy.linalg._matrices import matrix_of


@library("output", "lwork", "overwrite_a", "sort", "check_finite")
def schur(
    a: ArrayLike,
    output: str = "real",
    lwork: int | None = None,
    overwrite_a: bool = False,
    sort: None = None,
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """Returns the Schur decomposition: a = Z T Zᴴ.

    Args:
      a: array-like[..., n, n].
      output: "complex", or "real": for real matrices, T is real and has a block of two
        on its diagonal for each pair of complex eigenvalues.
      lwork: has no effect.
      overwrite_a: has no effect.
      sort: must be None: LAPACK's order is kept; `ordqz` sorts eigenvalues.
      check_finite: has no effect.

    Returns:
      T, upper triangular (except for these blocks), and Z, unitary. There is no
      derivative.

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: `output` is something else, or `sort` is not None.

    Example:
      >>> schur(np.array([[1.0, 2.0], [0.0, 3.0]]))[0]
      Array([[1., 2.],
             [0., 3.]], dtype=float32)

    Source: `scipy.linalg.schur`.
    """
    if output not in ("real", "complex", "r", "c"):
        raise ArgumentError(
            f'schur: output must be "real" or "complex", got {output!r}'
        )
    if sort is not None:
        raise ArgumentError(
            f"schur: sort must be None, got {sort!r}: ordqz(a, eye(n), sort) sorts"
        )
    x = matrix_of("schur", a, square=True)
    if output.startswith("c"):
        x = convert(x, dtypes.to_complex(x.aval.dtype))
    t, z = lax.linalg.schur(x)
    return t, z


@library("check_finite")
def rsf2csf(
    T: ArrayLike, Z: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """Turns a real Schur decomposition into a complex one.

    Args:
      T: array-like[..., n, n]: a real Schur form.
      Z: array-like[..., n, n]: its vectors.
      check_finite: has no effect.

    Returns:
      Complex T, upper triangular, and Z.

    Raises:
      ShapeError: the matrices are not square, or not of one shape.

    Example:
      >>> t, z = rsf2csf(*schur(np.array([[0.0, 2.0], [-2.0, 0.0]])))
      >>> t.round(2)[:, 0]
      Array([0.+2.j, 0.+0.j], dtype=complex64)

    Source: `scipy.linalg.rsf2csf`.
    """
    t, z = promote_inexact("rsf2csf", T, Z)
    t, z = (matrix_of("rsf2csf", x, square=True) for x in (t, z))
    if t.aval.shape != z.aval.shape:
        raise ShapeError(f"rsf2csf: T, {t.aval}, and Z, {z.aval}, must have one shape")
    dtype = dtypes.to_complex(t.aval.dtype)
    t, z = convert(t, dtype), convert(z, dtype)
    last = t.aval.ndim - 1
    eps = float(dtypes.finfo(dtypes.to_real(dtype)).eps)

    def rotate(pair: Any, m: Any) -> Any:
        t, z = pair
        # Rows m - 1 and m, and the block that they have on the diagonal.
        rows = lax.dynamic_slice_in_dim(t, m - 1, 2, last - 1)
        block = lax.dynamic_slice_in_dim(rows, m - 1, 2, last)
        a, b, c, d = (block[..., i, j] for i in (0, 1) for j in (0, 1))
        half = (a - d) / 2
        value = half + lax.sqrt(half * half + b * c)
        size = lax.sqrt(lax.square(lax.abs(value)) + lax.square(lax.abs(c)))
        small = lax.abs(c) <= eps * (lax.abs(a) + lax.abs(d))
        one, zero = lax.full_like(a, 1), lax.full_like(a, 0)
        size = convert(choose_between(small, lax.full_like(size, 1), size), dtype)
        cos = choose_between(small, one, value / size)
        sin = choose_between(small, zero, c / size)
        turn = lax.concatenate(
            [
                lax.expand_dims(v, (last - 1, last))
                for v in (lax.conj(cos), sin, -sin, cos)
            ],
            last,
        )
        turn = lax.reshape(turn, (*turn.aval.shape[:-2], 2, 2))
        t = lax.dynamic_update_slice_in_dim(t, matmul(turn, rows), m - 1, last - 1)
        t, z = (
            lax.dynamic_update_slice_in_dim(
                x,
                matmul(lax.dynamic_slice_in_dim(x, m - 1, 2, last), adjoint(turn)),
                m - 1,
                last,
            )
            for x in (t, z)
        )
        return (t, z), None

    n = t.aval.shape[-1]
    if n > 1:
        steps = lax.iota(dtypes.int32, n - 1) + 1
        (t, z), _ = lax.scan(rotate, (t, z), steps, reverse=True)
    return triu(t), z


@library("calc_q", "overwrite_a", "check_finite")
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """Returns the Hessenberg form: a = Q H Qᴴ, H zero below the first subdiagonal.

    Args:
      a: array-like[..., n, n].
      calc_q: whether to return Q, too.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      H, or H and Q, of the type of a. There is no derivative.

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
      Array([[1., 2.],
             [3., 4.]], dtype=float32)

    Source: `scipy.linalg.hessenberg`.
    """
    x = matrix_of("hessenberg", a, square=True)
    packed, factors = lax.linalg.hessenberg(x)
    form = triu(packed, -1)
    if not calc_q:
        return form
    n = x.aval.shape[-1]
    if not n:
        return form, form
    inner = lax.linalg.householder_product(packed[..., 1:, : n - 1], factors)
    sides = [(0, 0, 0)] * (x.aval.ndim - 2) + [(1, 0, 0)] * 2
    corner = np.zeros((n, n))
    corner[0, 0] = 1
    zero = lax.full((), 0, x.aval.dtype)
    return form, lax.pad(inner, zero, sides) + corner.astype(x.aval.dtype)
