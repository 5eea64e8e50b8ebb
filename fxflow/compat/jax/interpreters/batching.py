"""`jax.interpreters.batching`: batching rules of clients' primitives."""

from __future__ import annotations

from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import (
    AxisData,
    Primitive,
    axis_primitive_batchers,
    fancy_primitive_batchers,
    primitive_batchers,
)
from fxflow.core.arrays import typeof
from fxflow.core.interpreters.batching import BatchTrace, BatchTracer
from fxflow.core.ir.arith import broadcast_front
from fxflow.core.ir.higher_order import move_axis

not_mapped = None
NotMapped: type[None] = type(None)


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """Returns a value with the mapped axis in front, repeated if it has none."""
    if bdim is None:
        return broadcast_front(x, typeof(x), size)
    return move_axis(x, bdim % typeof(x).ndim, 0)


def moveaxis(x: Any, source: int, target: int) -> Any:
    """Returns a value with one axis moved."""
    ndim = typeof(x).ndim
    return move_axis(x, source % ndim, target % ndim)


def broadcast(x: Any, size: int, axis: int, *mesh_axis: Any) -> Any:
    """Returns a value repeated along a new axis."""
    return move_axis(broadcast_front(x, typeof(x), size), 0, axis)


def defvectorized(primitive: Primitive) -> None:
    """Says that a primitive of one operand works elementwise."""

    def rule(args: Any, dims: Any, **params: Any) -> Any:
        (x,), (dim,) = args, dims
        return primitive.bind(x, **params), dim

    primitive_batchers[primitive] = rule


def defbroadcasting(primitive: Primitive) -> None:
    """Says that a primitive of several operands works elementwise on one shape."""

    def rule(args: Any, dims: Any, **params: Any) -> Any:
        size = next(
            typeof(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None
        )
        moved = [bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
        return primitive.bind(*moved, **params), 0

    primitive_batchers[primitive] = rule


def defreducer(primitive: Primitive) -> None:
    """Says that a primitive of one operand reduces the axes of its parameter `axes`."""

    def rule(args: Any, dims: Any, *, axes: Any, **params: Any) -> Any:
        (operand,), (dim,) = args, dims
        moved = tuple(axis + (axis >= dim) for axis in axes)
        left = dim - sum(axis < dim for axis in moved)
        return primitive.bind(operand, axes=moved, **params), left

    primitive_batchers[primitive] = rule


vmappables: dict[type, tuple[Any, ...]] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Any,
    from_elt: Any,
    make_iota: Any,
) -> None:
    """Notes how a class is mapped; `vmap` maps it as the pytree that it is.

    Args:
      data_type: the class.
      spec_type: of what says which axis is mapped.
      axis_size_type: of the size of that axis.
      to_elt: makes an element.
      from_elt: stacks elements.
      make_iota: makes an index, or None.
    """
    vmappables[data_type] = (spec_type, axis_size_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """Forgets what `register_vmappable` noted of a class."""
    del vmappables[data_type]


__all__ = [
    "AxisData",
    "BatchTrace",
    "BatchTracer",
    "NotMapped",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]

listen(globals())
