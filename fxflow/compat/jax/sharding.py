"""`jax.sharding`."""

from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.devices.meshes import current_mesh, set_mesh

mirror(globals(), "fxflow.sharding")

from fxflow.sharding import SingleDeviceSharding  # noqa: E402
from fxflow.sharding import get_abstract_mesh as _types_of_mesh  # noqa: E402


def get_abstract_mesh() -> Any:
    """Returns the current mesh, or one without axes; in `shard_map` its types only.

    With devices, since programs make shardings of it, and constrain arrays to those.
    """
    abstract, mesh = _types_of_mesh(), current_mesh()
    return mesh if mesh and mesh.axis_types == abstract.axis_types else abstract


def make_single_device_sharding(device: Any, *, memory_kind: Any = None) -> Any:
    """Returns the sharding of one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


use_abstract_mesh = set_mesh
