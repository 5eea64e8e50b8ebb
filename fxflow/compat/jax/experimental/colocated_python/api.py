"""`jax.experimental.colocated_python.api`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.experimental.colocated_python")
