"""Moving arrays between devices, and telling the partitioner where they should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import (
    Array,
    Aval,
    ShapeDtypeStruct,
    as_array,
    dtypes,
    typeof,
)
from fxflow.core.arrays.array import buffer_of, from_host, host_of
from fxflow.core.arrays.aval import TypeSharding, layout_of, mesh_of, type_on
from fxflow.core.interpreters.batching import BatchTracer
from fxflow.core.interpreters.jvp import JVPTracer
from fxflow.core.interpreters.linearize import LinearizeTracer
from fxflow.core.ir.graph import Node
from fxflow.core.ir.primitive import Dual, Values, register
from fxflow.core.ir.trace import Tracer, manual_meshes, state
from fxflow.core.runtime.execute import buffer_at
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.core.spmd.memories import (
    UNKNOWN,
    Back,
    Going,
    Home,
    Move,
    Origin,
    Rewritten,
)
from fxflow.core.spmd.partition import constrained, whole
from fxflow.devices import Device, buffers, transfers
from fxflow.devices.meshes import Layout, PartitionSpec, get_mesh
from fxflow.devices.remote import RemoteDevice
from fxflow.devices.shardings import NamedSharding, Sharding, SingleDeviceSharding
from fxflow.errors import ArgumentError, PlacementError, ShardingTypeError
from fxflow.lax.families import Structural

Memory = Going | Move | None
Target = Sharding | Home | None


def put_array(array: Array, placement: Any, committed: bool = True) -> Array:
    """Returns a concrete array at a placement; copied if it must be.

    Args:
      array: concrete.
      placement: where to.
      committed: whether it has to stay there.
    """
    array_type = type_on(array.aval, placement, committed)
    if array._type.placement is placement:
        if hasattr(array, "_buffer"):
            return Array(array._buffer, array_type)
        return from_host(host_of(array), array_type)
    if placement.is_host and array._type.placement.is_host:
        if transfers.on:
            transfers.guard(transfers.BETWEEN, array.aval, placement)
        if not hasattr(array, "_buffer"):
            return from_host(host_of(array), array_type)
        return Array(
            buffers.copy_to(array.aval.physical, buffer_of(array), placement),
            array_type,
        )
    return Array(buffer_at(array, placement), array_type)


def copied(array: Array) -> Array:
    """Returns a concrete array with the same values in new memory."""
    array_type = array._type
    if not hasattr(array, "_buffer"):
        return from_host(np.array(host_of(array)), array_type)
    where = array_type.placement
    return Array(
        buffers.move(array.aval.physical, array._buffer, where, where), array_type
    )


@register
class DevicePut(Structural):
    """The operand somewhere else. dtypes: any.

    Inside a program the layout is a constraint for the partitioner, and another memory
    a custom call `annotate_device_placement` (see `core/spmd/memories`).

    Params:
      to: a sharding, whose spec may leave axes to the compiler; None: the same layout.
        For a cotangent that goes back, a `Home`.
      memory: a `Going`, or None: the same memory in a program, that of `to` outside; a
        `Move` is what becomes of a `Going` when a program is lowered.
    """

    name = "device_put"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.partly
    names_layout = True

    def abstract(self, x: Aval, *, to: Target, memory: Memory) -> Aval:
        """The operand's type."""
        if isinstance(to, Sharding):
            to.require_rank(x.ndim)
        if isinstance(to, NamedSharding):
            _require_automatic(to)
        return x

    def own_layout(self, params: dict[str, Any], outs: Any) -> Any:
        """That of the sharding; an axis left to the compiler is not divided."""
        to = _layout(params["to"])
        if not isinstance(to, NamedSharding) or not to.mesh.explicit_axes:
            return None
        return layout_of(to, outs[0]) or Layout(to.mesh, ((),) * outs[0].ndim)

    def mesh(self, params: dict[str, Any]) -> Any:
        """That of the sharding."""
        return getattr(_layout(params["to"]), "mesh", None)

    def lower(self, ctx: Context, x: str, *, to: Target, memory: Memory) -> str:
        """A constraint, where there are several devices, and a move to the memory."""
        # A layout is changed in the device's own memory: a value comes there before,
        # and leaves it after.
        if type(memory) is Move and memory.kind is None:
            x = _annotated(ctx, x, "device")
        to = _layout(to)
        if isinstance(to, NamedSharding):
            (aval,) = ctx.avals_in
            parts = ctx.unreduced and ctx.unreduced.get(x)
            if parts and parts.spec != to.spec and to.spec.unreduced:
                # Shardy stops the process where one sum ends and another does not.
                x = whole(ctx, x, aval)
            x = constrained(ctx, x, aval, to)
        if type(memory) is Move and memory.kind is not None:
            x = _annotated(ctx, x, memory.kind)
        return x

    def evaluate(self, x: Any, *, to: Target, memory: Memory) -> Any:
        """The operand."""
        return x

    def plan(self, arg_types: Values, params: dict[str, Any]) -> Any:
        """Copies when run eagerly."""
        (array_type,) = arg_types
        to, memory = params["to"], params["memory"]
        committed = to is not None or array_type.committed
        if type(to) is Home:
            to, committed = to
        to = to or array_type.placement.sharding
        if memory is not None:
            to = to.with_memory_kind(None if type(memory.to) is Back else memory.to)
        to.shard_shape(array_type.aval.shape)
        placement = buffers.placement_for(_decided(to))
        return lambda array: put_array(array, placement, committed)

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """The layout and the memory, each if it says something."""
        to, memory = _layout(params["to"]), params["memory"]
        shown = {} if to is None else {"to": to}
        if memory is None:
            return shown
        kind = memory.kind if type(memory) is Move else memory.to
        if type(kind) is Back:
            kind = "where it came from"
        elif kind is None and to is not None and type(memory) is Going:
            return shown
        return {**shown, "memory": kind or "device"}

    # -- memories ----------------------------------------------------------------------

    def names_memory(self, params: dict[str, Any]) -> bool:
        """Unless it goes to the device's own, where everything is, without a trace."""
        memory = params["memory"]
        if type(memory) is not Going:
            return False
        noted = type(memory.back) is Origin and memory.back is not UNKNOWN
        return memory.to is not None or noted

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """Where it goes to; the layout is changed in the device's own memory."""
        (here,) = kinds
        to, memory = _layout(node.params["to"]), node.params["memory"]
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

    # -- derivatives -------------------------------------------------------------------

    def jvp(
        self, primals: Values, tangents: Values, *, to: Target, memory: Memory
    ) -> Dual:
        """The tangent goes there too; its cotangent will go where `x` was."""
        (x,), (tangent,) = primals, tangents
        out = None
        if type(memory) is not Going or type(memory.back) is not Home:
            home = _home(x)
            if home is not None:
                out = self.bind(x, to=to, memory=memory)
                memory = _turning(to, memory, home)
            elif type(memory) is Going and memory.back is UNKNOWN:
                back = Origin()
                out = self.bind(x, to=to, memory=memory._replace(back=back))
                memory = memory._replace(back=Back(back))
        if out is None:
            out = self.bind(x, to=to, memory=memory)
            if type(memory) is Going and type(memory.back) is Origin:
                memory = memory._replace(back=Back(memory.back))
        return out, self.bind(tangent, to=to, memory=memory)

    def transpose(
        self, cotangent: Any, *args: Any, to: Target, memory: Memory
    ) -> Values:
        """The cotangent goes to the memory of the operand, and its devices if known."""
        if type(memory) is Going:
            home = memory.back
            if type(home) is Home:
                there = _layout(to) or home.sharding
                kind: Any = memory.to
                there = there.with_memory_kind(kind)
                to, memory = home, Going(home.sharding.offloaded, Home(there, True))
            else:
                memory = memory.turned()
        return [DevicePut.bind(cotangent, to=to, memory=memory)]

    def batched_params(
        self, value: Any, size: int, *, to: Target, memory: Memory
    ) -> dict[str, Any]:
        """The new axis is divided as `vmap` says, or as the compiler likes."""
        if type(memory) is Going and type(memory.back) is Home:
            memory = memory._replace(back=_batched(memory.back))
        return {"to": _batched(to), "memory": memory}


