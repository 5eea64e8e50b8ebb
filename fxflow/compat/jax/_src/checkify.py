"""`jax._src.checkify`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.experimental.checkify")
