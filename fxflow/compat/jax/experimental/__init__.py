"""`jax.experimental`."""

from fxflow.compat.jax._config import CONTEXTS as _CONTEXTS
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._api import io_callback

# Gone from JAX here; suites of older packages still enter it.
enable_x64 = _CONTEXTS["enable_x64"]

__all__ = ["enable_x64", "io_callback"]

listen(globals())
