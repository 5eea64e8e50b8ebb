"""`vmap`: a function of one example as a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import (
    as_array,
    dtypes,
    is_arraylike,
    not_an_array,
    typeof,
)
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.batching import batch_flat, materialize
from fxflow.core.ir.discharge import require_distinct
from fxflow.core.ir.higher_order import move_axis
from fxflow.core.ir.references import Ref
from fxflow.core.ir.trace import state
from fxflow.core.labels import leaf_labels
from fxflow.core.sizes import length_of
from fxflow.core.source import name_of
from fxflow.devices.meshes import Layout, names_of
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import (
    ArgumentError,
    AxisError,
    ShapeError,
    ShardingTypeError,
    TreeError,
)
from fxflow.lax.transfer import put_traced
from fxflow.transforms.arguments import (
    FlatFunction,
    require_axes,
    transformed,
)
from fxflow.transforms.ref_calls import Lifted

P = ParamSpec("P")
R = TypeVar("R")


def flat_axes(axes: Any, structure: Any, what: str, name: str) -> list[int | None]:
    """Returns one axis for each leaf of a pytree.

    Args:
      axes: an int, None, or a prefix of the tree with ints and Nones.
      structure: of the tree.
      what: `in_axes` or `out_axes`, for messages.
      name: of the function, for messages.

    Raises:
      ArgumentError: `axes` is not a prefix of the tree.
    """
    if axes is None or isinstance(axes, int):
        return [axes] * structure.num_leaves
    # Leaves that are not containers, whatever the real ones are.
    dummy = structure.unflatten([object()] * structure.num_leaves)
    try:
        return tree.broadcast_prefix(axes, dummy, lambda x: x is None, name="axes")
    except (TreeError, ValueError, TypeError) as error:
        raise ArgumentError(
            f"vmap: {what}={axes} does not fit the structure of "
            f"{'the arguments' if what == 'in_axes' else 'the result'} of {name}: "
            f"{tree.written(structure)}, each * a leaf: "
            f"{str(error).removeprefix('axes: ')}"
        ) from None


def checked_axis(axis: int, ndim: int, what: str, hint: str = "") -> int:
    """Returns an axis counted from the front.

    Args:
      axis: as the user gave it.
      ndim: number of axes there are.
      what: begins the message.
      hint: ends it.

    Raises:
      AxisError: it is out of range.
    """
    if not -ndim <= axis < ndim:
        raise AxisError(f"{what}: axis {axis} is out of range for {ndim} axes{hint}")
    return axis % ndim


def common_size(
    leaves: Sequence[Any],
    axes: Sequence[int | None],
    labels: Sequence[str],
    name: str,
    axis_size: int | None,
) -> int:
    """Returns the length of the mapped axis.

    Raises:
      ShapeError: it differs between arguments.
      ArgumentError: nothing is mapped and no size is given.
    """
    found: dict[int, str] = {}  # the first that has a length
    if axis_size is not None:
        found[length_of(axis_size)] = "axis_size"
    for leaf, axis, label in zip(leaves, axes, labels, strict=True):
        if axis is None:
            continue
        size = typeof(leaf).shape[axis]
        if size not in found:
            found[size] = f"axis {axis} of argument {label} ({typeof(leaf)})"
    if not found:
        raise ArgumentError(
            f"vmap: nothing to map over: no argument of {name} has a mapped axis; give "
            "one in in_axes, or give axis_size"
        )
    if len(found) > 1:
        listed = ", ".join(f"{where} is {size}" for size, where in found.items())
        raise ShapeError(
            f"vmap: mapped axes of {name} differ in length: {listed}; in_axes says "
            "which axes to map, and None in it passes an argument unmapped"
        )
    return next(iter(found))


def _divided_over(
    values: Sequence[Any], mapped: Sequence[bool], name: str
) -> Layout | None:
    """Returns the first layout by which a type divides the mapped axis, or None.

    Raises:
      ShardingTypeError: they say different things.
    """
    found: dict[Any, Any] = {}
    for value, is_mapped in zip(values, mapped, strict=True):
        aval = typeof(value) if is_mapped else None
        if aval is not None and aval.layout is not None and aval.layout.entries[0]:
            found[aval.layout.entries[0]] = aval
    if len(found) > 1:
        one, other = list(found.values())[:2]
        raise ShardingTypeError(
            f"vmap: mapped axes of {name} are divided differently (here they are in "
            f"front): {one} and {other}: reshard one (fxflow.sharding.reshard)"
        )
    for aval in found.values():
        return aval.layout  # type: ignore[no-any-return]
    return None


def _divided_as(value: Any, front: Layout) -> Any:
    """Returns a mapped result whose type divides the mapped axis as arguments do."""
    aval = typeof(value)
    own = aval.layout or Layout(front.mesh, ((),) * aval.ndim)
    if own.entries[0] == front.entries[0]:
        return value
    spec = own.replace(entries=(front.entries[0], *own.entries[1:])).spec
    return put_traced(value, NamedSharding(front.mesh, spec))


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[P, R]:
    """Makes a function that applies `fun` to every slice of its arguments at once.

    Args:
      fun: function of arrays or pytrees of them.
      in_axes: an int, None (not mapped), or a tuple with an entry for each positional
        argument, each an int, None or a pytree of them that is a prefix of the
        argument. Keyword arguments are mapped over axis 0. What is not mapped may be
        anything, a function say.
      out_axes: where the mapped axis goes in the results: an int, None (only for
        results that do not depend on mapped arguments) or a pytree prefix of the
        result.
      axis_name: a name under which collectives (`lax.psum`, …) refer to the axis.
      axis_size: length of the axis; needed only if no argument is mapped.
      spmd_axis_name: a mesh axis, or a tuple of them, to divide the mapped axis over:
        sharding constraints in `fun` say so of it, and in a `shard_map` over these axes
        each device runs its own slices. None leaves it to the compiler.

    Returns:
      A function of the same arguments, with an extra axis where mapped.

    Raises:
      ArgumentError: the axes do not fit the arguments or results, or nothing is mapped.
      ShapeError: mapped axes differ in length.
      AxisError: an axis is out of range.

    Example:
      >>> vmap(fnp.dot)(fnp.ones((2, 3)), fnp.ones((2, 3))).tolist()
      [3.0, 3.0]

      Gradients of each example of a batch, with weights that are not mapped:

      >>> def loss(w, x, y):
      ...     return (fnp.tanh(x @ w) - y) ** 2
      >>> x, y = fnp.ones((5, 3)), fnp.zeros(5)
      >>> vmap(fxflow.grad(loss), in_axes=(None, 0, 0))(fnp.ones(3), x, y).shape
      (5, 3)
    """
    require_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if in_axes is not None and not isinstance(in_axes, int | tuple):
        raise ArgumentError(
            "vmap: in_axes is an int, None or a tuple with one entry for each "
            f"positional argument, got {in_axes!r}"
        )
    require_axes(in_axes, "vmap: in_axes")
    require_axes(out_axes, "vmap: out_axes")
    name = name_of(fun)
    given_spmd = () if spmd_axis_name is None else names_of(spmd_axis_name)

    @transformed(fun, "vmap")
    @boundary
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ArgumentError(
                f"vmap: in_axes must have one entry for each of the {len(args)} "
                f"positional arguments of {name}, got {in_axes}"
            )
        leaves, in_tree = tree.flatten((args, kwargs))
        labels = leaf_labels(fun, args, kwargs)
        axes = flat_axes(in_axes, tree.structure(args), "in_axes", name)
        # Keyword arguments come last, and have no entry in `in_axes`.
        axes += [0] * (len(leaves) - len(axes))
        for leaf, axis, label in zip(leaves, axes, labels, strict=True):
            if (
                axis is not None
                and not is_arraylike(leaf)
                and not isinstance(leaf, Ref)
            ):
                raise not_an_array(leaf, f"vmap: argument {label} of {name} is")
        axes = [
            None
            if axis is None
            else checked_axis(
                axis,
                typeof(x).ndim,
                f"vmap: in_axes for argument {label} of {name}, {typeof(x)}",
                "; None in in_axes passes it unmapped"
                + ", random.split(key, n) makes a key for each"
                * dtypes.is_key(typeof(x).dtype),
            )
            for axis, x, label in zip(axes, leaves, labels, strict=True)
        ]
        size = common_size(leaves, axes, labels, name, axis_size)
        flat = FlatFunction(fun, in_tree, name, keywords=True)
        function: Any = flat
        lifted = None
        mapped_refs = [
            i
            for i, axis in enumerate(axes)
            if axis is not None and isinstance(leaves[i], Ref)
        ]
        if mapped_refs:
            require_distinct(leaves, f"vmap({name})", labels)
            # Those that are not mapped are passed as they are.
            function = lifted = Lifted(flat, leaves, mapped_refs)
            leaves = lifted.read()
        # To the front once, here, where all `batch` rules expect it.
        moved = [
            x if axis is None else move_axis(x, axis, 0)
            for x, axis in zip(leaves, axes, strict=True)
        ]
        mapped = [axis is not None for axis in axes]
        layout = _divided_over(moved, mapped, name)
        spmd = given_spmd or (() if layout is None else layout.entries[0])
        outs, out_mapped = batch_flat(function, size, moved, mapped, axis_name, spmd)
        if lifted is not None:
            count = len(outs) - len(mapped_refs)
            lifted.write(
                [
                    move_axis(materialize(out, size, m), 0, axes[i] or 0)
                    for i, out, m in zip(
                        mapped_refs, outs[count:], out_mapped[count:], strict=True
                    )
                ]
            )
            outs, out_mapped = outs[:count], out_mapped[:count]
        targets = flat_axes(out_axes, flat.out_tree, "out_axes", name)
        moved = []
        for out, is_mapped, target in zip(outs, out_mapped, targets, strict=True):
            if target is None:
                if is_mapped:
                    raise ArgumentError(
                        f"vmap: out_axes is None for a result of {name} that depends "
                        "on mapped arguments: give it an axis"
                    )
                moved.append(as_array(out))
                continue
            full = materialize(out, size, is_mapped)
            if is_mapped and layout is not None and not state.open_layouts:
                full = _divided_as(full, layout)
            aval = typeof(full)
            where = f"vmap: out_axes of {name} for a result of {aval.ndim - 1} axes"
            moved.append(move_axis(full, 0, checked_axis(target, aval.ndim, where)))
        return flat.out_tree.unflatten(moved)

    return vmapped
