"""The package as `fxflow.devices` shows it to type checkers: it can be called.

They know of no module that is a function. So they are told of a class, whose attributes
are what the package lists (a test compares the two), and which called gives what
`devices` returns. Nothing of this exists at run time.
"""

from typing import TypeAlias

from fxflow import errors as _errors
from fxflow.devices import _jaxlib, cache, clients, memory
from fxflow.devices import doctor as _doctor

class devices:
    """The devices, and what is done with them; called, lists the devices."""

    def __new__(cls, backend: str | None = None) -> list[_jaxlib.Device]: ...  # type: ignore[misc]

    Device: TypeAlias = _jaxlib.Device
    default_backend = staticmethod(clients.default_backend)
    device_count = staticmethod(clients.device_count)
    devices = staticmethod(clients.devices)
    doctor = staticmethod(_doctor)
    local_device_count = staticmethod(clients.local_device_count)
    local_devices = staticmethod(clients.local_devices)
    memory_stats = staticmethod(memory.memory_stats)
    process_count = staticmethod(clients.process_count)
    process_index = staticmethod(clients.process_index)
    clear_backends = staticmethod(clients.clear_backends)
    default_device = staticmethod(clients.default_device)
    set_default_device = staticmethod(clients.set_default_device)
    CacheInfo: TypeAlias = cache.CacheInfo
    cache_info = staticmethod(cache.info)
    clear_cache = staticmethod(cache.clear)
    BackendError: TypeAlias = _errors.BackendError
    CompileError: TypeAlias = _errors.CompileError
    DeletedBufferError: TypeAlias = _errors.DeletedBufferError
    OutOfMemoryError: TypeAlias = _errors.OutOfMemoryError
    ForkedError: TypeAlias = _errors.ForkedError
    RuntimeFailure: TypeAlias = _jaxlib.RuntimeFailure
    PlacementError: TypeAlias = _errors.PlacementError
