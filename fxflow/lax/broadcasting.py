"""Broadcasting: elements repeated along new axes and axes of length 1.

On the host a view of stride 0, so it costs the same for any size. Arrays of keys are
repeated as key data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Literal
from fxflow.core.ir.primitive import Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import AxisError, ShapeError
from fxflow.lax.axes import canonical_shape, distinct_axes
from fxflow.lax.axis_order import transpose
from fxflow.lax.families import MOVED, Structural
from fxflow.lax.keys import check, map_key_data
from fxflow.lax.reshaping import Reshape, reshape
from fxflow.lax.transfer import laid_out


@register
class BroadcastInDim(Structural):
    """Repeats an array along new axes and axes of length 1. All dtypes.

    StableHLO: broadcast_in_dim.
    """

    name = "broadcast_in_dim"
    host_kinds = MOVED
    is_view = True
    repeats_numbers = True
    layout: Callable[..., Any] = layouts.broadcast
    sums: Callable[..., Any] = layouts.linear

    def abstract(
        self, x: Aval, *, shape: Shape, broadcast_dimensions: tuple[int, ...]
    ) -> Aval:
        """The shape asked for."""
        if len(broadcast_dimensions) != x.ndim:
            raise ShapeError(
                f"broadcast_in_dim: {x} needs {x.ndim} broadcast_dimensions, one for "
                f"each axis, got {broadcast_dimensions}"
            )
        previous = -1
        for length, d in zip(x.shape, broadcast_dimensions, strict=True):
            if not previous < d < len(shape):
                raise AxisError(
                    "broadcast_in_dim: broadcast_dimensions must increase and lie in "
                    f"0 to {len(shape) - 1}, got {broadcast_dimensions} for {x} to "
                    f"shape {shape}"
                )
            previous = d
            if length not in (1, shape[d]):
                raise ShapeError(
                    f"broadcast_in_dim: {x} does not broadcast to {shape} along "
                    f"{broadcast_dimensions}: an axis of length {length} would have to "
                    f"become {shape[d]}, and only length 1 can be repeated"
                )
        return Aval(shape, x.dtype, x.weak_type)

    def lower(
        self, ctx: Context, x: str, *, broadcast_dimensions: tuple[int, ...], **_: Any
    ) -> str:
        """`broadcast_in_dim`; a number is a constant of the shape already."""
        (aval,), (out,) = ctx.avals_in, ctx.avals_out
        of_number = type(ctx.inputs[0]) is Literal
        if not of_number or aval.shape != out.shape:
            x = ctx.emit(
                f"stablehlo.broadcast_in_dim {x}, dims = {list(broadcast_dimensions)} "
                f": ({aval.mlir}) -> {out.mlir}"
            )
        if of_number:
            ctx.fills.add(x)
        return x

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`np.broadcast_to`, after new axes of length 1 were put in."""
        shape, dims = params["shape"], params["broadcast_dimensions"]
        broadcast_to = np.broadcast_to
        leading = len(shape) - len(dims)
        if dims == tuple(range(leading, len(shape))):
            return lambda x: broadcast_to(x, shape)
        index = tuple(slice(None) if d in dims else None for d in range(len(shape)))
        return lambda x: broadcast_to(x[index], shape)

    def transpose(
        self,
        cotangent: Any,
        x: Any,
        *,
        shape: Shape,
        broadcast_dimensions: tuple[int, ...],
    ) -> Values:
        """The sum over what was repeated."""
        old = x.aval.shape
        kept = {
            d
            for d, length in zip(broadcast_dimensions, old, strict=True)
            if length == shape[d]
        }
        gone = tuple(d for d in range(len(shape)) if d not in kept)
        total = arith.reduce_sum(cotangent, gone)
        if typeof(total).shape != old:
            total = Reshape.bind(total, new_sizes=old)
        return [total]

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Axis 0 stays in front."""
        return {
            "shape": (size, *params["shape"]),
            "broadcast_dimensions": (
                0,
                *(d + 1 for d in params["broadcast_dimensions"]),
            ),
        }


def broadcast_in_dim(
    operand: Any,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """Repeats an array along new axes and axes of length 1.

    Args:
      operand: array of any dtype.
      shape: shape of the result.
      broadcast_dimensions: for each axis of `operand` the axis of the result that it
        becomes.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array of shape `shape` and the dtype of `operand`.

    Raises:
      ShapeError: an axis is neither 1 nor as long as the one it becomes.
      AxisError: `broadcast_dimensions` are out of range, or name an axis twice.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> broadcast_in_dim(np.array([1, 2], "i4"), (2, 3), (0,))
      Array([[1, 1, 1],
             [2, 2, 2]], dtype=int32)

    Source: StableHLO `broadcast_in_dim`.
    """
    if out_sharding is not None:
        out = broadcast_in_dim(operand, shape, broadcast_dimensions)
        return laid_out("broadcast_in_dim", out, out_sharding)
    wanted = canonical_shape("broadcast_in_dim", shape)
    dims = distinct_axes(
        "broadcast_in_dim", broadcast_dimensions, len(wanted), "broadcast_dimensions"
    )
    aval = typeof(operand)
    if len(dims) == aval.ndim and list(dims) != sorted(dims):
        # The primitive's axes keep their order, so that its transpose is one sum.
        order = sorted(range(len(dims)), key=dims.__getitem__)
        operand, dims = transpose(operand, order), tuple(sorted(dims))
        aval = typeof(operand)
    if dtypes.is_key(aval.dtype):
        inner = aval.dtype.suffix
        last = tuple(range(len(wanted), len(wanted) + len(inner)))
        check(BroadcastInDim, aval, shape=wanted, broadcast_dimensions=dims)
        keys: Array = map_key_data(
            lambda w: BroadcastInDim.bind(
                w, shape=wanted + inner, broadcast_dimensions=dims + last
            ),
            operand,
        )
        return keys
    if wanted == aval.shape and isinstance(operand, Array):
        # Dimensions increase, so as many of them as axes leave nothing to do.
        check(BroadcastInDim, aval, shape=wanted, broadcast_dimensions=dims)
        return operand
    return BroadcastInDim.bind(operand, shape=wanted, broadcast_dimensions=dims)


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeats an array along new leading axes.

    Args:
      operand: array of any dtype and shape.
      sizes: lengths of the new axes.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array of shape `(*sizes, *operand.shape)`.

    Raises:
      ShapeError: a length is negative.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> broadcast(np.float32(1), (2,))
      Array([1., 1.], dtype=float32)

    Source: StableHLO `broadcast_in_dim`.
    """
    lengths = canonical_shape("broadcast", sizes, "sizes")
    old = typeof(operand).shape
    return broadcast_in_dim(
        operand,
        lengths + old,
        tuple(range(len(lengths), len(lengths) + len(old))),
        out_sharding=out_sharding,
    )


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """Repeats an array such that it has the shape of another one.

    Args:
      arr: array of any dtype.
      like_arr: array whose shape counts; `arr` is aligned at its last axes.

    Returns:
      Array of the shape of `like_arr` and the dtype of `arr`.

    Raises:
      ShapeError: `arr` does not broadcast to that shape.

    Example:
      >>> broadcast_like(np.array([1, 2], "i4"), np.zeros((2, 2), "f4"))
      Array([[1, 2],
             [1, 2]], dtype=int32)

    Source: StableHLO `broadcast_in_dim`; `numpy.broadcast_to`.
    """
    old, shape = typeof(arr), typeof(like_arr).shape
    if old.ndim > len(shape):
        raise ShapeError(f"broadcast_like: {old} has more axes than {shape}")
    return broadcast_in_dim(arr, shape, tuple(range(len(shape) - old.ndim, len(shape))))


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """Returns the shape that arrays of these shapes broadcast to together.

    Args:
      *shapes: aligned at their last axes, as NumPy does.

    Returns:
      A tuple of Python ints.

    Raises:
      ShapeError: two lengths differ and neither is 1.

    Example:
      >>> broadcast_shapes((2, 1), (3,))
      (2, 3)

    Source: `numpy.broadcast_shapes`.
    """
    if len(shapes) == 1 and type(shapes[0]) is tuple:
        return shapes[0]
    ndim = max(map(len, shapes), default=0)
    out = [1] * ndim
    for shape in shapes:
        for i, length in enumerate(shape, ndim - len(shape)):
            if length != 1:
                if out[i] not in (1, length):
                    raise ShapeError(
                        "broadcast_shapes: shapes "
                        f"{', '.join(str(tuple(s)) for s in shapes)} do not broadcast "
                        f"together: lengths {out[i]} and {length} differ and neither "
                        "is 1"
                    )
                out[i] = length
    return tuple(out)


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """Adds axes of length 1 in front until there are `rank` axes.

    Args:
      x: array of any dtype.
      rank: number of axes of the result.

    Returns:
      Array of shape `(1, ..., 1, *x.shape)`.

    Raises:
      ShapeError: `x` has more axes than that.

    Example:
      >>> broadcast_to_rank(np.zeros(3, "f4"), 3).shape
      (1, 1, 3)

    Source: StableHLO `reshape`.
    """
    aval = typeof(x)
    if aval.ndim > rank:
        raise ShapeError(f"broadcast_to_rank: {aval} has more axes than rank {rank}")
    return reshape(x, (1,) * (rank - aval.ndim) + aval.shape)


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """Repeats a whole array side by side.

    Args:
      operand: array of any dtype.
      reps: how often along each of its axes.

    Returns:
      Array of shape `operand.shape[i] * reps[i]`.

    Raises:
      ShapeError: there is not one number for each axis, or one is negative.

    Example:
      >>> tile(np.array([1, 2], "i4"), (2,))
      Array([1, 2, 1, 2], dtype=int32)

    Source: `numpy.tile`.
    """
    aval = typeof(operand)
    counts = canonical_shape("tile", reps, "reps")
    if len(counts) != aval.ndim:
        raise ShapeError(
            f"tile: reps must have one number for each axis of {aval}, got {counts}"
        )
    # Each axis gets its repeats in front of it, and is then merged with them.
    wide = tuple(n for pair in zip(counts, aval.shape, strict=True) for n in pair)
    repeated = broadcast_in_dim(operand, wide, tuple(range(1, 2 * aval.ndim, 2)))
    lengths = tuple(n * r for n, r in zip(aval.shape, counts, strict=True))
    return reshape(repeated, lengths)
