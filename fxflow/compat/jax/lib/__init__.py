"""`jax.lib`: nothing public is left in it but the version."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.version import __version__

__all__ = ["__version__"]

listen(globals())
