"""`device_put`, `device_get`, `block_until_ready`: pytrees between host and devices."""

from __future__ import annotations

import gc
from typing import Any, TypeVar, overload

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, as_array, dtypes, is_arraylike, not_an_array
from fxflow.core.arrays.array import ArrayOrNumber, unwrapped
from fxflow.core.arrays.protocol import array_method
from fxflow.core.ir.trace import Tracer
from fxflow.core.spmd.memories import Going
from fxflow.devices import buffers, clients, transfers
from fxflow.devices.memory_kinds import HOST, Space, kind_of
from fxflow.lax.transfer import DevicePut, as_sharding, copied, is_sharding_leaf

T = TypeVar("T")

HERE = Going(None)


@overload
def device_put(
    x: ArrayOrNumber,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Array: ...
@overload
def device_put(
    x: T,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> T: ...
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Puts arrays on devices.

    Args:
      x: array-like or pytree of them. Host memory is copied, never aliased.
      device: where to: a `Device`, a device's name, a `Sharding`, a `PartitionSpec`
        over the current mesh, a `memory.Space` (the same devices and layout in another
        memory); or a pytree of these that is a prefix of `x`. None is the default
        device.
      src: where from, likewise. An array knows where it is, and so does a program; it
        only says where the cotangent goes, if that is to be another memory.
      donate: whether an array given is not needed any more; it is deleted if it had to
        be copied. A bool, or a pytree prefix of `x`.
      may_alias: whether the result may share memory with `x`, likewise (False: always a
        copy; None and True: it may).

    Returns:
      The same structure with arrays there. With a `device` they are *committed*:
      operations on them run there. In a jitted function a sharding over a mesh becomes
      a constraint (see `lax.with_sharding_constraint`), and another kind of memory a
      copy to it. What operations read from host memory is copied to the device's own
      first; results are there. The cotangent goes back to the memory `x` came from,
      and outside of jitted functions to its devices.

    Raises:
      ArgumentError: a leaf is not an array, or `device` is not a device.
      PlacementError: the array cannot be divided as the sharding asks.

    Example:
      >>> float(device_put(1.0, fxflow.devices()[0]))
      1.0
    """
    if transfers.on:
        return transfers.explicitly(_device_put, x, device, src, donate, may_alias)
    return _device_put(x, device, src, donate, may_alias)


def _device_put(x: Any, device: Any, src: Any, donate: Any, may_alias: Any) -> Any:
    leaves, treedef = tree.flatten(x)
    shardings = tree.broadcast_prefix(
        device, x, is_leaf=is_sharding_leaf, name="device_put"
    )
    if src is None and donate is False and may_alias is None:
        return treedef.unflatten(map(_put, leaves, shardings))
    sources = tree.broadcast_prefix(
        src, x, is_leaf=is_sharding_leaf, name="device_put: src"
    )
    gives = tree.broadcast_prefix(donate, x, name="device_put: donate")
    aliases = tree.broadcast_prefix(
        may_alias, x, is_leaf=is_sharding_leaf, name="device_put: may_alias"
    )
    outs = list(map(_put, leaves, shardings, sources))
    return treedef.unflatten(map(_owned, leaves, outs, gives, aliases))


def _put(leaf: Any, where: Any, source: Any = None) -> Any:
    """Returns a leaf put where it is wanted."""
    if not is_arraylike(leaf):
        raise not_an_array(leaf, "device_put: got")
    array = as_array(leaf)
    if where is None:
        return array
    to, kind = where, None
    if type(where) is Space:
        to, kind = None, _kind(where, array, "device_put")
    else:
        to = as_sharding(where, "device_put")
        kind = to.offloaded
        to.shard_shape(array.shape)
    memory = HERE if kind is None else Going(kind)
    if source is not None:
        memory = Going(kind, _kind(source, array, "device_put: src"))
    return DevicePut.bind(array, to=to, memory=memory)


def _owned(leaf: Any, result: Any, donate: Any, may_alias: Any) -> Any:
    """Returns what became of a leaf, not sharing its memory if that was asked for."""
    if isinstance(result, Tracer) or not isinstance(leaf, Array):
        return result
    source, target = leaf._type.placement, result._type.placement
    stays = source.same_layout(target, len(leaf.aval.physical.shape))
    # Host memory may be taken over by the devices it is divided among.
    if may_alias is False and (stays or hasattr(leaf, "_host")):
        result, stays = copied(result), False
    if donate and not stays and not leaf.is_deleted():
        leaf.delete()
    return result


def _kind(where: Any, array: Any, what: str) -> str | None:
    """Returns the kind of memory that `where` names, None for the device's own."""
    if not isinstance(where, Space):
        return as_sharding(where, what).offloaded
    if isinstance(array, Tracer):
        return HOST if where is Space.Host else None
    return kind_of(where, array._type.placement.device)


@overload
def device_get(x: Array) -> np.ndarray[Any, Any]: ...
@overload
def device_get(x: Any) -> Any: ...
def device_get(x: Any) -> Any:
    """Returns arrays as NumPy arrays in host memory.

    Args:
      x: array or pytree of arrays; other leaves stay as they are, and so do keys, which
        NumPy has no dtype for.

    Returns:
      The same structure with NumPy arrays (read-only; views where that is possible).

    Raises:
      ConcretizationError: a leaf is traced.

    Example:
      >>> device_get({"a": fnp.ones(2)})
      {'a': array([1., 1.], dtype=float32)}
    """
    leaves = tree.leaves(x)
    for leaf in leaves:
        # All copies are under way before the first is waited for.
        if isinstance(leaf, Array) and not isinstance(leaf, Tracer):
            leaf.copy_to_host_async()

    def fetched(leaf: Any) -> Any:
        leaf = leaf if isinstance(leaf, Tracer) else unwrapped(leaf)
        if not isinstance(leaf, Array) or dtypes.is_key(leaf.dtype):
            return leaf
        return transfers.explicitly(leaf.__array__)

    return tree.map(fetched, x)


def block_until_ready(x: T) -> T:
    """Waits until every array in a pytree is computed.

    Args:
      x: pytree; leaves that are not arrays are ignored.

    Returns:
      The pytree.

    Example:
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
        elif array_method(leaf) is not None:  # a handle, perhaps
            getattr(leaf, "block_until_ready", lambda: None)()
    buffers.block_until_ready(pending)
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """Returns the arrays whose memory is not freed yet, to find out what holds it.

    Those that fxflow keeps itself, such as constants of compiled functions, are among
    them. Python's garbage collector is asked, so it takes as long as there are objects.

    Args:
      platform: on which devices: `"cpu"`, `"gpu"`, …; None is the default platform.

    Returns:
      A list, in no particular order.

    Raises:
      BackendError: there is no such platform.

    Example:
      >>> x = fnp.ones(3)
      >>> any(x is array for array in live_arrays())
      True
    """
    name = clients.devices(platform)[0].platform
    return [
        found
        for found in gc.get_objects()
        if type(found) is Array and not found.is_deleted() and found.platform() == name
    ]