def _layout(to: Target) -> Sharding | None:
    return to.sharding if isinstance(to, Home) else to


def _require_automatic(to: NamedSharding) -> None:
    """Makes sure that a constraint names no axis that is manual here.

    Raises:
      ArgumentError: it does, or its mesh is another one.
    """
    manual = manual_meshes()
    for name in (name for names in to.spec.names() for name in names):
        for own, mesh in manual.items():
            if name == own or mesh != to.mesh:
                why = "manual" if mesh == to.mesh else f"of another mesh, {to.mesh}"
                raise ArgumentError(
                    f"{to.spec} lays an array over the axis {name!r}, which is {why} "
                    f"inside the shard_map or pmap over {own!r} of {mesh}: there a "
                    "device has its own part, which only other axes can divide"
                )


def _home(x: Any) -> Home | None:
    """Returns where a value lies, None if it is one of a program being traced."""
    behind = 0
    while isinstance(x, Tracer):
        if isinstance(x, LinearizeTracer | JVPTracer):
            x = x.primal
        elif isinstance(x, BatchTracer):
            x, behind = x.value, behind + 1
        else:
            return None
    array_type = as_array(x)._type
    sharding = array_type.placement.sharding
    if behind and len(array_type.placement.devices) > 1:
        spec = PartitionSpec()
        if isinstance(sharding, NamedSharding):
            spec = sharding.spec.with_entries(sharding.spec[behind:])
        mesh, kind = mesh_of(array_type.placement), sharding.offloaded
        sharding = NamedSharding(mesh, spec, memory_kind=kind)
    return Home(sharding, array_type.committed)


