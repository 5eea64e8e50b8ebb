"""Registers functions of compiled libraries with the runtime (XLA's *typed FFI*).

The library is compiled against the headers in `include_dir`. A handler is a C function
that takes one call frame; programs call it by its registered name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jaxlib

from fxflow.devices._jaxlib import xla_client
from fxflow.errors import ArgumentError

#: Addresses of the registered functions, by name and platform.
_known: dict[tuple[str, str], dict[str, int]] = {}
_STAGES = ("instantiate", "prepare", "initialize", "execute")

# The class of all functions of libraries, which `ctypes` does not export.
_Function: type = type(ctypes.pythonapi.PyCapsule_New).__mro__[1]

_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.restype, _is_capsule.argtypes = (
    ctypes.c_int,
    [ctypes.py_object, ctypes.c_char_p],
)
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def include_dir() -> str:
    """Returns the directory of the C and C++ headers for handlers.

    They are `xla/ffi/api/ffi.h` (C++17) and `xla/ffi/api/c_api.h` (C).

    Returns:
      The path, for a compiler's `-I`.

    Example:
      >>> include_dir().endswith("include")
      True
    """
    return str(Path(jaxlib.__file__).parent / "include")


def pycapsule(funcptr: Any) -> Any:
    """Returns a PyCapsule of a C function, for the runtime.

    Args:
      funcptr: a function of a library that `ctypes` loaded.

    Returns:
      The capsule. The library must stay loaded.

    Raises:
      ArgumentError: `funcptr` is not a function of `ctypes`.
    """
    # `cast` accepts strings too, and the runtime would call their addresses.
    is_function = isinstance(funcptr, _Function)
    address = ctypes.cast(funcptr, ctypes.c_void_p).value if is_function else None
    if not address:
        raise ArgumentError(
            "pycapsule: funcptr must be a function of a library that ctypes loaded, "
            f"such as ctypes.CDLL('./kernel.so').Kernel; got {funcptr!r}"
        )
    return _capsule(address, None, None)


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Registers a compiled function, so that `ffi_call` can call it by its name.

    Args:
      name: its name in programs.
      fn: the handler: a function of a library that `ctypes` loaded, or a PyCapsule of
        its address. A dict gives one for each stage: `instantiate`, `prepare`,
        `initialize`, `execute`.
      platform: `cpu`, `gpu` (the same as `cuda`), `rocm`, `tpu`, or a plug-in's name.
      api_version: 1 for the typed FFI, 0 for the older custom calls.
      **kwargs: passed on to jaxlib, such as `traits=`.

    Raises:
      ArgumentError: `fn` is not a function, or the name is already registered for
        another function on this platform, which a process cannot undo.

    Example:
      >>> import ctypes
      >>> library = ctypes.CDLL("./kernel.so")  # doctest: +SKIP
      >>> register_ffi_target("kernel", library.Kernel)  # doctest: +SKIP

    Source: XLA's foreign function interface.
    """
    stages = fn if isinstance(fn, Mapping) else {"execute": fn}
    unknown = [stage for stage in stages if stage not in _STAGES]
    if unknown:
        raise ArgumentError(
            f"register_ffi_target: stages are {', '.join(_STAGES)}; got {unknown[0]!r}"
        )
    capsules = {stage: _handler(handler) for stage, handler in stages.items()}
    where = _platform(platform)
    addresses = {k: _pointer_of(c, _name_of(c)) for k, c in capsules.items()}
    known = _known.get((name, where))
    if known == addresses:
        return  # registered again, for example by a notebook cell that runs twice
    if known is not None:
        raise ArgumentError(
            f"register_ffi_target: {name!r} is already registered for another function "
            f"on {platform}, for the life of this process: choose another name"
        )
    single = capsules if isinstance(fn, Mapping) else capsules["execute"]
    xla_client.register_custom_call_target(
        name, single, platform=where, api_version=api_version, **kwargs
    )
    _known[name, where] = addresses


def register_ffi_type(
    name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
) -> None:
    """Registers the type of a handler's state with the runtime.

    Args:
      name: the type's name, unique in the process.
      type_registration: `type_id` and `type_info`, each a PyCapsule of the address of
        the handler library's `TypeId` and `TypeInfo`, or the address as an integer.
      platform: see `register_ffi_target`.

    Raises:
      ArgumentError: an entry is missing or is not a capsule.
    """
    if set(type_registration) != {"type_id", "type_info"}:
        raise ArgumentError(
            "register_ffi_type: type_registration has the keys 'type_id' and "
            f"'type_info'; got {sorted(type_registration)}"
        )
    capsules = {key: _address(value) for key, value in type_registration.items()}
    xla_client.register_custom_type(name, capsules, platform=_platform(platform))


def _handler(fn: Any) -> Any:
    return fn if _is_a_capsule(fn) else pycapsule(fn)


def _address(value: Any) -> Any:
    if _is_a_capsule(value):
        return value
    if isinstance(value, int) and value:
        return _capsule(value, None, None)
    raise ArgumentError(
        "register_ffi_type: expected a PyCapsule or an address, got "
        f"{type(value).__name__}"
    )


def _is_a_capsule(value: Any) -> bool:
    return type(value).__name__ == "PyCapsule" and bool(
        _is_capsule(value, _name_of(value))
    )


def _platform(name: str) -> str:
    """Returns jaxlib's name of a platform."""
    return name if name in ("cpu", "gpu") else name.upper()
