"""Buffers: memory on a device, and copies to and from it.

A buffer is jaxlib's ``ArrayImpl``: immutable, reference counted, possibly not computed
yet. The functions here are thin wrappers: an eager operation on a small array takes
about as long as one of them.

On the CPU, host memory is device memory, so a buffer may *alias* a NumPy array (the
array must start at a multiple of 64 bytes) and a NumPy array may alias a buffer.

Donation never overwrites an aliased array; tests check this. When a program may reuse
a buffer (``tf.aliasing_output`` or ``jax.buffer_donor`` on an argument), the CPU
runtime

- reuses the memory and deletes the buffer, if only the buffer refers to it;
- writes to new memory and deletes the buffer, if the memory came from NumPy or DLPack;
- writes to new memory and *keeps* the buffer, while a NumPy view (`to_host`) or DLPack
  export of it is alive.

Calling `delete` afterwards gives the array the same state in all three cases.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fxflow.devices import clients, shardings
from fxflow.devices._jaxlib import (
    HANDLER_OPTIONS,
    ArrayCopySemantics,
    Buffer,
    Device,
    DeviceList,
    GSPMDSharding,
    HloSharding,
    HostBufferSemantics,
    RuntimeFailure,
    array_result_handler,
    batched_block_until_ready,
    batched_copy_array_to_devices_with_sharding,
    batched_device_put,
    collect_garbage,
    parts_of,
    to_numpy,
)
from fxflow.devices.callbacks import raise_original
from fxflow.devices.process import on_fork, require_not_forked
from fxflow.devices.remote import RemoteDevice
from fxflow.devices.shardings import Sharding
from fxflow.errors import DeletedBufferError, PlacementError

#: XLA's CPU runtime aliases host memory only at multiples of this.
ALIGNMENT = 64


class BareType(Protocol):
    """The attributes that the runtime reads of a type without a placement."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def dtype(self) -> Any: ...  # noqa: D102
    @property
    def weak_type(self) -> bool: ...  # noqa: D102


class BufferType(NamedTuple):
    """A `BareType` for buffers that fxflow did not compute."""

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool = False


# -- placements ------------------------------------------------------------------------


class Placement:
    """Where arrays are. Interned: one object for each sharding, compared by identity.

    Attributes:
      device: the device (the first one, if there are several).
      devices: all devices, a tuple, in the order of the parts.
      local: the devices of this process, in that order.
      sharding: the `Sharding` that users see.
      platform: ``"cpu"``, ``"gpu"``, ``"tpu"``, ...
      is_single: whether it is one device and its own memory.
      is_host: whether the memory is host memory, so that NumPy can see it.
      offloaded: kind of the memory, None for the devices' default memory.
      table: what `core` caches for each placement; freed with the client.
    """

    __slots__ = (
        "_device_list",
        "_runtime",
        "_sharding",
        "device",
        "devices",
        "is_host",
        "is_single",
        "local",
        "offloaded",
        "platform",
        "table",
    )

    device: Device
    devices: tuple[Device, ...]
    local: list[Device]
    platform: str
    is_single: bool
    is_host: bool
    offloaded: str | None
    table: dict[Any, Any]

    def __init__(
        self, devices: tuple[Device, ...], sharding: Sharding | None = None
    ) -> None:
        self.device = devices[0]
        self.devices = devices
        self.local = shardings.local_part(devices)
        self.platform = str(self.device.platform)
        self.is_single = sharding is None
        self.is_host = self.is_single and self.platform == "cpu"
        self.offloaded = None if sharding is None else sharding.offloaded
        self.table = {}
        self._sharding = sharding
        self._device_list = DeviceList(devices)
        self._runtime: dict[int, Any] = {}

    @property
    def sharding(self) -> Sharding:
        """The sharding that users see."""
        if self._sharding is None:
            self._sharding = shardings.SingleDeviceSharding(self.device)
        return self._sharding

    def runtime(self, ndim: int) -> Any:
        """Returns the runtime's sharding for arrays of `ndim` axes."""
        known = self._runtime.get(ndim)
        if known is None:
            # GSPMDSharding needs no Python subclass, and makes a put 20 % faster than a
            # SingleDeviceSharding does.
            hlo = HloSharding.replicate() if self.is_single else self.sharding.hlo(ndim)
            known = GSPMDSharding(self._device_list, hlo, memory_kind=self.offloaded)
            self._runtime[ndim] = known
        return known

    def same_layout(self, other: Placement, ndim: int) -> bool:
        """Returns whether both placements lay out arrays of `ndim` axes alike."""
        if self is other:
            return True
        if self.devices != other.devices:
            return False
        key = ("same_layout", other, ndim)
        known = self.table.get(key)
        if known is None:
            known = self.sharding.is_equivalent_to(other.sharding, ndim)
            self.table[key] = known
        return bool(known)

    def indices(self, shape: Sequence[int]) -> list[tuple[slice, ...]]:
        """Returns the slices of the whole array that each local device holds."""
        if self.is_single:
            return [(slice(None),) * len(shape)]
        key = ("indices", *shape)
        known: list[tuple[slice, ...]] | None = self.table.get(key)
        if known is None:
            where = self.sharding.devices_indices_map(shape)
            known = self.table[key] = [where[d] for d in self.local]
        return known

    def __repr__(self) -> str:
        if self.is_single:
            return f"{self.platform}:{self.device.id}"
        return repr(self.sharding)

    def __reduce__(self) -> Any:
        raise TypeError(
            f"placement {self!r} cannot be pickled: it belongs to this process"
        )


