"""`jax.experimental.shard_alike`: two arrays that lie on devices in one way."""

from __future__ import annotations

from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.core.arrays import Array, is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.lax.pytree_transfer import device_put


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Returns two arrays, the second one on devices as the first.

    In traced functions XLA's partitioner decides, and both are returned as they are.

    Args:
      x: array.
      y: array of the same shape.

    Returns:
      Both.

    Raises:
      ValueError: one is not an array, or they differ in shape.
    """
    for operand in (x, y):
        if not is_arraylike(operand):
            raise ValueError(f"shard_alike: takes arrays, got {operand!r}")
    if typeof(x).shape != typeof(y).shape:
        raise ValueError(
            f"shard_alike: the shapes must be the same, got {typeof(x)} and {typeof(y)}"
        )
    known = isinstance(x, Array) and not isinstance(x, Tracer)
    if known and not isinstance(y, Tracer):
        y = device_put(y, x.sharding)
    return x, y


__all__ = ["shard_alike"]

listen(globals())