def _turning(to: Target, memory: Memory, home: Home) -> Going:
    """Returns how a tangent goes where its value goes, and back to `home`."""
    if type(memory) is not Going:
        there = _layout(to)
        return Going(None if there is None else there.offloaded, home)
    kind = memory.back
    if kind is None or isinstance(kind, str):  # the user says so
        home = home._replace(sharding=home.sharding.with_memory_kind(kind))
    return Going(memory.to, home)


def _batched(to: Any) -> Any:
    """Returns a sharding for arrays with one more axis in front."""
    if isinstance(to, Home):
        return to._replace(sharding=_batched(to.sharding))
    if isinstance(to, NamedSharding):
        front = state.spmd or PartitionSpec.UNCONSTRAINED
        spec = to.spec.with_entries((front, *to.spec))
        return NamedSharding(to.mesh, spec, memory_kind=to.offloaded)
    return to


def _annotated(ctx: Context, x: str, kind: str) -> str:
    """Writes a move to a kind of memory."""
    (aval,) = ctx.avals_in
    # GPUs ignore a result's attribute, so every move is a call (found with XLA's
    # compilers).
    return ctx.emit(
        f"stablehlo.custom_call @annotate_device_placement({x}) "
        '{backend_config = "", has_side_effect = true, mhlo.frontend_attributes = '
        f'{{_xla_buffer_placement = "{kind}"}}}} : ({aval.mlir}) -> {aval.mlir}'
    )


def _is_open(spec: PartitionSpec) -> bool:
    return PartitionSpec.UNCONSTRAINED in tuple(spec)


def _decided(to: Sharding) -> Sharding:
    """Returns a sharding without open axes: eagerly, these stay whole."""
    if isinstance(to, NamedSharding) and _is_open(to.spec):
        entries = [None if e is PartitionSpec.UNCONSTRAINED else e for e in to.spec]
        return to.with_spec(to.spec.with_entries(entries))
    return to


# -- public ----------------------------------------------------------------------------


