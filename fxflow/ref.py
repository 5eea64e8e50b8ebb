"""Mutable references to arrays; see `new_ref`."""

# fmt: off
from fxflow.core.arrays import AbstractRef
from fxflow.core.boundary import public as _public
from fxflow.core.ir.references import Ref
from fxflow.lax.references import (
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)

__all__ = [
    "AbstractRef", "Ref",
    "new_ref", "empty_ref", "freeze", "free_ref",
    "get", "set", "swap", "addupdate",
]
# fmt: on

_public(globals(), __all__)
