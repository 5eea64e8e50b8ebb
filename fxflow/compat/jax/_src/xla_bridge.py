"""`jax._src.xla_bridge`."""

from typing import Any

from fxflow.compat.jax._mirror import mirror

_backends: dict[str, Any] = {}

__all__ = mirror(globals(), "fxflow.compat.jax.extend.backend")
