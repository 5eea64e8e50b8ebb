"""`jax.dlpack`."""

from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.numpy import from_dlpack as _from_dlpack


def from_dlpack(external_array: Any, device: Any = None, copy: Any = None) -> Any:
    """Returns an array that shares memory with one of another library."""
    return _from_dlpack(external_array, device=device, copy=copy)


__all__ = ["from_dlpack"]

listen(globals())
