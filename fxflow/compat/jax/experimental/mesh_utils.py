"""`jax.experimental.mesh_utils`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.compat.jax._mirror import listen
from fxflow.devices.clients import devices as _devices


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Returns devices in the shape of a mesh, in their order.

    Args:
      mesh_shape: lengths of the axes.
      devices: the devices; None means all.
      contiguous_submeshes: has no effect.
      allow_split_physical_axes: has no effect.

    Raises:
      ValueError: the lengths do not multiply to the number of devices.
    """
    chosen = np.array(_devices() if devices is None else devices, dtype=object)
    if chosen.size != np.prod(mesh_shape):
        raise ValueError(
            f"Number of devices {chosen.size} must equal the product of mesh_shape "
            f"{tuple(mesh_shape)}"
        )
    return chosen.reshape(mesh_shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Returns devices in the shape of a mesh over a slow and a fast network.

    Args:
      mesh_shape: lengths of the axes within what the fast network connects.
      dcn_mesh_shape: how many of these there are along each axis.
      devices: the devices; None means all.
      process_is_granule: whether the fast network connects the devices of a process;
        otherwise those of a slice (one process, where devices name no slice).
      should_sort_granules_by_key: whether processes or slices are in their order.
      allow_split_physical_axes: has no effect.

    Raises:
      ValueError: the lengths do not multiply to the number of devices, or not to that
        of processes or slices.
    """
    chosen = list(_devices() if devices is None else devices)

    def key(device: Any) -> int:
        number = None if process_is_granule else getattr(device, "slice_index", None)
        return int(device.process_index if number is None else number)

    granules: dict[int, list[Any]] = {}
    for device in chosen:
        granules.setdefault(key(device), []).append(device)
    if len(granules) != np.prod(dcn_mesh_shape):
        raise ValueError(
            f"Number of slices or processes {len(granules)} must equal the product of "
            f"dcn_mesh_shape {tuple(dcn_mesh_shape)}"
        )
    order = sorted(granules) if should_sort_granules_by_key else list(granules)
    meshes = [create_device_mesh(mesh_shape, granules[number]) for number in order]
    outer = np.arange(len(meshes)).reshape(dcn_mesh_shape)
    return np.block(_nested(outer, meshes))


def _nested(outer: np.ndarray[Any, Any], meshes: Sequence[Any]) -> Any:
    if outer.ndim == 0:
        return meshes[int(outer)]
    return [_nested(row, meshes) for row in outer]


__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]

listen(globals())
