"""Arrays over several devices, made of their parts.

In several processes each makes the parts of its own devices; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, as_array, dtypes, is_arraylike, type_on
from fxflow.core.arrays.array import buffer_of, host_of
from fxflow.devices import buffers
from fxflow.devices.shardings import Sharding
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.transfer import as_sharding

Shape = tuple[int, ...]


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[tuple[slice, ...]], Any],
    *,
    dtype: Any = None,
) -> Array:
    """Makes an array of which each device's part is asked for.

    Args:
      shape: shape of the whole array.
      sharding: a `Sharding`, or a `PartitionSpec` over the current mesh.
      data_callback: from the slices of a part to its elements (array-like). Called once
        for each part that a device of this process holds; copies of one part share the
        call.
      dtype: dtype of the elements; needed in a process without a device of the
        sharding.

    Returns:
      The array.

    Raises:
      ShapeError: a part has another shape than its slices.
      PlacementError: the shape cannot be divided as the sharding asks.

    Example:
      >>> whole = np.arange(4.0, dtype=np.float32)
      >>> where = fxflow.NamedSharding(fxflow.make_mesh((1,), ("x",)), fxflow.P("x"))
      >>> make_array_from_callback((4,), where, lambda index: whole[index]).tolist()
      [0.0, 1.0, 2.0, 3.0]
    """
    name = "make_array_from_callback"
    where = as_sharding(sharding, name)
    lengths = tuple(int(n) for n in shape)
    part_shape = where.shard_shape(lengths)
    placement = buffers.placement_for(where)
    known: dict[Any, Any] = {}
    parts = []
    for index in placement.indices(lengths):
        # Slices have no hash before Python 3.12.
        key = tuple((s.start, s.stop) for s in index)
        if key not in known:
            known[key] = _part(data_callback(index), dtype, part_shape, name, index)
        parts.append(known[key])
    if dtype is None and not parts:
        raise ArgumentError(
            f"{name}: no device of {where} is in this process: say the dtype"
        )
    wanted = parts[0][0] if parts else dtypes.dtype(dtype)
    return _assembled(Aval(lengths, wanted), [host for _, host in parts], placement)


def _part(
    value: Any, dtype: Any, shape: Shape, name: str, index: tuple[slice, ...]
) -> tuple[Any, np.ndarray[Any, Any]]:
    """Returns the dtype of a part, and its elements in host memory."""
    given = value if is_arraylike(value) else np.asarray(value)
    array = as_array(given, None if dtype is None else dtypes.dtype(dtype))
    if array.shape != shape:
        raise ShapeError(
            f"{name}: the part {index} must have the shape {list(shape)}, got "
            f"{array.aval}"
        )
    own = array.dtype
    wanted = own if dtype is None else dtypes.dtype(dtype)
    if dtypes.is_key(own) or dtypes.is_key(wanted):
        if own != wanted:
            raise DtypeError(f"{name}: the part {index} is {array.aval}, not {wanted}")
        return own, np.array(host_of(array))
    return wanted, np.array(array, wanted)


def _assembled(aval: Aval, parts: Sequence[Any], placement: Any) -> Array:
    buffer = buffers.assemble(aval.physical, parts, placement)
    return Array(buffer, type_on(aval, placement, True))


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> Array:
    """Makes an array from the part that each process has.

    Args:
      sharding: a `Sharding`, or a `PartitionSpec` over the current mesh.
      local_data: array-like, or pytree of them: the elements of this process's devices,
        put together in the order of their slices. Along an axis that every process has
        whole, that is the whole.
      global_shape: of the whole array (for a pytree: one for each leaf, in the same
        structure). None: along an axis divided over processes, the local length times
        the number of distinct shares.

    Returns:
      The array, or a pytree of them.

    Raises:
      ShapeError: the local data is neither this process's share nor the whole.
      ArgumentError: the sharding has no device of this process, which then cannot
        know the shape.

    Example:
      >>> where = fxflow.NamedSharding(fxflow.make_mesh((1,), ("x",)), fxflow.P("x"))
      >>> make_array_from_process_local_data(where, fnp.arange(2)).tolist()
      [0, 1]
    """
    where = as_sharding(sharding, "make_array_from_process_local_data")
    leaves, treedef = tree.flatten(local_data)
    shapes: list[Any] = [None] * len(leaves)
    if global_shape is not None:
        shapes = tree.broadcast_prefix(
            global_shape, local_data, is_leaf=_is_shape, name="global_shape"
        )
    return treedef.unflatten(  # type: ignore[no-any-return]
        [
            _from_local(where, leaf, shape)
            for leaf, shape in zip(leaves, shapes, strict=True)
        ]
    )


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(n, int) for n in value)


def _from_local(where: Sharding, data: Any, shape: Any) -> Array:
    array = as_array(data)
    host = host_of(array)  # of keys the words, which are axes behind those divided
    ndim = array.ndim
    counts, tiles = where.tiles(ndim)
    mine = [
        tile
        for device, tile in zip(where.devices, tiles, strict=True)
        if device.process_index == device.client.process_index()
    ]
    # Along each axis: the distinct parts that this process holds, in order.
    held = [sorted({tile[axis] for tile in mine}) for axis in range(ndim)]
    if shape is None:
        if not mine:
            raise ArgumentError(
                f"make_array_from_process_local_data: {where} has no device of this "
                "process; give global_shape="
            )
        shape = [
            n * count // len(parts)
            for n, count, parts in zip(array.shape, counts, held, strict=True)
        ]
    lengths = tuple(int(n) for n in shape)
    part = where.shard_shape(lengths)
    starts: list[dict[int, int]] = []
    for axis in range(ndim):
        share = part[axis] * len(held[axis])
        if host.shape[axis] == lengths[axis]:  # the whole, of which we take our parts
            starts.append({p: p * part[axis] for p in held[axis]})
        elif host.shape[axis] == share:
            starts.append({p: i * part[axis] for i, p in enumerate(held[axis])})
        else:
            raise ShapeError(
                f"make_array_from_process_local_data: axis {axis} of the local data "
                f"{list(array.shape)} must be this process's share, {share}, or the "
                f"whole, {lengths[axis]}, of {list(lengths)} under {where}"
            )
    pieces = [
        host[
            tuple(
                slice(start[p], start[p] + n)
                for start, p, n in zip(starts, tile, part, strict=True)
            )
        ].copy()
        for tile in mine
    ]
    placement = buffers.placement_for(where)
    return _assembled(Aval(lengths, array.dtype), pieces, placement)


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Any,
    arrays: Sequence[Array],
    *,
    dtype: Any = None,
) -> Array:
    """Makes an array of parts that lie on their devices already; nothing is copied.

    Args:
      shape: shape of the whole array.
      sharding: a `Sharding`, or a `PartitionSpec` over the current mesh.
      arrays: one for each device of this process, in any order.
      dtype: dtype of the elements; needed if there is no array.

    Returns:
      The array.

    Raises:
      ShapeError: a part has the wrong shape.
      ArgumentError: a device has no part, or two; or the dtypes differ.

    Example:
      >>> device = fxflow.devices()[0]
      >>> whole = fxflow.SingleDeviceSharding(device)
      >>> part = fxflow.device_put(np.arange(3), device)
      >>> fxflow.make_array_from_single_device_arrays((3,), whole, [part])
      Array([0, 1, 2], dtype=int32)
    """
    name = "make_array_from_single_device_arrays"
    where = as_sharding(sharding, name)
    lengths = tuple(int(n) for n in shape)
    part = where.shard_shape(lengths)
    placement = buffers.placement_for(where)
    by_device: dict[Any, Array] = {}
    for array in arrays:
        if not isinstance(array, Array) or len(array._type.placement.devices) != 1:
            raise ArgumentError(
                f"{name}: expected arrays on one device each, got {array!r}"
            )
        if array.shape != part:
            raise ShapeError(
                f"{name}: each part must have the shape {list(part)}, got {array.aval}"
            )
        device = array._type.placement.device
        if device in by_device:
            raise ArgumentError(f"{name}: two parts lie on {device}")
        by_device[device] = array
    missing = [d for d in placement.local if d not in by_device]
    if missing or len(by_device) != len(placement.local):
        extra = [d for d in by_device if d not in placement.local]
        raise ArgumentError(
            f"{name}: {where} needs a part on each of {placement.local}; missing "
            f"{missing}, not wanted {extra}"
        )
    if len({a.dtype for a in arrays}) > 1:
        raise ArgumentError(
            f"{name}: parts of different dtypes: {[str(a.aval) for a in arrays]}"
        )
    if dtype is None and not arrays:
        raise ArgumentError(f"{name}: without any part, say the dtype")
    wanted = arrays[0].dtype if arrays else dtypes.dtype(dtype)
    parts = [buffer_of(by_device[d]) for d in placement.local]
    return _assembled(Aval(lengths, wanted), parts, placement)
