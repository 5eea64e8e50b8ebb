"""`jax.extend.backend`."""

from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.devices import clients


def get_backend(platform: str | None = None) -> Any:
    """Returns the client of a platform."""
    return clients.client(platform)


clear_backends = clients.clear_backends

__all__ = ["clear_backends", "get_backend"]

listen(globals())
