"""`jax._src.dispatch`."""

from fxflow.compat.jax._mirror import listen
from fxflow.lax.callbacks import effects_barrier as wait_for_tokens

__all__ = ["wait_for_tokens"]

listen(globals())
