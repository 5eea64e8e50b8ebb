"""Systems of equations whose matrices have bands, eliminated in a window of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow.core.arrays import Array, Aval, typeof
from fxflow.kernels.body import loop, when
from fxflow.kernels.calling import call


def solved_bands(
    rows: Any,
    sides: Any,
    low: int,
    *,
    reference: Callable[[Any, Any], Array],
) -> Array:
    """Solves a banded system, with partial pivoting.

    Args:
      rows: float[n, w]: element j of row i is that of column i - low + j of the matrix;
        0 for columns outside of it.
      sides: float[n, k], of the same dtype.
      low: how many bands are below the diagonal.
      reference: a function of `rows` and `sides` that returns the same in another way.

    Returns:
      Float[n, k]; inf or nan where the matrix is singular.
    """
    (n, width), k = typeof(rows).shape, typeof(sides).shape[1]
    dtype = typeof(rows).dtype

    def body(rows: Any, sides: Any, out: Any, *refs: Any) -> None:
        # Rows of the window, from the column that is eliminated next; their right
        # sides; and the rows that are finished, from their diagonals.
        window, right, tops, found = refs

        def enter(at: int, row: Any) -> None:
            """Reads a row, or one of the identity after the last one."""
            inside = row < n

            @when(inside)
            def _() -> None:
                window[at], right[at] = rows[row], sides[row]

            @when(fnp.logical_not(inside))
            def _() -> None:
                window[at], right[at] = fnp.zeros(width, dtype), fnp.zeros(k, dtype)
                window[at, low] = fnp.ones((), dtype)

        # The first rows have columns before the first one, which go.
        for at in range(low + 1):
            enter(at, fnp.full((), at, np.int32))
            shift = low - at
            if 0 < shift < width:
                kept = window[at, shift:]
                window[at] = fnp.concatenate([kept, fnp.zeros(shift, dtype)])

        @loop(0, n)
        def _(step: Any) -> None:
            pivot = fnp.argmax(fnp.abs(window[:, 0])).astype(np.int32)
            tops[step], found[step] = window[pivot], right[pivot]
            window[pivot], right[pivot] = window[0], right[0]
            top = tops[step, 0]
            for at in range(1, low + 1):
                factor = window[at, 0] / top
                window[at - 1, : width - 1] = window[at, 1:] - factor * tops[step, 1:]
                window[at - 1, width - 1] = fnp.zeros((), dtype)
                right[at - 1] = right[at] - factor * found[step]
            enter(low, step + (low + 1))

        found[n : n + width] = fnp.zeros((width, k), dtype)

        @loop(0, n)
        def _(back: Any) -> None:
            step = n - 1 - back
            known = found[step]
            for j in range(1, width):
                known = known - tops[step, j] * found[step + j]
            found[step] = known / tops[step, 0]

        out[...] = found[:n]

    run = call(
        body,
        typeof(sides),
        scratch=[
            Aval((low + 1, width), dtype),
            Aval((low + 1, k), dtype),
            Aval((n, width), dtype),
            Aval((n + width, k), dtype),
        ],
        reference=reference,
        name="solved_bands",
        platforms=("cpu",),
    )
    out: Array = run(rows, sides)
    return out
