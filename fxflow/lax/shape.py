"""Shape: the same elements under other axes.

The primitives are `broadcast_in_dim`, `reshape`, `transpose` and `rev`; whatever else
changes a shape is made of them. On the host they are views, so they cost the same for
any size. Arrays of keys are moved as their words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter, methodcaller
from typing import Any

import numpy as np

from fxflow.core import arith
from fxflow.core.array import Array
from fxflow.core.aval import Aval, Shape
from fxflow.core.convert import typeof
from fxflow.core.errors import AxisError, ShapeError
from fxflow.core.primitive import register
from fxflow.lax.arguments import (
    axis_index,
    axis_indices,
    check,
    int_tuple,
    is_words,
    listed,
    on_words,
    shape_tuple,
)
from fxflow.lax.families import Structural

# -- broadcast ---------------------------------------------------------------------


@register
class BroadcastInDim(Structural):
    """Repeats an array along new axes and axes of length 1. All dtypes.

    StableHLO: broadcast_in_dim.
    """

    name = "broadcast_in_dim"
    is_view = True

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
        self, ctx: Any, x: str, *, shape: Shape, broadcast_dimensions: tuple[int, ...]
    ) -> str:
        """`broadcast_in_dim`."""
        return str(
            ctx.emit(
                f"stablehlo.broadcast_in_dim {x}, "
                f"dims = {listed(broadcast_dimensions)} : "
                f"({ctx.avals_in[0].mlir}) -> {ctx.avals_out[0].mlir}"
            )
        )

    def evaluate(
        self, x: Any, *, shape: Shape, broadcast_dimensions: tuple[int, ...]
    ) -> Any:
        """A view of stride 0."""
        return self.host_function(
            shape=shape, broadcast_dimensions=broadcast_dimensions
        )(x)

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
    ) -> Sequence[Any]:
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
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Array:
    """Repeats an array along new axes and axes of length 1.

    Args:
      operand: array of any dtype.
      shape: of the result.
      broadcast_dimensions: for each axis of `operand` the axis of the result that it
        becomes, increasing.

    Returns:
      Array of shape `shape` and the dtype of `operand`.

    Raises:
      ShapeError: an axis is neither 1 nor as long as the one it becomes.
      AxisError: `broadcast_dimensions` do not increase or are out of range.

    Example:
      >>> broadcast_in_dim(np.array([1, 2], "i4"), (2, 3), (0,))
      Array([[1, 1, 1],
             [2, 2, 2]], dtype=int32)

    Source: StableHLO `broadcast_in_dim`.
    """
    wanted = shape_tuple("broadcast_in_dim", shape)
    dims = axis_indices(
        "broadcast_in_dim", broadcast_dimensions, len(wanted), "broadcast_dimensions"
    )
    aval = typeof(operand)
    if is_words(aval):
        inner = aval.dtype.suffix
        last = tuple(range(len(wanted), len(wanted) + len(inner)))
        check(BroadcastInDim, aval, shape=wanted, broadcast_dimensions=dims)
        keys: Array = on_words(
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
    result: Array = BroadcastInDim.bind(
        operand, shape=wanted, broadcast_dimensions=dims
    )
    return result


def broadcast(operand: Any, sizes: Sequence[int]) -> Array:
    """Repeats an array along new leading axes.

    Args:
      operand: array of any dtype and shape.
      sizes: lengths of the new axes.

    Returns:
      Array of shape `(*sizes, *operand.shape)`.

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> broadcast(np.float32(1), (2,))
      Array([1., 1.], dtype=float32)

    Source: StableHLO `broadcast_in_dim`.
    """
    lengths = shape_tuple("broadcast", sizes, "sizes")
    old = typeof(operand).shape
    return broadcast_in_dim(
        operand,
        lengths + old,
        tuple(range(len(lengths), len(lengths) + len(old))),
    )


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


# -- reshape -----------------------------------------------------------------------


@register
class Reshape(Structural):
    """The same elements in the same (row-major) order, other lengths. All dtypes.

    StableHLO: reshape.
    """

    name = "reshape"
    is_view = True

    def abstract(self, x: Aval, *, new_sizes: Shape) -> Aval:
        """The shape asked for."""
        if math.prod(new_sizes) != x.size:
            hint = (
                "lengths may not be negative here (fxflow.numpy.reshape infers -1)"
                if new_sizes and min(new_sizes) < 0
                else f"that is {math.prod(new_sizes)} elements instead of {x.size}"
            )
            raise ShapeError(f"reshape: cannot reshape {x} to {new_sizes}: {hint}")
        return Aval(new_sizes, x.dtype, x.weak_type)

    def lower(self, ctx: Any, x: str, *, new_sizes: Shape) -> str:
        """`reshape`."""
        return str(
            ctx.emit(
                f"stablehlo.reshape {x} : ({ctx.avals_in[0].mlir}) -> "
                f"{ctx.avals_out[0].mlir}"
            )
        )

    def evaluate(self, x: Any, *, new_sizes: Shape) -> Any:
        """`np.reshape`."""
        return x.reshape(new_sizes)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`np.ndarray.reshape`."""
        return methodcaller("reshape", params["new_sizes"])

    def transpose(self, cotangent: Any, x: Any, *, new_sizes: Shape) -> Sequence[Any]:
        """The old shape."""
        return [Reshape.bind(cotangent, new_sizes=x.aval.shape)]

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Axis 0 stays in front."""
        return {"new_sizes": (size, *params["new_sizes"])}


def reshape(
    operand: Any,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
) -> Array:
    """Gives an array another shape; the row-major order of the elements stays.

    Args:
      operand: array of any dtype.
      new_sizes: the new shape, with as many elements (-1 is not inferred here).
      dimensions: the order in which the axes of `operand` are read, as for `transpose`.

    Returns:
      Array of shape `new_sizes` and the dtype of `operand`.

    Raises:
      ShapeError: the number of elements differs.
      AxisError: `dimensions` is no permutation of the axes.

    Example:
      >>> reshape(np.arange(4), (2, 2), dimensions=None)
      Array([[0, 1],
             [2, 3]], dtype=int32)

    Source: StableHLO `reshape`.
    """
    aval = typeof(operand)
    wanted = int_tuple("reshape", "new_sizes", new_sizes)
    if wanted and min(wanted) < 0:
        raise ShapeError(
            f"reshape: cannot reshape {aval} to {wanted}: lengths may not be negative "
            "here (fxflow.numpy.reshape infers -1)"
        )
    if dimensions is not None:
        operand = transpose(operand, dimensions)
        aval = typeof(operand)
    if wanted == aval.shape and isinstance(operand, Array):
        return operand
    if is_words(aval):
        check(Reshape, aval, new_sizes=wanted)
        inner = aval.dtype.suffix
        keys: Array = on_words(
            lambda w: Reshape.bind(w, new_sizes=wanted + inner), operand
        )
        return keys
    result: Array = Reshape.bind(operand, new_sizes=wanted)
    return result


def squeeze(array: Any, dimensions: Sequence[int] | None = None) -> Array:
    """Drops axes of length 1.

    Args:
      array: array of any dtype.
      dimensions: which axes (None: all of length 1).

    Returns:
      Array without those axes.

    Raises:
      ShapeError: an axis is not of length 1.
      AxisError: an axis is out of range or named twice.

    Example:
      >>> squeeze(np.zeros((1, 3, 1), "f4"), (0,)).shape
      (3, 1)

    Source: StableHLO `reshape`; `numpy.squeeze`.
    """
    aval = typeof(array)
    if dimensions is None:
        return reshape(array, tuple(n for n in aval.shape if n != 1))
    dims = axis_indices("squeeze", dimensions, aval.ndim)
    for d in dims:
        if aval.shape[d] != 1:
            raise ShapeError(
                f"squeeze: axis {d} of {aval} has length {aval.shape[d]}: only axes of "
                "length 1 can be dropped"
            )
    return reshape(array, tuple(n for d, n in enumerate(aval.shape) if d not in dims))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """Adds axes of length 1.

    Args:
      array: array of any dtype.
      dimensions: where the new axes are in the result.

    Returns:
      Array with `len(dimensions)` more axes.

    Raises:
      AxisError: an axis is out of range or named twice.

    Example:
      >>> expand_dims(np.zeros(3, "f4"), (0, -1)).shape
      (1, 3, 1)

    Source: StableHLO `reshape`; `numpy.expand_dims`.
    """
    aval = typeof(array)
    given = int_tuple("expand_dims", "dimensions", dimensions)
    ndim = aval.ndim + len(given)
    dims = axis_indices("expand_dims", given, ndim)
    rest = iter(aval.shape)
    return reshape(array, tuple(1 if d in dims else next(rest) for d in range(ndim)))


def collapse(
    operand: Any, start_dimension: int, stop_dimension: int | None = None
) -> Array:
    """Joins neighbouring axes into one.

    Args:
      operand: array of any dtype.
      start_dimension: the first of them.
      stop_dimension: the axis behind the last of them (None: to the end).

    Returns:
      Array with one axis in their place; if there is none, one of length 1.

    Raises:
      AxisError: an axis is out of range, or the range runs backwards.

    Example:
      >>> collapse(np.zeros((2, 3, 4), "f4"), 1).shape
      (2, 12)

    Source: StableHLO `reshape`.
    """
    aval = typeof(operand)
    ndim = aval.ndim
    start = axis_index("collapse", start_dimension, ndim, "start_dimension")
    if stop_dimension is None or stop_dimension == ndim:
        stop = ndim
    else:
        stop = axis_index("collapse", stop_dimension, ndim, "stop_dimension")
    if stop < start:
        raise AxisError(
            f"collapse: stop_dimension {stop} lies before start_dimension {start} "
            f"of {aval}"
        )
    joined = math.prod(aval.shape[start:stop])
    return reshape(operand, (*aval.shape[:start], joined, *aval.shape[stop:]))


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
    counts = shape_tuple("tile", reps, "reps")
    if len(counts) != aval.ndim:
        raise ShapeError(
            f"tile: reps must have one number for each axis of {aval}, got {counts}"
        )
    wide = tuple(n for pair in zip(counts, aval.shape, strict=True) for n in pair)
    repeated = broadcast_in_dim(operand, wide, tuple(range(1, 2 * aval.ndim, 2)))
    lengths = tuple(n * r for n, r in zip(aval.shape, counts, strict=True))
    return reshape(repeated, lengths)


# -- order of axes and elements --------------------------------------------------------


@register
class Transpose(Structural):
    """The axes in another order. All dtypes. StableHLO: transpose."""

    name = "transpose"
    is_view = True

    def abstract(self, x: Aval, *, permutation: tuple[int, ...]) -> Aval:
        """The lengths in the new order."""
        if sorted(permutation) != list(range(x.ndim)):
            raise AxisError(
                f"transpose: permutation must hold each axis of {x} once, got "
                f"{permutation}"
            )
        shape = x.shape
        return Aval(tuple([shape[d] for d in permutation]), x.dtype, x.weak_type)

    def lower(self, ctx: Any, x: str, *, permutation: tuple[int, ...]) -> str:
        """`transpose`."""
        return str(
            ctx.emit(
                f"stablehlo.transpose {x}, dims = {listed(permutation)} : "
                f"({ctx.avals_in[0].mlir}) -> {ctx.avals_out[0].mlir}"
            )
        )

    def evaluate(self, x: Any, *, permutation: tuple[int, ...]) -> Any:
        """`np.transpose`."""
        return x.transpose(permutation)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`np.ndarray.transpose`."""
        return methodcaller("transpose", params["permutation"])

    def transpose(
        self, cotangent: Any, x: Any, *, permutation: tuple[int, ...]
    ) -> Sequence[Any]:
        """The inverse permutation."""
        inverse = [0] * len(permutation)
        for new, old in enumerate(permutation):
            inverse[old] = new
        return [Transpose.bind(cotangent, permutation=tuple(inverse))]

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Axis 0 stays in front."""
        return {"permutation": (0, *(d + 1 for d in params["permutation"]))}


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """Puts the axes in another order.

    Args:
      operand: array of any dtype.
      permutation: axis `i` of the result is axis `permutation[i]` of `operand`.

    Returns:
      Array of the dtype of `operand`, its lengths permuted.

    Raises:
      AxisError: `permutation` does not name each axis once.

    Example:
      >>> transpose(np.zeros((2, 3), "f4"), (1, 0)).shape
      (3, 2)

    Source: StableHLO `transpose`.
    """
    aval = typeof(operand)
    axes = axis_indices("transpose", permutation, aval.ndim, "permutation")
    if len(axes) != aval.ndim:
        raise AxisError(
            f"transpose: permutation must hold each axis of {aval} once, got {axes}"
        )
    if axes == tuple(range(aval.ndim)) and isinstance(operand, Array):
        return operand
    if is_words(aval):
        words = tuple(range(aval.ndim, aval.physical.ndim))
        keys: Array = on_words(
            lambda w: Transpose.bind(w, permutation=axes + words), operand
        )
        return keys
    result: Array = Transpose.bind(operand, permutation=axes)
    return result


@register
class Rev(Structural):
    """The elements in reverse along some axes. All dtypes. StableHLO: reverse."""

    name = "rev"
    is_view = True

    def abstract(self, x: Aval, *, dimensions: tuple[int, ...]) -> Aval:
        """Unchanged."""
        return x

    def lower(self, ctx: Any, x: str, *, dimensions: tuple[int, ...]) -> str:
        """`reverse`."""
        return str(
            ctx.emit(
                f"stablehlo.reverse {x}, dims = {listed(dimensions)} : "
                f"{ctx.avals_out[0].mlir}"
            )
        )

    def evaluate(self, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        """A view of negative strides."""
        return self.host_function(dimensions=dimensions)(x)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Indexing by `::-1`."""
        dims = params["dimensions"]
        back = slice(None, None, -1)
        return itemgetter(
            tuple(
                back if d in dims else slice(None)
                for d in range(max(dims, default=-1) + 1)
            )
        )

    def transpose(
        self, cotangent: Any, x: Any, *, dimensions: tuple[int, ...]
    ) -> Sequence[Any]:
        """The same reversal."""
        return [Rev.bind(cotangent, dimensions=dimensions)]

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Axis 0 stays in front."""
        return {"dimensions": tuple(d + 1 for d in params["dimensions"])}


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """Reverses the order of the elements along some axes.

    Args:
      operand: array of any dtype.
      dimensions: the axes.

    Returns:
      Array of the type of `operand`.

    Raises:
      AxisError: an axis is out of range or named twice.

    Example:
      >>> rev(np.array([1, 2, 3], "i4"), (0,))
      Array([3, 2, 1], dtype=int32)

    Source: StableHLO `reverse`.
    """
    aval = typeof(operand)
    dims = axis_indices("rev", dimensions, aval.ndim)
    if is_words(aval):
        keys: Array = on_words(lambda w: Rev.bind(w, dimensions=dims), operand)
        return keys
    result: Array = Rev.bind(operand, dimensions=dims)
    return result
