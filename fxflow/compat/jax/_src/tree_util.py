"""`jax._src.tree_util`."""

from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.core.tree import is_tree_node


class _Registry:
    """Says which classes are containers, as a dict of them would."""

    def __contains__(self, kind: Any) -> bool:
        return kind in (tuple, list, dict, type(None)) or bool(is_tree_node(kind))


_registry = _Registry()

__all__ = mirror(globals(), "fxflow.compat.jax.tree_util")
