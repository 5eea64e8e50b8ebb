"""Exchange of parts whose lengths are computed.

XLA has it for GPUs and TPUs. Elsewhere, and along the array axis of a `vmap`, every
part is exchanged at the length of the longest possible one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.batching import batch_flat
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, Zero, register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.collective_groups import (
    Collective,
    Groups,
    Names,
    Partition,
    group_length,
    index_in_group,
    names_given,
    partition,
    shown,
)
from fxflow.lax.collective_movement import AllToAll, at_index, index_along, rows
from fxflow.lax.comparison import ge, le, lt
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full
from fxflow.lax.elementwise import add, max, mul, sub
from fxflow.lax.families import kind
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.scatter import scatter_add
from fxflow.lax.keys import check, map_key_data
from fxflow.lax.reduction import reduce_max, reduce_or
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import clamp, select

INDEX = np.dtype(np.int32)
IndexGroups = Sequence[Sequence[int]] | None


@register
class RaggedAllToAll(Collective):
    """Sends slices of `operand`, which arrive in `output`; see `ragged_all_to_all`.

    dtypes: any; the four tables are integers. StableHLO: the custom call
    `ragged_all_to_all`.
    """

    name = "ragged_all_to_all"

    def abstract(
        self,
        operand: Aval,
        output: Aval,
        *tables: Aval,
        axes: Names,
        groups: Partition = None,
    ) -> Aval:
        """The type of `output`."""
        if operand.dtype != output.dtype or operand.ndim == 0 or output.ndim == 0:
            raise DtypeError(
                "ragged_all_to_all: operand and output must have one dtype and at "
                f"least one axis, got {operand} and {output}"
            )
        if operand.shape[1:] != output.shape[1:]:
            raise ShapeError(
                "ragged_all_to_all: operand and output must agree in all axes but the "
                f"first, got {operand} and {output}"
            )
        size = group_length(axes, groups)
        for table, word in zip(tables, _TABLES, strict=True):
            if kind(table.dtype) not in "iu" or table.ndim != 1:
                raise DtypeError(
                    f"ragged_all_to_all: {word} must be a vector of integers, got "
                    f"{table}"
                )
            if table.shape != tables[0].shape or table.shape[0] % size:
                raise ShapeError(
                    f"ragged_all_to_all: {', '.join(_TABLES)} must have one length, a "
                    f"multiple of the {size} indices along {shown(axes)}, got "
                    f"{', '.join(map(str, tables))}"
                )
        return output.strong()

    def lower_across(
        self, ctx: Context, devices: Groups, *operands: str, **params: Any
    ) -> str:
        """The custom call, or the exchange at full length on a CPU."""
        if ctx.platform == "cpu":
            with devices.scope():
                (dense,) = ctx.compose(lambda *v: _exchanged(*v, **params), operands)
            return str(dense)
        types = ", ".join(aval.mlir for aval in ctx.avals_in)
        return ctx.emit(
            f"stablehlo.custom_call @ragged_all_to_all({', '.join(operands)}) "
            "{api_version = 4 : i32, backend_config = {"
            f"channel_id = {devices.module.channel()} : i64, "
            f"replica_groups = {devices.dense()}}}}} : "
            f"({types}) -> {ctx.avals_out[0].mlir}"
        )

    # -- derivatives -------------------------------------------------------------------

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The same exchange of the tangents."""
        out = self.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents[:2]):
            return out, Zero(typeof(out).tangent())
        moving = [instantiate(t) for t in tangents[:2]]
        return out, self.bind(*moving, *primals[2:], **params)

    def transpose(
        self, cotangent: Any, *args: Any, axes: Names, groups: Partition = None
    ) -> Values:
        """What was received is sent back; there, slices may overlap and are added.

        So each slice comes back to an index of its own.
        """
        operand, output, starts, sizes, targets, arriving = args
        here = tiled_exchange(targets, axes, groups)
        count = typeof(starts).shape[0]
        cts: list[Any] = [None] * 6
        if type(output) is Var:
            got = reduce_or(_written(here, arriving, output.aval.shape[0]), (0,))
            shape = output.aval.shape
            nothing = full(shape, 0, output.aval.dtype)
            cts[1] = select(broadcast_in_dim(got, shape, (0,)), nothing, cotangent)
        if type(operand) is not Var:
            return cts
        shape = operand.aval.shape
        length = min(shape[0], typeof(cotangent).shape[0])
        each = count // group_length(axes, groups)
        slots = np.arange(count, dtype=INDEX) % each
        mine = (
            index_along(axes)
            if groups is None
            else at_index(index_in_group(groups), axes)
        )
        # Slices may overlap in `operand`: each comes back to room of its own first.
        back = mul(add(broadcast_in_dim(mul(mine, each), (count,), ()), slots), length)
        returned = RaggedAllToAll.bind(
            cotangent,
            full((count * length, *shape[1:]), 0, operand.aval.dtype),
            here,
            arriving,
            back,
            sizes,
            axes=axes,
            groups=groups,
        )
        steps = _steps(count, length)
        at = add(_column(starts, length), steps)
        # Beyond its size a slice has nothing to add: out of bounds, which is dropped.
        at = select(lt(steps, _column(sizes, length)), at, full(at.shape, shape[0]))
        cts[0] = scatter_add(
            full(shape, 0, operand.aval.dtype),
            reshape(at, (count * length, 1)),
            returned,
            ScatterDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,)),
            mode=GatherScatterMode.FILL_OR_DROP,
        )
        return cts

    # -- vectorization -----------------------------------------------------------------

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The exchange at full length, of all slices of the other axis."""
        return self.batch_named(None, size, args, mapped, **params)

    def batch_named(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """The exchange at full length."""

        def exchanged(*slices: Any) -> list[Any]:
            return [_exchanged(*slices, **params)]

        (out,), (is_mapped,) = batch_flat(exchanged, size, args, mapped, axis_name)
        return out, is_mapped


_TABLES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def tiled_exchange(x: Any, axes: Names, groups: Partition) -> Any:
    """Returns what arrives when axis 0 is divided among the indices."""
    size = group_length(axes, groups)
    shape = typeof(x).shape
    parts = reshape(x, (size, shape[0] // size, *shape[1:]))
    out = AllToAll.bind(parts, axes=axes, split=0, join=0, groups=groups)
    return reshape(out, shape)


def _steps(count: int, length: int) -> Any:
    return broadcasted_iota(INDEX, (count, length), 1)


def _column(x: Any, length: int) -> Any:
    return broadcast_in_dim(x, (*typeof(x).shape, length), (0,))


def _written(starts: Any, sizes: Any, length: int) -> Any:
    """Returns which of the indices 0 … length − 1 each slice is written to."""
    at = _steps(typeof(starts).shape[0], length)
    first = _column(starts, length)
    return bitwise_and(le(first, at), lt(at, add(first, _column(sizes, length))))


def _exchanged(
    operand: Any,
    output: Any,
    starts: Any,
    sizes: Any,
    targets: Any,
    arriving: Any,
    *,
    axes: Names,
    groups: Partition = None,
) -> Any:
    """Every slice is exchanged at the length of the longest possible one."""
    count = typeof(starts).shape[0]
    have, want = typeof(operand).shape[0], typeof(output).shape[0]
    length = min(have, want)
    if not length or not count:
        return output
    at = add(_column(starts, length), _steps(count, length))
    arrived = tiled_exchange(rows(operand, clamp(0, at, have - 1)), axes, groups)
    arrived = reshape(arrived, (count * length, *typeof(arrived).shape[2:]))
    here = tiled_exchange(targets, axes, groups)
    # Where slices are written over each other, the last one stays.
    number = broadcasted_iota(INDEX, (count, want), 0)
    covered = _written(here, arriving, want)
    which = reduce_max(select(covered, number, full(number.shape, -1, INDEX)), (0,))
    known = max(which, 0)
    row = sub(broadcasted_iota(INDEX, (want,), 0), rows(here, known))
    # Rows outside of any slice read some row too; `which` is -1 there and the old
    # output stays.
    taken = rows(arrived, add(mul(known, length), clamp(0, row, length - 1)))
    got = broadcast_in_dim(ge(which, 0), typeof(taken).shape, (0,))
    return select(got, taken, output)


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: IndexGroups = None,
) -> Array:
    """Sends parts of an array, of lengths that are computed, to the other slices.

    With n indices along the named axis and tables of length n · m, entries i · m …
    i · m + m − 1 are of parts for (or from) index i. This slice sends
    `operand[input_offsets[k] :][:send_sizes[k]]`, which arrives there at
    `output_offsets[k]`.

    Args:
      operand: any[a, ...], what is sent from; keys too.
      output: any[b, ...] of the same dtype, what is written to.
      input_offsets: int[n · m], where parts begin in `operand`.
      send_sizes: int[n · m], how long they are.
      output_offsets: int[n · m], where they go in the *receiver's* `output`.
      recv_sizes: int[n · m], how long the parts are that this slice receives: the
        senders' `send_sizes` after a tiled `all_to_all`.
      axis_name: a name or a tuple of names.
      axis_index_groups: lists of indices, equally long, which exchange among
        themselves.

    Returns:
      any[b, ...]: `output` with what arrived. Where parts are written over each other,
      and if a part does not lie within `operand` and `output`, the result is
      unspecified. Parts of `operand` may overlap.

    Raises:
      NameError: no such axis is in scope.
      ShapeError, DtypeError: the arguments are incompatible.
      ArgumentError: the groups differ in length or do not hold each index once.

    Example:
      >>> def exchange(x, sizes, targets, arriving):
      ...     return ragged_all_to_all(x, fnp.zeros(4), fnp.array([0, 1]), sizes,
      ...                              targets, arriving, axis_name="i")
      >>> fxflow.vmap(exchange, axis_name="i")(
      ...     fnp.array([[1.0, 2.0, 2.0], [3.0, 4.0, 0.0]]),
      ...     fnp.array([[1, 2], [1, 1]]),
      ...     fnp.array([[0, 0], [1, 2]]),
      ...     fnp.array([[1, 1], [2, 1]]),
      ... ).tolist()
      [[1.0, 3.0, 0.0, 0.0], [2.0, 2.0, 4.0, 0.0]]
    """
    axes = names_given(axis_name, "ragged_all_to_all")
    if not axes:
        raise ArgumentError("ragged_all_to_all: axis_name is empty: name an axis")
    groups = partition(axis_index_groups, axes, "ragged_all_to_all", even=True)
    tables = [input_offsets, send_sizes, output_offsets, recv_sizes]
    avals = map(typeof, (operand, output, *tables))
    check(RaggedAllToAll, *avals, axes=axes, groups=groups)
    tables = [convert_element_type(table, INDEX) for table in tables]

    def exchange(x: Any, y: Any) -> Any:
        return RaggedAllToAll.bind(x, y, *tables, axes=axes, groups=groups)

    if dtypes.is_key(typeof(operand).dtype):
        out: Array = map_key_data(exchange, operand, output)
        return out
    result: Array = exchange(operand, output)
    return result
