"""`jax._src.core`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.core", "fxflow.compat.jax.extend.core")
