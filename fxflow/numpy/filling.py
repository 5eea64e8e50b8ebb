"""Arrays filled with one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, Aval, Shape, dtypes, not_an_array, typeof
from fxflow.core.arrays.array import buffer_of, from_host, host_of, like_type
from fxflow.core.arrays.aval import type_on
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.runtime.eager import EVAL
from fxflow.devices.meshes import PartitionSpec
from fxflow.devices.shardings import Sharding
from fxflow.lax.axes import shape_or_length
from fxflow.lax.global_arrays import make_array_from_callback
from fxflow.lax.transfer import as_sharding, sharding_like
from fxflow.numpy._operands import (
    ArrayLike,
    DTypeLike,
    ShapeLike,
    convert,
)
from fxflow.numpy.broadcasting import require_broadcasts
from fxflow.numpy.creation import asarray, sharding_of, to_device, wrap_host


def _filled(name: str, shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    lengths = shape_or_length(name, shape)
    # Eagerly on the CPU NumPy makes it; there is no program to compile.
    if state.trace is EVAL and device is None and not dtypes.is_key(dtype):
        array_type = type_on(Aval(lengths, dtype))
        if array_type.placement.is_host:
            make = np.ones if value else np.zeros
            return from_host(make(lengths, dtype), array_type)
    made = (
        _keys(value, dtype)
        if dtypes.is_key(dtype)
        else wrap_host(np.array(value, dtype))
    )
    return _repeated(name, made, lengths, device)


def _keys(value: Any, dtype: Any) -> Array:
    """Returns keys to fill with; an integer is each word of a key."""
    array = asarray(value)
    if dtypes.is_key(array.aval.dtype):
        return asarray(array, dtype)
    return lax.full((), array, dtype)


def _repeated(name: str, value: Array, shape: Shape, device: Any) -> Array:
    """Returns a value broadcast to a shape, on a device or laid out by a sharding."""
    if isinstance(device, Sharding | PartitionSpec) and isinstance(value, Array):
        where = as_sharding(device, name)
        concrete = state.trace is EVAL and not isinstance(value, Tracer)
        numbers = not dtypes.is_key(value.dtype)
        if concrete and numbers and not value.ndim and len(where.device_set) > 1:
            # Each device makes its own part: nothing is as large as the whole.
            part = np.broadcast_to(host_of(value), where.shard_shape(shape))
            made = make_array_from_callback(
                shape, where, lambda index: part, dtype=value.dtype
            )
            aval = value.aval.update(shape=shape)
            return Array(buffer_of(made), type_on(aval, made._type.placement, True))
    aval = typeof(value)
    require_broadcasts(name, aval, shape)
    aligned = tuple(range(len(shape) - aval.ndim, len(shape)))
    out = lax.broadcast_in_dim(value, shape, aligned)
    return out if device is None else to_device(out, device)


def _new(
    name: str, shape: Any, value: Any, dtype: Any, device: Any, out_sharding: Any
) -> Array:
    if out_sharding is not None:
        device = sharding_of(name, device, out_sharding)
    dtype = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
    return _filled(name, shape, value, dtype, device)


_filled_docs = shared("""
    Args:
      shape: int or sequence of ints.
      dtype: dtype of the result (default: the default float).
      device: where to put it.
      out_sharding: how to lay it over devices, in place of `device`: a `Sharding`, or
        a `PartitionSpec` over the current mesh.

    Returns:
      Array of that shape and dtype.

    Raises:
      ShapeError: a length is negative.
      ArgumentError: both `device` and `out_sharding` are given.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Source: `numpy.{name}`.
""")


@_filled_docs
def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array of zeros.

    Example:
      >>> zeros(2)
      Array([0., 0.], dtype=float32)
    """
    return _new("zeros", shape, 0, dtype, device, out_sharding)


@_filled_docs
def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array of ones.

    Example:
      >>> ones((2, 2))
      Array([[1., 1.],
             [1., 1.]], dtype=float32)
    """
    return _new("ones", shape, 1, dtype, device, out_sharding)


@_filled_docs
def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array whose values do not matter; here they are zeros.

    Example:
      >>> empty((2, 3)).shape
      (2, 3)
    """
    return _new("empty", shape, 0, dtype, device, out_sharding)


