"""`jax.tree_util`."""

from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.devices import trees

# fmt: off
_PREFIXED = (
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path",
    "map", "map_with_path", "reduce", "reduce_associative", "structure", "transpose",
    "unflatten",
)
# fmt: on

RENAMED = {f"tree_{name}": name for name in _PREFIXED}

default_registry = trees.registry
KeyEntry = Any
KeyPath = tuple[Any, ...]

mirror(globals(), "fxflow.core.tree", renamed=RENAMED)
for _name in (*_PREFIXED, "static", "broadcast_prefix", "flatten_up_to"):
    del globals()[_name]
del _name

__all__ = [
    name
    for name in globals()
    if not name.startswith("_") and name not in ("mirror", "trees")
]
