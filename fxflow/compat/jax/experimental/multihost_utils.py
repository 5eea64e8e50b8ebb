"""`jax.experimental.multihost_utils`."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals(), "fxflow.distributed.multihost")
