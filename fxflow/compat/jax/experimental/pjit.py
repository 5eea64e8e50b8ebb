"""`jax.experimental.pjit`."""

from fxflow.compat.jax._api import jit as pjit
from fxflow.compat.jax._mirror import listen
from fxflow.lax.transfer import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]

listen(globals())
