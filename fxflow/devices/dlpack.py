"""DLPack: exchanges arrays with other libraries without a copy.

Exported memory must outlive fxflow's own use of it. The runtime keeps it alive after
the last reference to the buffer, and never donates it in place; but it aborts the
process if an exported buffer is *deleted*. Therefore `buffers` records exports, and
`buffers.delete` leaves an exported buffer to its reference count.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from fxflow.devices import clients
from fxflow.devices._jaxlib import Buffer, Device, RuntimeFailure, raw
from fxflow.devices.buffers import (
    BufferType,
    block_until_ready,
    check_alive,
    copy,
    copy_to,
    note_export,
    placement,
    placement_of,
    put,
    put_copy,
    to_host,
    unsafe_pointer,
)
from fxflow.errors import BackendError

# Device types of the DLPack specification.
_CPU, _CUDA, _CUDA_HOST, _ROCM = 1, 2, 3, 10
_TYPE_OF_PLATFORM = {"cpu": _CPU, "gpu": _CUDA, "cuda": _CUDA, "rocm": _ROCM}


def dlpack_device(buffer: Buffer) -> tuple[int, int]:
    """Returns DLPack's (device type, device id) of a buffer.

    Raises:
      BufferError: DLPack has no such device.
    """
    where = placement_of(buffer)
    kind = _TYPE_OF_PLATFORM.get(where.platform)
    if kind is None:
        raise BufferError(f"DLPack has no device type for platform {where.platform!r}")
    if kind == _CPU:
        return _CPU, 0  # all CPU devices share one memory
    if kind == _CUDA and "rocm" in str(where.device.client.platform_version).lower():
        kind = _ROCM
    return kind, int(where.device.local_hardware_id)


def to_dlpack(
    buffer: Buffer,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Returns a DLPack capsule of a buffer: the array API's ``__dlpack__``.

    Args:
      buffer: the buffer to export.
      stream: the consumer's stream on an accelerator; None is the default stream.
      max_version: the newest version that the consumer accepts. The capsule is
        unversioned, which every consumer accepts.
      dl_device: the device of the result: the buffer's own device or ``(1, 0)``.
      copy: True for a copy, False for an error if a copy is needed.

    Raises:
      BufferError: DLPack does not have the dtype, or the device or copy requested is
        not possible.
      DeletedBufferError: the buffer was deleted or donated.
    """
    del max_version
    check_alive(buffer)
    own = dlpack_device(buffer)
    if dl_device is not None and tuple(map(int, dl_device)) != own:
        if tuple(map(int, dl_device)) != (_CPU, 0):
            raise BufferError(f"cannot export from DLPack device {own} to {dl_device}")
        if copy is False:
            raise BufferError(
                f"an export from DLPack device {own} to {dl_device} is a copy, which "
                "copy=False forbids"
            )
        buffer, stream = copy_to(buffer.aval, buffer, _host_placement()), None
    elif copy:
        buffer = _own_copy(buffer)
    if own[0] == _CPU and stream not in (None, -1):
        raise BufferError(f"stream must be None on the CPU, got {stream!r}")
    try:
        capsule = raw.buffer_to_dlpack_managed_tensor(
            buffer, stream=None if stream == -1 else stream
        )
    except RuntimeFailure as error:
        raise BufferError(_first_line(error)) from None
    note_export(buffer)
    return capsule


def _own_copy(buffer: Buffer) -> Buffer:
    return copy(buffer.aval, buffer)


def _host_placement() -> Any:
    return placement(clients.cpu_device())


def from_dlpack(
    source: Any, device: Device | None = None, copy: bool | None = None
) -> Buffer:
    """Returns a buffer with the memory of an object that has ``__dlpack__``.

    Without a copy the result shares the source's memory: writes to the source change
    it.

    Args:
      source: an array of another library.
      device: the device of the result; None is the source's device.
      copy: True for a copy, False for an error if a copy is needed; None copies if the
        memory cannot be used as it is (on the CPU it must be row-major and start
        at a multiple of 64 bytes).

    Returns:
      A buffer; shape and dtype are in its ``.aval``.

    Raises:
      TypeError: `source` has no ``__dlpack__``.
      BufferError: the array cannot be imported, or only by a copy that ``copy=False``
        forbids.
    """
    if not hasattr(source, "__dlpack__") or not hasattr(source, "__dlpack_device__"):
        raise TypeError(
            "from_dlpack: expected an array with __dlpack__ and __dlpack_device__, "
            f"got {type(source).__name__}"
        )
    kind, ordinal = map(int, source.__dlpack_device__())
    home = _local_device(kind, ordinal)
    elsewhere = device is not None and device is not home
    if elsewhere and copy is False:
        raise BufferError(
            f"from_dlpack: the array is on {home}; moving it to {device} is a copy, "
            "which copy=False forbids"
        )
    take = _take_host if kind in (_CPU, _CUDA_HOST) else _take_device
    # Moving the array to another device copies it anyway.
    buffer = take(source, home, None if elsewhere else copy)
    if elsewhere:
        assert device is not None
        return copy_to(buffer.aval, buffer, placement(device))
    return buffer


