"""`shard_map`: a function of the parts of arrays, run by every device of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from typing import Any, ParamSpec, TypeVar, overload

from fxflow.core import tree
from fxflow.core.arrays import Aval, as_array, is_arraylike, not_an_array, typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.ir import trace
from fxflow.core.ir.discharge import (
    discharge,
    read_all,
    require_distinct,
    write_back,
)
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Flags
from fxflow.core.ir.references import Ref
from fxflow.core.ir.staging import trace_flat
from fxflow.core.labels import leaf_labels
from fxflow.core.source import name_of, wraps
from fxflow.core.spmd.varying import with_outputs_varying
from fxflow.devices.meshes import Mesh, PartitionSpec, get_mesh
from fxflow.errors import ArgumentError, ShapeError, TreeError
from fxflow.lax.shard_map import ShardMap, manual_axes
from fxflow.lax.sharded_parts import axes_of, local_shape
from fxflow.transforms.arguments import FlatFunction
from fxflow.transforms.jit import jit
from fxflow.transforms.ref_calls import Lifted

P = ParamSpec("P")
R = TypeVar("R")
Names = tuple[Any, ...]


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    mesh: Mesh | None = None,
    in_specs: Any = None,
    out_specs: Any = None,
    axis_names: Set[Any] = frozenset(),
    check: bool = True,
) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    mesh: Mesh | None = None,
    in_specs: Any = None,
    out_specs: Any = None,
    axis_names: Set[Any] = frozenset(),
    check: bool = True,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    mesh: Mesh | None = None,
    in_specs: Any = None,
    out_specs: Any = None,
    axis_names: Set[Any] = frozenset(),
    check: bool = True,
) -> Any:
    """Runs a function on every device of a mesh, on the device's parts of the arrays.

    Inside, the axes of the mesh are named axes: the collectives of `fxflow.lax` combine
    what the devices have.

    Args:
      f: function of arrays or pytrees of them. Left out, a decorator is returned.
      mesh: the devices; None is the current mesh (`set_mesh`).
      in_specs: how each argument is divided: `PartitionSpec`s, a pytree prefix of the
        tuple of arguments (or one for all). An axis of the mesh that a spec does not
        name: every device along it gets the same. None: as the arguments' types say,
        if all axes of the mesh are explicit.
      out_specs: how the results are put together, a pytree prefix of the result. An
        axis that a spec does not name: the devices along it must give the same.
      axis_names: the axes that `f` is written for; the compiler divides the work along
        the others. Empty: all axes, and inside another `shard_map` all that are left.
      check: whether to make sure that what the devices must give alike does not depend
        on the device.

    Returns:
      A function of whole arrays.

    Raises:
      ArgumentError: a spec is missing, names an axis that is not there or not manual,
        or a result differs between devices that must give the same.
      ShapeError: an array cannot be divided evenly, or has too few axes.

    Derivatives of the result are those of the function of whole arrays. Derivatives
    taken *inside* `f` are those of the sum of what all devices compute, by values that
    the devices share: a gradient with respect to parameters that came in with `P()` is
    already summed over the devices (average it by dividing, not by `pmean`). Values
    become a device's own by `lax.pcast(x, axis_name, to="varying")`, and their
    gradients too. With `check=False` nothing is known of what is shared: derivatives
    inside are of the one device's function, in which the transpose of a `psum` is a
    `psum`.

    Source: Shardy's `sdy.manual_computation`.

    Example:
      >>> from fxflow import P, lax
      >>> total = shard_map(lambda x: lax.psum(fnp.sum(x), "i"),
      ...                   mesh=fxflow.make_mesh((1,), ("i",)),
      ...                   in_specs=P("i"), out_specs=P())
      >>> float(total(fnp.arange(4.0)))
      6.0
    """
    if f is None:
        return functools.partial(
            shard_map,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=axis_names,
            check=check,
        )
    fun = f
    require_callable(fun, "shard_map")
    name = name_of(fun)
    if out_specs is None:
        raise ArgumentError(
            f"shard_map({name}): out_specs is missing; P() means that every device has "
            "the whole"
        )

    def whole(*args: Any) -> Any:
        devices = get_mesh() if mesh is None else mesh
        return run(fun, devices, args, in_specs, out_specs, axis_names, check, name)

    # For the cache: a signature is traced once. Inlined, since under a trace it is one
    # node already.
    compiled = jit(wraps(fun)(whole), inline=True)

    @boundary
    @wraps(fun)
    def call(*args: Any) -> Any:
        return compiled(*args)

    return call


def run(
    fun: Callable[..., Any],
    mesh: Mesh,
    args: Sequence[Any],
    in_specs: Any,
    out_specs: Any,
    axis_names: Set[Any],
    check: bool,
    name: str,
    agree: bool = False,
) -> Any:
    """Traces the function of parts and binds the operation; see `shard_map`.

    With `agree` and without `check`, types do not tell what differs, but results that
    no axis divides must still be the same on all devices.
    """
    axes = _manual(mesh, axis_names, name)
    leaves, treedef = tree.flatten(tuple(args))
    labels = leaf_labels(fun, tuple(args), {})
    for leaf, label in zip(leaves, labels, strict=True):
        if not is_arraylike(leaf) and not isinstance(leaf, Ref):
            raise not_an_array(leaf, f"shard_map({name}): argument {label} is")
    if isinstance(in_specs, list):
        in_specs = tuple(in_specs)
    flat = FlatFunction(fun, treedef, name)
    lifted = Lifted(flat, leaves)
    arrays = [as_array(leaf) for leaf in lifted.read()]
    if in_specs is None:
        specs = _typed_specs(arrays, mesh, name)
    else:
        per_argument = type(in_specs) is tuple  # a PartitionSpec is a tuple, too
        if per_argument and len(in_specs) != len(args):
            raise TreeError(
                f"shard_map({name}): in_specs must have one entry for each of the "
                f"{len(args)} arguments, got {in_specs}"
            )
        specs = _specs(in_specs, tuple(args), f"shard_map({name}): in_specs")
    avals = []
    for array, spec, label in zip(arrays, specs, labels, strict=True):
        aval = typeof(array)
        _fits(aval, spec, mesh, axes, f"shard_map({name}): argument {label}")
        vma = aval.vma | axes_of(spec) if check else aval.vma
        shape = local_shape(aval.shape, spec, mesh)
        avals.append(aval.update(shape=shape, vma=vma, layout=None))
    with manual_axes(mesh, axes, tracked=check):
        graph, captured = trace_flat(lifted, avals, name=name, labels=labels)
        require_distinct([*captured, *leaves], f"shard_map({name})")
        pure = discharge(graph)
    held, graph, consts = len(pure.written), pure.graph, read_all(captured)
    # A tree of the result's structure, for the prefix to be compared with.
    count = len(graph.outputs) - len(lifted.refs) - held
    dummy = flat.out_tree.unflatten(range(count))
    if callable(out_specs):  # known only now
        out_specs = out_specs()
    results = _specs(out_specs, dummy, f"shard_map({name}): out_specs")
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(dummy)]
    # References come out as they went in: captured ones whole.
    results += [*(specs[i] for i in lifted.refs), *(PartitionSpec(),) * held]
    paths += [
        *(f" {labels[i]}" for i in lifted.refs),
        *[" a captured reference"] * held,
    ]
    for aval, spec, path in zip(graph.out_avals, results, paths, strict=True):
        what = f"shard_map({name}): the result{f' at {path}' if path else ''}"
        _named(aval, spec, mesh, axes, what)
    # What the function captured every device gets whole.
    shared = (PartitionSpec(),) * len(consts)
    if check:
        _check(graph.out_avals, results, paths, mesh, axes, name)
        with manual_axes(mesh, axes, tracked=True):
            # Cotangents of stacked results differ, even where the results do not.
            named = [a.vma | axes_of(s) for a, s in zip(graph.out_avals, results)]
            graph = with_outputs_varying(graph, named)
    elif agree and axes and not all(map(axes_of, results)):
        (axis,) = axes
        shards = [axis in axes_of(spec) for spec in (*shared, *specs)]
        differs = _differs(graph, mesh.shape[axis], shards, axis)
        for aval, spec, differ in zip(graph.out_avals, results, differs, strict=True):
            if differ and not axes_of(spec) and mesh.shape[axis] > 1:
                raise ArgumentError(
                    f"pmap({name}): a result {aval} may differ between devices, but "
                    "out_axes=None gives it once: "
                    "combine it (lax.psum, lax.pmean, lax.all_gather, …), or give it "
                    "an axis"
                )
    if not axes:  # all are manual around it
        outs = graph.evaluate(*consts, *arrays)
        write_back(captured, pure.written, outs[len(outs) - held :])
        lifted.write(outs[count : len(outs) - held])
        return flat.result(outs)
    outs = ShardMap.bind(
        *consts,
        *arrays,
        graph=graph,
        mesh=mesh,
        in_specs=(*shared, *specs),
        out_specs=tuple(results),
        axes=axes,
        check=check,
    )
    write_back(captured, pure.written, outs[len(outs) - held :])
    lifted.write(outs[count : len(outs) - held])
    return flat.result(outs)


def _typed_specs(leaves: Sequence[Any], mesh: Any, name: str) -> list[Any]:
    """Returns how the types of arguments say that they are divided."""
    if getattr(mesh, "auto_axes", True):
        raise ArgumentError(
            f"shard_map({name}): in_specs is missing; P() means that every device has "
            "the whole. Types tell only if all axes of the mesh are explicit"
        )
    layouts = [typeof(leaf).layout for leaf in leaves]
    return [PartitionSpec() if x is None else x.spec for x in layouts]


def _manual(mesh: Mesh, axis_names: Set[Any], name: str) -> Names:
    if not isinstance(mesh, Mesh):
        raise ArgumentError(
            f"shard_map({name}): mesh must be a Mesh, got {type(mesh).__name__}"
        )
    unknown = [n for n in axis_names if n not in mesh.axis_names]
    if unknown:
        raise ArgumentError(
            f"shard_map({name}): axis_names has {unknown[0]!r}, but the axes of {mesh} "
            f"are {', '.join(map(repr, mesh.axis_names))}"
        )
    taken = trace.manual_meshes()
    for own, other in taken.items():
        if other != mesh:
            raise ArgumentError(
                f"shard_map({name}): inside a shard_map or pmap over {own!r} of "
                f"{other} the mesh must be the same, got {mesh}"
            )
        if own in axis_names:
            raise ArgumentError(
                f"shard_map({name}): axis_names has {own!r}, which the shard_map "
                "around it is manual over already; leave it out"
            )
    left = (n for n in mesh.axis_names if n not in taken)
    return tuple(n for n in left if not axis_names or n in axis_names)


def _specs(prefix: Any, full: Any, what: str) -> list[PartitionSpec]:
    def is_spec(value: Any) -> bool:
        return value is None or isinstance(value, PartitionSpec)

    given = tree.broadcast_prefix(prefix, full, is_leaf=is_spec, name=what)
    for spec in given:
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(
                f"{what} must hold PartitionSpecs, got {spec!r}; P() means the whole"
            )
    return given


def _named(aval: Any, spec: PartitionSpec, mesh: Mesh, axes: Names, what: str) -> None:
    """Raises an error unless a spec fits the number of axes and names manual ones."""
    if len(spec) > aval.ndim:
        raise ShapeError(f"{what} is {aval}: it has fewer axes than {spec} has entries")
    if spec.unreduced or spec.reduced:
        raise ArgumentError(
            f"{what}: {spec}: a shard_map has no unreduced or reduced arguments and "
            "results: reshard them outside, or sum up with fxflow.lax.psum inside"
        )
    seen: set[Any] = set()
    for names in spec.names():
        mesh.length(names)
        for name in names:
            if name not in axes:
                why = (
                    "the shard_map around it is manual over already"
                    if name in trace.manual_meshes()
                    else "axis_names leaves to the compiler"
                )
                raise ArgumentError(
                    f"{what}: {spec} names the axis {name!r}, which {why}"
                )
            if name in seen:
                raise ArgumentError(f"{what}: {spec} names the axis {name!r} twice")
            seen.add(name)


def _fits(aval: Any, spec: PartitionSpec, mesh: Mesh, axes: Names, what: str) -> None:
    _named(aval, spec, mesh, axes, what)
    for axis, names in enumerate(spec.names()):
        parts = mesh.length(names)
        if aval.shape[axis] % parts:
            raise ShapeError(
                f"{what} is {aval}: its axis {axis} cannot be divided into {parts} "
                f"equal parts as {spec} over {mesh} asks; pad it, or use None there"
            )


# -- what is the same on all devices ---------------------------------------------------


def _differs(graph: Graph, size: int, shards: Flags, axis: Any) -> list[bool]:
    """Returns which results may differ along an axis, where no type tells.

    They are those that a `vmap` with this named axis would map. A function that `vmap`
    refuses (by a callback without `vmap_method`) is not checked.
    """
    try:
        return batch_graph(graph, size, shards, axis_name=axis)[1]
    except ArgumentError:
        return [False] * len(graph.outputs)


def _check(
    avals: Sequence[Aval],
    specs: Sequence[PartitionSpec],
    paths: Sequence[str],
    mesh: Mesh,
    axes: Names,
    name: str,
) -> None:
    """Raises an error if a result's type varies along an axis its spec does not name.

    Args:
      avals: of the results.
      specs: theirs.
      paths: to them in the result, for the message.
      mesh: of the axes.
      axes: the manual ones.
      name: of the function.
    """
    for aval, spec, path in zip(avals, specs, paths, strict=True):
        differs = aval.vma - axes_of(spec)
        wrong = [n for n in axes if n in differs and mesh.shape[n] > 1]
        if wrong:
            raise ArgumentError(
                f"shard_map({name}): the result{f' at {path}' if path else ''} {aval} "
                f"may vary along the mesh axis {wrong[0]!r}, which its out_specs "
                f"{spec} do not name: combine it (lax.psum, lax.pmean, "
                f"lax.all_gather(to='invarying'), …), name the axis, or pass "
                f"check=False if you know that it is the same on all devices"
            )
