"""SciPy's functions on fxflow arrays: `from fxflow.scipy import special, linalg`."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "sparse",
    "special",
    "stats",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fxflow.scipy.{name}")
    raise AttributeError(f"module 'fxflow.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
