"""Functions whose vectorized form the user gives."""

from fxflow.core.boundary import public as _public
from fxflow.transforms.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

_public(globals(), __all__)
