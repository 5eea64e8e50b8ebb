"""Meshes, specs and shardings: how arrays lie over devices."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.devices.meshes import (
    AbstractMesh, AxisType, Mesh, P, PartitionSpec, get_mesh, make_mesh, set_mesh,
)
from fxflow.devices.shardings import (
    GSPMDSharding, NamedSharding, Sharding, SingleDeviceSharding,
)
from fxflow.transforms.axis_types import (
    auto_axes, explicit_axes, get_abstract_mesh, reshard,
)

__all__ = [
    "AbstractMesh", "AxisType", "GSPMDSharding", "Mesh", "NamedSharding", "P",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "auto_axes",
    "explicit_axes", "get_abstract_mesh", "get_mesh", "make_mesh", "reshard",
    "set_mesh",
]
# fmt: on

_public(globals(), __all__)
