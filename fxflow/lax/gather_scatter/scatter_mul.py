"""The scatter that multiplies, whose derivative needs a recurrence."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Dual, Values, Zero, register
from fxflow.core.sizes import is_at_least, larger
from fxflow.lax.bitwise import bitwise_not
from fxflow.lax.comparison import eq
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import iota
from fxflow.lax.elementwise import add, mul
from fxflow.lax.families import NUMERIC
from fxflow.lax.gather_scatter.gather import take_along
from fxflow.lax.gather_scatter.scatter import MOST, combining, of_numbers, sum_at
from fxflow.lax.gather_scatter.scatter_family import (
    Scattering,
    kept_where,
    read_back,
)
from fxflow.lax.padding import shifted
from fxflow.lax.recurrence import LinearRecurrence
from fxflow.lax.reshaping import reshape
from fxflow.lax.sort import Sort


@register
class ScatterMul(Scattering):
    """Multiplies slices by updates. dtypes: numeric. StableHLO: scatter."""

    name = "scatter_mul"
    kinds = NUMERIC
    combiner = "stablehlo.multiply"
    ufunc = np.multiply

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
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
    ) -> Values:
        """The same product, of the cotangent."""
        return [self.bind(cotangent, indices, updates, **params), None, None]


def _others(params: dict[str, Any], x: Any, indices: Any, updates: Any) -> Any:
    """Returns for each update the product of the array and all other updates there.

    Dividing the whole product by the update would fail for zeros. So the updates are
    sorted by the elements they go to, and the products of those before and of those
    behind, at the same element, are multiplied: a polynomial, whose derivatives of any
    order are exact.
    """
    shape = typeof(updates).shape
    there = read_back(params, x, indices, shape)
    count = typeof(updates).size
    if params["unique_indices"] or not count:
        return there
    aval = typeof(x)
    most = larger(count, aval.size)
    wide = np.dtype(np.int32 if is_at_least(MOST, most) else np.int64)
    # Counted from 1: what is left out reads 0.
    numbers = add(iota(wide, aval.size), arith.constant(1, wide))
    targets = read_back(params, reshape(numbers, aval.shape), indices, shape)
    targets, order = Sort.bind(
        reshape(targets, (count,)),
        iota(wide, count),
        dimension=0,
        is_stable=True,
        num_keys=1,
    )
    ordered = take_along(reshape(updates, (count,)), order, 0)
    product: Any = None
    for reverse in (False, True):
        same = eq(targets, shifted(targets, 0, reverse, -1))
        # y[k] = factor[k] y[k-1] + first[k] is the product of the updates before k of
        # the same element; it starts again at 1 with each element.
        factor = kept_where(same, shifted(ordered, 0, reverse, 1))
        first = convert_element_type(bitwise_not(same), typeof(updates).dtype)
        side = LinearRecurrence.bind(factor, first, axis=0, reverse=reverse)
        product = side if product is None else mul(product, side)
    _, product = Sort.bind(order, product, dimension=0, is_stable=False, num_keys=1)
    return mul(there, reshape(product, shape))


@combining(ScatterMul, of_numbers)
def scatter_mul(updates: Any) -> Any:
    """Multiplies slices of an array by updates at computed indices.

    Returns:
      Array of the type of `operand`; where indices coincide all updates are multiplied.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.ones(2, "i4"), np.array([[1], [1]])
      >>> scatter_mul(x, at, np.array([2, 3], "i4"), numbers)
      Array([1, 6], dtype=int32)
    """
    return updates
