"""`jax._src.ad_util`."""

from fxflow.compat.jax._mirror import mirror
from fxflow.compat.jax._primitives import by_name

stop_gradient_p = by_name("stop_gradient_p")

__all__ = mirror(globals(), "fxflow.compat.jax.interpreters.ad")
