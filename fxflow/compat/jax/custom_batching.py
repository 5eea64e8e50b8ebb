"""`jax.custom_batching`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.custom_batching")
