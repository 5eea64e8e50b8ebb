"""`jax._src.state`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals())
