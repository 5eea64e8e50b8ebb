"""The elements of arrays: in one safetensors file, or in one zarr array per leaf.

A single process writes a safetensors file. Several processes write TensorStore's zarr
arrays, each its own parts. Both formats can be read in parts of any shape, so that a
checkpoint can be restored to other devices.
"""

from __future__ import annotations

import abc
import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from fxflow.core import safetensors
from fxflow.core.arrays import Array, dtypes
from fxflow.core.spmd.parts import Index, NDArray, Parts, held_parts
from fxflow.devices import files
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import CheckpointError, DamagedCheckpointError
from fxflow.random import key_data
from fxflow.train.checkpoint.description import Entry
from fxflow.train.checkpoint.storage import (
    Local,
    Storage,
    tensorstore,
    waited,
)

try:  # zlib's, but four times as fast
    from zlib_ng.zlib_ng import crc32
except ImportError:
    from zlib import crc32

#: The dtypes that zarr has under NumPy's names; others are written as bytes.
_ZARR = {
    "bool", "int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
}  # fmt: skip


# -- a copy in host memory -------------------------------------------------------------


def bits_of(leaf: Any) -> Any:
    """Returns a leaf as it is written: random keys as their bits."""
    if isinstance(leaf, Array) and dtypes.is_key(leaf.dtype):
        return key_data(leaf)
    return leaf


def own_parts(bits: Any) -> list[tuple[Index, Any]]:
    """Returns the parts of an array that this process writes, on their devices.

    These are first replicas. A NumPy array is one part. Copies to the host are started.

    Args:
      bits: a result of `bits_of`.
    """
    if not isinstance(bits, Array):
        return [((), bits)]
    found: list[tuple[Index, Any]] = [((), bits)]
    if not bits.is_fully_addressable or len(bits.devices()) > 1:
        found = [*held_parts(bits, first_replicas=True)]
    for _, part in found:
        part.copy_to_host_async()
    return found


def on_host(part: Any, copy: bool) -> NDArray:
    """Returns a part in host memory, in this machine's byte order.

    An `Array` that is in host memory is not copied: the runtime does not overwrite
    memory that has a view, even if the array is donated. Nor is a file that is mapped
    read-only, which may be larger than memory.

    Args:
      part: a part from `own_parts`.
      copy: whether to copy a NumPy array, because it may change before it is written.
    """
    mapped = isinstance(part, np.memmap) and part.mode == "r"
    owned = copy and not (mapped or isinstance(part, Array))
    host: NDArray = np.asarray(part)
    return host.astype(host.dtype.newbyteorder("="), copy=owned)


def chunk_of(bits: Any) -> tuple[int, ...]:
    """Returns the shape of the parts in which an array is written."""
    shape = tuple(np.shape(bits))
    if isinstance(bits, Array) and isinstance(bits.sharding, NamedSharding):
        shape = tuple(bits.sharding.shard_shape(shape))
    return tuple(max(size, 1) for size in shape)


# -- reading ---------------------------------------------------------------------------


class Reader(abc.ABC):
    """Reads the elements of a checkpoint's arrays, entirely or in parts."""

    def mapped(self, number: int, entry: Entry) -> NDArray:
        """Returns the array of an entry, memory-mapped; `finish` checks it.

        Args:
          number: the leaf's number.
          entry: the leaf's description.

        Raises:
          CheckpointError: the elements are damaged or missing, or cannot be mapped.
        """
        raise CheckpointError(
            "restore: mmap=True is for a checkpoint of one process in a folder, a "
            "safetensors file; this one is of several processes, or in an object store"
        )

    @abc.abstractmethod
    def read(self, number: int, entry: Entry, index: Index) -> NDArray:
        """Returns a part of the array of an entry; `finish` checks it.

        Args:
          number: the leaf's number.
          entry: the leaf's description.
          index: the part; `()` for the whole array.

        Raises:
          CheckpointError: the elements are damaged or missing.
        """

    def finish(self) -> None:  # noqa: B027 (there may be nothing to do)
        """Waits until all elements that were read are checked.

        Raises:
          CheckpointError: the elements of an array are damaged.
        """

    def close(self) -> None:  # noqa: B027
        """Closes what was opened."""


