"""`jax.interpreters.xla`."""

from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._primitives import Primitive


def apply_primitive(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Runs a primitive on arrays."""
    return primitive.bind(*args, **params)


listen(globals())
