"""The stages of compilation, for annotations and `isinstance`.

`jit(f)` is a `Wrapped`; its `trace` gives a `Traced`, that one's `lower` a `Lowered`,
and that one's `compile` a `Compiled`.
"""

from fxflow.core.boundary import public as _public
from fxflow.transforms.copies import ArgumentCopy
from fxflow.transforms.jit import JitFunction as Wrapped
from fxflow.transforms.memory_reports import HeldBuffer, MemoryReport, MemoryRow
from fxflow.transforms.stages import (
    ArgInfo,
    Compiled,
    CompilerOptions,
    Lowered,
    Traced,
)

__all__ = [
    "ArgInfo",
    "ArgumentCopy",
    "Compiled",
    "CompilerOptions",
    "HeldBuffer",
    "Lowered",
    "MemoryReport",
    "MemoryRow",
    "Traced",
    "Wrapped",
]

_public(globals(), __all__)
