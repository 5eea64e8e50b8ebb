"""Explicit mesh axes: `reshard`, and functions where axes are of another type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import as_array, is_arraylike, not_an_array, typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.source import name_of
from fxflow.devices.meshes import (
    AbstractMesh,
    AxisType,
    Layout,
    Mesh,
    PartitionSpec,
    current_mesh,
    note_mesh_read,
    set_mesh,
)
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError
from fxflow.lax.calls import JitCall
from fxflow.lax.transfer import as_sharding, is_sharding_leaf, put_traced, require_fit
from fxflow.transforms.arguments import FlatFunction

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def reshard(xs: T, out_shardings: Any) -> T:
    """Divides arrays in another way.

    Over explicit axes of a mesh this is how the type of an array changes, in jitted
    functions and outside of them; the cotangent is divided as `xs` was.

    A spec with `unreduced={"x"}` puts off the sum of a product over `x` until another
    `reshard`; with `reduced={"x"}` that of the cotangent.

    Args:
      xs: array-like or pytree of them.
      out_shardings: `Sharding`s, or `PartitionSpec`s over the current mesh: one for
        all, or a pytree prefix of `xs`.

    Returns:
      The same arrays.

    Raises:
      ArgumentError: a leaf is not an array, or `out_shardings` is something else.
      PlacementError: an axis cannot be divided evenly, or the mesh has no such axis.

    Example:
      >>> explicit = fxflow.sharding.AxisType.Explicit
      >>> mesh = fxflow.make_mesh((1,), ("x",), axis_types=explicit)
      >>> with fxflow.set_mesh(mesh):
      ...     fxflow.typeof(reshard(fnp.ones((2, 3)), fxflow.P("x")))
      f32[2@x,3]
    """
    leaves, treedef = tree.flatten(xs)
    wanted = tree.broadcast_prefix(
        out_shardings, xs, is_leaf=is_sharding_leaf, name="reshard"
    )
    return treedef.unflatten(map(_resharded, leaves, wanted))  # type: ignore[no-any-return]


def _resharded(leaf: Any, where: Any) -> Any:
    if not is_arraylike(leaf):
        raise not_an_array(leaf, "reshard: got")
    array = as_array(leaf)
    sharding = as_sharding(where, "reshard")
    require_fit(sharding, typeof(array), "reshard")
    return put_traced(array, sharding)


def auto_axes(
    f: Callable[P, R] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Any:
    """Leaves explicit axes of the mesh to the compiler within a function.

    For operations whose types cannot determine a sharding: inside, types have no
    sharding along these axes.

    Args:
      f: function of arrays or pytrees of them. Left out, a decorator is returned.
      axes: name of an axis of the current mesh, or a sequence of names; None is all.
      out_sharding: how the results are divided: a `Sharding`, or a `PartitionSpec` over
        the current mesh, one for all or a pytree prefix of the result.

    Returns:
      A function of the same arguments.

    Raises:
      ArgumentError: `f` is not callable, `out_sharding` is left out, or the mesh has no
        such axis.

    Example:
      >>> explicit = fxflow.sharding.AxisType.Explicit
      >>> mesh = fxflow.make_mesh((1,), ("x",), axis_types=explicit)
      >>> sort = auto_axes(fnp.sort, out_sharding=fxflow.P("x"))
      >>> with fxflow.set_mesh(mesh):
      ...     fxflow.typeof(sort(reshard(fnp.ones(4), fxflow.P("x"))))
      f32[4@x]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    require_callable(f, "auto_axes")
    if out_sharding is None:
        raise ArgumentError(
            f"auto_axes: out_sharding must say how the results of {name_of(f)} are "
            "divided, as in out_sharding=P('x')"
        )

    def back(outs: Any, mesh: Mesh | None) -> Any:
        return reshard(outs, out_sharding)

    return _within(f, "auto_axes", axes, AxisType.Auto, None, back)


