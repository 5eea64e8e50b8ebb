"""`jax._src.compiler`."""

from fxflow.compat.jax._mirror import listen

listen(globals())
