"""LAPACK for programs on the CPU: jaxlib's custom calls, with SciPy's library.

Call `ensure` before compiling a program that calls ``lapack_*`` targets. It imports
SciPy's LAPACK (0.15 s), so only the lowering of these operations calls it.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from fxflow.devices._jaxlib import xla_client

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@functools.cache
def ensure() -> None:
    """Registers the LAPACK targets with the CPU's runtime, once in each process."""
    library: Any = importlib.import_module("jaxlib.cpu._lapack")
    library.initialize()
    for name, function in library.registrations().items():
        # The names of typed FFI handlers end in _ffi.
        xla_client.register_custom_call_target(
            name, function, platform="cpu", api_version=int(name.endswith("_ffi"))
        )


def target(routine: str, dtype: Any) -> str:
    """Returns the name of a routine's custom call.

    Args:
      routine: its name without the type's letter: ``"geqrf"``.
      dtype: dtype of the matrices: float32, float64, complex64 or complex128.

    Returns:
      The name, for example ``"lapack_sgeqrf_ffi"``.

    Raises:
      TypeError: LAPACK has no such dtype.

    Example:
      >>> target("geqrf", "float32")
      'lapack_sgeqrf_ffi'
    """
    letter = _LETTERS.get(str(dtype))
    if letter is None:
        raise TypeError(f"LAPACK's {routine} takes {', '.join(_LETTERS)}; got {dtype}")
    return f"lapack_{letter}{routine}_ffi"
