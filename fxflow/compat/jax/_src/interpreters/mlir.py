"""`jax._src.interpreters.mlir`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.interpreters.mlir")
