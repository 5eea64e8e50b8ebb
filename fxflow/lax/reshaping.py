"""Reshaping: the same elements in the same order under other axes.

On the host a view, so it costs the same for any size. Arrays of keys are moved as key
data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.ir.graph import Node
from fxflow.core.ir.primitive import Values, register
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.core.spmd.memories import kept
from fxflow.errors import AxisError, ShapeError
from fxflow.lax.axes import canonical_axis, distinct_axes, int_tuple
from fxflow.lax.axis_order import transpose
from fxflow.lax.families import MOVED, Structural
from fxflow.lax.keys import check, map_key_data
from fxflow.lax.transfer import laid_out


@register
class Reshape(Structural):
    """The same elements in the same (row-major) order, other lengths. All dtypes.

    StableHLO: reshape.
    """

    name = "reshape"
    host_kinds = MOVED
    is_view = True
    layout: Callable[..., Any] = layouts.reshaped
    sums: Callable[..., Any] = layouts.linear

    def abstract(self, x: Aval, *, new_sizes: Shape) -> Aval:
        """The shape asked for."""
        if math.prod(new_sizes) != x.size:
            hint = (
                "lengths must not be negative here (fxflow.numpy.reshape infers -1)"
                if any(n < 0 for n in new_sizes)
                else f"that is {math.prod(new_sizes)} elements instead of {x.size}"
            )
            raise ShapeError(f"reshape: cannot reshape {x} to {new_sizes}: {hint}")
        return Aval(new_sizes, x.dtype, x.weak_type)

    def lower(self, ctx: Context, x: str, *, new_sizes: Shape) -> str:
        """`reshape`."""
        return ctx.emit(
            f"stablehlo.reshape {x} : ({ctx.avals_in[0].mlir}) -> "
            f"{ctx.avals_out[0].mlir}"
        )

    def evaluate(self, x: Any, *, new_sizes: Shape) -> Any:
        """`np.reshape`."""
        return x.reshape(new_sizes)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`np.ndarray.reshape`."""
        return methodcaller("reshape", params["new_sizes"])

    def transpose(self, cotangent: Any, x: Any, *, new_sizes: Shape) -> Values:
        """The old shape."""
        return [Reshape.bind(cotangent, new_sizes=x.aval.shape)]

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The operand's, if only leading axes of length 1 come or go.

        Anything else may be another order in memory: tiles on a TPU.
        """
        before, after = node.inputs[0].aval.shape, node.params["new_sizes"]
        return kept(node, kinds) if _core(before) == _core(after) else None

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Axis 0 stays in front."""
        return {"new_sizes": (size, *params["new_sizes"])}


def _core(shape: Shape) -> Shape:
    """Returns a shape without its leading axes of length 1."""
    first = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return tuple(shape[first:])


def reshape(
    operand: Any,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gives an array another shape; the row-major order of the elements stays.

    Args:
      operand: array of any dtype.
      new_sizes: the new shape, with as many elements (-1 is not inferred here).
      dimensions: the order in which the axes of `operand` are read, as for `transpose`.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array of shape `new_sizes` and the dtype of `operand`.

    Raises:
      ShapeError: the number of elements differs.
      AxisError: `dimensions` is not a permutation of the axes.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> reshape(np.arange(4), (2, 2), dimensions=None)
      Array([[0, 1],
             [2, 3]], dtype=int32)

    Source: StableHLO `reshape`.
    """
    if out_sharding is not None:
        with open_layouts(out_sharding):
            out = reshape(operand, new_sizes, dimensions)
        return laid_out("reshape", out, out_sharding)
    aval = typeof(operand)
    wanted = int_tuple("reshape", "new_sizes", new_sizes)
    if any(n < 0 for n in wanted):
        raise ShapeError(
            f"reshape: cannot reshape {aval} to {wanted}: lengths must not be negative "
            "here (fxflow.numpy.reshape infers -1)"
        )
    if dimensions is not None:
        operand = transpose(operand, dimensions)
        aval = typeof(operand)
    if wanted == aval.shape and isinstance(operand, Array):
        return operand
    if dtypes.is_key(aval.dtype):
        check(Reshape, aval, new_sizes=wanted)
        inner = aval.dtype.suffix
        keys: Array = map_key_data(
            lambda w: Reshape.bind(w, new_sizes=wanted + inner), operand
        )
        return keys
    return Reshape.bind(operand, new_sizes=wanted)


def squeeze(array: Any, dimensions: Sequence[int] | None = None) -> Array:
    """Drops axes of length 1.

    Args:
      array: array of any dtype.
      dimensions: which axes (None: all of length 1).

    Returns:
      Array without those axes.

    Raises:
      ShapeError: an axis is not of length 1.
      AxisError: an axis is out of range or repeated.

    Example:
      >>> squeeze(np.zeros((1, 3, 1), "f4"), (0,)).shape
      (3, 1)

    Source: StableHLO `reshape`; `numpy.squeeze`.
    """
    aval = typeof(array)
    if dimensions is None:
        return reshape(array, tuple(n for n in aval.shape if n != 1))
    dims = distinct_axes("squeeze", dimensions, aval.ndim)
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
      AxisError: an axis is out of range or repeated.

    Example:
      >>> expand_dims(np.zeros(3, "f4"), (0, -1)).shape
      (1, 3, 1)

    Source: StableHLO `reshape`; `numpy.expand_dims`.
    """
    aval = typeof(array)
    given = int_tuple("expand_dims", "dimensions", dimensions)
    ndim = aval.ndim + len(given)
    dims = distinct_axes("expand_dims", given, ndim)
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
    start = canonical_axis("collapse", start_dimension, ndim, "start_dimension")
    if stop_dimension is None or stop_dimension == ndim:
        stop = ndim
    else:
        stop = canonical_axis("collapse", stop_dimension, ndim, "stop_dimension")
    if stop < start:
        raise AxisError(
            f"collapse: stop_dimension {stop} lies before start_dimension {start} "
            f"of {aval}"
        )
    joined = math.prod(aval.shape[start:stop])
    return reshape(operand, (*aval.shape[:start], joined, *aval.shape[stop:]))
