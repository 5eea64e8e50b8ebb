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
      devices: which; None is all.
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


listen(globals())
