"""The seam to the runtime: the only folder that imports jaxlib.

Importing it starts no backend.
"""

from .clients import (
    Device,
    clear_backends,
    default_backend,
    default_device,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    set_default_device,
)
from .errors import BackendError, CompileError, DeletedBufferError

__all__ = [
    "BackendError",
    "CompileError",
    "DeletedBufferError",
    "Device",
    "clear_backends",
    "default_backend",
    "default_device",
    "device_count",
    "devices",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "set_default_device",
]
