"""`jax.experimental.sparse.coo`: see `_plain`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse._plain import (
    COO as COO,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    coo_fromdense as coo_fromdense,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    coo_matmat as coo_matmat,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    coo_matvec as coo_matvec,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    coo_todense as coo_todense,
)

listen(globals())