def as_sharding(where: Any, what: str) -> Sharding:
    """Returns the sharding that a user means.

    Args:
      where: a sharding, a device or its name, or a `PartitionSpec` (over the current
        mesh).
      what: the function, for messages.

    Raises:
      ArgumentError: it is not one of these.
      PlacementError: there is no such device, or no current mesh.
    """
    if isinstance(where, NamedSharding):
        return where.located()
    if isinstance(where, Sharding):
        return where
    if isinstance(where, PartitionSpec):
        return NamedSharding(get_mesh(), where)
    if isinstance(where, TypeSharding):
        return NamedSharding(where.devices_mesh, where.spec)
    if isinstance(where, Device | RemoteDevice):
        return buffers.placement(where).sharding
    if isinstance(where, str):
        return SingleDeviceSharding(where)
    raise ArgumentError(
        f"{what}: expected a Sharding, a PartitionSpec, a Device or a device's name, "
        f"got {where!r} of type {type(where).__name__}"
    )


def require_fit(where: Sharding, aval: Aval, what: str) -> None:
    """Makes sure that an array can lie as a sharding says.

    Args:
      where: the sharding.
      aval: type of the array.
      what: the argument of a function that says so, for messages.

    Raises:
      PlacementError: the spec has too many entries, one that leaves an axis to the
        compiler, or an axis cannot be divided evenly; there are no sums of the dtype.
    """
    if isinstance(where, NamedSharding) and _is_open(where.spec):
        raise PlacementError(
            f"{what} is {where.spec}, which leaves an axis of {aval} to the compiler: "
            "only a constraint may do that; None leaves the whole array to it"
        )
    unreduced = isinstance(where, NamedSharding) and where.spec.unreduced
    if unreduced and (dtypes.is_key(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise PlacementError(f"{what} is {where}, but there are no sums of {aval}")
    try:
        where.shard_shape(aval.shape)
    except PlacementError as error:
        raise PlacementError(f"{what}: {error}") from None


def sharding_like(x: Any, shape: Sequence[int]) -> Sharding | None:
    """Returns where an array like another one belongs.

    Args:
      x: array-like, or a `ShapeDtypeStruct`.
      shape: shape of the new array. A mesh is for arrays of the shape of `x` only.

    Returns:
      Where `x` was put, or would be; None: anywhere.
    """
    sharding: Sharding | None = None
    if type(x) is Array:
        sharding = x.sharding if x.committed else None
    elif isinstance(x, ShapeDtypeStruct):
        sharding = x.sharding
    elif isinstance(x, Tracer) and x.aval.layout is not None:
        sharding = NamedSharding(x.aval.layout.mesh, x.aval.layout.spec)
    if sharding is None or isinstance(sharding, SingleDeviceSharding):
        return sharding
    return sharding if tuple(shape) == x.shape else None


def is_sharding_leaf(value: Any) -> bool:
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
    the memory it lies in, unless a sharding names another kind than the devices' own,
    and an axis need not be divisible: the compiler pads the parts (results come out
    whole then).

    Args:
      x: array-like or pytree of them.
      shardings: `Sharding`s, or `PartitionSpec`s over the current mesh: one for all, or
        a pytree prefix of `x`. An entry `PartitionSpec.UNCONSTRAINED` leaves an axis to
        the compiler. None: no constraint.

    Returns:
      The same arrays.

    Raises:
      PlacementError: a spec has more entries than the array has axes, or outside of
        jitted functions an axis cannot be divided evenly.

    Source: Shardy's `sdy.sharding_constraint`.

    Example:
      >>> where = fxflow.NamedSharding(fxflow.make_mesh((1,), ("x",)), fxflow.P("x"))
      >>> fxflow.jit(lambda x: with_sharding_constraint(2 * x, where))(fnp.ones(2))
      Array([2., 2.], dtype=float32)
    """
    leaves, treedef = tree.flatten(x)
    wanted = tree.broadcast_prefix(
        shardings, x, is_leaf=is_sharding_leaf, name="with_sharding_constraint"
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
    aval = typeof(array)
    if not state.open_layouts and aval.layout and layout_of(to, aval) != aval.layout:
        raise ShardingTypeError(
            f"with_sharding_constraint: {aval} says how it is divided, and that is not "
            f"{to}: change it with fxflow.sharding.reshard"
        )
    return _put_at(array, to)


def _put_at(array: Any, to: Sharding) -> Any:
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
    what = f"{name}: out_sharding"
    where = as_sharding(out_sharding, what)
    require_fit(where, typeof(array), what)
    result: Array = _put_at(array, where)
    return result
