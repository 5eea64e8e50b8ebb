"""`jax.experimental.sparse.bcsr`: see `_bcsr`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse._bcsr import (
    BCSR as BCSR,
)
from fxflow.compat.jax.experimental.sparse._bcsr import (
    bcsr_broadcast_in_dim as bcsr_broadcast_in_dim,
)
from fxflow.compat.jax.experimental.sparse._bcsr import (
    bcsr_concatenate as bcsr_concatenate,
)
from fxflow.compat.jax.experimental.sparse._bcsr import (
    bcsr_dot_general as bcsr_dot_general,
)
from fxflow.compat.jax.experimental.sparse._bcsr import (
    bcsr_extract as bcsr_extract,
)
from fxflow.compat.jax.experimental.sparse._bcsr import (
    bcsr_fromdense as bcsr_fromdense,
)
from fxflow.compat.jax.experimental.sparse._bcsr import (
    bcsr_sum_duplicates as bcsr_sum_duplicates,
)
from fxflow.compat.jax.experimental.sparse._bcsr import (
    bcsr_todense as bcsr_todense,
)

listen(globals())
