"""`auto_sharding`: how arguments and results of a function are divided, by cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core import tree
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.source import wraps
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.rates import kind_of
from fxflow.dataflow.sharding.plan import ShardingPlan
from fxflow.dataflow.sharding.sharded import Sharded, shard
from fxflow.devices.memory import bytes_text
from fxflow.devices.meshes import Mesh
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, PlacementError
from fxflow.transforms.jit import jit
from fxflow.transforms.stages import Traced


def auto_sharding(
    fun: Callable[..., Any],
    mesh: Mesh,
    *,
    memory: int | None = None,
    costs: Costs | None = None,
    donate_argnums: int | Sequence[int] | None = None,
) -> Callable[..., ShardingPlan]:
    """Makes a function that chooses how `fun` is divided over a mesh.

    Axes of arrays that belong together (the batch, the hidden units of a layer, a
    vocabulary) are found in the function's graph, and the axes of the mesh are given to
    them so that the predicted time of a call is least. Layers that are alike are
    decided once. If memory is short, parameters and optimizer states are stored in
    parts and gathered where they are used. The function may be a training step as well
    as a network: gradients and updates are operations like others.

    Arguments of a `jit` function that have `in_shardings` keep them, and sharding
    constraints in the function (`with_sharding_constraint`) are followed.

    Args:
      fun: function of arrays or pytrees of them; one that `jit` made keeps its
        donations.
      mesh: of devices of one kind, with axes of `AxisType.Auto`.
      memory: bytes that may be used on each device. None: what the device has.
      costs: what computing and sending take. None: what is known about the devices; see
        `calibrate`.
      donate_argnums: positions of arguments whose memory results may take.

    Returns:
      A function of the same arguments (arrays or `ShapeDtypeStruct`s; nothing is
      computed) that returns a `ShardingPlan`.

    Raises:
      ArgumentError: `mesh` is not a mesh, or an argument is not an array.
      PlacementError: the mesh has no axes, or axes that are not automatic; no choice
        fits in memory; shardings that are given do not go together.

    Example:
      >>> def loss(params, x):
      ...     y = fnp.tanh(x @ params["up"]) @ params["down"]
      ...     return fnp.mean((y - x) ** 2)
      >>> S = fxflow.ShapeDtypeStruct
      >>> params = {"up": S((64, 256), "float32"), "down": S((256, 64), "float32")}
      >>> mesh = fxflow.make_mesh((4,), ("data",))
      >>> make_plan = auto_sharding(fxflow.grad(loss), mesh)
      >>> plan = make_plan(params, S((1 << 20, 64), "float32"))
      >>> plan.in_specs[1]
      PartitionSpec('data')
      >>> step = plan.jit()

    Source: Zheng et al., Alpa (2022), for costs of shardings and their integer program;
    named dimensions and conflicts as in TOAST (2025).
    """
    require_callable(fun, "auto_sharding")
    _check(mesh, memory)
    model = Costs() if costs is None else costs
    model.require_rates_of(mesh.devices.flat)
    jitted: Any = fun
    if not hasattr(fun, "trace") or donate_argnums is not None:
        jitted = jit(fun, donate_argnums=donate_argnums)

    @boundary
    @wraps(fun)
    def plan_of(*args: Any) -> ShardingPlan:
        traced: Traced = jitted.trace(*args)
        if tree.structure((args, {})) != traced.in_tree:
            raise ArgumentError(
                f"auto_sharding: {traced.name} has static arguments: plan a function "
                "that has them already, such as lambda x: f(x, 3)"
            )
        if traced.call is not None:
            raise ArgumentError(
                f"auto_sharding: {traced.name} takes or captures references: pass "
                "arrays, and return what is written"
            )
        for label, aval in zip(traced.labels, traced.in_avals, strict=True):
            if aval.is_symbolic:
                raise ArgumentError(
                    f"auto_sharding: {label} has the type {aval}: lengths must be "
                    "numbers to be divided"
                )
        limit = model.memory(mesh.flat[0]) if memory is None else memory
        count = traced.graph.num_consts
        sharded = shard(
            traced.graph,
            mesh,
            model,
            limit=math.inf if limit is None else limit,
            pinned=_pinned(traced, mesh),
            donated=[count + i for i, gives in enumerate(traced.donated) if gives],
        )
        _require_solution(traced, sharded, limit)
        return ShardingPlan(traced, sharded, fun)

    return plan_of


def _check(mesh: Any, memory: Any) -> None:
    if not isinstance(mesh, Mesh):
        raise ArgumentError(
            "auto_sharding: the second argument is a mesh, as make_mesh((2, 4), "
            f"('data', 'model')) makes it, got {mesh!r}"
        )
    if mesh.empty:
        raise PlacementError(
            "auto_sharding: the mesh has no axes to divide arrays over; make one with "
            "make_mesh((8,), ('data',))"
        )
    if mesh.explicit_axes:
        names = ", ".join(map(repr, mesh.explicit_axes))
        raise PlacementError(
            f"auto_sharding: the mesh has axes that types name ({names}), so the "
            "function itself says how arrays are divided: use axes of AxisType.Auto"
        )
    kinds = sorted({kind_of(d) for d in mesh.flat})
    if len(kinds) > 1:
        raise PlacementError(
            "auto_sharding: the devices of the mesh are of several kinds "
            f"({', '.join(kinds)}): a program divides its work equally"
        )
    ok = isinstance(memory, int) and not isinstance(memory, bool) and memory > 0
    if memory is not None and not ok:
        raise ArgumentError(
            f"auto_sharding: memory is the bytes on each device, got {memory!r}"
        )


def _pinned(traced: Traced, mesh: Mesh) -> dict[int, list[int]]:
    """Returns the masks of the arguments that have shardings already."""
    found: dict[int, list[int]] = {}
    names = list(mesh.axis_names)
    pairs = zip(traced.in_avals, traced.in_shardings, strict=True)
    for number, (aval, sharding) in enumerate(pairs):
        if sharding is None:
            continue
        if not isinstance(sharding, NamedSharding) or not mesh.same_grid(sharding.mesh):
            raise PlacementError(
                f"auto_sharding: {traced.labels[number]} has the sharding {sharding}, "
                f"which is not over the mesh {mesh}"
            )
        masks = [
            sum(1 << names.index(name) for name in row)
            for row in sharding.padded(aval.ndim)
        ]
        found[traced.graph.num_consts + number] = masks
    return found


def _require_solution(traced: Traced, sharded: Sharded, limit: int | None) -> None:
    solution, model = sharded.solution, sharded.model
    if not math.isfinite(solution.seconds):
        raise PlacementError(
            f"auto_sharding: the shardings that are given for arguments of "
            f"{traced.name} divide two dimensions of one operation over the same mesh "
            "axis: give fewer of them"
        )
    if solution.least is None:
        return
    assert limit is not None
    count = traced.graph.num_consts
    values = model.dims.program.inputs[count:]
    sizes = [model.nbytes(model.row(v), solution.masks) for v in values]
    told = ""
    if sizes:
        i = max(range(len(sizes)), key=sizes.__getitem__)
        spec = sharded.sharding(sharded.masks_of(values[i])).spec
        told = (
            f" The arguments take {bytes_text(sum(sizes))} of them, the largest one "
            f"{traced.labels[i]}, {traced.in_avals[i]}: {round(sizes[i]):,} bytes with "
            f"{spec!r}."
        )
    raise PlacementError(
        f"auto_sharding: {traced.name} does not fit in {limit:,} bytes on each of "
        f"{sharded.mesh.size} devices: the most divided plan needs "
        f"{round(solution.least):,}, which is {round(solution.least - limit):,} too "
        f"many.{told} Use more devices, donate arguments, or recompute activations "
        "(checkpoint)."
    )