def reader(storage: Storage, files: str, timeout: float) -> Reader:
    """Returns a reader for the files that a description names."""
    if files.endswith(".zarr"):
        return _Zarr(storage, files, timeout)
    if not isinstance(storage, Local):
        raise CheckpointError(f"{storage}: {files} can only be read from a folder")
    return _Safetensors(storage, files)


def write_safetensors(
    folder: Local, entries: Sequence[Entry], arrays: Sequence[NDArray | None]
) -> tuple[str, list[int | None]]:
    """Writes arrays to a new file.

    Args:
      folder: the folder for the file.
      entries: the leaves.
      arrays: the array of each leaf; None for leaves that are not arrays.

    Returns:
      The file's name, and the checksum of each array.
    """
    checksums: list[int | None] = []

    def check() -> None:
        for array in arrays:
            whole = None if array is None else crc32(_as_bytes(array).data)
            checksums.append(whole)

    # zlib and the system call that writes both release the GIL.
    thread = threading.Thread(target=check)
    thread.start()
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        name = f"arrays-{secrets.token_hex(4)}.safetensors"
        named = {
            entry.name: array
            for entry, array in zip(entries, arrays, strict=True)
            if array is not None
        }
        files.write(folder.path / name, *safetensors.encode(named), durable=True)
    finally:
        thread.join()
    return name, checksums


def _as_bytes(array: NDArray) -> NDArray:
    """Returns the elements as bytes, with one more axis."""
    flat = np.ascontiguousarray(array).reshape(array.shape)
    return flat.reshape(*array.shape, 1).view(np.uint8)


class _Safetensors(Reader):
    def __init__(self, folder: Local, name: str) -> None:
        self._where = folder.path / name
        self._arrays: dict[str, NDArray] | None = None
        # One array is checked while the next is read: zlib releases the GIL.
        self._pool = ThreadPoolExecutor(1, "fxflow checkpoint")
        self._checks: dict[int, tuple[Entry, Future[int]]] = {}

    def _in_file(self, entry: Entry) -> NDArray:
        """Returns the array of an entry as a view of the file."""
        if self._arrays is None:
            try:
                self._arrays = safetensors.decode(np.memmap(self._where, mode="r"))
            except FileNotFoundError:
                raise DamagedCheckpointError(
                    f"{self._where}: there is no such file"
                ) from None
            except ValueError as error:
                raise DamagedCheckpointError(
                    f"{self._where} is damaged: {error}"
                ) from None
        if entry.name not in self._arrays:
            raise DamagedCheckpointError(f"{self._where}: {entry.name} is missing")
        array = self._arrays[entry.name]
        if array.dtype != entry.stored and array.shape[-1:] == (entry.stored.itemsize,):
            # Older checkpoints store dtypes that safetensors lacks as bytes.
            array = array.view(entry.stored)[..., 0]
        if array.dtype != entry.stored or array.shape != entry.shape:
            raise DamagedCheckpointError(
                f"{self._where}: {entry.name} is damaged: its shape is {array.shape}, "
                f"not {entry.shape}"
            )
        return array

    def read(self, number: int, entry: Entry, index: Index) -> NDArray:
        stored = self._in_file(entry)
        if index:
            part = np.array(stored[index])
            if number not in self._checks:
                self._check(number, entry, stored)
        else:
            part = np.array(stored)
            self._check(number, entry, part)
        return part

    def mapped(self, number: int, entry: Entry) -> NDArray:
        found = self._in_file(entry)
        self._check(number, entry, found)
        return found

    def _check(self, number: int, entry: Entry, stored: NDArray) -> None:
        check = self._pool.submit(crc32, _as_bytes(stored).data)
        self._checks[number] = entry, check

    def finish(self) -> None:
        for entry, check in self._checks.values():
            if check.result() != entry.checksum:
                raise DamagedCheckpointError(
                    f"{self._where}: the elements of {entry.name} are damaged: "
                    f"their checksum is wrong"
                )

    def close(self) -> None:
        self._pool.shutdown()


