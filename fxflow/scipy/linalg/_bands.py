"""Systems of equations whose matrices have bands, given by their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.kernels.gallery.bands import solved_bands

#: Rows that are worth compiling a kernel: in a loop of XLA's each takes microseconds.
#: Its code grows with the number of bands.
_LEAST, _WIDEST = 128, 33


def solve_rows(
    rows: Array,
    sides: Array,
    low: int,
    plain: Callable[[Any, Any, int], Array] | None = None,
) -> Array:
    """Solves a banded system, differentiably.

    Args:
      rows: float or complex[n, w]: element j of row i is that of column i - low + j of
        the matrix; 0 for columns outside of it.
      sides: float or complex[n, k].
      low: how many bands are below the diagonal.
      plain: solves the system, given `rows`, `sides` and `low`, where no kernel does;
        None eliminates row by row.

    Returns:
      Array[n, k]; inf or nan where the matrix is singular.
    """
    if dtypes.is_complex(sides.dtype) and not dtypes.is_complex(rows.dtype):
        k = sides.aval.shape[1]
        parts = fnp.concatenate([fnp.real(sides), fnp.imag(sides)], 1)
        found = solve_rows(rows, parts, low, plain)
        return lax.complex(found[:, :k], found[:, k:])
    up = rows.aval.shape[1] - 1 - low
    fixed = lax.stop_gradient(rows)
    out: Array = lax.custom_linear_solve(
        lambda x: _product(rows, x, low),
        sides,
        solve=lambda _, b: _solved(fixed, b, low, plain),
        transpose_solve=lambda _, b: _solved(_transposed(fixed, low), b, up, plain),
    )
    return out


def _product(rows: Any, x: Any, low: int) -> Any:
    """Returns the product of a banded matrix with x [n, k]."""
    n, width = rows.aval.shape
    padded = fnp.pad(x, [(low, width - 1 - low), (0, 0)])
    return sum(
        (rows[:, j : j + 1] * padded[j : j + n] for j in range(width)),
        start=fnp.zeros_like(x),
    )


def _transposed(rows: Any, low: int) -> Any:
    """Returns the rows of the transpose, whose numbers of bands are exchanged."""
    n, width = rows.aval.shape
    up = width - 1 - low
    padded = fnp.pad(rows, [(up, low), (0, 0)])
    columns = [padded[j : j + n, width - 1 - j] for j in range(width)]
    return fnp.stack(columns, 1)


def _solved(rows: Any, sides: Any, low: int, plain: Any) -> Any:
    plain = _eliminated if plain is None else plain
    dtype = np.dtype(rows.dtype)
    fits = dtype == sides.dtype and dtype in (np.float32, np.float64)
    n, width = rows.aval.shape
    if not fits or n < _LEAST or width > _WIDEST:
        return plain(rows, sides, low)
    reference = lambda rows, sides: plain(rows, sides, low)
    return solved_bands(rows, sides, low, reference=reference)


def _eliminated(rows: Any, b: Any, low: int) -> Any:
    """Solves a banded system row by row, with partial pivoting in a window of rows."""
    width, k = rows.aval.shape[1], b.aval.shape[1]
    # Rows that come after the last one are of the identity.
    spare = fnp.zeros((low, width), rows.dtype).at[:, low].set(1)
    rows = fnp.concatenate([rows, spare])
    sides = fnp.concatenate([b, fnp.zeros((low, k), b.dtype)])
    # Row i stands in the window of step s with its columns from s to s + low + up.
    first = [fnp.pad(rows[i, low - i :], (0, low - i)) for i in range(low + 1)]
    window = fnp.stack(first)

    def step(state: Any, given: Any) -> Any:
        window, right = state
        size = lax.abs(window[:, 0])
        # The first of the largest, where an unknown one is larger than all.
        pivot = fnp.argmax(size)
        rows = np.arange(low + 1)
        order = fnp.where(rows == pivot, 0, fnp.where(rows == 0, pivot, rows))
        window, right = window[order], right[order]
        top, side = window[0], right[0]
        factors = window[1:, :1] / top[0]
        rest = window[1:] - factors * top
        below = right[1:] - factors * side
        rest = fnp.concatenate([rest[:, 1:], fnp.zeros((low, 1), rest.dtype)], axis=1)
        row, new = given
        window = fnp.concatenate([rest, row[None]])
        return (window, fnp.concatenate([below, new[None]])), (top, side)

    # One row more than there are is never used.
    coming = fnp.concatenate([rows[low + 1 :], fnp.ones((1, width), rows.dtype)])
    others = fnp.concatenate([sides[low + 1 :], fnp.zeros((1, k), b.dtype)])
    start = (window, sides[: low + 1])
    _, (tops, right) = lax.scan(step, start, (coming, others))

    def back(known: Any, given: Any) -> Any:
        top, side = given
        value = (side - fnp.matmul(top[1:], known)) / top[0]
        return fnp.concatenate([value[None], known])[: width - 1], value

    zero = fnp.zeros((width - 1, k), b.dtype)
    _, x = lax.scan(back, zero, (tops, right), reverse=True)
    return x
