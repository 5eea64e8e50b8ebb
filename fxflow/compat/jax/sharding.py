"""`jax.sharding`."""

from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.devices.meshes import set_mesh

mirror(globals(), "fxflow.sharding")

from fxflow.sharding import SingleDeviceSharding  # noqa: E402


def make_single_device_sharding(device: Any, *, memory_kind: Any = None) -> Any:
    """Returns the sharding of one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


use_abstract_mesh = set_mesh
