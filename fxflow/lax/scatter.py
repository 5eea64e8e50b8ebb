"""Scatter: slices of an array written at many computed places.

Where places coincide one of the updates wins (on the CPU the last one), and the
derivative follows that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays.array import Array
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import typeof
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Zero, register
from fxflow.lax.comparison import eq
from fxflow.lax.creation import iota
from fxflow.lax.elementwise import add
from fxflow.lax.families import MOVED
from fxflow.lax.keys import check, is_words, on_words
from fxflow.lax.places import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.reshaping import reshape
from fxflow.lax.scatter_add import sum_at
from fxflow.lax.scattering import (
    Scattering,
    kept_where,
    read_back,
    scatter_params,
)


@register
class Scatter(Scattering):
    """Writes slices. All dtypes; integer indices. StableHLO: scatter."""

    name = "scatter"
    host_kinds = MOVED

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """The tangents of what is left of the array and of the updates that won."""
        x, indices, updates = primals
        tx, _, tu = tangents
        out = self.bind(x, indices, updates, **params)
        aval = typeof(out).tangent()
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero(aval)
        if type(tu) is Zero or params["unique_indices"]:
            both = arith.instantiate(tx), indices, arith.instantiate(tu)
            return out, self.bind(*both, **params)
        # Number the elements, write the numbers, and see which are read back.
        shape = typeof(updates).shape
        count = typeof(updates).size
        wide = np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
        numbers = add(iota(wide, count), arith.constant(1, wide))
        numbers = reshape(numbers, shape)
        blank = arith.zeros(Aval(typeof(x).shape, wide))
        written = self.bind(blank, indices, numbers, **params)
        won = eq(read_back(params, written, indices, shape), numbers)
        if type(tx) is Zero:
            kept = tx
        else:
            kept = self.bind(
                tx, indices, arith.zeros(Aval(shape, aval.dtype)), **params
            )
        return out, arith.add(kept, sum_at(params, aval, indices, kept_where(won, tu)))

    def transpose(
        self, cotangent: Any, x: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        """The cotangent but where it was written, and what was written."""
        aval = updates.aval if type(updates) is Var else typeof(updates)
        ct_x = ct_updates = None
        if type(x) is Var:
            zeros = arith.zeros(Aval(aval.shape, typeof(cotangent).dtype))
            ct_x = self.bind(cotangent, indices, zeros, **params)
        if type(updates) is Var:
            ct_updates = read_back(params, cotangent, indices, aval.shape)
        return [ct_x, None, ct_updates]


# -- public ----------------------------------------------------------------------------


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Writes slices of an array at computed places.

    Args:
      operand: array of any dtype.
      scatter_indices: `int[..., n]`: index vectors along the last axis.
      updates: array of that dtype: one slice for each index vector.
      dimension_numbers: how the axes correspond.
      indices_are_sorted: a promise that index vectors come in order.
      unique_indices: a promise that no two slices coincide or overlap; it makes the
        derivative cheaper.
      mode: what happens to a slice that does not lie inside: `"clip"` moves it inside,
        `"drop"` (the default) leaves it out, `"promise_in_bounds"` says there is none.

    Returns:
      Array of the type of `operand`. Where places coincide one of the updates wins, on
      the CPU the last one.

    Raises:
      ShapeError, AxisError: shapes and dimension numbers do not fit together.
      DtypeError: dtypes differ, or indices are not integers.
      ArgumentError: unknown mode.

    Special cases:
      Negative indices do not count from the end: they lie outside.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.zeros(3, "i4"), np.array([[2], [9]])
      >>> scatter(x, at, np.array([5, 6], "i4"), numbers)
      Array([0, 0, 5], dtype=int32)

    Source: StableHLO `scatter`.
    """
    params = scatter_params(
        "scatter", dimension_numbers, indices_are_sorted, unique_indices, mode
    )
    aval = typeof(operand)
    if is_words(aval):
        numbers: ScatterDimensionNumbers = dimension_numbers
        check(Scatter, aval, typeof(scatter_indices), typeof(updates), **params)
        ndim, inner = typeof(updates).ndim, len(aval.dtype.suffix)
        params["dimension_numbers"] = ScatterDimensionNumbers(
            numbers.update_window_dims + tuple(range(ndim, ndim + inner)),
            numbers.inserted_window_dims,
            numbers.scatter_dims_to_operand_dims,
            numbers.operand_batching_dims,
            numbers.scatter_indices_batching_dims,
        )
        keys: Array = on_words(
            lambda w, u: Scatter.bind(w, scatter_indices, u, **params), operand, updates
        )
        return keys
    result: Array = Scatter.bind(operand, scatter_indices, updates, **params)
    return result
