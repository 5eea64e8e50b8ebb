"""`jax.experimental.sparse.ad`: names of `jax.experimental.sparse`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse import (
    grad,
    jacfwd,
    jacobian,
    jacrev,
    value_and_grad,
)

__all__ = [
    "grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "value_and_grad",
]

listen(globals())
