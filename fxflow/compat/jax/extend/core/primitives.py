"""`jax.extend.core.primitives`: fxflow's primitives as JAX names them."""

from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import by_name

_namespace = globals()
listen(_namespace)
_absent = _namespace["__getattr__"]


def __getattr__(name: str) -> Any:
    found = by_name(name)
    return _absent(name) if found is None else found
