"""`jax._src.flatten_util`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.flatten_util")
