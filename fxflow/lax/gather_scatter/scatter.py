"""Scatter: slices of an array written or combined at computed indices.

Each primitive with its derivative, then the functions users call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.docs import Completes, shared
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Dual, Values, Zero, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_at_least
from fxflow.lax import _extrema_host
from fxflow.lax.comparison import eq
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import iota
from fxflow.lax.elementwise import add, div, neg
from fxflow.lax.families import ADDED, MOVED, NUMERIC, ORDERED
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.scatter_family import (
    Scattering,
    combine_text,
    kept_where,
    read_back,
    scatter_params,
    scatter_text,
    scattered_on_host,
)
from fxflow.lax.keys import check, map_key_data
from fxflow.lax.reshaping import reshape

F = TypeVar("F", bound=Callable[..., Any])
#: Elements that are counted from 1 in 32 bits.
MOST = 2**31 - 2


@register
class ScatterAdd(Scattering):
    """Adds updates to slices. dtypes: numeric; integer indices. StableHLO: scatter."""

    name = "scatter_add"
    linear_in_inexact = True
    host_kinds = ADDED
    kinds = NUMERIC
    combiner = "stablehlo.add"
    ufunc = np.add

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`scatter`; for complex numbers of 128 bits on GPU one for each part."""
        aval, index_aval, update_aval = ctx.avals_in
        if ctx.platform != "gpu" or dtypes.bits(aval.dtype) <= 64:
            return super().lower(ctx, *operands, **params)
        # GPUs have no atomic operation on 128 bits.
        x, indices, updates = operands
        real = dtypes.to_real(aval.dtype)
        x_aval, u_aval = aval.update(dtype=real), update_aval.update(dtype=real)
        avals = (x_aval, index_aval, u_aval)
        combine = combine_text(self.combiner, real)
        parts = []
        for side in ("real", "imag"):
            old, new = (
                ctx.emit(f"stablehlo.{side} {n} : ({a.mlir}) -> {b.mlir}")
                for n, a, b in ((x, aval, x_aval), (updates, update_aval, u_aval))
            )
            parts.append(
                scatter_text(ctx, (old, indices, new), avals, combine, **params)
            )
        return ctx.emit(
            f"stablehlo.complex {parts[0]}, {parts[1]} : {ctx.avals_out[0].mlir}"
        )

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangents of the updates added to that of the array."""
        x, indices, updates = primals
        tx, _, tu = tangents
        out = self.bind(x, indices, updates, **params)
        if type(tu) is Zero:
            return out, tx
        return out, self.bind(arith.instantiate(tx), indices, tu, **params)

    def transpose(
        self, cotangent: Any, x: Any, indices: Any, updates: Any, **params: Any
    ) -> Values:
        """The cotangent itself, and where the updates went."""
        ct_x = cotangent if type(x) is Var else None
        ct_updates = None
        if type(updates) is Var:
            ct_updates = read_back(params, cotangent, indices, updates.aval.shape)
        return [ct_x, None, ct_updates]


def sum_at(params: dict[str, Any], aval: Aval, indices: Any, updates: Any) -> Any:
    """Returns zeros of a type with the updates added at their indices."""
    return ScatterAdd.bind(arith.zeros(aval), indices, updates, **params)


@register
class Scatter(Scattering):
    """Writes slices. All dtypes; integer indices. StableHLO: scatter."""

    name = "scatter"
    host_kinds = MOVED

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
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
        wide = np.dtype(np.int32 if is_at_least(MOST, count) else np.int64)
        numbers = add(iota(wide, count), arith.constant(1, wide))
        numbers = reshape(numbers, shape)
        blank = arith.zeros(Aval(typeof(x).shape, wide))
        written = self.bind(blank, indices, numbers, **params)
        won = eq(read_back(params, written, indices, shape), numbers)
        kept = tx
        if type(tx) is not Zero:
            zeros = arith.zeros(Aval(shape, aval.dtype))
            kept = self.bind(tx, indices, zeros, **params)
        return out, arith.add(kept, sum_at(params, aval, indices, kept_where(won, tu)))

    def transpose(
        self, cotangent: Any, x: Any, indices: Any, updates: Any, **params: Any
    ) -> Values:
        """The cotangent but where it was written, and what was written."""
        aval = updates.aval if type(updates) is Var else typeof(updates)
        ct_x = ct_updates = None
        if type(x) is Var:
            zeros = arith.zeros(Aval(aval.shape, typeof(cotangent).dtype))
            ct_x = self.bind(cotangent, indices, zeros, **params)
        if type(updates) is Var:
            ct_updates = read_back(params, cotangent, indices, aval.shape)
        return [ct_x, None, ct_updates]


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

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
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


#: Names of those for which the order of their updates is nothing.
COMMUTING = frozenset({"scatter_add", "scatter_mul", "scatter_min", "scatter_max"})


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
    """Writes slices of an array at computed indices.

    Args:
      operand: array of any dtype.
      scatter_indices: `int[..., n]`: index vectors along the last axis.
      updates: array of that dtype: one slice for each index vector.
      dimension_numbers: how the axes correspond.
      indices_are_sorted: a promise that index vectors come in order.
      unique_indices: a promise that no two slices coincide or overlap; it makes the
        derivative cheaper.
      mode: what happens to an out-of-bounds slice: `"clip"` clamps it, `"drop"` (the
        default) drops it, `"promise_in_bounds"` says there is none.

    Returns:
      Array of the type of `operand`. Where indices coincide one of the updates wins, on
      the CPU the last one.

    Raises:
      ShapeError, AxisError: the shapes and dimension numbers are inconsistent.
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
    if dtypes.is_key(aval.dtype):
        numbers: ScatterDimensionNumbers = dimension_numbers
        check(Scatter, aval, typeof(scatter_indices), typeof(updates), **params)
        ndim = typeof(updates).ndim
        last = range(ndim, ndim + len(aval.dtype.suffix))
        params["dimension_numbers"] = replace(
            numbers, update_window_dims=(*numbers.update_window_dims, *last)
        )
        keys: Array = map_key_data(
            lambda w, u: Scatter.bind(w, scatter_indices, u, **params), operand, updates
        )
        return keys
    return Scatter.bind(operand, scatter_indices, updates, **params)


