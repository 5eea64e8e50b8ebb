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
from fxflow.core.graph import Node
from fxflow.core.memories import UNKNOWN, Back, Going, Move, Origin, Rewritten
from fxflow.core.partition import spec_text
from fxflow.core.placed import placed_on
from fxflow.core.primitive import register
from fxflow.core.trace import Tracer, state
from fxflow.devices import Device, buffers
from fxflow.devices.meshes import PartitionSpec, get_mesh
from fxflow.devices.shardings import NamedSharding, Sharding, SingleDeviceSharding
from fxflow.lax.families import Structural

Memory = Going | Move | None


def put_array(array: Array, placement: Any, committed: bool = True) -> Array:
    """Returns a concrete array at a placement; copied if it must be.

    Args:
      array: concrete.
      placement: where to.
      committed: whether it has to stay there.
    """
    placed = placed_on(array.aval, placement, committed)
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
    """The operand somewhere else. dtypes: any.

    Inside a program the layout is a constraint for the partitioner, and another memory
    a custom call `annotate_device_placement` (see `core.memories`).

    Params:
      to: a sharding, whose spec may leave axes to the compiler; None: the same layout.
      memory: a `Going`, or None: the same memory in a program, that of `to` outside; a
        `Move` is what becomes of a `Going` when a program is lowered.
    """

    name = "device_put"
    host_kinds = frozenset()

    def abstract(self, x: Aval, *, to: Sharding | None, memory: Memory) -> Aval:
        """The operand's type."""
        if to is not None:
            to.shard_shape(x.shape)
        return x

    def mesh(self, params: dict[str, Any]) -> Any:
        """That of the sharding."""
        return getattr(params["to"], "mesh", None)

    def lower(self, ctx: Any, x: str, *, to: Sharding | None, memory: Memory) -> str:
        """A constraint, where there are several devices, and a move to the memory."""
        if type(memory) is Move and memory.kind is None:
            x = _annotated(ctx, x, "device")
        if isinstance(to, NamedSharding):
            (aval,) = ctx.avals_in
            module = ctx.module
            where = spec_text(
                module.mesh(to.mesh), to.spec, len(aval.physical.shape), True
            )
            x = str(ctx.emit(f"sdy.sharding_constraint {x} {where} : {aval.mlir}"))
        if type(memory) is Move and memory.kind is not None:
            x = _annotated(ctx, x, memory.kind)
        return x

    def evaluate(self, x: Any, *, to: Sharding | None, memory: Memory) -> Any:
        """The operand."""
        return x

    def plan(self, placeds: Sequence[Any], params: dict[str, Any]) -> Any:
        """Copies when run eagerly."""
        (placed,) = placeds
        to, memory = params["to"], params["memory"]
        committed = to is not None or placed.committed
        to = to or placed.placement.sharding
        if memory is not None:
            to = to.with_memory_kind(None if type(memory.to) is Back else memory.to)
        to.shard_shape(placed.aval.shape)
        placement = buffers.placement_for(_decided(to))
        return lambda array: put_array(array, placement, committed)

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """The layout and the memory, each if it says something."""
        to, memory = params["to"], params["memory"]
        shown = {} if to is None else {"to": to}
        if memory is None:
            return shown
        kind = memory.kind if type(memory) is Move else memory.to
        if type(kind) is Back:
            kind = "where it came from"
        elif kind is None and to is not None and type(memory) is Going:
            return shown
        return {**shown, "memory": kind or "device"}

    # -- memories ----------------------------------------------------------------

    def names_memory(self, params: dict[str, Any]) -> bool:
        """Unless it goes to the device's own, where everything is, without a trace."""
        memory = params["memory"]
        if type(memory) is not Going:
            return False
        noted = type(memory.back) is Origin and memory.back is not UNKNOWN
        return memory.to is not None or noted

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Where it goes to; the layout is changed in the device's own memory."""
        (here,) = kinds
        to, memory = node.params["to"], node.params["memory"]
        if memory is None:
            goal = here
        else:
            goal = memory.to
            if type(goal) is Back:
                goal = layout.origins.get(goal.origin)
            if type(memory.back) is Origin:
                layout.note(memory.back, here)
        whole = type(here) is str and isinstance(to, NamedSharding)
        if here == goal and not whole:
            return Rewritten(kinds, [here], {"to": to, "memory": None})
        wanted = here if goal is None else None
        return Rewritten([wanted], [goal], {"to": to, "memory": Move(goal)})

    # -- derivatives -------------------------------------------------------------

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        to: Sharding | None,
        memory: Memory,
    ) -> tuple[Any, Any]:
        """The tangent goes there too; its cotangent will go where `x` was."""
        (x,), (tangent,) = primals, tangents
        if type(memory) is not Going:
            out = self.bind(x, to=to, memory=memory)
            return out, self.bind(tangent, to=to, memory=memory)
        back = memory.back
        if back is UNKNOWN:
            traced = isinstance(x, Tracer)
            back = Origin() if traced else as_array(x)._placed.placement.offloaded
            memory = memory._replace(back=back)
        out = self.bind(x, to=to, memory=memory)
        if type(back) is Origin:
            memory = memory._replace(back=Back(back))
        return out, self.bind(tangent, to=to, memory=memory)

    def transpose(
        self, cotangent: Any, *args: Any, to: Sharding | None, memory: Memory
    ) -> Sequence[Any]:
        """The cotangent goes to the same devices, and the memory of the operand."""
        if type(memory) is Going:
            memory = memory.turned()
        return [DevicePut.bind(cotangent, to=to, memory=memory)]

    def batched_params(
        self, value: Any, size: int, *, to: Sharding | None, memory: Memory
    ) -> dict[str, Any]:
        """The new axis is divided as `vmap` was told, or as the compiler likes."""
        if isinstance(to, NamedSharding):
            spec = PartitionSpec(state.spmd or PartitionSpec.UNCONSTRAINED, *to.spec)
            to = NamedSharding(to.mesh, spec, memory_kind=to.offloaded)
        return {"to": to, "memory": memory}


