"""Collectives that move slices, and the index of a slice.

As linear maps: the transpose of a gather is the scattered sum, of a permutation its
inverse, of an exchange the exchange back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, Axes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir.primitive import Batched, Flags, Values, register
from fxflow.core.ir.trace import axis_size_of
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.collective_groups import (
    Collective,
    Groups,
    Names,
    Partition,
    group_length,
    group_of,
    index_in_group,
    length,
    reducer,
    shown,
)
from fxflow.lax.concatenation import concatenate
from fxflow.lax.creation import broadcasted_iota, full
from fxflow.lax.dynamic_slicing import dynamic_index_in_dim
from fxflow.lax.elementwise import add, mul
from fxflow.lax.families import NUMERIC, Linear, require_kind
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
)
from fxflow.lax.gather_scatter.gather import gather
from fxflow.lax.reduction import reduce_sum
from fxflow.lax.reshaping import reshape

Pairs = tuple[tuple[int, int], ...]
INDEX = np.dtype(np.int32)


def rows(x: Any, indices: Any) -> Any:
    """Returns slices of axis 0 at in-bounds indices: `[*indices.shape, ...]`."""
    shape = typeof(x).shape
    if not isinstance(indices, Array):
        indices = np.asarray(indices, INDEX)
    before = indices.ndim
    return gather(
        x,
        reshape(indices, (*indices.shape, 1)),
        GatherDimensionNumbers(
            offset_dims=tuple(range(before, before + len(shape) - 1)),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
        ),
        slice_sizes=(1, *shape[1:]),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def moved(x: Any, source: int, target: int) -> Any:
    """Returns an array with one of its axes elsewhere."""
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(target, source)
    return x if order == sorted(order) else transpose(x, order)


class Movement(Linear, Collective):
    """Moves slices along named axes.

    Attributes:
      dim_params: names of the parameters that are array axes.
    """

    dim_params: ClassVar[tuple[str, ...]] = ()

    def shifted_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The array axes one further back."""
        further = {name: params[name] + 1 for name in self.dim_params}
        return {**params, **further}


# -- indices ---------------------------------------------------------------------------


@register
class AxisIndex(Collective):
    """Index of this slice on the named axis. Result: i32[]."""

    name = "axis_index"
    nondifferentiable = "it is an integer"

    def abstract(self, *, axes: Names) -> Aval:
        """A 0-d integer."""
        axis_size_of(axes[0])
        return Aval((), INDEX)

    def needs_index(self, params: dict[str, Any]) -> bool:
        """It is the index."""
        return True

    def lower_across(self, ctx: Context, devices: Groups, *, axes: Names) -> str:
        """From the number of the device, by a table."""
        (out,) = ctx.avals_out
        given = devices.module.indices.get(axes[0])
        # With some mesh axes left to the partitioner a device's number means nothing to
        # it: `ShardMap.lower` passes the index in as an operand.
        if given is not None:
            first = out.update(shape=(1,))
            return ctx.emit(f"stablehlo.reshape {given} : ({first.mlir}) -> {out.mlir}")
        indices = np.zeros(devices.members.size, np.int32)
        indices[devices.members] = np.arange(devices.size)
        table = Aval((len(indices),), INDEX)
        one, word = table.update(shape=(1,)), Aval((), np.dtype(np.uint32))
        number = ctx.emit(f"stablehlo.partition_id : {word.mlir}")
        constant = ctx.constant(indices, table)
        part = ctx.emit(
            f"stablehlo.dynamic_slice {constant}, {number}, sizes = [1] : "
            f"({table.mlir}, {word.mlir}) -> {one.mlir}"
        )
        return ctx.emit(f"stablehlo.reshape {part} : ({one.mlir}) -> {out.mlir}")

    def batch_named(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **_: Any
    ) -> Batched:
        """0, 1, 2, … along the mapped axis."""
        return broadcasted_iota(INDEX, (size,), 0), True


def index_along(axes: Names) -> Any:
    """Returns the index of this slice, row-major over the axes."""
    index: Any = None
    for name in axes:
        here = AxisIndex.bind(axes=(name,))
        index = here if index is None else add(mul(index, axis_size_of(name)), here)
    return np.int32(0) if index is None else index


def at_index(table: Any, axes: Names) -> Any:
    """Returns the entry of a table (its axis 0 are the indices) for this slice."""
    return _entry(table, index_along(axes), 0)


def _entry(table: Any, index: Any, dim: int) -> Any:
    return dynamic_index_in_dim(
        table, index, dim, keepdims=False, allow_negative_indices=False
    )


# -- gathers ---------------------------------------------------------------------------


@register
class AllGather(Movement):
    """Every slice gets all of them, stacked along a new axis `dim`. dtypes: any.

    Params:
      dim: see above.
      shared: whether all devices share the result (along tracked axes, no groups), so
        that its cotangent is one too, of which each takes its part.
    """

    name = "all_gather"
    dim_params = ("dim",)

    def abstract(
        self, x: Aval, *, axes: Names, dim: int, groups: Partition = None, **_: Any
    ) -> Aval:
        """One more axis, as long as the group."""
        size = group_length(axes, groups)
        return Aval((*x.shape[:dim], size, *x.shape[dim:]), x.dtype)

    def lower_across(
        self,
        ctx: Context,
        devices: Groups,
        x: str,
        *,
        dim: int,
        **params: Any,
    ) -> str:
        """`stablehlo.all_gather` along a new axis."""
        (aval,), (out,) = ctx.avals_in, ctx.avals_out
        one = aval.update(shape=(*aval.shape[:dim], 1, *aval.shape[dim:]))
        x = ctx.emit(f"stablehlo.reshape {x} : ({aval.mlir}) -> {one.mlir}")
        return ctx.emit(
            f'"stablehlo.all_gather"({x}) <{{all_gather_dim = {dim} : i64, '
            f"{devices.attributes}}}> : ({one.mlir}) -> {out.mlir}"
        )

    def vma(self, given: Sequence[Axes], params: dict[str, Any]) -> Axes:
        """Each device has a use of its own for it, if it is not said to be shared."""
        every = super().vma(given, params)
        return every.difference(params["axes"]) if params.get("shared") else every

    def batch_along(self, x: Any, *, dim: int, **params: Any) -> tuple[Any, bool]:
        """The mapped axis itself, moved."""
        return moved(x, 0, dim), False

    def per_named_axis(self, x: Any, *, axes: Names, dim: int, **params: Any) -> Any:
        """The last axis first."""
        shape = typeof(x).shape
        for name in reversed(axes):
            x = AllGather.bind(x, axes=(name,), dim=0)
        return moved(reshape(x, (length(axes), *shape)), 0, dim)

    def via_all_gather(
        self, x: Any, *, axes: Names, dim: int, groups: Partition = None, **_: Any
    ) -> Any:
        """The slices of the own group."""
        return moved(of_own_group(x, axes, groups), 0, dim)

    def transpose(
        self,
        cotangent: Any,
        *args: Any,
        axes: Names,
        dim: int,
        shared: bool = False,
        **params: Any,
    ) -> Values:
        """The scattered sum, or the own part of what is shared."""
        if shared:
            return [_entry(cotangent, index_along(axes), dim)]
        return [PSumScatter.bind(cotangent, axes=axes, dim=dim, **params)]


def by_groups(x: Any, axes: Names, groups: Partition) -> Any:
    """Returns all slices as `[group, index in it, ...]`; groups are alike."""
    assert groups is not None
    order = [i for group in groups for i in group]
    every = rows(AllGather.bind(x, axes=axes, dim=0), order)
    return reshape(every, (len(groups), len(groups[0]), *typeof(x).shape))


def of_own_group(x: Any, axes: Names, groups: Partition) -> Any:
    """Returns the slices of this one's group along axis 0."""
    assert groups is not None
    number = at_index(group_of(groups), axes)
    return _entry(by_groups(x, axes, groups), number, 0)


@register
class PSumScatter(Movement):
    """Sum over named axes; the slice at index i keeps element i of `dim`.

    dtypes: numeric.
    """

    name = "psum_scatter"
    dim_params = ("dim",)

    def abstract(
        self, x: Aval, *, axes: Names, dim: int, groups: Partition = None
    ) -> Aval:
        """Without axis `dim`."""
        require_kind(self.name, x, NUMERIC)
        _require_length(self.name, x, dim, axes, groups)
        return Aval((*x.shape[:dim], *x.shape[dim + 1 :]), x.dtype)

    def lower_across(
        self, ctx: Context, devices: Groups, x: str, *, dim: int, **params: Any
    ) -> str:
        """`stablehlo.reduce_scatter`, without the axis of one that is left."""
        (aval,), (out,) = ctx.avals_in, ctx.avals_out
        one = aval.update(shape=(*aval.shape[:dim], 1, *aval.shape[dim + 1 :]))
        part = ctx.emit(
            f'"stablehlo.reduce_scatter"({x}) <{{scatter_dimension = {dim} : i64, '
            f"{devices.attributes}}}> ({reducer(ctx, aval, 'add')}) : "
            f"({aval.mlir}) -> {one.mlir}"
        )
        return ctx.emit(f"stablehlo.reshape {part} : ({one.mlir}) -> {out.mlir}")

    def batch_along(self, x: Any, *, dim: int, **params: Any) -> tuple[Any, bool]:
        """A sum over the mapped axis; axis `dim` becomes the mapped one."""
        return moved(reduce_sum(x, (0,)), dim, 0), True

    def per_named_axis(self, x: Any, *, axes: Names, dim: int, **_: Any) -> Any:
        """Axis `dim` as one axis for each named one, and one after the other."""
        for name in axes:
            shape = typeof(x).shape
            size = axis_size_of(name)
            parts = (*shape[:dim], size, shape[dim] // size, *shape[dim + 1 :])
            x = PSumScatter.bind(reshape(x, parts), axes=(name,), dim=dim)
        shape = typeof(x).shape
        return reshape(x, (*shape[:dim], *shape[dim + 1 :]))

    def via_all_gather(
        self, x: Any, *, axes: Names, dim: int, groups: Partition = None
    ) -> Any:
        """The own group's sum, and of it the own part."""
        assert groups is not None
        totals = reduce_sum(by_groups(x, axes, groups), (1,))
        number = at_index(group_of(groups), axes)
        total = _entry(totals, number, 0)
        here = at_index(index_in_group(groups), axes)
        return _entry(total, here, dim)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """A gather."""
        return [AllGather.bind(cotangent, **params)]


def _require_length(
    what: str, x: Aval, axis: int, axes: Names, groups: Partition
) -> None:
    size = group_length(axes, groups)
    if x.shape[axis] != size:
        whose = f"the named axis {shown(axes)}" if groups is None else "the groups"
        raise ShapeError(
            f"{what}: axis {axis} of {x} must be as long as {whose}, {size} (or a "
            "multiple of it with tiled=True)"
        )


# -- exchanges -------------------------------------------------------------------------


@register
class PPermute(Movement):
    """Sends slice `source` to index `target` for each pair; others get zeros.

    dtypes: any.

    Params:
      perm: pairs `(source, target)`.
    """

    name = "ppermute"

    def abstract(self, x: Aval, *, axes: Names, perm: Pairs) -> Aval:
        """The operand's type."""
        size = length(axes)
        for part, what in ((0, "sources"), (1, "targets")):
            indices = [pair[part] for pair in perm]
            if len(set(indices)) != len(indices) or any(
                not 0 <= p < size for p in indices
            ):
                raise ArgumentError(
                    f"ppermute: {what} must be different indices on axis {shown(axes)} "
                    f"of length {size}, got {indices}"
                )
        return x.strong()

    def lower_across(
        self, ctx: Context, devices: Groups, x: str, *, perm: Pairs, **_: Any
    ) -> str:
        """`stablehlo.collective_permute`."""
        (aval,) = ctx.avals_in
        pairs = [(row[s], row[t]) for row in devices.rows for s, t in perm]
        table = np.array(pairs, np.int64).reshape(-1, 2)
        if not len(table):
            return ctx.constant(np.zeros((), aval.dtype), aval)
        return ctx.emit(
            f'"stablehlo.collective_permute"({x}) <{{{devices.channel}, '
            f"source_target_pairs = {devices.dense(table)}}}> : "
            f"({aval.mlir}) -> {aval.mlir}"
        )

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        axes: Names,
        perm: Pairs,
    ) -> Batched:
        """The slices in another order, sent along the other axes where they go on."""
        x = materialize(args[0], size, mapped[0])
        at = axes.index(axis_name)
        rest = axes[:at] + axes[at + 1 :]
        shape = [size if n == axis_name else axis_size_of(n) for n in axes]
        others = [n for i, n in enumerate(shape) if i != at]

        def halves(flat: int) -> tuple[int, int]:
            where = [int(i) for i in np.unravel_index(flat, shape)]
            here = where.pop(at)
            return here, int(np.ravel_multi_index(where, others)) if others else 0

        # By what happens along the other axes: which of ours go where.
        sends: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for source, target in perm:
            (s, far_s), (t, far_t) = halves(source), halves(target)
            sends.setdefault((s, t), []).append((far_s, far_t))
        together: dict[Pairs, list[tuple[int, int]]] = {}
        for pair, far in sends.items():
            together.setdefault(tuple(far), []).append(pair)
        arriving: dict[int, list[tuple[Any, Pairs]]] = {}
        for far_pairs, near in together.items():
            sent = rows(x, [s for s, _ in near])
            if rest:
                sent = PPermute.bind(sent, axes=rest, perm=far_pairs)
            for i, (_, t) in enumerate(near):
                arriving.setdefault(t, []).append((rows(sent, [i]), far_pairs))
        nothing = full((1, *typeof(x).shape[1:]), 0, typeof(x).dtype)
        parts = [
            _which(arriving[t], rest) if t in arriving else nothing for t in range(size)
        ]
        return concatenate(parts, 0), True

    def transpose(self, cotangent: Any, *args: Any, axes: Names, perm: Pairs) -> Values:
        """The inverse permutation."""
        inverse = tuple((target, source) for source, target in perm)
        return [PPermute.bind(cotangent, axes=axes, perm=inverse)]


def _which(arriving: Sequence[tuple[Any, Pairs]], rest: Names) -> Any:
    """Returns, of what arrives at one index, what is for this slice."""
    if len(arriving) == 1:
        return arriving[0][0]
    choice = np.zeros(length(rest), np.int32)
    for number, (_, pairs) in enumerate(arriving):
        choice[[target for _, target in pairs]] = number
    every = concatenate([value for value, _ in arriving], 0)
    chosen = _entry(every, at_index(choice, rest), 0)
    return reshape(chosen, typeof(arriving[0][0]).shape)


@register
class AllToAll(Movement):
    """Element i of axis `split` goes to index i; what arrives is stacked on `join`.

    dtypes: any. Axis `split` disappears, axis `join` is new.
    """

    name = "all_to_all"
    dim_params = ("join", "split")

    def abstract(
        self, x: Aval, *, axes: Names, split: int, join: int, groups: Partition = None
    ) -> Aval:
        """One axis less, one more."""
        _require_length(self.name, x, split, axes, groups)
        rest = [n for i, n in enumerate(x.shape) if i != split]
        rest.insert(join, x.shape[split])
        return Aval(tuple(rest), x.dtype)

    def lower_across(
        self,
        ctx: Context,
        devices: Groups,
        x: str,
        *,
        split: int,
        join: int,
        **params: Any,
    ) -> str:
        """`stablehlo.all_to_all` of the axis `split`, moved to `join` before."""
        (aval,), (out,) = ctx.avals_in, ctx.avals_out
        # Once the axis is at `join`, splitting and concatenating there stacks what
        # arrives.
        order = [i for i in range(aval.ndim) if i != split]
        order.insert(join, split)
        listed = ", ".join(map(str, order))
        x = ctx.emit(
            f"stablehlo.transpose {x}, dims = [{listed}] : ({aval.mlir}) -> {out.mlir}"
        )
        return ctx.emit(
            f'"stablehlo.all_to_all"({x}) <{{split_dimension = {join} : i64, '
            f"concat_dimension = {join} : i64, split_count = {devices.size} : i64, "
            f"{devices.channel}, replica_groups = {devices.dense()}}}>"
            f" : ({out.mlir}) -> {out.mlir}"
        )

    def batch_along(
        self, x: Any, *, split: int, join: int, **params: Any
    ) -> tuple[Any, bool]:
        """The mapped axis and axis `split` are exchanged."""
        order = [i for i in range(1, typeof(x).ndim) if i != split + 1]
        order.insert(join, 0)
        return transpose(x, [split + 1, *order]), True

    def per_named_axis(
        self, x: Any, *, axes: Names, split: int, join: int, **_: Any
    ) -> Any:
        """Axis `split` as one axis for each named one, which exchange in turn."""
        x = moved(x, split, 0)
        shape = typeof(x).shape
        x = reshape(x, (*(axis_size_of(name) for name in axes), *shape[1:]))
        for i, name in enumerate(axes):
            x = AllToAll.bind(x, axes=(name,), split=i, join=i)
        return moved(reshape(x, shape), 0, join)

    def via_all_gather(
        self,
        x: Any,
        *,
        axes: Names,
        split: int,
        join: int,
        groups: Partition = None,
    ) -> Any:
        """From each slice of the own group, the part for this index."""
        assert groups is not None
        here = at_index(index_in_group(groups), axes)
        mine = of_own_group(x, axes, groups)
        part = _entry(mine, here, split + 1)
        return moved(part, 0, join)

    def transpose(
        self, cotangent: Any, *args: Any, split: int, join: int, **params: Any
    ) -> Values:
        """The way back."""
        return [AllToAll.bind(cotangent, split=join, join=split, **params)]
