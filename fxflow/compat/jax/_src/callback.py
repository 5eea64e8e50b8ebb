"""`jax._src.callback`."""

from fxflow.compat.jax._mirror import listen
from fxflow.lax.callbacks import io_callback, pure_callback

__all__ = ["io_callback", "pure_callback"]

listen(globals())
