"""Moving arrays between devices, and telling the partitioner where they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core import tree
from fxflow.core.array import Array, buffer_of, from_host, host_of
from fxflow.core.aval import Aval
from fxflow.core.convert import as_array
from fxflow.core.errors import ArgumentError
from fxflow.core.execute import buffer_at
from fxflow.core.partition import spec_text
from fxflow.core.placed import placed_on
from fxflow.core.primitive import register
from fxflow.devices import Device, buffers
from fxflow.devices.meshes import PartitionSpec, get_mesh
from fxflow.devices.shardings import NamedSharding, Sharding, SingleDeviceSharding
from fxflow.lax.families import Structural


def put_array(array: Array, placement: Any) -> Array:
    """Returns a concrete array at a placement, committed to it; copied if it must be.

    Args:
      array: concrete.
      placement: where to.
    """
    placed = placed_on(array.aval, placement, True)
    if array._placed.placement is placement:
        if hasattr(array, "_buffer"):
            return Array(array._buffer, placed)
        return from_host(host_of(array), placed)
    if placement.is_host and array._placed.placement.is_host:
        if not hasattr(array, "_buffer"):
            return from_host(host_of(array), placed)
        return Array(
            buffers.copy_to(array.aval.physical, buffer_of(array), placement), placed
        )
    return Array(buffer_at(array, placement), placed)


def copy_buffer(array: Array) -> Any:
    """Returns a buffer with the values of a concrete array in new memory."""
    placement = array._placed.placement
    return buffers.move(array.aval.physical, buffer_of(array), placement, placement)


@register
class DevicePut(Structural):
    """The operand somewhere else. dtypes: any. Inside a program: a constraint.

    Params:
      to: a sharding; its spec may leave axes to the compiler.
    """

    name = "device_put"
    host_safe = False

    def abstract(self, x: Aval, *, to: Sharding) -> Aval:
        """The operand's type."""
        to.shard_shape(x.shape)
        return x

    def mesh(self, params: dict[str, Any]) -> Any:
        """That of the sharding."""
        return getattr(params["to"], "mesh", None)

    def lower(self, ctx: Any, x: str, *, to: Sharding) -> str:
        """For the partitioner; nothing, if it is one device."""
        if not isinstance(to, NamedSharding):
            return x
        if to.memory_kind is not None:
            raise ArgumentError(
                f"device_put to {to} inside a compiled function: programs compute in "
                "the devices' own memory; call device_put outside of jit"
            )
        (aval,) = ctx.avals_in
        module = ctx.module
        where = spec_text(module.mesh(to.mesh), to.spec, len(aval.physical.shape), True)
        return str(ctx.emit(f"sdy.sharding_constraint {x} {where} : {aval.mlir}"))

    def evaluate(self, x: Any, *, to: Sharding) -> Any:
        """The operand."""
        return x

    def plan(self, placeds: Sequence[Any], params: dict[str, Any]) -> Any:
        """Copies when run eagerly."""
        to = params["to"]
        to.shard_shape(placeds[0].aval.shape)
        placement = buffers.placement_for(_decided(to))
        return lambda array: put_array(array, placement)

    def transpose(self, cotangent: Any, *args: Any, to: Sharding) -> Sequence[Any]:
        """The cotangent goes to the same place."""
        return [DevicePut.bind(cotangent, to=to)]

    def batched_params(self, value: Any, size: int, *, to: Sharding) -> dict[str, Any]:
        """The new axis is the compiler's to split."""
        if isinstance(to, NamedSharding):
            spec = PartitionSpec(PartitionSpec.UNCONSTRAINED, *to.spec)
            to = NamedSharding(to.mesh, spec, memory_kind=to.memory_kind)
        return {"to": to}


def _decided(to: Sharding) -> Sharding:
    """Returns a sharding without open axes: eagerly, these stay whole."""
    if isinstance(to, NamedSharding) and PartitionSpec.UNCONSTRAINED in tuple(to.spec):
        entries = [None if e is PartitionSpec.UNCONSTRAINED else e for e in to.spec]
        return to.with_spec(PartitionSpec(*entries))
    return to


# -- public --------------------------------------------------------------------------


def as_sharding(where: Any, what: str) -> Sharding:
    """Returns the sharding that a user means.

    Args:
      where: a sharding, a device or its name, or a `PartitionSpec` (over the current
        mesh).
      what: the function, for messages.

    Raises:
      ArgumentError: it is none of these.
      PlacementError: there is no such device, or no current mesh.
    """
    if isinstance(where, Sharding):
        return where
    if isinstance(where, PartitionSpec):
        return NamedSharding(get_mesh(), where)
    if isinstance(where, Device | str):
        return SingleDeviceSharding(where)
    raise ArgumentError(
        f"{what}: expected a Sharding, a PartitionSpec, a Device or a device's name, "
        f"got {where!r} of type {type(where).__name__}"
    )


def is_place(value: Any) -> bool:
    """Returns whether a node of a tree of shardings is one (specs are tuples)."""
    return value is None or isinstance(value, PartitionSpec | Sharding)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Says how an array is laid over devices, inside a jitted function.

    Outside of one it moves the array, as `device_put` does.

    Args:
      x: array-like or pytree of them.
      shardings: `Sharding`s, or `PartitionSpec`s over the current mesh: one for all, or
        a pytree prefix of `x`. An entry `PartitionSpec.UNCONSTRAINED` leaves an axis to
        the compiler. None: no constraint.

    Returns:
      The same arrays.

    Raises:
      PlacementError: an axis cannot be divided evenly, or the mesh has no such axis.

    Source: Shardy's `sdy.sharding_constraint`.

    Example:
      >>> import fxflow, fxflow.numpy as fnp
      >>> where = fxflow.NamedSharding(fxflow.make_mesh((1,), ("x",)), fxflow.P("x"))
      >>> fxflow.jit(lambda x: with_sharding_constraint(2 * x, where))(fnp.ones(2))
      Array([2., 2.], dtype=float32)
    """
    leaves, treedef = tree.flatten(x)
    wanted = tree.broadcast_prefix(
        shardings, x, is_leaf=is_place, name="with_sharding_constraint"
    )
    return treedef.unflatten(
        [
            as_array(leaf)
            if where is None
            else DevicePut.bind(
                as_array(leaf), to=as_sharding(where, "with_sharding_constraint")
            )
            for leaf, where in zip(leaves, wanted, strict=True)
        ]
    )
