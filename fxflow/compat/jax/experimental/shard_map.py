"""`jax.experimental.shard_map`."""

from fxflow.compat.jax._api import shard_map
from fxflow.compat.jax._mirror import listen

__all__ = ["shard_map"]

listen(globals())