_placements: dict[Any, Placement] = {}
_first_placement: Placement | None = None


def placement(device: Device | RemoteDevice) -> Placement:
    """Returns the placement on `device`."""
    try:
        known = _placements.get(device)
    except TypeError:  # not hashable, so not a device
        known = None
    if known is None:
        if isinstance(device, RemoteDevice):
            return device.placement()
        if not isinstance(device, Device):
            raise TypeError(f"device: expected a Device, got {type(device).__name__}")
        known = _placements.setdefault(device, Placement((device,)))
    return known


def placement_for(sharding: Sharding) -> Placement:
    """Returns the placement that a sharding describes."""
    known = _placements.get(sharding)
    if known is None:
        one = isinstance(sharding, shardings.SingleDeviceSharding)
        if one and sharding.offloaded is None:
            return placement(sharding.devices[0])
        if not isinstance(sharding, Sharding):
            raise TypeError(f"expected a Sharding, got {type(sharding).__name__}")
        if not sharding.devices:
            raise PlacementError(f"{sharding} has no devices")
        # Equal shardings may be written differently; the placement serves all of them.
        sharding = sharding.canonical()
        first = sharding.devices[0]
        if isinstance(first, RemoteDevice):  # which keeps its placements itself
            return first.placement(sharding)
        known = _placements.setdefault(sharding, Placement(sharding.devices, sharding))
    return known


def part_placement(whole: Placement, device: Device) -> Placement:
    """Returns the placement of one part of an array: its device, in the same memory."""
    if whole.offloaded is None:
        return placement(device)
    kind = whole.offloaded
    return placement_for(shardings.SingleDeviceSharding(device, memory_kind=kind))


def placement_of(buffer: Buffer) -> Placement:
    """Returns the placement of a buffer on one device."""
    sharding = buffer._sharding
    if isinstance(sharding, GSPMDSharding):
        return placement(sharding._devices[0])
    return placement(sharding._device)  # a part of an array on several devices


def default_placement() -> Placement:
    """Returns the placement on the default device."""
    chosen = clients._thread.chosen or clients._default.device
    if chosen is not None:
        return placement(chosen)
    if _first_placement is not None:
        return _first_placement
    return _find_first()


def _find_first() -> Placement:
    global _first_placement
    _first_placement = placement(clients.client().local_devices()[0])
    return _first_placement


def _forget() -> None:
    global _first_placement
    _first_placement = None
    _placements.clear()


clients.on_clear(_forget)


def _after_fork() -> None:
    """Makes waiting for a buffer raise if no thread of this process can finish it."""
    global batched_block_until_ready, to_numpy
    wait, convert = batched_block_until_ready, to_numpy

    def waits(buffers: Sequence[Buffer]) -> None:
        if not all(buffer.is_ready() for buffer in buffers):
            require_not_forked()
        wait(buffers)

    def converts(buffer: Buffer) -> Any:
        if not buffer.is_ready():
            require_not_forked()
        return convert(buffer)

    batched_block_until_ready, to_numpy = waits, converts
    _forget()


on_fork(_after_fork)


# -- in --------------------------------------------------------------------------------


def result_handler(aval: BareType, placement: Placement, committed: bool) -> Any:
    """Returns the function that makes a buffer of an executable's raw result.

    Args:
      aval: type of the result.
      placement: where it is.
      committed: whether it must stay there.
    """
    sharding = placement.runtime(len(aval.shape))
    return array_result_handler(aval, sharding, committed, *HANDLER_OPTIONS)


def put(aval: BareType, host: np.ndarray[Any, Any], placement: Placement) -> Buffer:
    """Returns a buffer with the values of `host`, aliasing its memory if possible.

    `host` must not be written to afterwards. The buffer keeps it alive.

    Args:
      aval: type of the buffer; shape and dtype are those of `host`.
      host: the whole array, with any strides; each device gets its part.
      placement: where to put it.

    Raises:
      PlacementError: the array cannot be divided as the sharding asks.
    """
    return batched_device_put(
        aval,
        placement.runtime(host.ndim),
        _parts(host, placement),
        placement.local,
        enable_x64=True,
    )


