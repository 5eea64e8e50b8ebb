"""`jax._src.tree_util`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.tree_util")
