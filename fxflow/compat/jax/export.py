"""`jax.export`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.export")
