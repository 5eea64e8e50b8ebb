"""The interface to the runtime: the only folder that imports jaxlib.

Importing it starts no backend. This file exports the public functions; the layers above
import the modules: `clients`, `plugins` and `topologies` (connections), `buffers`,
`dlpack` and `memory` (data), `compile`, `cache`, `callbacks` and `lapack` (programs),
`trees`.

The package is callable: ``fxflow.devices()`` lists the devices, as in JAX, while
``fxflow.devices.doctor()`` is a function of the package.
"""

from __future__ import annotations

# fmt: off
import sys as _sys
from types import ModuleType as _ModuleType

from fxflow._names import answer as _answer
from fxflow.devices._jaxlib import Device, RuntimeFailure
from fxflow.devices.cache import CacheInfo
from fxflow.devices.cache import clear as clear_cache
from fxflow.devices.cache import info as cache_info
from fxflow.devices.clients import (
    clear_backends, default_backend, default_device, device_count, devices,
    local_device_count, local_devices, process_count, process_index, set_default_device,
)
from fxflow.devices.doctor import doctor
from fxflow.devices.memory import memory_stats
from fxflow.errors import (
    BackendError, CompileError, DeletedBufferError, ForkedError, OutOfMemoryError,
    PlacementError,
)

__all__ = [
    "Device", "default_backend", "device_count", "devices", "doctor",
        "local_device_count", "local_devices", "memory_stats", "process_count",
        "process_index",
    "clear_backends", "default_device", "set_default_device",
    "CacheInfo", "cache_info", "clear_cache",
    "BackendError", "CompileError", "DeletedBufferError", "OutOfMemoryError",
        "ForkedError", "RuntimeFailure", "PlacementError",
]
# fmt: on

_answer(globals(), __all__, lazy=("topologies",))


class _CallablePackage(_ModuleType):
    """This package; calling it calls `devices`."""

    def __call__(self, backend: str | None = None) -> list[Device]:
        return devices(backend)


_sys.modules[__name__].__class__ = _CallablePackage