def _local_device(kind: int, ordinal: int) -> Device:
    if kind in (_CPU, _CUDA_HOST):
        return clients.cpu_device()
    platform = {_CUDA: "cuda", _ROCM: "rocm"}.get(kind)
    if platform is None:
        raise BufferError(f"from_dlpack: unknown DLPack device type {kind}")
    try:
        owner = clients.client(platform)
    except BackendError as error:
        raise BufferError(f"from_dlpack: {error}") from None
    device: Device = owner.device_from_local_hardware_id(ordinal)
    return device


def _take_host(source: Any, home: Device, copied: bool | None) -> Buffer:
    where = placement(home)
    try:
        array = source if isinstance(source, np.ndarray) else np.from_dlpack(source)
    except (BufferError, RuntimeError):
        # NumPy has neither bfloat16 nor the float8 dtypes.
        return _take_device(source, home, copied)
    if not array.dtype.isnative:
        if copied is False:
            raise BufferError(
                f"from_dlpack: the memory has another byte order ({array.dtype}), and "
                "copy=False forbids a copy"
            )
        array = array.astype(array.dtype.newbyteorder("="))
    kind = BufferType(array.shape, array.dtype)
    if copied:
        return put_copy(kind, array, where)
    buffer = put(kind, array, where)
    if copied is False and array.size and unsafe_pointer(buffer) != array.ctypes.data:
        why = (
            "it is not row-major"
            if not array.flags.c_contiguous
            else "it does not start at a multiple of 64 bytes"
        )
        raise BufferError(
            f"from_dlpack: the memory cannot be used as it is ({why}), and copy=False "
            "forbids a copy"
        )
    return buffer


def _take_device(source: Any, home: Device, copied: bool | None) -> Buffer:
    where = placement(home)
    stream: int | None = None
    if not where.is_host:
        try:
            stream = home.get_stream_for_external_ready_events()
        except RuntimeFailure:  # not every plug-in has it
            stream = None
    capsule = (
        source.__dlpack__() if stream is None else source.__dlpack__(stream=stream)
    )
    shape, dtype, row_major = _describe(capsule)
    if not row_major and copied is False:
        raise BufferError(
            "from_dlpack: the memory is not row-major, and copy=False forbids a copy"
        )
    try:
        taken = raw.dlpack_managed_tensor_to_buffer(
            capsule, home, stream, copied, _TYPE_OF_PLATFORM[where.platform]
        )
    except RuntimeFailure as error:
        raise BufferError(
            f"from_dlpack: {_first_line(error)} Make the array contiguous first."
        ) from None
    kind = BufferType(shape, dtype)
    buffer = taken._rewrap_with_aval_and_sharding(kind, where.runtime(len(shape)))
    if not row_major:
        # The runtime keeps a transposed layout, which programs would misread.
        return put_copy(kind, to_host(buffer), where)
    if not copied:
        return buffer
    # For the runtime, `copy=True` only permits a copy, which it makes asynchronously;
    # but the source may be written to as soon as this function returns.
    own = _own_copy(buffer)
    block_until_ready([own])
    return own


# -- the capsule's description of the array --------------------------------------------


class _DLTensor(ctypes.Structure):
    """``DLTensor`` of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


# (type code, bits) of dlpack.h.
_DTYPES: dict[tuple[int, int], Any] = {
    **{(0, b): f"int{b}" for b in (8, 16, 32, 64)},
    **{(1, b): f"uint{b}" for b in (8, 16, 32, 64)},
    **{(2, b): f"float{b}" for b in (16, 32, 64)},
    **{(5, b): f"complex{b}" for b in (64, 128)},
    (4, 16): ml_dtypes.bfloat16,
    (6, 8): bool,
    (7, 8): ml_dtypes.float8_e3m4,
    (8, 8): ml_dtypes.float8_e4m3,
    (9, 8): ml_dtypes.float8_e4m3b11fnuz,
    (10, 8): ml_dtypes.float8_e4m3fn,
    (11, 8): ml_dtypes.float8_e4m3fnuz,
    (12, 8): ml_dtypes.float8_e5m2,
    (13, 8): ml_dtypes.float8_e5m2fnuz,
    (14, 8): ml_dtypes.float8_e8m0fnu,
}


def _capsule_pointer() -> Callable[[Any, bytes], int]:
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return function


def _describe(capsule: Any) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Returns shape, dtype and whether the elements are in row-major order."""
    tensor = _DLTensor.from_address(_capsule_pointer()(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    name = _DTYPES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise BufferError(
            "from_dlpack: no dtype for DLPack type code "
            f"{tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes"
        )
    row_major = True
    if tensor.strides and 0 not in shape:
        expected = 1
        for length, stride in zip(
            reversed(shape), reversed(tensor.strides[: tensor.ndim]), strict=True
        ):
            row_major = row_major and (length == 1 or stride == expected)
            expected *= length
    return shape, np.dtype(name), row_major


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text.partition(": ")[2] or text
