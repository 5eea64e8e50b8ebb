"""`jax.typing`."""

import numpy as np

from fxflow import Array
from fxflow.compat.jax._mirror import mirror

# Classes alone, for `isinstance`.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

__all__ = mirror(globals(), "fxflow.typing")
