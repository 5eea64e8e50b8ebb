"""Products at computed places: `scatter_mul`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays.array import Array
from fxflow.core.arrays.convert import typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero, register
from fxflow.lax.bitwise import bitwise_not
from fxflow.lax.comparison import eq
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import iota
from fxflow.lax.elementwise import add, mul
from fxflow.lax.families import NUMERIC
from fxflow.lax.gather import take_along
from fxflow.lax.places import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.recurrence import linear_recurrence, shifted
from fxflow.lax.reshaping import reshape
from fxflow.lax.scatter_add import sum_at
from fxflow.lax.scattering import (
    Scattering,
    combined,
    kept_where,
    read_back,
)
from fxflow.lax.sort import Sort


@register
class ScatterMul(Scattering):
    """Multiplies slices by updates. dtypes: numeric. StableHLO: scatter."""

    name = "scatter_mul"
    kinds = NUMERIC
    combiner = "stablehlo.multiply"
    ufunc = np.multiply

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """The product rule; each update by the product of everything else there."""
        x, indices, updates = primals
        tx, _, tu = tangents
        out = self.bind(x, indices, updates, **params)
        total = None
        if type(tx) is not Zero:
            total = self.bind(tx, indices, updates, **params)
        if type(tu) is not Zero:
            others = _others(params, x, indices, updates)
            aval = typeof(out).tangent()
            total = arith.add(total, sum_at(params, aval, indices, mul(tu, others)))
        return out, Zero(typeof(out).tangent()) if total is None else total

    def transpose(
        self, cotangent: Any, x: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        """The same product, of the cotangent."""
        return [self.bind(cotangent, indices, updates, **params), None, None]


def _others(params: dict[str, Any], x: Any, indices: Any, updates: Any) -> Any:
    """Returns for each update the product of the array and all other updates there.

    Dividing the whole product by the update would fail for zeros. So the updates are
    put in the order of their places, and the products of those before and of those
    behind, at the same place, are multiplied: a polynomial, whose derivatives of any
    order are exact.
    """
    shape = typeof(updates).shape
    there = read_back(params, x, indices, shape)
    count = typeof(updates).size
    if params["unique_indices"] or not count:
        return there
    aval = typeof(x)
    wide = np.dtype(np.int32 if max(count, aval.size) < 2**31 - 1 else np.int64)
    # Counted from 1: what is left out reads 0.
    numbers = add(iota(wide, aval.size), arith.constant(1, wide))
    places = read_back(params, reshape(numbers, aval.shape), indices, shape)
    places, order = Sort.bind(
        reshape(places, (count,)),
        iota(wide, count),
        dimension=0,
        is_stable=True,
        num_keys=1,
    )
    ordered = take_along(reshape(updates, (count,)), order, 0)
    product: Any = None
    for reverse in (False, True):
        same = eq(places, shifted(places, 0, reverse, -1))
        factor = kept_where(same, shifted(ordered, 0, reverse, 1))
        first = convert_element_type(bitwise_not(same), typeof(updates).dtype)
        side = linear_recurrence(factor, first, 0, reverse)
        product = side if product is None else mul(product, side)
    _, product = Sort.bind(order, product, dimension=0, is_stable=False, num_keys=1)
    return mul(there, reshape(product, shape))


# -- public ----------------------------------------------------------------------------


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Multiplies slices of an array by updates at computed places.

    Args:
      operand: numeric array.
      scatter_indices: see `scatter`.
      updates: array of the same dtype: one slice for each index vector.
      dimension_numbers: how the axes correspond.
      indices_are_sorted: see `scatter`.
      unique_indices: see `scatter`.
      mode: see `scatter`.

    Returns:
      Array of the type of `operand`; where places coincide all updates are multiplied.

    Raises:
      ShapeError, AxisError: shapes and dimension numbers do not fit together.
      DtypeError: dtypes differ, are not numeric, or indices are not integers.
      ArgumentError: unknown mode.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.ones(2, "i4"), np.array([[1], [1]])
      >>> scatter_mul(x, at, np.array([2, 3], "i4"), numbers)
      Array([1, 6], dtype=int32)

    Source: StableHLO `scatter`.
    """
    return combined(
        "scatter_mul",
        ScatterMul,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )
