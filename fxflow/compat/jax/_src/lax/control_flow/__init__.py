"""`jax._src.lax.control_flow`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.lax")
