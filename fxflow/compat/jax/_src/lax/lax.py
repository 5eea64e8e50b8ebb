"""`jax._src.lax.lax`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.lax")