def explicit_axes(
    f: Callable[P, R] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Any:
    """Makes axes of the mesh that are the compiler's explicit within a function.

    Inside, types say how arrays are divided over them; the results' types do not.

    Args:
      f: function of arrays or pytrees of them. Left out, a decorator is returned.
      axes: name of an axis of the current mesh, or a sequence of names; None is all.
      in_sharding: how the arguments are divided inside: a `Sharding`, or a
        `PartitionSpec`, one for all or a pytree prefix of the tuple of arguments
        (keyword arguments after them, as a dictionary).

    Returns:
      A function of the same arguments.

    Raises:
      ArgumentError: `f` is not callable, `in_sharding` is left out, there is no current
        mesh, or it has no such axis.

    Example:
      >>> mesh = fxflow.make_mesh((1,), ("x",))
      >>> show = lambda x: print(fxflow.typeof(x))
      >>> with fxflow.set_mesh(mesh):
      ...     explicit_axes(show, in_sharding=fxflow.P("x"))(fnp.ones(4))
      f32[4@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    require_callable(f, "explicit_axes")
    if in_sharding is None:
        raise ArgumentError(
            f"explicit_axes: in_sharding must say how the arguments of {name_of(f)} "
            "are divided, as in in_sharding=P('x')"
        )

    def back(outs: Any, mesh: Mesh | None) -> Any:
        return outs if mesh is None else tree.map(lambda x: _forgotten(x, mesh), outs)

    kind = AxisType.Explicit
    return _within(f, "explicit_axes", axes, kind, in_sharding, back)


def _within(
    f: Callable[..., Any],
    what: str,
    axes: Any,
    kind: AxisType,
    in_sharding: Any,
    back: Callable[[Any, Mesh | None], Any],
) -> Callable[..., Any]:
    """Returns a function that runs where axes of the current mesh are of another type.

    Args:
      f: the function.
      what: `auto_axes` or `explicit_axes`, for messages.
      axes: names of the axes, None for all.
      kind: what they are inside.
      in_sharding: of the arguments inside; None: what is left of their own.
      back: makes of the results, and the mesh outside, results for the outside.
    """

    @boundary
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        note_mesh_read()
        mesh = current_mesh()
        inside = mesh and mesh.with_types(_names(axes, mesh, what), kind)
        if inside is None and kind is AxisType.Explicit:
            raise ArgumentError(
                f"{what}: there is no current mesh: use `with fxflow.set_mesh(mesh):`"
            )
        leaves, in_tree = tree.flatten((args, kwargs))
        for leaf in leaves:
            if not is_arraylike(leaf):
                raise not_an_array(leaf, f"{what}: an argument of {name_of(f)} is")
        flat = FlatFunction(f, in_tree, name_of(f), keywords=True)
        avals = [_cast(typeof(leaf), inside) for leaf in leaves]

        def cast(*values: Any) -> list[Any]:
            with set_mesh(inside), open_layouts(_all_auto(inside)):
                if in_sharding is not None:
                    args, kwargs = in_tree.unflatten(values)
                    given = (*args, kwargs) if kwargs else args
                    values = tuple(tree.leaves(reshard(given, in_sharding)))
                outs = flat(*values)
            return tree.leaves(back(flat.out_tree.unflatten(outs), mesh))

        graph, consts = trace_flat(cast, avals, name=name_of(f))
        outs = JitCall.bind(*consts, *leaves, graph=graph)
        return flat.out_tree.unflatten(outs)

    return call


def _names(axes: Any, mesh: Mesh, what: str) -> tuple[Any, ...]:
    if axes is None:
        return mesh.axis_names
    names = axes if isinstance(axes, list | tuple | set | frozenset) else (axes,)
    for name in names:
        if name not in mesh.axis_names:
            raise ArgumentError(
                f"{what}: axes has {name!r}, which is not an axis of {mesh}"
            )
    return tuple(names)


def _all_auto(mesh: Mesh | None) -> bool:
    """Returns whether no axis is explicit: there types leave all open."""
    return mesh is None or not mesh.explicit_axes


def _cast(aval: Any, mesh: Mesh | None) -> Any:
    """Returns a type with what is left of its layout over a mesh's explicit axes."""
    if mesh is None or aval.layout is None:
        return aval.update(layout=None)
    entries = tuple(
        tuple(name for name in entry if name in mesh.explicit_axes)
        for entry in aval.layout.entries
    )
    known = frozenset(mesh.explicit_axes)
    sums = aval.layout.unreduced & known, aval.layout.reduced & known
    return aval.update(layout=Layout(mesh, entries, *sums).or_none())


def _forgotten(x: Any, mesh: Mesh) -> Any:
    """Returns a result of `explicit_axes` with a type of the outside.

    It stays divided as it is; what is whole is the compiler's to divide.
    """
    array = as_array(x)
    layout = typeof(array).layout
    with open_layouts(_all_auto(mesh)):
        entries = ((),) * array.ndim if layout is None else layout.entries
        spec = (entry or PartitionSpec.UNCONSTRAINED for entry in entries)
        return put_traced(array, NamedSharding(mesh, PartitionSpec(*spec)))


def get_abstract_mesh() -> AbstractMesh:
    """Returns the current mesh without its devices.

    Returns:
      An `AbstractMesh`; one without axes if there is no current mesh. Within
      `auto_axes` and `explicit_axes` its axes are of the types that they have there.

    Example:
      >>> get_abstract_mesh().axis_names
      ()
    """
    note_mesh_read()
    mesh = current_mesh()
    return AbstractMesh((), ()) if mesh is None else mesh.abstract_mesh
