"""Systems of equations for the coefficients of splines.

Their matrices have k + 1 elements in a row: the B-splines that are not 0 at a point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.scipy.linalg._bands import solve_rows

#: Rows of a block of a banded system. LAPACK starts threads for larger ones, which
#: take 60 times as long.
_BLOCK = 16
#: Corrections of a solution of normal equations, and what is left of the first one
#: after the second if they have enough digits.
_CORRECTIONS, _LEFT = 2, 0.03


def through(weights: Array, start: Array, values: Array) -> Array:
    """Returns the coefficients of a spline that has given values.

    Args:
      weights: real[n, k + 1]: elements of row i of the matrix.
      start: int[n]: the column of the first one.
      values: float or complex[n, r].

    Returns:
      Array[n, r]; nan where a B-spline does not reach its point (the condition of
      Schoenberg and Whitney), so that the matrix is singular.
    """
    n, k = weights.aval.shape[0], weights.aval.shape[1] - 1
    own = fnp.arange(n)
    at = start[:, None] + np.arange(k + 1) - own[:, None] + k
    outside = (at < 0) | (at > 2 * k)
    # By comparisons, which are faster than writes to computed places.
    places = np.arange(2 * k + 1)
    rows = sum(
        (
            fnp.where(at[:, j, None] == places, weights[:, j, None], 0)
            for j in range(k + 1)
        ),
        start=fnp.zeros((n, 2 * k + 1), weights.dtype),
    )
    singular = fnp.any(outside & (weights != 0))
    return solve_rows(rows, fnp.where(singular, fnp.nan, values), k, _in_blocks)


def _in_blocks(rows: Any, sides: Any, low: int) -> Any:
    """Solves a system in blocks, each of which meets the one before and the one after.

    There are no pivots outside of a block, which the matrices of splines do not need.
    """
    n, width = rows.aval.shape
    b = max(_BLOCK, width + 1)
    count = -(-n // b)
    size, dtype = count * b, sides.aval.dtype
    # Rows of unknowns that are added: 1 on the diagonal.
    own, extra = np.arange(n), np.arange(n, size)
    wide = fnp.zeros((size, 3 * b), rows.dtype)
    columns = own[:, None] % b + b - low + np.arange(width)
    wide = wide.at[own[:, None], columns].set(rows)
    wide = wide.at[extra, extra % b + b].set(1).astype(dtype)
    blocks = fnp.reshape(wide, (count, b, 3, b))
    below, middle, above = blocks[:, :, 0], blocks[:, :, 1], blocks[:, :, 2]
    parts = fnp.reshape(fnp.pad(sides, [(0, size - n), (0, 0)]), (count, b, -1))

    def dot(u: Array, v: Array) -> Array:
        return fnp.matmul(u, v, precision="highest")

    def down(carry: tuple[Array, Array], row: Any) -> Any:
        reach, part = carry
        below, middle, above, value = row
        both = fnp.concatenate([above, value - dot(below, part)], -1)
        found = fnp.linalg.solve(middle - dot(below, reach), both)
        out = (found[:, :b], found[:, b:])
        return out, out

    zero = (fnp.zeros((b, b), dtype), fnp.zeros_like(parts[0]))
    _, (reach, part) = lax.scan(down, zero, (below, middle, above, parts))

    def back(later: Array, row: Any) -> Any:
        found = row[1] - dot(row[0], later)
        return found, found

    _, found = lax.scan(back, fnp.zeros_like(parts[0]), (reach, part), reverse=True)
    return fnp.reshape(found, (size, -1))[:n]


def nearest(weights: Array, start: Array, values: Array, n: int, exact: bool) -> Array:
    """Returns the coefficients of the spline that is nearest to values.

    Args:
      weights: real[m, k + 1]: elements of row i of the matrix.
      start: int[m]: the column of the first one.
      values: float or complex[m, r].
      n: the number of columns.
      exact: whether the solution has to have the digits of a QR factorization: the
        normal equations, whose matrix has k + 1 bands, give it if corrections by what
        is left of the values converge, and a factorization otherwise.

    Returns:
      Array[n, r].
    """
    m, k = weights.aval.shape[0], weights.aval.shape[1] - 1
    columns = start[:, None] + np.arange(k + 1)

    def product(weights: Array, c: Array) -> Array:
        return fnp.sum(weights[:, :, None] * c[columns], 1)

    def transposed(weights: Array, v: Array) -> Array:
        zero = fnp.zeros((n, v.aval.shape[1]), v.dtype)
        return zero.at[columns].add(weights[:, :, None] * v[:, None])

    # Element j of row i is that of column i - k + j.
    bands = k + np.arange(k + 1) - np.arange(k + 1)[:, None]
    rows = fnp.zeros((n, 2 * k + 1), weights.dtype)
    rows = rows.at[columns[:, :, None], bands].add(
        weights[:, :, None] * weights[:, None]
    )
    if not exact:
        return solve_rows(rows, transposed(weights, values), k)
    fixed, given, w = (lax.stop_gradient(v) for v in (rows, values, weights))
    c = change = solve_rows(fixed, transposed(w, given), k)
    for _ in range(_CORRECTIONS):
        before = change
        change = solve_rows(fixed, transposed(w, given - product(w, c)), k)
        c = c + change

    def size(v: Array) -> Array:
        return fnp.max(fnp.abs(v), initial=0)

    tiny = 8 * float(fnp.finfo(rows.dtype).eps)
    good = size(change) <= fnp.maximum(_LEFT * size(before), tiny * size(c))

    def factored() -> Array:
        matrix = fnp.zeros((m, n), w.dtype)
        matrix = matrix.at[np.arange(m)[:, None], columns].add(w)
        q, r = fnp.linalg.qr(matrix.astype(given.dtype))
        side = fnp.matmul(fnp.conj(q.T), given, precision="highest")
        out: Array = lax.linalg.triangular_solve(r, side, left_side=True)
        return out

    c = lax.stop_gradient(lax.cond(good, lambda: c, factored))
    # Its derivative is that of one more correction.
    more = solve_rows(rows, transposed(weights, values - product(weights, c)), k)
    return c + (more - lax.stop_gradient(more))
