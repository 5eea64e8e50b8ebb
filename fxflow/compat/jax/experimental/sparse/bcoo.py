"""`jax.experimental.sparse.bcoo`: see `_bcoo`."""

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse._bcoo import (
    BCOO as BCOO,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_dot_general as bcoo_dot_general,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_extract as bcoo_extract,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_fromdense as bcoo_fromdense,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_multiply_dense as bcoo_multiply_dense,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_sort_indices as bcoo_sort_indices,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_sum_duplicates as bcoo_sum_duplicates,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_todense as bcoo_todense,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_transpose as bcoo_transpose,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    bcoo_update_layout as bcoo_update_layout,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_concatenate as bcoo_concatenate,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_conv_general_dilated as bcoo_conv_general_dilated,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_dynamic_slice as bcoo_dynamic_slice,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_gather as bcoo_gather,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_multiply_sparse as bcoo_multiply_sparse,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_reduce_sum as bcoo_reduce_sum,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_reshape as bcoo_reshape,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_rev as bcoo_rev,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_slice as bcoo_slice,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import (
    bcoo_squeeze as bcoo_squeeze,
)

listen(globals())
