"""Systems whose matrices have bands or constant diagonals.

A banded matrix is eliminated row by row with partial pivoting, in a window that is as
wide as the bands; a Toeplitz one by Levinson's recursion. The derivatives solve the
same systems.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, integer, pair
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.linalg._bands import solve_rows
from fxflow.transforms.vmap import vmap

_docs = shared("""
    Raises:
      ShapeError: the shapes are incompatible.
      ...

    Source: `scipy.linalg.{name}`, with derivatives with respect to all arrays.
""")


def _sides(name: str, b: Any, n: int) -> tuple[Any, bool]:
    vector = b.aval.ndim == 1
    b = b[:, None] if vector else b
    if b.aval.ndim < 2 or b.aval.shape[-2] != n:
        raise ShapeError(f"{name}: b must have {n} rows, got {b.aval}")
    return b, vector


def _mapped(function: Any, *args: tuple[Any, int]) -> Any:
    """Calls a function of arrays without batch, given with how many axes they have."""
    lead = fnp.broadcast_shapes(*(x.aval.shape[: x.aval.ndim - k] for x, k in args))
    full = [
        fnp.broadcast_to(x, (*lead, *x.aval.shape[x.aval.ndim - k :])) for x, k in args
    ]
    for _ in lead:
        function = vmap(function)
    return function(*full)


# -- bands -----------------------------------------------------------------------------


def _rows_of(ab: Any, low: int, up: int) -> Any:
    """Returns row i of the matrix in row i: its elements i - low to i + up."""
    n = ab.aval.shape[1]
    i = np.arange(n)[:, None]
    j = i + np.arange(-low, up + 1)
    inside = (j >= 0) & (j < n)
    taken = ab[up + i - j, np.clip(j, 0, n - 1)]
    return fnp.where(inside, taken, 0)


def _banded(ab: Any, b: Any, low: int, up: int) -> Any:
    """Solves a banded system."""
    return solve_rows(_rows_of(ab, low, up), b, low)


@library("l_and_u", "overwrite_ab", "overwrite_b", "check_finite")
@_docs
def solve_banded(
    l_and_u: tuple[int, int],
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b for matrices with few diagonals, in time that is linear in n.

    Args:
      l_and_u: how many diagonals are below the main one, and how many above.
      ab: array-like[..., l + u + 1, n]: the diagonals, element (i, j) of the matrix at
        (u + i - j, j).
      b: array-like[n] or [..., n, k].
      overwrite_ab: has no effect.
      overwrite_b: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array[n] or [..., n, k].

    Raises:
      ArgumentError: `l_and_u` are not two numbers of diagonals.

    Special cases:
      inf or nan where the matrix is singular.

    Example:
      >>> ab = np.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
      >>> solve_banded((1, 1), ab, np.array([3.0, 3.0]))
      Array([1., 1.], dtype=float32)
    """
    name = "solve_banded"
    low, up = (integer(name, "l_and_u", v) for v in pair(name, "l_and_u", l_and_u))
    matrix, right = promote_inexact(name, ab, b)
    if low < 0 or up < 0:
        raise ArgumentError(f"{name}: l_and_u must not be negative, got {l_and_u}")
    if matrix.aval.ndim < 2 or matrix.aval.shape[-2] != low + up + 1:
        raise ShapeError(
            f"{name}: ab must have {low + up + 1} rows for l_and_u={l_and_u}, got "
            f"{matrix.aval}"
        )
    return _solved(name, matrix, right, low, up)


def _solved(name: str, ab: Any, b: Any, low: int, up: int) -> Array:
    dtype = ab.aval.dtype
    if dtypes.bits(dtype) < 32:
        ab, b = (convert(x, dtypes.float32) for x in (ab, b))
    n = ab.aval.shape[-1]
    b, vector = _sides(name, b, n)
    if not n or not b.aval.size:
        out = fnp.zeros_like(b)
    else:
        # Diagonals that are longer than the matrix are empty.
        kept_low, kept_up = min(low, n - 1), min(up, n - 1)
        ab = ab[..., up - kept_up : up + kept_low + 1, :]
        solve = lambda ab, b: _banded(ab, b, kept_low, kept_up)
        out = _mapped(solve, (ab, 2), (b, 2))
    return out[:, 0] if vector and out.ndim == 2 else out


