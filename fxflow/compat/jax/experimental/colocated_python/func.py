"""`jax.experimental.colocated_python.func`."""

from fxflow.compat.jax._mirror import listen

listen(globals())
