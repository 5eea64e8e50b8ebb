"""`jax._src.callback`."""

from fxflow.compat.jax._api import io_callback, pure_callback
from fxflow.compat.jax._mirror import listen

__all__ = ["io_callback", "pure_callback"]

listen(globals())
