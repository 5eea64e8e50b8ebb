"""`jax._src.interpreters.batching`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.interpreters.batching")
