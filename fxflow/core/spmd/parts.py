"""The parts of an array that this process holds, and a whole array from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array

NDArray = np.ndarray[Any, Any]
Index = tuple[slice, ...]
#: Parts of one array: where they lie in it, and their elements.
Parts = list[tuple[Index, NDArray]]


def held_parts(
    array: Array, *, first_replicas: bool = False
) -> list[tuple[Index, Array]]:
    """Returns the parts of an array on this process's devices, each once.

    Args:
      array: over any devices.
      first_replicas: whether to leave out parts whose first replica lies in another
        process, so that each part is returned in exactly one process.
    """
    found: dict[Any, tuple[Index, Array]] = {}
    for shard in array.addressable_shards:
        if shard.replica_id == 0 or not first_replicas:
            axes = zip(shard.index, array.shape, strict=True)
            bounds = tuple(part.indices(length) for part, length in axes)
            found.setdefault(bounds, (shard.index, shard.data))
    return list(found.values())


def join_parts(parts: Parts, shape: Sequence[int]) -> NDArray:
    """Returns a whole array.

    Args:
      parts: which cover it.
      shape: shape of the whole.
    """
    if len(parts) == 1 and parts[0][1].shape == tuple(shape):
        return np.ascontiguousarray(parts[0][1]).reshape(shape)
    whole = np.empty(shape, parts[0][1].dtype)
    for index, data in parts:
        whole[index] = data
    return whole
