"""`jax._src.interpreters.partial_eval`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.compat.jax.interpreters.partial_eval")
