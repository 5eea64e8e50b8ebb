"""The assignment problem: pairs rows with distinct columns at the least cost."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.boundary import public as _public
from fxflow.errors import DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike

__all__ = ["hungarian_algorithm"]


def hungarian_algorithm(cost_matrix: ArrayLike) -> tuple[Array, Array]:
    r"""Returns the assignment of rows to columns with the least total cost.

    It minimizes :math:`\sum_k C_{i_k j_k}` over min(n, m) pairs, in which no row and no
    column occurs twice. It works under `jit` and `vmap`; on the host,
    `scipy.optimize.linear_sum_assignment` is faster.

    Args:
      cost_matrix: C: float[n, m], finite. Integers and bools are compared as floats.

    Returns:
      int32[min(n, m)] twice: rows i, in ascending order, and their columns j.

    Raises:
      DtypeError: the costs are complex.
      ShapeError: they are not a matrix.

    Special cases:
      Returns any of several assignments with the least cost. If costs are not finite,
      the pairs are valid but may not be optimal.

    Example:
      >>> costs = fnp.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]])
      >>> i, j = optim.assignment.hungarian_algorithm(costs)
      >>> j.tolist(), float(fnp.sum(costs[i, j]))
      ([1, 0], 3.0)

    Reference: Kuhn 1955; by shortest augmenting paths, Jonker and Volgenant 1987; O(n²
    m) steps. Crouse 2016, "On implementing 2D rectangular assignment algorithms".
    """
    aval = typeof(fnp.asarray(cost_matrix))
    if aval.ndim != 2:
        raise ShapeError(
            f"hungarian_algorithm: cost_matrix must be float[n, m], got {aval}"
        )
    if dtypes.is_complex(aval.dtype):
        raise DtypeError(
            f"hungarian_algorithm: cost_matrix must be real numbers, got {aval}"
        )
    kind = aval.dtype if dtypes.is_floating(aval.dtype) else "float32"
    costs = fnp.astype(lax.stop_gradient(fnp.asarray(cost_matrix)), kind)
    if aval.shape[0] <= aval.shape[1]:
        return fnp.arange(aval.shape[0], dtype="int32"), _columns(costs)
    rows = _columns(fnp.transpose(costs))
    order = fnp.argsort(rows)
    return rows[order], fnp.astype(order, "int32")


def _columns(costs: Array) -> Array:
    """Returns the column of each row of a matrix with at least as many columns."""
    n, m = costs.shape
    if n == 0:
        return fnp.zeros(0, "int32")
    places = fnp.arange(m, dtype="int32")

    def add_row(row: Any, carry: Any) -> Any:
        """Assigns one more row, by the shortest path to a free column."""
        u, v, row_of, column_of = carry

        def visit(search: Any) -> Any:
            i, _, lowest, length, before, seen_rows, seen = search
            seen_rows = seen_rows.at[i].set(True)
            reduced = fnp.subtract(fnp.subtract(costs[i], u[i]), v)
            candidate = fnp.add(lowest, reduced)
            nearer = fnp.logical_and(~seen, fnp.less(candidate, length))
            length = fnp.where(nearer, candidate, length)
            before = fnp.where(nearer, i, before)
            left = fnp.where(seen, fnp.inf, length)
            # If no remaining length is finite, choose a column that is not seen.
            left = fnp.where(~seen & ~fnp.isfinite(left), fnp.finfo(v.dtype).max, left)
            nearest = fnp.astype(fnp.argmin(left), "int32")
            seen = seen.at[nearest].set(True)
            at = length[nearest]
            return row_of[nearest], nearest, at, length, before, seen_rows, seen

        start = (
            row,
            fnp.asarray(0, "int32"),
            fnp.zeros((), v.dtype),
            fnp.full(m, fnp.inf, v.dtype),
            fnp.full(m, row, "int32"),
            fnp.zeros(n, bool),
            fnp.zeros(m, bool),
        )
        _, last, lowest, length, before, seen_rows, seen = lax.while_loop(
            lambda search: fnp.greater_equal(search[0], 0), visit, start
        )
        # Update the duals of the rows and columns on the path.
        entry = fnp.where(fnp.arange(n) == row, 0, length[fnp.maximum(column_of, 0)])
        u = fnp.where(seen_rows, fnp.add(u, fnp.subtract(lowest, entry)), u)
        inner = seen & (places != last)
        v = fnp.where(inner, fnp.subtract(v, fnp.subtract(lowest, length)), v)

        def augment(path: Any) -> Any:
            j, _, row_of, column_of = path
            i = before[j]
            following = column_of[i]
            return following, i, row_of.at[j].set(i), column_of.at[i].set(j)

        _, _, row_of, column_of = lax.while_loop(
            lambda path: fnp.not_equal(path[1], row),
            augment,
            (last, fnp.asarray(-1, "int32"), row_of, column_of),
        )
        return u, v, row_of, column_of

    kept = (
        fnp.zeros(n, costs.dtype),
        fnp.zeros(m, costs.dtype),
        fnp.full(m, -1, "int32"),
        fnp.full(n, -1, "int32"),
    )

    def body(row: Any, carry: Any) -> Any:
        return add_row(fnp.astype(row, "int32"), carry)

    columns: Array = lax.fori_loop(0, n, body, kept)[3]
    return columns


_public(globals(), __all__)
