"""Creation: arrays from nothing but a shape and a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.arrays.array import like_type
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Batched, Flags, Primitive, Values, register, table
from fxflow.core.runtime.lowering import Context
from fxflow.errors import AxisError, DtypeError, ShapeError
from fxflow.lax._operands import PYTHON_SCALARS
from fxflow.lax.axes import canonical_axis, canonical_shape
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.conversion import convert
from fxflow.lax.families import MOVED, NUMERIC, require_kind
from fxflow.lax.transfer import laid_out, sharding_like, with_sharding_constraint


@register
class Iota(Primitive):
    """0, 1, 2, ... along one axis. dtypes: numeric. StableHLO: iota."""

    name = "iota"
    host_kinds = MOVED
    nondifferentiable = "it has no operand"

    def abstract(self, *, dtype: Any, shape: Shape, dimension: int) -> Aval:
        """The type asked for."""
        out = Aval(shape, dtype)
        require_kind(self.name, out, NUMERIC)
        if not 0 <= dimension < len(shape):
            raise AxisError(
                f"iota: dimension {dimension} is out of range for shape {shape}"
            )
        return out

    def lower(self, ctx: Context, *, dtype: Any, shape: Shape, dimension: int) -> str:
        """`iota`."""
        return ctx.emit(f"stablehlo.iota dim = {dimension} : {ctx.avals_out[0].mlir}")

    def evaluate(self, *, dtype: Any, shape: Shape, dimension: int) -> Any:
        """`np.arange`, repeated."""
        line = np.arange(shape[dimension]).astype(dtype)
        if len(shape) == 1:
            return line
        column = line.reshape((-1,) + (1,) * (len(shape) - 1 - dimension))
        return np.broadcast_to(column, shape)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The same for all slices."""
        return self.bind(**params), False


def iota(dtype: Any, size: int) -> Array:
    """Returns the numbers from 0 to `size - 1`.

    Args:
      dtype: a numeric dtype.
      size: the number of elements.

    Returns:
      `dtype[size]`.

    Raises:
      DtypeError: not a numeric dtype.
      ShapeError: `size` is negative.

    Example:
      >>> iota("int32", 3)
      Array([0, 1, 2], dtype=int32)

    Source: StableHLO `iota`.
    """
    shape = canonical_shape("iota", (size,), "size")
    return Iota.bind(dtype=dtypes.dtype(dtype), shape=shape, dimension=0)


def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """Returns the index of each element along one axis.

    Args:
      dtype: a numeric dtype.
      shape: shape of the result.
      dimension: the axis.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      `dtype[shape]`.

    Raises:
      DtypeError: not a numeric dtype.
      AxisError: an axis is out of range.
      ShapeError: a length is negative.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> broadcasted_iota("int32", (2, 2), 1)
      Array([[0, 1],
             [0, 1]], dtype=int32)

    Source: StableHLO `iota`.
    """
    wanted = canonical_shape("broadcasted_iota", shape)
    axis = canonical_axis("broadcasted_iota", dimension, len(wanted), "dimension")
    result: Array = Iota.bind(dtype=dtypes.dtype(dtype), shape=wanted, dimension=axis)
    if out_sharding is not None:
        return laid_out("broadcasted_iota", result, out_sharding)
    return result


def full(
    shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None
) -> Array:
    """Returns an array of one repeated value.

    Args:
      shape: shape of the result.
      fill_value: 0-d array or number. Keys made of an integer have it as each word.
      dtype: dtype of the result (None: that of `fill_value`).
      sharding: a `Sharding`, or a `PartitionSpec` of the current mesh: its layout.

    Returns:
      `dtype[shape]`.

    Raises:
      ShapeError: `fill_value` is not 0-d, or a length is negative.
      DtypeError: keys are asked for and `fill_value` is neither key nor integer.

    Example:
      >>> full((2,), 3, "float32")
      Array([3., 3.], dtype=float32)

    Source: StableHLO `broadcast_in_dim`.
    """
    wanted = canonical_shape("full", shape)
    out = broadcast_in_dim(_scalar("full", fill_value, dtype), wanted, ())
    return out if sharding is None else with_sharding_constraint(out, sharding)


def _scalar(name: str, value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Returns a number or 0-d array as a 0-d array of a dtype."""
    if dtype is None:
        if typeof(value).ndim:
            raise _not_0d(name, value)
        return value
    wanted = dtypes.dtype(dtype)
    number = type(value) in PYTHON_SCALARS or isinstance(value, np.generic)
    if number and not dtypes.is_key(wanted):
        # Not by its own default dtype, which it may not fit.
        if isinstance(value, int) and dtypes.is_integer(wanted):
            dtypes.of_python(int(value), wanted)
        return arith.constant(value, wanted, weak_type)
    aval = typeof(value)
    if aval.ndim:
        raise _not_0d(name, value)
    if dtypes.is_key(aval.dtype) or dtypes.is_key(wanted):
        if aval.dtype == wanted:
            return value
        if dtypes.is_key(aval.dtype) or not dtypes.is_integer(aval.dtype):
            raise DtypeError(f"{name}: fill_value {aval} cannot become {wanted}")
        word = _scalar(name, value, wanted.base)
        key_data = broadcast_in_dim(word, wanted.suffix, ())
        return table["random_wrap"].bind(key_data, dtype=wanted)
    if aval.dtype == wanted and aval.weak_type == weak_type:
        return value
    return convert(value, wanted, weak_type)


def _not_0d(name: str, value: Any) -> ShapeError:
    return ShapeError(f"{name}: fill_value must be 0-d, got {typeof(value)}")


def full_like(
    x: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    sharding: Any = None,
) -> Array:
    """Returns an array like another one, of one repeated value.

    Args:
      x: array, or anything with a shape and a dtype.
      fill_value: 0-d array or number.
      dtype: dtype of the result (None: that of `x`).
      shape: shape of the result (None: that of `x`).
      sharding: as for `full` (None: where `x` was put; a layout over several devices
        only if the shape stays).

    Returns:
      `dtype[shape]`.

    Raises:
      ShapeError: `fill_value` is not 0-d, or a length is negative.

    Example:
      >>> full_like(np.zeros(2, "f4"), 7)
      Array([7., 7.], dtype=float32)

    Source: `numpy.full_like`.
    """
    aval = like_type(x)
    weak_type = dtype is None and aval.weak_type
    scalar = _scalar(
        "full_like", fill_value, aval.dtype if dtype is None else dtype, weak_type
    )
    wanted = aval.shape if shape is None else canonical_shape("full_like", shape)
    out = broadcast_in_dim(scalar, wanted, ())
    if sharding is None:
        sharding = sharding_like(x, wanted)
    return out if sharding is None else with_sharding_constraint(out, sharding)


def empty(
    shape: Sequence[int], dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Returns an array whose values do not matter (they are zero).

    Args:
      shape: shape of the result.
      dtype: dtype of the result (None: the default float).
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      `dtype[shape]`.

    Raises:
      ShapeError: a length is negative.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> empty((2,), "int32").shape
      (2,)

    Source: `numpy.empty`.
    """
    return full(shape, 0, float if dtype is None else dtype, sharding=out_sharding)