@_filled_docs
def full(
    shape: ShapeLike,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array filled with a value.

    Args:
      fill_value: array-like that broadcasts to the shape.
      dtype: dtype of the result (default: that of `fill_value`; a Python number gives a
        weakly typed array).

    Raises:
      ShapeError: a length is negative, or `fill_value` does not broadcast.

    Example:
      >>> full(2, 7, "int8")
      Array([7, 7], dtype=int8)
    """
    if out_sharding is not None:
        device = sharding_of("full", device, out_sharding)
    lengths = shape_or_length("full", shape)
    chosen = None if dtype is None else dtypes.dtype(dtype)
    made = (
        _keys(fill_value, chosen)
        if dtypes.is_key(chosen)
        else asarray(fill_value, chosen)
    )
    return _repeated("full", made, lengths, device)


# -- like others -----------------------------------------------------------------------


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[Shape, Any, bool]:
    if isinstance(a, list | tuple):
        raise not_an_array(a, f"{name}: got")
    aval = like_type(a)
    lengths = aval.shape if shape is None else shape_or_length(name, shape)
    if dtype is None:
        return lengths, aval.dtype, aval.weak_type
    return lengths, dtypes.dtype(dtype), False


def _full_like(
    name: str,
    a: Any,
    value: Any,
    dtype: Any,
    shape: Any,
    device: Any,
    out_sharding: Any = None,
) -> Array:
    if out_sharding is not None:
        device = sharding_of(name, device, out_sharding)
    lengths, chosen, weak = _like(name, a, dtype, shape)
    if device is None:
        device = sharding_like(a, lengths)
    if type(value) is int and value in (0, 1) and not weak:
        return _filled(name, lengths, value, chosen, device)
    if dtypes.is_key(chosen):
        made = _keys(value, chosen)
    else:
        # 64 bits hold more than what the value would be by itself.
        wide = chosen if dtypes.is_wide(chosen) else None
        made = convert(asarray(value, wide), chosen, weak)
    return _repeated(name, made, lengths, device)


_like_docs = shared("""
    Args:
      a: array-like, or anything with shape and dtype.
      dtype: dtype of the result (default: that of `a`).
      shape: shape of the result (default: that of `a`).
      device: where to put it (default: where `a` was put; a layout over several
        devices only if the shape stays).
      out_sharding: how to lay it over devices, in place of `device`: a `Sharding`, or
        a `PartitionSpec` over the current mesh.

    Returns:
      Array.

    Raises:
      ArgumentError: `a` is not an array, or both `device` and `out_sharding` are given.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Source: `numpy.{name}`.
""")


@_like_docs
def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array of zeros like another array.

    Example:
      >>> zeros_like(np.array([5, 6]))
      Array([0, 0], dtype=int32)
    """
    return _full_like("zeros_like", a, 0, dtype, shape, device, out_sharding)


@_like_docs
def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array of ones like another array.

    Example:
      >>> ones_like(np.array([5, 6]))
      Array([1, 1], dtype=int32)
    """
    return _full_like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Makes an array like another whose values do not matter; here they are zeros.

    Args:
      prototype: array-like, or anything with shape and dtype.
      dtype: dtype of the result (default: that of `prototype`).
      shape: shape of the result (default: that of `prototype`).
      device: where to put it (default: where `prototype` was put; a layout over
        several devices only if the shape stays).

    Returns:
      Array.

    Raises:
      ArgumentError: `prototype` is not an array.

    Example:
      >>> empty_like(np.ones((2, 3))).shape
      (2, 3)

    Source: `numpy.empty_like`.
    """
    return _full_like("empty_like", prototype, 0, dtype, shape, device)


@_like_docs
def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array like another, filled with a value.

    Args:
      fill_value: array-like that broadcasts to the shape.

    Example:
      >>> full_like(np.array([1, 2]), 7)
      Array([7, 7], dtype=int32)
    """
    return _full_like("full_like", a, fill_value, dtype, shape, device, out_sharding)
