"""`jax.stages`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.transforms.jit import JitFunction as Wrapped
from fxflow.transforms.stages import Compiled, Lowered, Traced

CompilerOptions = Mapping[str, Any]


@dataclass
class ArgInfo:
    """Type of an argument, and whether it is donated."""

    _aval: Any
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self._aval.shape)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._aval.dtype


__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

listen(globals())
