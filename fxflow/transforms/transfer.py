"""`device_put`, `device_get`, `block_until_ready`: pytrees between host and devices."""

from __future__ import annotations

from typing import Any

from fxflow.core import tree
from fxflow.core.array import Array
from fxflow.core.convert import as_array, is_arraylike, not_an_array
from fxflow.core.errors import ArgumentError
from fxflow.core.trace import Tracer
from fxflow.devices import Device, buffers
from fxflow.lax.transfer import DevicePut


def device_put(x: Any, device: Any = None) -> Any:
    """Puts arrays on a device.

    Args:
      x: array-like or pytree of them. Host memory is copied, never aliased.
      device: a `Device`, or None for the default device.

    Returns:
      The same structure with arrays there. With a `device` they are *committed*:
      operations on them run there.

    Raises:
      ArgumentError: a leaf is no array, or `device` is no device.

    Example:
      >>> import fxflow
      >>> float(device_put(1.0, fxflow.devices()[0]))
      1.0
    """
    if device is not None and not isinstance(device, Device):
        raise ArgumentError(
            f"device_put: device must be one of fxflow.devices(), got {device!r}"
        )

    def put(leaf: Any) -> Any:
        if not is_arraylike(leaf):
            raise not_an_array(leaf, "device_put: got")
        array = as_array(leaf)
        return array if device is None else DevicePut.bind(array, device=device)

    return tree.map(put, x)


def device_get(x: Any) -> Any:
    """Returns arrays as NumPy arrays in host memory.

    Args:
      x: array or pytree of arrays; other leaves stay as they are.

    Returns:
      The same structure with NumPy arrays (read-only; views where that is possible).

    Raises:
      ConcretizationError: a leaf is traced.

    Example:
      >>> import fxflow.numpy as fnp
      >>> device_get({"a": fnp.ones(2)})
      {'a': array([1., 1.], dtype=float32)}
    """
    leaves = tree.leaves(x)
    for leaf in leaves:
        if isinstance(leaf, Array) and not isinstance(leaf, Tracer):
            leaf.copy_to_host_async()
    return tree.map(lambda a: a.__array__() if isinstance(a, Array) else a, x)


def block_until_ready(x: Any) -> Any:
    """Waits until every array in a pytree is computed.

    Args:
      x: pytree; leaves that are no arrays are ignored.

    Returns:
      The pytree.

    Example:
      >>> import fxflow.numpy as fnp
      >>> block_until_ready(fnp.ones(2)).shape
      (2,)
    """
    pending = []
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array) and not isinstance(leaf, Tracer):
            if hasattr(leaf, "_buffer"):
                pending.append(leaf._buffer)
            else:
                leaf.block_until_ready()
    buffers.block_until_ready(pending)
    return x
