"""`jax.experimental.sparse.util`: see `_base`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse._base import (
    CuSparseEfficiencyWarning as CuSparseEfficiencyWarning,
)
from fxflow.compat.jax.experimental.sparse._base import (
    SparseEfficiencyError as SparseEfficiencyError,
)
from fxflow.compat.jax.experimental.sparse._base import (
    SparseEfficiencyWarning as SparseEfficiencyWarning,
)

listen(globals())
