"""`jax.extend.backend`."""

from collections.abc import Callable
from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.core.caches import clear_caches
from fxflow.devices import clients


def get_backend(platform: str | None = None) -> Any:
    """Returns the client of a platform."""
    return clients.client(platform)


def backends() -> dict[str, Any]:
    """Returns the clients of all platforms that this machine has."""
    return {name: clients.client(name) for name in clients.platforms()}


def get_default_device() -> Any:
    """Returns the device that new arrays are on."""
    return clients.default_device() or clients.devices()[0]


clear_backends: Callable[[], None] = clients.clear_backends
clear_in_memory_compilation_cache = clear_caches

__all__ = [
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_default_device",
]

listen(globals())
