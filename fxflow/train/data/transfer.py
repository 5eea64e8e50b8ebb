"""Transfers batches to devices ahead of their use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core import tree
from fxflow.devices import default_device
from fxflow.devices.meshes import Mesh, PartitionSpec
from fxflow.devices.shardings import NamedSharding, Sharding
from fxflow.errors import DataError
from fxflow.lax.global_arrays import make_array_from_process_local_data
from fxflow.lax.pytree_transfer import device_put
from fxflow.train.data.parallel import Pairs, prefetched


def _to_parts(devices: list[Any]) -> Callable[[Any], Any]:
    """Returns a function that splits a leaf's first axis into one part per device."""
    count = len(devices)
    sharding = NamedSharding(Mesh(np.array(devices), ("part",)), PartitionSpec("part"))

    def put(leaf: Any) -> Any:
        shape = np.shape(leaf)
        if not shape or shape[0] % count:
            raise DataError(
                f"to_devices: cannot split an array of shape {shape} into {count} "
                f"equal parts along its first axis: make the batch size a multiple of "
                f"{count}, with drop_remainder=True"
            )
        parts = np.reshape(leaf, (count, shape[0] // count, *shape[1:]))
        return device_put(parts, sharding)

    return put


def _put(element: Any, where: Any) -> Any:
    def leaf_to(leaf: Any, to: Any) -> Any:
        if isinstance(to, Sharding) and not to.is_fully_addressable:
            return make_array_from_process_local_data(to, np.asarray(leaf))
        return device_put(leaf, to)

    leaves, treedef = tree.flatten(element)
    places = tree.broadcast_prefix(
        where, element, is_leaf=lambda x: x is None, name="to_devices"
    )
    return treedef.unflatten(map(leaf_to, leaves, places))


def transferred(
    pairs: Pairs[Any, Any], where: Any, size: int, timeout: float
) -> Pairs[Any, Any]:
    """Yields the elements as arrays, which a thread transfers ahead.

    At most `size` elements exist at a time, including the last one yielded.
    """
    if isinstance(where, (list, tuple)) and not tree.all_leaves([where]):
        to_part = _to_parts(list(where))

        def put(element: Any) -> Any:
            return tree.map(to_part, element)
    else:

        def put(element: Any) -> Any:
            return _put(element, where)

    # The transferring thread uses the configuration of the consumer's thread.
    device, x64 = default_device(), config.x64

    def arrays() -> Pairs[Any, Any]:
        with (
            contextlib.closing(pairs),
            default_device(device),
            config.override(x64=x64),
        ):
            for element, state in pairs:
                yield put(element), state

    yield from prefetched(arrays(), size, timeout, "to_devices")
