"""Meshes, specs and shardings: how arrays lie over devices."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.devices.meshes import (
    AbstractMesh, AxisType, Mesh, P, PartitionSpec, get_mesh, make_mesh, set_mesh,
)
from fxflow.devices.shardings import (
    GSPMDSharding, NamedSharding, Sharding, SingleDeviceSharding,
)

__all__ = [
    "AbstractMesh", "AxisType", "GSPMDSharding", "Mesh", "NamedSharding", "P",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "get_mesh", "make_mesh",
    "set_mesh",
]
# fmt: on

_public(globals(), __all__)
