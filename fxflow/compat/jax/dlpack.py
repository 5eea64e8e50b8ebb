"""`jax.dlpack`."""

from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.core.arrays import dtypes
from fxflow.numpy import from_dlpack as _from_dlpack


def from_dlpack(external_array: Any, device: Any = None, copy: Any = None) -> Any:
    """Returns an array that shares memory with one of another library."""
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Returns whether arrays of a dtype can be exchanged."""
    found = dtypes.dtype(dtype)
    if dtypes.is_key(found) or found.name.startswith("float8"):
        return False
    return dtypes.is_bool(found) or dtypes.bits(found) >= 8


__all__ = ["from_dlpack", "is_supported_dtype"]

listen(globals())