class CombiningScatter(Protocol):
    """The signature of the scatters that combine slices with updates."""

    def __call__(  # noqa: D102
        self,
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array: ...


def _docs(kinds: str, others: str) -> Completes:
    return shared(f"""
        Args:
          operand: {kinds} array.
          scatter_indices: see `scatter`.
          updates: array of the same dtype: one slice for each index vector.
          dimension_numbers: how the axes correspond.
          indices_are_sorted: see `scatter`.
          unique_indices: see `scatter`.
          mode: see `scatter`.

        Raises:
          ShapeError, AxisError: shapes and dimension numbers do not fit together.
          DtypeError: dtypes differ, are {others}, or indices are not integers.
          ArgumentError: unknown mode.

        Source: StableHLO `scatter`.
    """)


of_numbers: Completes = _docs("numeric", "not numeric")
of_ordered: Completes = _docs("real, integer or boolean", "complex")


def combining(
    primitive: type[Scattering], docs: Callable[[CombiningScatter], CombiningScatter]
) -> Callable[[Callable[[Any], Any]], CombiningScatter]:
    """Makes a scatter of what is done to its updates first, and of its docstring.

    Args:
      primitive: that combines.
      docs: completes the docstring.
    """

    def declare(prepare: Callable[[Any], Any]) -> CombiningScatter:
        name = prepare.__name__

        def function(
            operand: Any,
            scatter_indices: Any,
            updates: Any,
            dimension_numbers: ScatterDimensionNumbers,
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None,
        ) -> Array:
            params = scatter_params(
                name, dimension_numbers, indices_are_sorted, unique_indices, mode
            )
            new = prepare(updates)
            return primitive.bind(operand, scatter_indices, new, **params)

        function.__name__ = function.__qualname__ = name
        function.__doc__ = prepare.__doc__
        # Messages name the function that the user called by its code.
        function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
        return docs(function)

    return declare


@combining(ScatterAdd, of_numbers)
def scatter_add(updates: Any) -> Any:
    """Adds updates to slices of an array at computed indices.

    Returns:
      Array of the type of `operand`; where indices coincide all updates are added.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.zeros(3, "i4"), np.array([[2], [2]])
      >>> scatter_add(x, at, np.array([5, 6], "i4"), numbers)
      Array([ 0,  0, 11], dtype=int32)
    """
    return updates


@combining(ScatterAdd, of_numbers)
def scatter_sub(updates: Any) -> Any:
    """Subtracts updates from slices of an array at computed indices.

    Returns:
      Array of the type of `operand`; where indices coincide all updates are subtracted.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> scatter_sub(np.zeros(2, "i4"), np.array([[1]]), np.ones(1, "i4"), numbers)
      Array([ 0, -1], dtype=int32)
    """
    return neg(updates)  # x - u is x + (-u) exactly, for wrapping integers as well


@combining(ScatterMin, of_ordered)
def scatter_min(updates: Any) -> Any:
    """Keeps the smaller of slices of an array and updates at computed indices.

    Returns:
      Array of the type of `operand`. Its derivative is shared equally among what is
      equal to the smallest.

    Special cases:
      nan wherever the array or one of the updates there is nan.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.ones(2, "i4"), np.array([[0], [0]])
      >>> scatter_min(x, at, np.array([2, -3], "i4"), numbers)
      Array([-3,  1], dtype=int32)
    """
    return updates


@combining(ScatterMax, of_ordered)
def scatter_max(updates: Any) -> Any:
    """Keeps the larger of slices of an array and updates at computed indices.

    Returns:
      Array of the type of `operand`. Its derivative is shared equally among what is
      equal to the largest.

    Special cases:
      nan wherever the array or one of the updates there is nan.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.ones(2, "i4"), np.array([[0], [0]])
      >>> scatter_max(x, at, np.array([2, -3], "i4"), numbers)
      Array([2, 1], dtype=int32)
    """
    return updates