@library("lower", "overwrite_ab", "overwrite_b", "check_finite")
@_docs
def solveh_banded(
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b for Hermitian matrices with few diagonals.

    Args:
      ab: array-like[..., u + 1, n]: the diagonals, element (i, j) of the matrix at
        (u + i - j, j), or with `lower` at (i - j, j).
      b: array-like[n] or [..., n, k].
      overwrite_ab: has no effect.
      overwrite_b: has no effect.
      lower: whether the diagonals are those below the main one.
      check_finite: has no effect.

    Returns:
      Float or complex array[n] or [..., n, k].

    Special cases:
      Matrices that are not positive definite are solved too; SciPy refuses them.

    Example:
      >>> ab = np.array([[0.0, 1.0], [2.0, 2.0]])
      >>> solveh_banded(ab, np.array([3.0, 3.0]))
      Array([1., 1.], dtype=float32)
    """
    name = "solveh_banded"
    matrix, right = promote_inexact(name, ab, b)
    if matrix.aval.ndim < 2 or not matrix.aval.shape[-2]:
        raise ShapeError(f"{name}: ab must have a row for each diagonal")
    return _solved(name, _whole(matrix, lower), right, *[matrix.aval.shape[-2] - 1] * 2)


def _whole(ab: Any, lower: bool) -> Any:
    """Returns all diagonals of Hermitian matrices."""
    n, m = ab.aval.shape[-1], ab.aval.shape[-2] - 1
    lead = [(0, 0)] * (ab.aval.ndim - 2)
    other = []
    for d in range(1, m + 1):
        row = ab[..., d if lower else m - d, :]
        shift = min(d, n)
        if lower:
            moved = fnp.pad(row, [*lead, (shift, 0)])[..., :n]
        else:
            moved = fnp.pad(row, [*lead, (0, shift)])[..., shift:]
        other.append(fnp.conj(moved))
    if lower:
        rows = [*other[::-1], *(ab[..., d, :] for d in range(m + 1))]
    else:
        rows = [*(ab[..., d, :] for d in range(m + 1)), *other]
    return fnp.stack(rows, axis=-2)


@library("overwrite_ab", "lower", "check_finite")
@_docs
def cholesky_banded(
    ab: ArrayLike,
    overwrite_ab: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """Returns Cholesky's factors of Hermitian matrices with few diagonals.

    Args:
      ab: array-like[..., u + 1, n]: the diagonals, as for `solveh_banded`.
      overwrite_ab: has no effect.
      lower: whether the diagonals are those below the main one, also of the factor.
      check_finite: has no effect.

    Returns:
      Float or complex array[..., u + 1, n]: the diagonals of the factor, U with
      Uᴴ U = a, or L with L Lᴴ = a.

    Special cases:
      nan for matrices that are not positive definite.

    Example:
      >>> cholesky_banded(np.array([[0.0, 2.0], [4.0, 5.0]]))
      Array([[0., 1.],
             [2., 2.]], dtype=float32)
    """
    name = "cholesky_banded"
    (x,) = promote_inexact(name, ab)
    if x.aval.ndim < 2 or not x.aval.shape[-2]:
        raise ShapeError(f"{name}: ab must have a row for each diagonal")
    if dtypes.bits(x.aval.dtype) < 32:
        x = convert(x, dtypes.float32)
    if not x.aval.size:
        return x
    width = x.aval.shape[-2] - 1
    low = x if lower else _whole(x, False)[..., width:, :]
    factor = _mapped(_band_factor, (low, 2))
    out: Array = factor if lower else _whole(factor, True)[..., : width + 1, :]
    return out


def _band_factor(ab: Any) -> Any:
    """Returns the lower factor of lower diagonals [m, n], column by column."""
    m, n = ab.aval.shape
    d, c = np.indices((m, m))
    inside = (c > 0) & (c + d < m)
    # Below the matrix, the diagonals hold nothing.
    ab = fnp.where(np.arange(m)[:, None] + np.arange(n) < n, ab, 0)

    def step(change: Any, given: Any) -> Any:
        column = given - change[:, 0]
        root = fnp.sqrt(fnp.real(column[0]))
        factor = column / root
        outer = factor[np.minimum(c + d, m - 1)] * fnp.conj(factor)
        new = change + fnp.where(inside, outer, 0)
        return fnp.pad(new[:, 1:], [(0, 0), (0, 1)]), factor

    start = fnp.zeros((m, m), ab.aval.dtype)
    _, columns = lax.scan(step, start, ab.T)
    return columns.T


@_docs
def cho_solve_banded(
    cb_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b, given the factor of a matrix with few diagonals.

    Args:
      cb_and_lower: the diagonals of the factor, of `cholesky_banded`, and whether they
        are lower ones.
      b: array-like[n] or [..., n, k].
      overwrite_b: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array[n] or [..., n, k].

    Example:
      >>> cb = cholesky_banded(np.array([[0.0, 1.0], [2.0, 2.0]]))
      >>> cho_solve_banded((cb, False), np.array([3.0, 3.0])).round(3)
      Array([1., 1.], dtype=float32)
    """
    band, lower = pair("cho_solve_banded", "cb_and_lower", cb_and_lower)
    return _cho_solved(band, b, bool(lower))


@library("lower")
def _cho_solved(band: Any, b: Any, lower: bool) -> Array:
    name = "cho_solve_banded"
    matrix, right = promote_inexact(name, band, b)
    if matrix.aval.ndim < 2 or not matrix.aval.shape[-2]:
        raise ShapeError(f"{name}: the factor must have a row for each diagonal")
    width = matrix.aval.shape[-2] - 1
    whole = _whole(matrix, lower)
    up, low = whole[..., : width + 1, :], whole[..., width:, :]
    return _solved(name, up, _solved(name, low, right, width, 0), 0, width)


# -- constant diagonals ----------------------------------------------------------------


def _column_and_row(name: str, c_or_cr: Any, x: Any) -> list[Any]:
    if isinstance(c_or_cr, tuple):
        c, r = pair(name, "c_or_cr", c_or_cr)
    else:
        c, r = c_or_cr, None
    given = promote_inexact(name, c, x) if r is None else promote_inexact(name, c, r, x)
    c, r, x = (given[0], fnp.conj(given[0]), given[1]) if r is None else given
    c, r = (fnp.reshape(v, (-1,)) if v.aval.ndim == 0 else v for v in (c, r))
    if dtypes.bits(c.aval.dtype) < 32:
        c, r, x = (convert(v, dtypes.float32) for v in (c, r, x))
    return [c, r, x]


def _toeplitz_product(c: Any, r: Any, x: Any) -> Any:
    """Returns the product of a Toeplitz matrix with x [n, k], by Fourier transforms."""
    m, n = c.aval.shape[-1], r.aval.shape[-1]
    line = fnp.concatenate([c, r[1:][::-1]])
    size = m + n - 1
    if dtypes.is_complex(c.aval.dtype):
        spectrum = fnp.fft.fft(line)[:, None] * fnp.fft.fft(x, size, axis=0)
        return fnp.fft.ifft(spectrum, axis=0)[:m]
    spectrum = fnp.fft.rfft(line)[:, None] * fnp.fft.rfft(x, size, axis=0)
    return fnp.fft.irfft(spectrum, size, axis=0)[:m]


@library("check_finite", "workers")
@_docs
def matmul_toeplitz(
    c_or_cr: Any, x: ArrayLike, check_finite: bool = False, workers: int | None = None
) -> Array:
    """Multiplies a matrix with constant diagonals, by Fourier transforms.

    Args:
      c_or_cr: array-like[..., m]: the first column; or a tuple of it and the first row
        [..., n], which is else the conjugate of the column.
      x: array-like[n] or [..., n, k].
      check_finite: has no effect.
      workers: has no effect.

    Returns:
      Float or complex array[m] or [..., m, k].

    Example:
      >>> matmul_toeplitz(np.array([1.0, 2.0]), np.array([1.0, 1.0])).round(3)
      Array([3., 3.], dtype=float32)
    """
    c, r, y = _column_and_row("matmul_toeplitz", c_or_cr, x)
    y, vector = _sides("matmul_toeplitz", y, r.aval.shape[-1])
    if not c.aval.shape[-1] or not y.aval.size:
        shape = (*y.aval.shape[:-2], c.aval.shape[-1], y.aval.shape[-1])
        out = fnp.zeros(shape, y.dtype)
    else:
        out = _mapped(_toeplitz_product, (c, 1), (r, 1), (y, 2))
    return out[:, 0] if vector and out.ndim == 2 else out


def _levinson(c: Any, r: Any, b: Any) -> Any:
    """Solves a Toeplitz system, without derivatives."""
    n = c.aval.shape[-1]
    # t[n - 1 + d] stands on the diagonal d below the main one.
    line = fnp.concatenate([r[1:][::-1], c])
    index = np.arange(n)

    def step(m: Any, state: Any) -> Any:
        forward, backward, x = state
        known = index < m
        # Row m of the matrix, and what its first row has beyond it.
        row = fnp.where(known, line[fnp.clip(n - 1 + m - index, 0, 2 * n - 2)], 0)
        top = fnp.where(known, line[n - 2 - index], 0)
        off_f, off_b = fnp.sum(row * forward), fnp.sum(top * backward)
        off_x = fnp.matmul(row, x)
        scale = 1 / (1 - off_f * off_b)
        moved = fnp.concatenate([0 * backward[:1], backward[:-1]])
        new_f = scale * (forward - off_f * moved)
        new_b = scale * (moved - off_b * forward)
        side = lax.dynamic_index_in_dim(b, m, 0, keepdims=False)
        return new_f, new_b, x + new_b[:, None] * (side - off_x)

    first = fnp.where(index == 0, 1 / c[0], 0)
    start = (first, first, first[:, None] * b[0])
    return lax.fori_loop(1, n, step, start)[2]


@library("check_finite")
@_docs
def solve_toeplitz(c_or_cr: Any, b: ArrayLike, check_finite: bool = True) -> Array:
    """Solves a x = b for matrices with constant diagonals, in n² operations.

    Args:
      c_or_cr: array-like[..., n]: the first column; or a tuple of it and the first row,
        which is else the conjugate of the column.
      b: array-like[n] or [..., n, k].
      check_finite: has no effect.

    Returns:
      Float or complex array[n] or [..., n, k].

    Special cases:
      inf or nan where a leading block of the matrix is singular.

    Example:
      >>> solve_toeplitz(np.array([1.0, 2.0]), np.array([3.0, 3.0])).round(3)
      Array([1., 1.], dtype=float32)

    Source: `scipy.linalg.solve_toeplitz`; N. Levinson 1947.
    """
    c, r, y = _column_and_row("solve_toeplitz", c_or_cr, b)
    n = c.aval.shape[-1]
    if r.aval.shape[-1] != n:
        raise ShapeError(f"solve_toeplitz: c, {c.aval}, and r, {r.aval}, must fit")
    y, vector = _sides("solve_toeplitz", y, n)

    def solved(c: Any, r: Any, b: Any) -> Any:
        # The first element of the row is not used.
        r = fnp.concatenate([c[:1], r[1:]])
        fixed_c, fixed_r = lax.stop_gradient(c), lax.stop_gradient(r)
        return lax.custom_linear_solve(
            lambda x: _toeplitz_product(c, r, x),
            b,
            solve=lambda _, side: _levinson(fixed_c, fixed_r, side),
            transpose_solve=lambda _, side: _levinson(fixed_r, fixed_c, side),
        )

    out = fnp.zeros_like(y) if not y.aval.size else None
    out = _mapped(solved, (c, 1), (r, 1), (y, 2)) if out is None else out
    return out[:, 0] if vector and out.ndim == 2 else out


@library("singular", "caxis", "baxis", "outaxis")
@_docs
def solve_circulant(
    c: ArrayLike,
    b: ArrayLike,
    singular: str = "raise",
    tol: Any = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """Solves a x = b for matrices whose columns are one vector, turned.

    Args:
      c: array-like[..., n]: the first column.
      b: array-like[n, ...].
      singular: "raise": inf or nan where the matrix is singular; "lstsq": the solution
        with the least squares.
      tol: eigenvalues up to this size are taken for 0; None is the machine's precision
        times n times the largest.
      caxis: the axis of `c`.
      baxis: the axis of `b`.
      outaxis: the axis of the result.

    Returns:
      Float or complex array.

    Raises:
      ArgumentError: `singular` is something else.

    Example:
      >>> solve_circulant(np.array([2.0, 1.0]), np.array([3.0, 3.0])).round(3)
      Array([1., 1.], dtype=float32)
    """
    name = "solve_circulant"
    if singular not in ("raise", "lstsq"):
        raise ArgumentError(
            f'{name}: singular must be "raise" or "lstsq", got {singular!r}'
        )
    column, side = promote_inexact(name, c, b)
    column, side = fnp.atleast_1d(column), fnp.atleast_1d(side)
    dtype = column.aval.dtype
    caxis = canonical_axis(name, caxis, column.aval.ndim)
    baxis = canonical_axis(name, baxis, side.aval.ndim)
    column, side = fnp.moveaxis(column, caxis, -1), fnp.moveaxis(side, baxis, -1)
    n = column.aval.shape[-1]
    if side.aval.shape[-1] != n:
        raise ShapeError(f"{name}: {column.aval} and b, {side.aval}, do not fit")
    if not n:
        return fnp.zeros_like(side)
    values = fnp.fft.fft(column)
    size = lax.abs(values)
    if tol is None:
        largest = fnp.max(size, axis=-1, keepdims=True)
        tol = largest * n * float(fnp.finfo(size.aval.dtype).eps)
    near = size <= lax.stop_gradient(fnp.asarray(tol, size.aval.dtype))
    if singular == "lstsq":
        part = fnp.where(near, 0, fnp.fft.fft(side) / fnp.where(near, 1, values))
    else:
        part = fnp.fft.fft(side) / fnp.where(near, 0, values)
    out = fnp.fft.ifft(part)
    out = out if dtypes.is_complex(dtype) else fnp.real(out)
    moved: Array = fnp.moveaxis(out, -1, outaxis)
    return moved
