"""`jax.experimental.sparse.random`: names of `jax.experimental.sparse`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse import (
    random_bcoo,
)

__all__ = [
    "random_bcoo",
]

listen(globals())
