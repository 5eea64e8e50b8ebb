"""`jax.experimental.sparse.api`: names of `jax.experimental.sparse`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse import (
    BCOO,
    BCSR,
    COO,
    CSC,
    CSR,
    JAXSparse,
    empty,
    eye,
    todense,
)

__all__ = [
    "BCOO",
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "JAXSparse",
    "empty",
    "eye",
    "todense",
]

listen(globals())