def can_alias(host: np.ndarray[Any, Any]) -> bool:
    """Returns whether a buffer on the CPU can use the memory of `host` as its own."""
    return host.flags.c_contiguous and host.ctypes.data % ALIGNMENT == 0


def put_copy(
    aval: BareType, host: np.ndarray[Any, Any], placement: Placement
) -> Buffer:
    """Returns a buffer with a copy of `host`, which the caller may change afterwards.

    Args:
      aval: type of the buffer; shape and dtype are those of `host`.
      host: the whole array, with any strides.
      placement: where to put it.
    """
    return batched_device_put(
        aval,
        placement.runtime(host.ndim),
        _parts(host, placement),
        placement.local,
        True,
        True,
        HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        True,
    )


def _parts(
    host: np.ndarray[Any, Any], placement: Placement
) -> list[np.ndarray[Any, Any]]:
    if placement.is_single:
        return [host]
    return [host[index] for index in placement.indices(host.shape)]


def assemble(aval: BareType, parts: Sequence[Any], placement: Placement) -> Buffer:
    """Returns the buffer that consists of the given parts.

    Args:
      aval: type of the whole.
      parts: for each local device of the placement, a buffer on one device or a NumPy
        array that is not written to afterwards.
      placement: where the parts belong.
    """
    return batched_device_put(
        aval,
        placement.runtime(len(aval.shape)),
        list(parts),
        placement.local,
        enable_x64=True,
    )


def parts(buffer: Buffer) -> list[Buffer]:
    """Returns a buffer's parts on this process's devices, in the devices' order."""
    return list(parts_of(buffer))


