"""Memories by name, as in `device_put(x, memory.Space.Host)`; what arrays are alive."""

from fxflow.core.boundary import public as _public
from fxflow.devices.memory_kinds import Space
from fxflow.transforms.tracking import LiveArrays, LiveRow, live, tracking

__all__ = ["LiveArrays", "LiveRow", "Space", "live", "tracking"]

_public(globals(), __all__)
