"""`jax.experimental.compilation_cache`."""

from fxflow.compat.jax._mirror import listen

listen(globals())
