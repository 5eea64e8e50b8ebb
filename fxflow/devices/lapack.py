"""LAPACK for programs on the CPU: jaxlib's custom calls, on SciPy's library.

A program whose text calls ``lapack_*`` targets needs `ensure` to have run before it is
compiled. It imports SciPy's LAPACK (0.15 s), so it is called by the lowering of such
operations and by nothing else.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from fxflow.devices._jaxlib import xla_client

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@functools.cache
def ensure() -> None:
    """Makes the LAPACK targets known to the CPU's runtime; once a process."""
    library: Any = importlib.import_module("jaxlib.cpu._lapack")
    library.initialize()
    for name, function in library.registrations().items():
        # Names of the current kind of handler end in _ffi.
        xla_client.register_custom_call_target(
            name, function, platform="cpu", api_version=int(name.endswith("_ffi"))
        )


def target(routine: str, dtype: Any) -> str:
    """Returns the custom call's name of a routine.

    Args:
      routine: without the type's letter, such as ``"geqrf"``.
      dtype: of the matrices: float32, float64, complex64 or complex128.

    Returns:
      Such as ``"lapack_sgeqrf_ffi"``.

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
