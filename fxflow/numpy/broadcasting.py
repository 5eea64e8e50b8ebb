"""Arrays repeated to a common shape."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, Aval, Shape
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import ArrayLike, ShapeLike, array_of, joint_shape


def broadcast_to(
    array: ArrayLike, shape: ShapeLike, *, out_sharding: Any = None
) -> Array:
    """Repeats an array to a shape.

    Args:
      array: array-like.
      shape: int or sequence of ints; counted from the last axis, each length is that of
        `array` or replaces a 1.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array of that shape.

    Raises:
      ShapeError: the array does not broadcast to the shape.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> broadcast_to(np.arange(2), (2, 2))
      Array([[0, 1],
             [0, 1]], dtype=int32)

    Source: `numpy.broadcast_to`.
    """
    out = _broadcast_to(array, shape_or_length("broadcast_to", shape))
    if out_sharding is not None:
        return laid_out("broadcast_to", out, out_sharding)
    return out


@library("shape")
def _broadcast_to(array: Any, shape: Shape) -> Array:
    array = array_of(array, "broadcast_to")
    require_broadcasts("broadcast_to", array.aval, shape)
    return repeated(array, shape)


def require_broadcasts(name: str, aval: Aval, shape: Shape) -> None:
    """Checks that arrays of a type broadcast to a shape.

    Raises:
      ShapeError: they do not; `name` is the function's.
    """
    old = aval.shape
    if len(old) > len(shape) or any(
        n not in (1, m) for n, m in zip(old[::-1], shape[::-1], strict=False)
    ):
        raise ShapeError(
            f"{name}: {aval} does not broadcast to shape {shape}: counted from the "
            "last axis, lengths must be equal or 1"
        )


def broadcast_shapes(*shapes: Any) -> Shape:
    """Returns the shape that arrays of these shapes broadcast to.

    Args:
      *shapes: ints or sequences of ints.

    Returns:
      A tuple of Python ints.

    Raises:
      ShapeError: two lengths differ and neither is 1.

    Example:
      >>> broadcast_shapes((2, 1), (3,))
      (2, 3)

    Source: `numpy.broadcast_shapes`.
    """
    return lax.broadcast_shapes(
        *(shape_or_length("broadcast_shapes", s) for s in shapes)
    )


def broadcast_arrays(*args: Any) -> list[Array]:
    """Repeats arrays to the shape they broadcast to together.

    Args:
      *args: array-likes.

    Returns:
      A list of arrays of one shape, each of its own dtype.

    Raises:
      ShapeError: the shapes do not broadcast.

    Example:
      >>> [x.shape for x in broadcast_arrays(np.zeros((2, 1)), np.zeros(3))]
      [(2, 3), (2, 3)]

    Source: `numpy.broadcast_arrays`.
    """
    return list(_broadcast_arrays(*args))


@library()
def _broadcast_arrays(*args: Any) -> Any:
    arrays = [array_of(a, "broadcast_arrays") for a in args]
    if not arrays:
        return ()
    shape = joint_shape("broadcast_arrays", [a.aval for a in arrays])
    return tuple(repeated(a, shape) for a in arrays)
