"""Private modules of JAX that packages import all the same."""

from fxflow.compat.jax._mirror import mirror

__all__ = mirror(globals())
