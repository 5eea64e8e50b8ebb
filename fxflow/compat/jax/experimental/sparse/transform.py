"""`jax.experimental.sparse.transform`: see `_sparsify`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse._sparsify import (
    sparsify as sparsify,
)

listen(globals())
