"""Programs over several devices: their placement, and shardings as text.

A program runs on one tuple of devices, given by the arrays that are committed to
several, or by what the graph itself names (constraints, `shard_map`). Every argument
then has a sharding of its own over these devices; what is not committed is copied to
all. The partitioner (Shardy) finds the shardings of everything in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import ArrayType, Aval
from fxflow.devices import buffers
from fxflow.devices.meshes import Layout, Mesh, PartitionSpec, names_of
from fxflow.devices.shardings import NamedSharding, Sharding


def mesh_among(shardings: Sequence[Any]) -> Mesh | None:
    """Returns the mesh of the first `NamedSharding` of a sequence, or None."""
    for sharding in shardings:
        if isinstance(sharding, NamedSharding):
            return sharding.mesh
    return None


def argument_placement(array_type: ArrayType, placement: Any) -> Any:
    """Returns where an argument must be for a program that runs at a placement."""
    own = array_type.placement
    if own is placement or own.devices != placement.devices:
        return placement
    if isinstance(own.sharding, NamedSharding) and not placement.is_single:
        return own
    if own.offloaded is None:
        return placement
    kept = placement.sharding.with_memory_kind(own.offloaded)
    return buffers.placement_for(kept)


# -- text ------------------------------------------------------------------------------


def axis_text(name: Any) -> str:
    """Returns the name of a mesh axis as Shardy writes it."""
    text = name if isinstance(name, str) else repr(name)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def mesh_text(mesh: Mesh, devices: Sequence[Any]) -> str:
    """Returns a mesh in Shardy's notation.

    Args:
      mesh: the mesh.
      devices: of the program, in order.
    """
    axes = ", ".join(f"{axis_text(n)}={size}" for n, size in mesh.shape.items())
    if mesh.flat == tuple(devices):
        return f"<[{axes}]>"
    order = {device: i for i, device in enumerate(devices)}
    ids = ", ".join(str(order[d]) for d in mesh.flat)
    return f"<[{axes}], device_ids=[{ids}]>"


def spec_text(mesh_name: str, spec: PartitionSpec, ndim: int, closed: bool) -> str:
    """Returns a sharding in Shardy's notation, as in `<@mesh, [{"x"}, {}]>`.

    Args:
      mesh_name: as in `@mesh`.
      spec: how the axes are split; an entry may be `PartitionSpec.UNCONSTRAINED`.
      ndim: number of axes of the array.
      closed: whether axes without an entry stay whole, or are the compiler's to split.
    """
    parts = []
    for entry in (*spec, *([None] * (ndim - len(spec)))):
        if entry is PartitionSpec.UNCONSTRAINED or (entry is None and not closed):
            parts.append("{?}")
            continue
        parts.append("{" + ", ".join(map(axis_text, names_of(entry))) + "}")
    unreduced = ""
    if spec.unreduced:
        names = ", ".join(sorted(map(axis_text, spec.unreduced)))
        unreduced = f", unreduced={{{names}}}"
    return f"<{mesh_name}, [{', '.join(parts)}]{unreduced}>"


def constrained(
    ctx: Any,
    operand: str,
    aval: Aval,
    to: NamedSharding | Layout | None,
    in_parts: bool = False,
) -> str:
    """Writes a constraint; returns the name of its result.

    Args:
      ctx: where to write.
      operand: its name.
      aval: its type.
      to: how it is to be laid out.
      in_parts: whether devices have parts of the sum that it is, if `to` says so.
    """
    assert to is not None
    spec, parts = to.spec, ctx.unreduced
    if spec.unreduced and not (in_parts or _in_parts(ctx, operand, spec)):
        spec = PartitionSpec(*spec)
    where = spec_text(ctx.module.mesh(to.mesh), spec, len(aval.physical.shape), True)
    name = str(ctx.emit(f"sdy.sharding_constraint {operand} {where} : {aval.mlir}"))
    if spec.unreduced:
        parts[name] = to
    return name


def _in_parts(ctx: Any, operand: str, spec: PartitionSpec) -> bool:
    # Only of products: the partitioner (of jaxlib 0.10.2) takes what it has summed up
    # for parts elsewhere, and where it may choose how they are divided.
    if ctx.unreduced is None or PartitionSpec.UNCONSTRAINED in tuple(spec):
        return False
    known = ctx.unreduced.get(operand)
    if known is not None:
        return bool(known.spec == spec)
    return bool(ctx.contracted.get(operand) == spec.unreduced)


def summed_up(ctx: Any, node: Any, operands: list[str]) -> bool:
    """Writes the sums of operands that are unreduced, unless the node takes them so.

    Args:
      ctx: where to write.
      node: of the graph.
      operands: their names; those of sums are put in.

    Returns:
      Whether the node takes all its unreduced operands as they are, and has some.
    """
    avals = [atom.aval for atom in node.inputs]
    in_parts = [name in ctx.unreduced for name in operands]
    typed = [a.layout is not None and bool(a.layout.unreduced) for a in avals]
    out = node.outputs[0].aval.layout if len(node.outputs) == 1 else None
    primitive = node.primitive
    if primitive.types_inside or primitive.multi:
        out = None
    if any(in_parts) and in_parts == typed and out is not None and out.unreduced:
        return True
    for i, name in enumerate(operands):
        if in_parts[i]:
            operands[i] = whole(ctx, name, avals[i])
    return False


def whole(ctx: Any, operand: str, aval: Aval) -> str:
    """Writes the sum of an operand of which devices hold parts; returns its name."""
    parts = ctx.unreduced[operand]
    spec = PartitionSpec(*parts.spec)
    return constrained(ctx, operand, aval, NamedSharding(parts.mesh, spec))


def whole_along(ctx: Any, operand: str, aval: Aval, axes: Sequence[int]) -> str:
    """Constrains an operand to be unsharded along some axes.

    For reductions by operations that XLA's all-reduce does not know: the partitioner
    would write one, which then cannot be compiled.

    Args:
      ctx: where to write.
      operand: its name.
      aval: its type.
      axes: that are reduced.
    """
    mesh: str | None = ctx.module.mesh_around()
    if mesh is None:
        return operand
    parts = ["{}" if i in axes else "{?}" for i in range(len(aval.physical.shape))]
    where = f"<{mesh}, [{', '.join(parts)}]>"
    return str(ctx.emit(f"sdy.sharding_constraint {operand} {where} : {aval.mlir}"))


def by_each_device(
    ctx: Any,
    operands: Sequence[str],
    avals: Sequence[Aval],
    count: int,
    text: Callable[[Sequence[str]], str],
) -> list[str]:
    """Writes an operation with a side effect, which the partitioner cannot repeat.

    Where a `shard_map` leaves axes to the partitioner, it stands in another one over
    these axes, of whose devices each gets the same.

    Args:
      ctx: where to write.
      operands: their names.
      avals: their types.
      count: number of results.
      text: from the operands' names to the operation.

    Returns:
      The names of the results.
    """
    module = ctx.module
    meshes = dict(module.manual)
    mesh = next(iter(meshes.values()), None)
    left = () if mesh is None else [n for n in mesh.axis_names if n not in meshes]
    if not left:
        found: list[str] = ctx.emit_many(count, text(operands))
        return found
    inside = [f"%m{ctx.number()}" for _ in operands]
    inner = f"%m{ctx.number()}"
    outs = [inner] if count == 1 else [f"{inner}#{i}" for i in range(count)]
    given, made = [a.mlir for a in avals], [a.mlir for a in ctx.avals_out]
    head = ", ".join(f"{n}: {t}" for n, t in zip(inside, given, strict=True))
    names = f"{inner}{f':{count}' if count > 1 else ''} = " if count else ""
    end = f" {', '.join(outs)} : {', '.join(made)}" if count else ""

    def whole(avals: Sequence[Aval]) -> str:
        symbol, spec = module.mesh(mesh), PartitionSpec()
        return ", ".join(
            spec_text(symbol, spec, len(a.physical.shape), True) for a in avals
        )

    results: list[str] = ctx.emit_many(
        count,
        f"sdy.manual_computation({', '.join(operands)}) "
        f"in_shardings=[{whole(avals)}] out_shardings=[{whole(ctx.avals_out)}] "
        f"manual_axes={{{', '.join(map(axis_text, left))}}} ({head}) {{\n"
        f"{names}{text(inside)}\nsdy.return{end}\n}} : "
        f"({', '.join(given)}) -> ({', '.join(made)})",
    )
    return results


def attributes(
    module: Any, aval: Aval, sharding: Sharding | None, kind: str | None
) -> list[str]:
    """Returns the attributes that say where an argument or a result is.

    Args:
      module: being written.
      aval: its type; keys have axes more than it shows.
      sharding: a `NamedSharding`, or None.
      kind: of the memory (XLA refuses to return a value in host memory without it);
        None is the devices' own.
    """
    found = []
    if sharding is not None:
        assert isinstance(sharding, NamedSharding)
        ndim = len(aval.physical.shape)
        # What enters or leaves a program is summed up; see `core/spmd/layouts`.
        spec = PartitionSpec(*sharding.spec)
        text = spec_text(module.mesh(sharding.mesh), spec, ndim, True)
        found.append(f"sdy.sharding = #sdy.sharding{text}")
    if kind is not None:
        found.append(f'mhlo.memory_kind = "{kind}"')
    return found
