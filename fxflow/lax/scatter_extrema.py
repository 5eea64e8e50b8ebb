"""Extrema at computed places: `scatter_min` and `scatter_max`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays.array import Array
from fxflow.core.arrays.convert import typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero, register
from fxflow.lax import _extrema_host
from fxflow.lax.comparison import eq
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.elementwise import div
from fxflow.lax.families import ORDERED
from fxflow.lax.places import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.scatter_add import ScatterAdd, sum_at
from fxflow.lax.scattering import (
    Scattering,
    combined,
    kept_where,
    read_back,
    scattered_on_host,
)


class _Extremum(Scattering):
    """Keeps the smaller or the larger of slices and updates."""

    kinds = ORDERED

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`ufunc.at`, and the right one of two zeros."""
        extrema = super().host_function(**params)
        any_at = scattered_on_host(np.logical_or, **params)
        larger = self.name == "scatter_max"

        def call(x: Any, indices: Any, updates: Any) -> Any:
            out = extrema(x, indices, updates)
            if not _extrema_host.may_hold_zeros(out):
                return out
            won = [_extrema_host.winners(v, larger) for v in (x, updates)]
            return _extrema_host.settled(out, any_at(won[0], indices, won[1]), larger)

        return call

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """The tangent of what was kept; the mean of them where several are equal."""
        x, indices, updates = primals
        tx, _, tu = tangents
        out = self.bind(x, indices, updates, **params)
        aval = typeof(out).tangent()
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero(aval)
        shape = typeof(updates).shape
        kept = eq(out, x)
        chosen = eq(read_back(params, out, indices, shape), updates)
        # Where nothing is equal (nan), every count is zero and the tangent is 0 / 0.
        count = ScatterAdd.bind(
            convert_element_type(kept, aval.dtype),
            indices,
            convert_element_type(chosen, aval.dtype),
            **params,
        )
        total: Any = None
        if type(tx) is not Zero:
            total = kept_where(kept, tx)
        if type(tu) is not Zero:
            total = arith.add(
                total, sum_at(params, aval, indices, kept_where(chosen, tu))
            )
        return out, div(total, count)


@register
class ScatterMin(_Extremum):
    """Keeps the smaller of slices and updates. dtypes: ordered. StableHLO: scatter."""

    name = "scatter_min"
    combiner = "stablehlo.minimum"
    ufunc = np.minimum


@register
class ScatterMax(_Extremum):
    """Keeps the larger of slices and updates. dtypes: ordered. StableHLO: scatter."""

    name = "scatter_max"
    combiner = "stablehlo.maximum"
    ufunc = np.maximum


# -- public ----------------------------------------------------------------------------


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Keeps the smaller of slices of an array and updates at computed places.

    Args:
      operand: real, integer or boolean array.
      scatter_indices: see `scatter`.
      updates: array of the same dtype: one slice for each index vector.
      dimension_numbers: how the axes correspond.
      indices_are_sorted: see `scatter`.
      unique_indices: see `scatter`.
      mode: see `scatter`.

    Returns:
      Array of the type of `operand`. Its derivative is shared equally among what is
      equal to the smallest.

    Raises:
      ShapeError, AxisError: shapes and dimension numbers do not fit together.
      DtypeError: dtypes differ, are complex, or indices are not integers.
      ArgumentError: unknown mode.

    Special cases:
      nan wherever the array or one of the updates there is nan.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.ones(2, "i4"), np.array([[0], [0]])
      >>> scatter_min(x, at, np.array([2, -3], "i4"), numbers)
      Array([-3,  1], dtype=int32)

    Source: StableHLO `scatter`.
    """
    return combined(
        "scatter_min",
        ScatterMin,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Keeps the larger of slices of an array and updates at computed places.

    Args:
      operand: real, integer or boolean array.
      scatter_indices: see `scatter`.
      updates: array of the same dtype: one slice for each index vector.
      dimension_numbers: how the axes correspond.
      indices_are_sorted: see `scatter`.
      unique_indices: see `scatter`.
      mode: see `scatter`.

    Returns:
      Array of the type of `operand`. Its derivative is shared equally among what is
      equal to the largest.

    Raises:
      ShapeError, AxisError: shapes and dimension numbers do not fit together.
      DtypeError: dtypes differ, are complex, or indices are not integers.
      ArgumentError: unknown mode.

    Special cases:
      nan wherever the array or one of the updates there is nan.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.ones(2, "i4"), np.array([[0], [0]])
      >>> scatter_max(x, at, np.array([2, -3], "i4"), numbers)
      Array([2, 1], dtype=int32)

    Source: StableHLO `scatter`.
    """
    return combined(
        "scatter_max",
        ScatterMax,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )
