"""Scatter: slices of an array written, or combined with it, at many computed places.

`scatter` writes; `scatter_add`, `scatter_mul`, `scatter_min` and `scatter_max` combine
with what is there. Where places coincide, all updates take part; of several that are
written, one wins (on the CPU the last one), and the derivative follows that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core import arith, dtypes
from fxflow.core.array import Array
from fxflow.core.aval import Aval
from fxflow.core.batching import materialize
from fxflow.core.convert import typeof
from fxflow.core.errors import ArgumentError, DtypeError, ShapeError
from fxflow.core.graph import Var
from fxflow.core.primitive import Primitive, Zero, register
from fxflow.lax.arguments import check, is_words, on_words
from fxflow.lax.comparison import eq
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import iota
from fxflow.lax.elementwise import add, div, mul, neg
from fxflow.lax.families import ANY, NUMERIC, ORDERED, Kinds, require_kind
from fxflow.lax.gather import Gather
from fxflow.lax.places import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    Window,
    bounds_text,
    require_axes,
    require_batching,
    require_indices,
    wide_indices,
)
from fxflow.lax.select import select
from fxflow.lax.shape import reshape


class Scattering(Primitive):
    """Combines slices of an array with updates.

    Attributes:
      kinds: dtypes it takes.
      combiner: StableHLO's operation on (old, update), or "" for the update itself.
      ufunc: NumPy's, or None for the update itself.
    """

    kinds: ClassVar[Kinds] = ANY
    combiner: ClassVar[str] = ""
    ufunc: ClassVar[np.ufunc | None] = None

    def abstract(
        self,
        x: Aval,
        indices: Aval,
        updates: Aval,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
    ) -> Aval:
        """The type of the array."""
        name = self.name
        if self.kinds is not ANY:
            require_kind(name, x, self.kinds)
        if x.dtype != updates.dtype:
            raise DtypeError(
                f"{name}: operand {x} and updates {updates} must have one dtype: "
                "convert one with .astype(...)"
            )
        check_scatter(name, x, indices, updates, dimension_numbers)
        return Aval(x.shape, x.dtype, x.weak_type and updates.weak_type)

    def lower(
        self,
        ctx: Any,
        x: str,
        indices: str,
        updates: str,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
    ) -> str:
        """`scatter`, which leaves out slices that do not lie inside."""
        aval, index_aval, update_aval = ctx.avals_in

        def combine(inner: Any, names: list[str]) -> Sequence[str]:
            if not self.combiner:
                return names[1:]
            mlir = aval.update(shape=()).mlir
            return [inner.emit(f"{self.combiner} {', '.join(names)} : {mlir}")]

        return scatter_text(
            ctx,
            (x, indices, updates),
            (aval, index_aval, update_aval),
            combine,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
            mode,
        )

    def evaluate(self, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
        """NumPy's assignment at, or `ufunc.at`."""
        return self.host_function(**params)(x, indices, updates)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """A copy of the array, changed at the positions of the updates."""
        numbers: ScatterDimensionNumbers = params["dimension_numbers"]
        clip = params["mode"] is GatherScatterMode.CLIP
        ufunc = self.ufunc

        def call(x: Any, indices: Any, updates: Any) -> Any:
            out = np.array(x)
            index, values = scatter_positions(numbers, x, indices, updates, clip)
            if not values.size:
                return out
            # `at` needs an axis to index.
            target = out if out.ndim else out.reshape(1)
            if ufunc is None:
                target[index] = values
            else:
                ufunc.at(target, index, values)
            return out

        return call

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, bool]:
        """One more axis of the slices, or one batching dimension."""
        x, indices, updates = args
        params["dimension_numbers"] = params["dimension_numbers"].batched(mapped[1])
        if mapped[1]:
            params["indices_are_sorted"] = False
        out = self.bind(
            materialize(x, size, mapped[0]),
            indices,
            materialize(updates, size, mapped[2]),
            **params,
        )
        return out, True


def check_scatter(
    name: str,
    x: Aval,
    indices: Aval,
    updates: Aval,
    numbers: ScatterDimensionNumbers,
) -> None:
    """Checks that shapes and dimension numbers fit together.

    Raises:
      ShapeError, AxisError, DtypeError: they do not.
    """
    require_indices(name, indices, numbers.scatter_dims_to_operand_dims)
    require_axes(
        name,
        "scatter_dims_to_operand_dims",
        numbers.scatter_dims_to_operand_dims,
        x.ndim,
        increasing=False,
    )
    require_axes(
        name,
        "inserted_window_dims",
        numbers.inserted_window_dims,
        x.ndim,
        increasing=True,
    )
    require_axes(
        name,
        "update_window_dims",
        numbers.update_window_dims,
        updates.ndim,
        increasing=True,
    )
    require_batching(
        name,
        x,
        indices,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
        (*numbers.inserted_window_dims, *numbers.scatter_dims_to_operand_dims),
    )
    window = len(numbers.update_window_dims)
    dropped = len(numbers.inserted_window_dims) + len(numbers.operand_batching_dims)
    if window + dropped != x.ndim:
        raise ShapeError(
            f"{name}: each axis of {x} must be one of update_window_dims (there are "
            f"{window}), inserted_window_dims or operand_batching_dims (there are "
            f"{dropped})"
        )
    batch = tuple(
        n for d, n in enumerate(updates.shape) if d not in numbers.update_window_dims
    )
    if batch != indices.shape[:-1]:
        raise ShapeError(
            f"{name}: updates {updates} need the batch axes {indices.shape[:-1]} of "
            f"the indices {indices} apart from update_window_dims "
            f"{numbers.update_window_dims}, got {batch}"
        )
    sizes = numbers.window_sizes(x.ndim, updates.shape)
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    if any(
        k > n
        for d, (k, n) in enumerate(zip(sizes, x.shape, strict=True))
        if d not in gone
    ):
        raise ShapeError(
            f"{name}: slices of {sizes} (from updates {updates}) are larger than the "
            f"operand {x}"
        )


def scatter_text(
    ctx: Any,
    operands: Sequence[str],
    avals: Sequence[Aval],
    combine: Callable[[Any, list[str]], Sequence[str]],
    numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> str:
    """Writes a scatter with the given combination of (old, update)."""
    x, indices, updates = operands
    aval, index_aval, update_aval = avals
    if not (aval.size and update_aval.size):
        return x
    if not aval.ndim:
        # XLA's simplifier fails on a scatter into a number: make it a vector of one.
        line = aval.update(shape=(1,))
        at = Aval((*update_aval.shape, 1), np.dtype(np.int32))
        zeros = ctx.constant(np.int32(0), at.update(shape=()))
        out = scatter_text(
            ctx,
            (
                ctx.emit(f"stablehlo.reshape {x} : ({aval.mlir}) -> {line.mlir}"),
                ctx.broadcast(zeros, at.update(shape=()), at.shape),
                updates,
            ),
            (line, at, update_aval),
            combine,
            ScatterDimensionNumbers((), (0,), (0,)),
            indices_are_sorted,
            unique_indices,
            mode,
        )
        return str(ctx.emit(f"stablehlo.reshape {out} : ({line.mlir}) -> {aval.mlir}"))
    indices, index_aval = wide_indices(ctx, indices, index_aval)
    components = numbers.scatter_dims_to_operand_dims
    if mode is GatherScatterMode.CLIP and components:
        sizes = numbers.window_sizes(aval.ndim, update_aval.shape)
        low, high = bounds_text(
            ctx, index_aval, [aval.shape[d] - sizes[d] for d in components]
        )
        indices = ctx.emit(
            f"stablehlo.clamp {low}, {indices}, {high} : {index_aval.mlir}"
        )
    scalar = Aval((), aval.dtype)
    region = ctx.region([scalar, scalar], combine, [scalar])
    flags = [
        "true" if flag else "false" for flag in (indices_are_sorted, unique_indices)
    ]
    return str(
        ctx.emit(
            f'"stablehlo.scatter"({x}, {indices}, {updates}) <{{indices_are_sorted = '
            f"{flags[0]}, scatter_dimension_numbers = "
            f"{numbers.hlo(index_aval.ndim - 1)}, unique_indices = {flags[1]}}}> "
            f"({region}) : ({aval.mlir}, {index_aval.mlir}, {update_aval.mlir}) -> "
            f"{aval.mlir}"
        )
    )


def scatter_positions(
    numbers: ScatterDimensionNumbers, x: Any, indices: Any, updates: Any, clip: bool
) -> tuple[tuple[Any, ...], Any]:
    """Returns an index into `x`, and the updates that go there in the same order.

    Args:
      numbers: how the axes correspond.
      x: NumPy array.
      indices: index vectors.
      updates: NumPy array.
      clip: whether slices are moved inside; else those that are not are left out.
    """
    sizes = numbers.window_sizes(x.ndim, updates.shape)
    window = Window(
        x.ndim,
        sizes,
        numbers.scatter_dims_to_operand_dims,
        numbers.inserted_window_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )
    inner = numbers.update_window_dims
    outer = [d for d in range(updates.ndim) if d not in inner]
    values = updates.transpose((*outer, *inner))
    if not values.size or not x.size:
        return (), values[:0] if values.ndim else values[None][:0]
    index, inside = window.positions(x.shape, indices, clip)
    if not numbers.scatter_dims_to_operand_dims:
        # No index says how many slices there are.
        index = index or (np.zeros((), np.int64),)
        index = tuple(np.broadcast_to(i, values.shape) for i in index)
    if inside is not None and not inside.all():
        wide = np.broadcast_arrays(*index, values)
        *picked, values = (part[inside] for part in wide)
        index = tuple(picked)
    return index, values


def _read(params: dict[str, Any], x: Any, indices: Any, updates_shape: Any) -> Any:
    """Returns what lies where the updates go, zero where they go nowhere."""
    numbers: ScatterDimensionNumbers = params["dimension_numbers"]
    mode = params["mode"]
    aval = typeof(x)
    sizes = numbers.window_sizes(aval.ndim, updates_shape)
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return Gather.bind(
        x,
        indices,
        dimension_numbers=numbers.gather(),
        slice_sizes=tuple(
            min(k, n) if d in gone else k
            for d, (k, n) in enumerate(zip(sizes, aval.shape, strict=True))
        ),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=mode,
        fill_value=0 if mode is GatherScatterMode.FILL_OR_DROP else None,
    )


def _where(mask: Any, value: Any) -> Any:
    """Returns a value where the mask is true, zero elsewhere."""
    return select(mask, value, arith.constant(0, typeof(value).dtype))


def _sum_at(params: dict[str, Any], aval: Aval, indices: Any, updates: Any) -> Any:
    return ScatterAdd.bind(arith.zeros(aval), indices, updates, **params)


# -- write -----------------------------------------------------------------------------


@register
class Scatter(Scattering):
    """Writes slices. All dtypes; integer indices. StableHLO: scatter."""

    name = "scatter"

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
        won = eq(_read(params, written, indices, shape), numbers)
        if type(tx) is Zero:
            kept = tx
        else:
            kept = self.bind(
                tx, indices, arith.zeros(Aval(shape, aval.dtype)), **params
            )
        return out, arith.add(kept, _sum_at(params, aval, indices, _where(won, tu)))

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
            ct_updates = _read(params, cotangent, indices, aval.shape)
        return [ct_x, None, ct_updates]


# -- combine ---------------------------------------------------------------------------


@register
class ScatterAdd(Scattering):
    """Adds updates to slices. dtypes: numeric; integer indices. StableHLO: scatter."""

    name = "scatter_add"
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
            ct_updates = _read(params, cotangent, indices, updates.aval.shape)
        return [ct_x, None, ct_updates]


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
            total = arith.add(total, _sum_at(params, aval, indices, mul(tu, others)))
        return out, Zero(typeof(out).tangent()) if total is None else total

    def transpose(
        self, cotangent: Any, x: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        """The same product, of the cotangent."""
        return [self.bind(cotangent, indices, updates, **params), None, None]


def _others(params: dict[str, Any], x: Any, indices: Any, updates: Any) -> Any:
    """Returns for each update the product of the array and all other updates there.

    Dividing the whole product by the update would fail for zeros: these are left out of
    the product and counted instead.
    """
    shape = typeof(updates).shape
    if params["unique_indices"]:
        return _read(params, x, indices, shape)
    dtype = typeof(updates).dtype
    is_zero = eq(updates, arith.constant(0, dtype))
    nonzero = select(is_zero, arith.constant(1, dtype), updates)
    product = ScatterMul.bind(x, indices, nonzero, **params)
    there = _read(params, product, indices, shape)
    count_aval = Aval(typeof(x).shape, np.dtype(np.int32))
    hits = convert_element_type(is_zero, count_aval.dtype)
    count = _read(params, _sum_at(params, count_aval, indices, hits), indices, shape)
    none_else = eq(count, hits)
    return _where(none_else, div(there, nonzero))


class _Extremum(Scattering):
    """Keeps the smaller or the larger of slices and updates."""

    kinds = ORDERED

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
        chosen = eq(_read(params, out, indices, shape), updates)
        # Where nothing is equal (nan), every count is zero and the tangent is 0 / 0.
        count = ScatterAdd.bind(
            convert_element_type(kept, aval.dtype),
            indices,
            convert_element_type(chosen, aval.dtype),
            **params,
        )
        total: Any = None
        if type(tx) is not Zero:
            total = _where(kept, tx)
        if type(tu) is not Zero:
            total = arith.add(total, _sum_at(params, aval, indices, _where(chosen, tu)))
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


def scatter_params(
    name: str,
    dimension_numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> dict[str, Any]:
    """Returns the parameters of a scatter, checked.

    Raises:
      ArgumentError: not dimension numbers, or an unknown mode.
    """
    if not isinstance(dimension_numbers, ScatterDimensionNumbers):
        raise ArgumentError(
            f"{name}: dimension_numbers must be ScatterDimensionNumbers, got "
            f"{dimension_numbers!r}"
        )
    return {
        "dimension_numbers": dimension_numbers,
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": GatherScatterMode.from_any(mode),
    }


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
    params = scatter_params(
        "scatter_add", dimension_numbers, indices_are_sorted, unique_indices, mode
    )
    result: Array = ScatterAdd.bind(operand, scatter_indices, updates, **params)
    return result


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
    params = scatter_params(
        "scatter_sub", dimension_numbers, indices_are_sorted, unique_indices, mode
    )
    # x - u is x + (-u) exactly, for wrapping integers as well.
    result: Array = ScatterAdd.bind(operand, scatter_indices, neg(updates), **params)
    return result


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
    params = scatter_params(
        "scatter_mul", dimension_numbers, indices_are_sorted, unique_indices, mode
    )
    result: Array = ScatterMul.bind(operand, scatter_indices, updates, **params)
    return result


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
    params = scatter_params(
        "scatter_min", dimension_numbers, indices_are_sorted, unique_indices, mode
    )
    result: Array = ScatterMin.bind(operand, scatter_indices, updates, **params)
    return result


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
    params = scatter_params(
        "scatter_max", dimension_numbers, indices_are_sorted, unique_indices, mode
    )
    result: Array = ScatterMax.bind(operand, scatter_indices, updates, **params)
    return result
