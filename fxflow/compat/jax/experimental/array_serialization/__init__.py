"""`jax.experimental.array_serialization`."""

from fxflow.compat.jax._mirror import listen

listen(globals())
