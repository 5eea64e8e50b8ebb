"""`jax.experimental.sparse.csr`: see `_plain`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse._plain import (
    CSC as CSC,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    CSR as CSR,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    csr_fromdense as csr_fromdense,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    csr_matmat as csr_matmat,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    csr_matvec as csr_matvec,
)
from fxflow.compat.jax.experimental.sparse._plain import (
    csr_todense as csr_todense,
)

listen(globals())
