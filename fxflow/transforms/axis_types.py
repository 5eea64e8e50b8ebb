"""Explicit mesh axes: `reshard`, and functions that leave them to the compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import as_array, is_arraylike, not_an_array, typeof
from fxflow.core.boundary import boundary
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.source import name_of
from fxflow.devices.meshes import AbstractMesh, AxisType, current_mesh, note_mesh_read
from fxflow.errors import ArgumentError
from fxflow.lax.calls import JitCall
from fxflow.lax.transfer import as_sharding, is_sharding_leaf, put_traced, require_fit
from fxflow.transforms.arguments import FlatFunction, require_callable

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def reshard(xs: T, out_shardings: Any) -> T:
    """Divides arrays in another way.

    Over explicit axes of a mesh this is how the type of an array changes, in jitted
    functions and outside of them; the cotangent is divided as `xs` was.

    Args:
      xs: array-like or pytree of them.
      out_shardings: `Sharding`s, or `PartitionSpec`s over the current mesh: one for
        all, or a pytree prefix of `xs`.

    Returns:
      The same arrays.

    Raises:
      ArgumentError: a leaf is no array, or `out_shardings` is something else.
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
    """Leaves the explicit axes of the mesh to the compiler within a function.

    For what types cannot say how to divide: inside, they say nothing of it.

    Args:
      f: function of arrays or pytrees of them. Left out, a decorator is returned.
      axes: names of the axes; None is all explicit ones, and only all of them can be.
      out_sharding: how the results are divided: a `Sharding`, or a `PartitionSpec` over
        the current mesh, one for all or a pytree prefix of the result.

    Returns:
      A function of the same arguments.

    Raises:
      ArgumentError: `f` is not callable, `out_sharding` is left out, or `axes` are some
        of the explicit ones.

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
    function = f

    @boundary
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        mesh = current_mesh()
        note_mesh_read()
        if axes is not None and mesh is not None:
            given = {axes} if isinstance(axes, str) else set(axes)
            if given != set(mesh.explicit_axes):
                raise ArgumentError(
                    f"auto_axes: axes must be all explicit axes of {mesh} or None, got "
                    f"{axes!r}: some of them cannot be left to the compiler"
                )
        leaves, in_tree = tree.flatten((args, kwargs))
        for leaf in leaves:
            if not is_arraylike(leaf):
                raise not_an_array(leaf, f"auto_axes: an argument of {name_of(f)} is")
        flat = FlatFunction(function, in_tree, name_of(f), keywords=True)
        avals = [typeof(leaf).update(layout=None) for leaf in leaves]

        def divided(*values: Any) -> list[Any]:
            with open_layouts(True):
                outs = flat(*values)
            return tree.leaves(reshard(flat.out_tree.unflatten(outs), out_sharding))

        graph, consts = trace_flat(divided, avals, name=name_of(f))
        outs = JitCall.bind(*consts, *leaves, graph=graph)
        return flat.out_tree.unflatten(outs)

    return call


def get_abstract_mesh() -> AbstractMesh:
    """Returns the current mesh without its devices.

    Returns:
      An `AbstractMesh`; one without axes if there is no current mesh. Within
      `auto_axes` no axis is explicit.

    Example:
      >>> get_abstract_mesh().axis_names
      ()
    """
    note_mesh_read()
    mesh = current_mesh()
    if mesh is None:
        return AbstractMesh((), ())
    if state.open_layouts:
        return AbstractMesh(mesh.axis_sizes, mesh.axis_names, AxisType.Auto)
    return mesh.abstract_mesh