def _annotated(ctx: Any, x: str, kind: str) -> str:
    """Writes a move to a kind of memory."""
    (aval,) = ctx.avals_in
    return str(
        ctx.emit(
            f"stablehlo.custom_call @annotate_device_placement({x}) "
            '{backend_config = "", has_side_effect = true, mhlo.frontend_attributes = '
            f'{{_xla_buffer_placement = "{kind}"}}}} : ({aval.mlir}) -> {aval.mlir}'
        )
    )


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
    if isinstance(where, Device):
        sharding: Sharding = buffers.placement(where).sharding
        return sharding
    if isinstance(where, str):
        return SingleDeviceSharding(where)
    raise ArgumentError(
        f"{what}: expected a Sharding, a PartitionSpec, a Device or a device's name, "
        f"got {where!r} of type {type(where).__name__}"
    )


def is_place(value: Any) -> bool:
    """Returns whether a node of a tree of shardings is one (specs are tuples)."""
    return value is None or isinstance(value, PartitionSpec | Sharding)


def put_traced(value: Any, where: Sharding) -> Any:
    """Returns an array, or a traced one, laid out by a sharding, in its memory.

    Args:
      value: an array.
      where: the sharding.
    """
    return DevicePut.bind(value, to=where, memory=Going(where.offloaded))


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Says how an array is laid over devices, inside a jitted function.

    Outside of one it moves the array, as `device_put` does. Inside, an array stays in
    the memory it lies in, unless a sharding names another kind than the devices' own.

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
            else _constrained(
                as_array(leaf), as_sharding(where, "with_sharding_constraint")
            )
            for leaf, where in zip(leaves, wanted, strict=True)
        ]
    )


def _constrained(array: Any, to: Sharding) -> Any:
    memory = None if to.offloaded is None else Going(to.offloaded)
    return DevicePut.bind(array, to=to, memory=memory)


def laid_out(name: str, array: Any, out_sharding: Any) -> Array:
    """Returns a result laid out as an argument `out_sharding` says.

    Args:
      name: of the function, for messages.
      array: an array or a traced one.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh.

    Raises:
      ArgumentError: `out_sharding` is neither.
      PlacementError: an axis cannot be divided evenly, or the mesh has no such axis.
    """
    where = as_sharding(out_sharding, f"{name}: out_sharding")
    result: Array = _constrained(array, where)
    return result