# -- arrays of several processes -------------------------------------------------------


def _zarr(storage: Storage, files: str, number: int, entry: Entry) -> dict[str, Any]:
    kvstore = storage.kvstore
    return {
        "driver": "zarr3",
        "kvstore": {**kvstore, "path": f"{kvstore['path']}{files}/{number:05}/"},
        # Otherwise a missing chunk would be read as zeros.
        "fill_missing_data_reads": False,
    }


def _stored(dtype: Any) -> tuple[str, bool]:
    """Returns zarr's name for a dtype, and whether elements are written as bytes."""
    return (str(dtype), False) if str(dtype) in _ZARR else ("uint8", True)


def write_zarr(
    storage: Storage,
    files: str,
    entries: Sequence[Entry],
    parts: Sequence[Parts | None],
    chunks: Sequence[tuple[int, ...]],
    timeout: float,
) -> None:
    """Writes this process's parts of arrays.

    Args:
      storage: the folder for the arrays.
      files: the name of a new subfolder, the same in all processes.
      entries: the leaves.
      parts: the parts of each array that this process writes.
      chunks: the shape of the parts of each array.
      timeout: seconds for all of it.
    """
    ts = tensorstore()
    opening, writing = [], []
    for number, (entry, own, chunk) in enumerate(zip(entries, parts, chunks)):
        if own:
            name, in_bytes = _stored(entry.dtype)
            size = entry.stored.itemsize
            more = [size] if in_bytes else []
            metadata = {
                "shape": [*entry.shape, *more],
                "data_type": name,
                "chunk_grid": {
                    "name": "regular",
                    "configuration": {"chunk_shape": [*chunk, *more]},
                },
                "codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "crc32c"},
                ],
            }
            spec = {
                **_zarr(storage, files, number, entry),
                "metadata": metadata,
                "store_data_equal_to_fill_value": True,
            }
            opened = ts.open(spec, create=True, open=True)
            opening.append((entry, own, in_bytes, opened))
    for entry, own, in_bytes, opened in opening:
        array = waited(opened, timeout, f"{storage}: creating {entry.name}")
        for index, data in own:
            stored = _as_bytes(data) if in_bytes else data
            # The data do not change while they are written, so no copy is needed.
            written = array[index or ...].write(
                stored, can_reference_source_data_indefinitely=True
            )
            writing.append((entry, written))
    for entry, written in writing:
        waited(written, timeout, f"{storage}: writing {entry.name}")


class _Zarr(Reader):
    def __init__(self, storage: Storage, files: str, timeout: float) -> None:
        self._storage, self._files, self._timeout = storage, files, timeout
        self._arrays: dict[int, Any] = {}

    def read(self, number: int, entry: Entry, index: Index) -> NDArray:
        what = f"{self._storage}: {entry.name}"
        if number not in self._arrays:
            spec = _zarr(self._storage, self._files, number, entry)
            opened = tensorstore().open(spec, open=True)
            self._arrays[number] = waited(
                opened, self._timeout, what, DamagedCheckpointError
            )
        array = self._arrays[number]
        name, in_bytes = _stored(entry.dtype)
        shape = array.shape[:-1] if in_bytes else array.shape
        if (shape, str(array.dtype.numpy_dtype)) != (entry.shape, name):
            raise DamagedCheckpointError(
                f"{what} is damaged: its type differs from that in tree.json"
            )
        found: NDArray = waited(
            array[index or ...].read(), self._timeout, what, DamagedCheckpointError
        )
        if in_bytes:
            found = found.view(entry.stored)[..., 0]
        return found
