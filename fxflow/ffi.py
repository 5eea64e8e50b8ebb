"""The foreign function interface: compiled functions called from programs.

A library is compiled against XLA's headers (`include_dir`), loaded with `ctypes`, and
its function registered under a name, which `ffi_call` calls. `docs/extending.md` shows
it with a C++ kernel.
"""

from fxflow.core.boundary import public as _public
from fxflow.devices.ffi import (
    include_dir,
    pycapsule,
    register_ffi_target,
    register_ffi_type,
)
from fxflow.lax.foreign_calls import ffi_call

__all__ = [
    "ffi_call",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_type",
]

_public(globals(), __all__)
