"""`jax.experimental.topologies`: devices to compile for, which need not be here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import Device
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.mesh_utils import create_device_mesh
from fxflow.devices import clients, topologies
from fxflow.devices.meshes import Mesh


class TopologyDescription:
    """Devices.

    Args:
      devices: in order.
    """

    def __init__(self, devices: list[Any]) -> None:
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Returns the devices of this process.

    Args:
      platform: the platform; None is the default one.

    Returns:
      A `TopologyDescription`.
    """
    return TopologyDescription(clients.devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """Returns devices that programs can be compiled for, but not run on.

    Args:
      topology_name: for a TPU: generation and shape, such as `"v5e:2x2"`. For a GPU:
        `processes x hosts x devices`, such as `"1x1x4"`.
      platform: `tpu`, which is also None, or `cuda`.
      **kwargs: of a GPU: `target_config`, XLA's description of it as text.

    Returns:
      A `TopologyDescription`.

    Raises:
      BackendError: the plug-in is not installed, or does not know the topology.
      NotImplementedError: the platform has no such devices.
    """
    if platform in (None, "tpu"):
        name = [topology_name] if topology_name else []
        return TopologyDescription(topologies.tpu_devices(*name))
    if platform in ("cuda", "gpu"):
        shape = [topology_name] if topology_name else []
        return TopologyDescription(
            topologies.gpu_devices(kwargs["target_config"], *shape)
        )
    raise NotImplementedError(f"topology not implemented for {platform}")


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """Returns a mesh of the devices.

    Args:
      topo: the devices.
      mesh_shape: lengths of the axes.
      axis_names: as many names.
      contiguous_submeshes: has no effect.

    Returns:
      A `Mesh`.
    """
    return Mesh(create_device_mesh(mesh_shape, topo.devices), axis_names)


__all__ = [
    "Device",
    "TopologyDescription",
    "get_attached_topology",
    "get_topology_desc",
    "make_mesh",
]

listen(globals())
