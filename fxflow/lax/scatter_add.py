"""Sums at computed places: `scatter_add` and `scatter_sub`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Zero, register
from fxflow.lax.elementwise import neg
from fxflow.lax.families import ADDED, NUMERIC
from fxflow.lax.places import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.scattering import (
    Scattering,
    combined,
    read_back,
    scatter_text,
)


@register
class ScatterAdd(Scattering):
    """Adds updates to slices. dtypes: numeric; integer indices. StableHLO: scatter."""

    name = "scatter_add"
    host_kinds = ADDED
    kinds = NUMERIC
    combiner = "stablehlo.add"
    ufunc = np.add

    def lower(self, ctx: Any, *operands: str, **params: Any) -> str:
        """`scatter`; for complex numbers of 128 bits on GPU one for each part."""
        aval, index_aval, update_aval = ctx.avals_in
        if ctx.platform != "gpu" or dtypes.bits(aval.dtype) <= 64:
            return super().lower(ctx, *operands, **params)
        # GPUs have no atomic operation on 128 bits.
        part = dtypes.to_real(aval.dtype)
        x, indices, updates = operands
        part_avals = (
            aval.update(dtype=part),
            index_aval,
            update_aval.update(dtype=part),
        )

        def combine(inner: Any, names: list[str]) -> Sequence[str]:
            mlir = Aval((), part).mlir
            return [inner.emit(f"stablehlo.add {', '.join(names)} : {mlir}")]

        parts = []
        for side in ("real", "imag"):
            halves = [
                ctx.emit(f"stablehlo.{side} {n} : ({a.mlir}) -> {b.mlir}")
                for n, a, b in (
                    (x, aval, part_avals[0]),
                    (updates, update_aval, part_avals[2]),
                )
            ]
            parts.append(
                scatter_text(
                    ctx,
                    (halves[0], indices, halves[1]),
                    part_avals,
                    combine,
                    params["dimension_numbers"],
                    params["indices_are_sorted"],
                    params["unique_indices"],
                    params["mode"],
                )
            )
        return str(
            ctx.emit(
                f"stablehlo.complex {parts[0]}, {parts[1]} : {ctx.avals_out[0].mlir}"
            )
        )

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """The tangents of the updates added to that of the array."""
        x, indices, updates = primals
        tx, _, tu = tangents
        out = self.bind(x, indices, updates, **params)
        if type(tu) is Zero:
            return out, tx
        return out, self.bind(arith.instantiate(tx), indices, tu, **params)

    def transpose(
        self, cotangent: Any, x: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        """The cotangent itself, and where the updates went."""
        ct_x = cotangent if type(x) is Var else None
        ct_updates = None
        if type(updates) is Var:
            ct_updates = read_back(params, cotangent, indices, updates.aval.shape)
        return [ct_x, None, ct_updates]


def sum_at(params: dict[str, Any], aval: Aval, indices: Any, updates: Any) -> Any:
    """Returns zeros of a type with the updates added at their places."""
    return ScatterAdd.bind(arith.zeros(aval), indices, updates, **params)


# -- public ----------------------------------------------------------------------------


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Adds updates to slices of an array at computed places.

    Args:
      operand: numeric array.
      scatter_indices: see `scatter`.
      updates: array of the same dtype: one slice for each index vector.
      dimension_numbers: how the axes correspond.
      indices_are_sorted: see `scatter`.
      unique_indices: see `scatter`.
      mode: see `scatter`.

    Returns:
      Array of the type of `operand`; where places coincide all updates are added.

    Raises:
      ShapeError, AxisError: shapes and dimension numbers do not fit together.
      DtypeError: dtypes differ, are not numeric, or indices are not integers.
      ArgumentError: unknown mode.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.zeros(3, "i4"), np.array([[2], [2]])
      >>> scatter_add(x, at, np.array([5, 6], "i4"), numbers)
      Array([ 0,  0, 11], dtype=int32)

    Source: StableHLO `scatter`.
    """
    return combined(
        "scatter_add",
        ScatterAdd,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Subtracts updates from slices of an array at computed places.

    Args:
      operand: numeric array.
      scatter_indices: see `scatter`.
      updates: array of the same dtype: one slice for each index vector.
      dimension_numbers: how the axes correspond.
      indices_are_sorted: see `scatter`.
      unique_indices: see `scatter`.
      mode: see `scatter`.

    Returns:
      Array of the type of `operand`; where places coincide all updates are subtracted.

    Raises:
      ShapeError, AxisError: shapes and dimension numbers do not fit together.
      DtypeError: dtypes differ, are not numeric, or indices are not integers.
      ArgumentError: unknown mode.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> scatter_sub(np.zeros(2, "i4"), np.array([[1]]), np.ones(1, "i4"), numbers)
      Array([ 0, -1], dtype=int32)

    Source: StableHLO `scatter`.
    """
    # x - u is x + (-u) exactly, for wrapping integers as well.
    return combined(
        "scatter_sub",
        ScatterAdd,
        operand,
        scatter_indices,
        neg(updates),
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )
