"""What all collectives share: named axes, groups of indices, and the base class.

An *index* is a position along the named axes, counted row-major if they are several.
`axis_index_groups` divides them into groups that go on by themselves; it is held
as a tuple of tuples, or None for one group of all in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Aval, Axes
from fxflow.core.arrays.aval import NOWHERE
from fxflow.core.interpreters.batching import batch_flat, materialize
from fxflow.core.ir.primitive import Batched, Flags, Primitive, Values
from fxflow.core.ir.trace import axis_size_of, named_axes, state
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError

Names = tuple[Any, ...]
Partition = tuple[tuple[int, ...], ...] | None


def names_given(axis_name: Any, what: str) -> Names:
    """Returns the named axes as a tuple.

    Args:
      axis_name: a name or a tuple (or list) of names.
      what: the function, for messages.

    Raises:
      ArgumentError: a name comes twice.
      NameError: no such axis is in scope.
    """
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    for i, name in enumerate(names):
        axis_size_of(name)
        if name in names[:i]:
            raise ArgumentError(f"{what}: axis_name names the axis {name!r} twice")
    return names


def shown(axes: Names) -> str:
    """Returns named axes as the user wrote them."""
    return repr(axes[0]) if len(axes) == 1 else repr(axes)


def length(axes: Names) -> int:
    """Returns the number of indices along named axes."""
    return math.prod(axis_size_of(name) for name in axes)


def group_length(axes: Names, groups: Partition) -> int:
    """Returns the number of indices that a collective combines; groups are alike."""
    every = length(axes)
    return every if groups is None else len(groups[0])


def partition(
    groups: Sequence[Sequence[int]] | None, axes: Names, what: str, *, even: bool
) -> Partition:
    """Returns `axis_index_groups`, checked.

    Args:
      groups: as the user gave them.
      axes: the named axes.
      what: the function, for messages.
      even: whether the groups must have one length.

    Returns:
      None if there is one group of all indices in order.

    Raises:
      ArgumentError: an index is missing, comes twice or is not there, or the groups
        differ in length.
    """
    if groups is None:
        return None
    size = length(axes)
    try:
        found = tuple(tuple(int(index) for index in group) for group in groups)
    except TypeError:
        raise ArgumentError(
            f"{what}: axis_index_groups is a list of lists of indices, got {groups!r}"
        ) from None
    if sorted(index for group in found for index in group) != list(range(size)):
        raise ArgumentError(
            f"{what}: axis_index_groups must hold each index 0 … {size - 1} of the "
            f"axis {shown(axes)} once, got {[list(group) for group in found]}"
        )
    found = tuple(group for group in found if group)
    lengths = {len(group) for group in found}
    if even and len(lengths) > 1:
        raise ArgumentError(
            f"{what}: axis_index_groups must be equally long, got lengths "
            f"{', '.join(str(len(group)) for group in found)}"
        )
    return None if found == (tuple(range(size)),) else found


def group_of(groups: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
    """Returns for each index the number of its group."""
    table = np.zeros(sum(map(len, groups)), np.int32)
    for number, group in enumerate(groups):
        table[list(group)] = number
    return table


def index_in_group(groups: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
    """Returns for each index its position within its group."""
    table = np.zeros(sum(map(len, groups)), np.int32)
    for group in groups:
        table[list(group)] = np.arange(len(group))
    return table


class Groups:
    """The devices that a collective combines, as StableHLO names them.

    Args:
      module: being written; its `manual` axes are in scope.
      axes: names.
      what: the collective, for the message.
      groups: of indices along the axes, which go on by themselves.

    Attributes:
      rows: numbers of the program's devices, a row for all indices along the axes.
      members: a row for each group; shorter ones are filled up with -1.
      size: length of the (longest) group.
    """

    size: int
    axes: Names
    mesh: Any
    module: Any

    def __init__(
        self, module: Any, axes: Names, what: str, groups: Partition = None
    ) -> None:
        meshes = dict(module.manual)
        for name in axes:
            if name not in meshes:
                raise ArgumentError(
                    f"{what} over {name!r} cannot be compiled: no shard_map or pmap "
                    "around it has an axis of that name (a vmap has none left when a "
                    "program is compiled)"
                )
        mesh = meshes[axes[0]]
        for name in axes[1:]:
            if meshes[name] != mesh:
                raise ArgumentError(
                    f"{what} over {shown(axes)}: the axes are of different meshes, "
                    f"{mesh} and {meshes[name]}: combine them one after the other"
                )
        # Replica groups count devices by their position in the program's assignment,
        # not by id.
        numbers = {device: i for i, device in enumerate(module.devices)}
        grid = np.array([numbers[d] for d in mesh.flat]).reshape(mesh.axis_sizes)
        # A row holds the devices that differ along the named axes only.
        last = [mesh.axis_names.index(name) for name in axes]
        rest = [i for i in range(grid.ndim) if i not in last]
        rows = grid.transpose([*rest, *last]).reshape(-1, mesh.length(axes))
        self.rows: np.ndarray[Any, Any] = rows
        self.members: np.ndarray[Any, Any] = (
            rows if groups is None else _divided(rows, groups)
        )
        self.size = self.members.shape[1]
        self.module, self.mesh, self.axes = module, mesh, axes

    def dense(self, table: np.ndarray[Any, Any] | None = None) -> str:
        """Returns a table of devices in StableHLO's notation; None is `members`."""
        table = self.members if table is None else table
        rows = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in table)
        shape = "x".join(map(str, table.shape))
        return f"dense<[{rows}]> : tensor<{shape}xi64>"

    @property
    def channel(self) -> str:
        """A channel of its own."""
        number = self.module.channel()
        return (
            f"channel_handle = #stablehlo.channel_handle<handle = {number}, type = 1>"
        )

    @property
    def attributes(self) -> str:
        """Channel and groups."""
        return f"{self.channel}, replica_groups = {self.dense()}, use_global_device_ids"

    def scope(self) -> named_axes:
        """Puts the named axes in scope, for what a lowering is composed of."""
        return named_axes((name, mesh.shape[name]) for name, mesh in self.module.manual)


def _divided(
    rows: np.ndarray[Any, Any], groups: tuple[tuple[int, ...], ...]
) -> np.ndarray[Any, Any]:
    # StableHLO fills uneven replica groups up with -1.
    table = np.full((len(rows), len(groups), max(map(len, groups))), -1, rows.dtype)
    for number, group in enumerate(groups):
        table[:, number, : len(group)] = rows[:, list(group)]
    return table.reshape(-1, table.shape[-1])


class Collective(Primitive):
    """Combines the slices along named axes.

    Params:
      axes: names of the axes, a tuple.
      groups: of indices (not of every collective), or None.
    """

    axis_params: ClassVar[tuple[str, ...]] = ("axes",)
    host_kinds: ClassVar[frozenset[str]] = frozenset()

    def lower(self, ctx: Context, *operands: str, **params: Any) -> Any:
        """A collective of StableHLO between the devices of a `shard_map`."""
        devices = Groups(ctx.module, params["axes"], self.name, params.get("groups"))
        return self.lower_across(ctx, devices, *operands, **params)

    def lower_across(
        self, ctx: Context, devices: Groups, *operands: str, **params: Any
    ) -> Any:
        """Writes the collective between the devices of each group."""
        raise NotImplementedError

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """There is no named axis outside a transformation."""
        raise ArgumentError(f"{self.name}: no axis is named {params['axes']}")

    def vma(self, given: Sequence[Axes], params: dict[str, Any]) -> Axes:
        """Each device has its own."""
        return NOWHERE.union(*given, state.tracked.intersection(params["axes"]))

    def needs_index(self, params: dict[str, Any]) -> bool:
        """Returns whether its lowering asks a device for its index on the axes."""
        return False

    # -- vectorization -----------------------------------------------------------------

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Over another axis, which comes along in front."""
        return self.bind(*args, **self.shifted_params(params)), True

    def shifted_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the parameters for operands with one more axis in front."""
        return params

    def batch_named(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """Along an array axis; groups, and several axes, by simpler collectives."""
        if params.get("groups") is not None:
            simpler = self.via_all_gather
        elif len(params["axes"]) > 1:
            simpler = self.per_named_axis
        else:
            x = materialize(args[0], size, mapped[0])
            return self.batch_along(x, **params)

        def composed(*slices: Any) -> list[Any]:
            return [simpler(*slices, **params)]

        (out,), (is_mapped,) = batch_flat(composed, size, args, mapped, axis_name)
        return out, is_mapped

    def batch_along(self, x: Any, **params: Any) -> tuple[Any, bool]:
        """Returns the result for slices along axis 0, and whether it is mapped."""
        raise NotImplementedError

    def via_all_gather(self, *operands: Any, **params: Any) -> Any:
        """Computes a slice's result, with groups, from what all slices have."""
        raise NotImplementedError

    def per_named_axis(self, *operands: Any, **params: Any) -> Any:
        """Computes a slice's result by collectives over one axis each."""
        raise NotImplementedError


def reducer(ctx: Context, aval: Aval, operation: str) -> str:
    """Returns the region that combines two elements.

    Args:
      ctx: the `lowering.Context`.
      aval: of the operand.
      operation: of StableHLO.
    """
    scalar = aval.update(shape=())

    def body(inner: Context, names: list[str]) -> list[str]:
        left, right = names
        return [inner.emit(f"stablehlo.{operation} {left}, {right} : {scalar.mlir}")]

    return ctx.region([scalar, scalar], body, [scalar])