def aligned_empty(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """Returns an uninitialized NumPy array that `put` can alias on the CPU.

    Args:
      shape: lengths of the axes.
      dtype: any NumPy dtype.

    Returns:
      A writable, C-contiguous array that starts at a multiple of 64 bytes.
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    aligned: np.ndarray[Any, Any] = memory[start : start + size].view(dtype)
    return aligned.reshape(shape)


# -- out -------------------------------------------------------------------------------


def to_host(buffer: Buffer) -> np.ndarray[Any, Any]:
    """Returns the values as a read-only NumPy array; waits for them.

    On the CPU it is a view of the buffer's memory, which stays alive with the view.

    Raises:
      DeletedBufferError: the buffer was deleted or donated.
    """
    try:
        array: np.ndarray[Any, Any] = to_numpy(buffer)[0]
    except RuntimeFailure as error:
        raise_original(error)
        check_alive(buffer)
        raise
    return array


def gather_to_host(
    aval: BareType, buffer: Buffer, placement: Placement
) -> np.ndarray[Any, Any]:
    """Returns the whole of an array on several devices; waits for it.

    Args:
      aval: type of the whole.
      buffer: on `placement`.
      placement: a sharding of which this process has every part at least once.

    Raises:
      PlacementError: parts of it are in other processes only.
      DeletedBufferError: the buffer was deleted or donated.
    """
    check_alive(buffer)
    held = parts(buffer)
    if placement.sharding.is_fully_replicated:
        return to_host(held[0])
    if 0 in aval.shape:  # the parts' indices may be equal
        return np.empty(aval.shape, aval.dtype)
    first: dict[Any, Buffer] = {}
    indices = placement.indices(aval.shape)
    for index, part in zip(indices, held, strict=True):
        first.setdefault(_key(index), part)
    counts, _ = placement.sharding.tiles(len(aval.shape))
    if len(first) != int(np.prod(counts, dtype=np.int64)):
        raise PlacementError(
            f"this process holds only part of the array ({placement.sharding}): use "
            "fxflow.distributed.multihost.process_allgather, or look at "
            "x.addressable_shards"
        )
    if placement.platform != "cpu":
        for part in first.values():
            start_copy_to_host(part)
    whole = np.empty(aval.shape, aval.dtype)
    for index, part in zip(indices, held, strict=True):
        if first.pop(_key(index), None) is not None:
            whole[index] = to_host(part)
    whole.flags.writeable = False
    return whole


def _key(index: tuple[slice, ...]) -> tuple[Any, ...]:
    return tuple((s.start, s.stop) for s in index)


def start_copy_to_host(buffer: Buffer) -> None:
    """Starts the copy that `to_host` waits for; a no-op on the CPU."""
    buffer._copy_single_device_array_to_host_async()


def move(
    aval: BareType, buffer: Buffer, source: Placement, target: Placement
) -> Buffer:
    """Returns the values of `buffer` at another placement; always new memory.

    Parts that are the same at both placements go from device to device; the others go
    through the host.

    Args:
      aval: type of the whole.
      buffer: at `source`.
      source: placement of the buffer.
      target: placement of the copy.

    Raises:
      PlacementError: parts that are needed are in other processes only.
      DeletedBufferError: the buffer was deleted or donated.
    """
    if source.is_single and target.is_single:
        return copy_to(aval, buffer, target)
    check_alive(buffer)
    shape = aval.shape
    held: dict[Any, Buffer] = {}
    given = parts(buffer)
    for index, part in zip(source.indices(shape), given, strict=True):
        held.setdefault(_key(_full(index, shape)), part)
    same_client = source.device.client is target.device.client
    wanted = [_full(index, shape) for index in target.indices(shape)]
    whole: np.ndarray[Any, Any] | None = None
    moved: list[Any] = []
    for index in wanted:
        part = held.get(_key(index))
        if part is None or not same_client:
            if whole is None:
                whole = (
                    to_host(buffer)
                    if source.is_single
                    else gather_to_host(aval, buffer, source)
                )
            moved.append(whole[index].copy())
        else:
            moved.append(part)
    return batched_device_put(
        aval,
        target.runtime(len(shape)),
        moved,
        target.local,
        True,
        True,
        HostBufferSemantics.ZERO_COPY,
        True,
    )


def _full(index: tuple[slice, ...], shape: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(*s.indices(n)[:2]) for s, n in zip(index, shape, strict=True))


def copy(aval: BareType, buffer: Buffer) -> Buffer:
    """Returns the values in new memory on the same device.

    Raises:
      DeletedBufferError: the buffer was deleted or donated.
    """
    return copy_to(aval, buffer, placement_of(buffer))


def copy_to(aval: BareType, buffer: Buffer, placement: Placement) -> Buffer:
    """Returns the values of `buffer` at `placement`; always new memory.

    Args:
      aval: type of the buffer.
      buffer: on any device, of the same platform or another.
      placement: where the copy goes.

    Raises:
      DeletedBufferError: the buffer was deleted or donated.
    """
    check_alive(buffer)
    device = placement_of(buffer).device
    if device.client is placement.device.client:
        return batched_copy_array_to_devices_with_sharding(
            [buffer],
            [placement._device_list],
            [placement.runtime(len(aval.shape))],
            [ArrayCopySemantics.ALWAYS_COPY],
        )[0]
    # Between platforms the values go through the host. `put` may alias a view of CPU
    # memory, because the view keeps the memory alive and is read-only.
    return put(aval, to_host(buffer), placement)


# -- life ------------------------------------------------------------------------------


def block_until_ready(buffers: Sequence[Buffer]) -> None:
    """Waits until all `buffers` are computed.

    Raises:
      BaseException: the exception of a Python callback that made a computation fail.
      RuntimeFailure: a computation failed otherwise.
      DeletedBufferError: a buffer was deleted or donated.
    """
    try:
        batched_block_until_ready(buffers)
    except RuntimeFailure as error:
        raise_original(error)
        for buffer in buffers:
            check_alive(buffer)
        raise


def is_ready(buffer: Buffer) -> bool:
    """Returns whether the values are computed."""
    return bool(buffer.is_ready())


def delete(buffer: Buffer) -> None:
    """Frees the memory now, or with the last view or export of it.

    Deleting a buffer again is a no-op.
    """
    # The runtime aborts the process if a buffer is deleted while a DLPack consumer
    # uses it: the last reference frees its memory.
    if not _exported or id(buffer) not in _exported:
        buffer.delete()


#: Buffers exported by DLPack, by identity: they are not hashable.
_exported: dict[int, weakref.ref[Buffer]] = {}


def note_export(buffer: Buffer) -> None:
    """Records that foreign code refers to the buffer's memory; see `delete`."""
    key = id(buffer)
    _exported[key] = weakref.ref(buffer, lambda _: _exported.pop(key, None))


def can_donate(buffer: Buffer) -> bool:
    """Returns whether a program may reuse the buffer's memory.

    Memory that NumPy or a DLPack consumer can see is safe: the runtime leaves it as it
    is and uses new memory (see the top of this file). The call also releases views that
    are freed already, which would prevent the reuse.
    """
    collect_garbage()
    return not buffer.is_deleted()


def is_deleted(buffer: Buffer) -> bool:
    """Returns whether the buffer was deleted or donated."""
    return bool(buffer.is_deleted())


def unsafe_pointer(buffer: Buffer) -> int:
    """Returns the address of the memory on the device, without waiting."""
    return int(buffer.unsafe_buffer_pointer())


def on_device_nbytes(buffer: Buffer) -> int:
    """Returns the number of bytes the buffer takes on its device, with padding."""
    return int(buffer.on_device_size_in_bytes())


def check_alive(buffer: Buffer) -> None:
    """Raises `DeletedBufferError` if the buffer was deleted or donated."""
    if buffer.is_deleted():
        raise DeletedBufferError("the buffer was deleted or donated")
