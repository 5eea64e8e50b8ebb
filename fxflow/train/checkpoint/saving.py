"""`save` and `restore`: write and read one checkpoint, in one process or several."""

from __future__ import annotations

import dataclasses
import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import (
    Array,
    Aval,
    ShapeDtypeStruct,
    as_array,
    dtypes,
    typeof,
)
from fxflow.core.arrays.array import unwrapped
from fxflow.core.arrays.protocol import array_method
from fxflow.core.spmd.parts import Index, Parts, join_parts
from fxflow.devices import process_count, process_index
from fxflow.devices.files import TEMPORARY
from fxflow.devices.shardings import Sharding
from fxflow.distributed.elastic import run_address
from fxflow.distributed.multihost import broadcast_one_to_all, sync_global_devices
from fxflow.errors import ArgumentError, CheckpointError
from fxflow.lax.conversion import convert
from fxflow.lax.global_arrays import make_array_from_callback
from fxflow.lax.pytree_transfer import device_put
from fxflow.random import wrap_key_data
from fxflow.train.checkpoint import description, elements
from fxflow.train.checkpoint.description import Description, Entry
from fxflow.train.checkpoint.elements import Reader
from fxflow.train.checkpoint.storage import Local, Storage, Where, storage_of

#: Seconds after which saving or restoring counts as stuck.
TIMEOUT = 600.0
Rename = Mapping[str, str] | Callable[[str], str]


# -- saving ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A copy of a state in host memory, to be written.

    Attributes:
      entries: the leaves' descriptions.
      structure: the state's `description.outline`.
      parts: the parts of each array that this process writes; None for other leaves.
      chunks: the shape of the parts of each array.
      files: the name of the folder of arrays, the same in all processes; empty for a
        safetensors file, which a single process writes.
    """

    entries: tuple[Entry, ...]
    structure: Any
    parts: tuple[Parts | None, ...]
    chunks: tuple[tuple[int, ...], ...]
    files: str


def snapshot(state: Any, storage: Storage, copy: bool) -> Snapshot:
    """Copies a state to host memory.

    Args:
      state: pytree.
      storage: where it will be written.
      copy: whether to copy NumPy arrays, because they may change before they are
        written.

    Raises:
      ArgumentError: a leaf cannot be saved.
    """
    state = _unwrapped(state)
    leaves = description.named_leaves(state)
    entries = tuple(description.entry_of(name, leaf) for name, leaf in leaves)
    files = ""
    if process_count() > 1 or not isinstance(storage, Local):
        mark = np.array(secrets.randbits(32), np.uint32)
        files = f"arrays-{int(broadcast_one_to_all(mark)):08x}.zarr"
    # Process 0 writes the arrays that do not span processes.
    bits = [elements.bits_of(leaf) for _, leaf in leaves]
    # Start all copies before waiting for the first.
    own = [
        elements.own_parts(leaf)
        if not entry.python and (process_index() == 0 or _is_divided(leaf))
        else None
        for entry, leaf in zip(entries, bits, strict=True)
    ]
    parts = tuple(
        None
        if found is None
        else [(index, elements.on_host(part, copy)) for index, part in found]
        for found in own
    )
    chunks = tuple(elements.chunk_of(leaf) for leaf in bits)
    return Snapshot(entries, description.outline(state), parts, chunks, files)


def _is_divided(leaf: Any) -> bool:
    """Returns whether an array has parts in several processes."""
    return isinstance(leaf, Array) and not leaf.is_fully_addressable


def write(
    taken: Snapshot,
    storage: Storage,
    metadata: Any,
    timeout: float,
    tidy: Callable[[], None] = lambda: None,
) -> None:
    """Writes a snapshot: first arrays, then process 0 writes `tree.json`.

    Args:
      taken: the snapshot.
      storage: where to write it.
      metadata: a JSON value.
      timeout: seconds for all of it.
      tidy: called by process 0 afterwards, before any process continues.
    """
    entries, files = taken.entries, taken.files
    if files:
        elements.write_zarr(storage, files, entries, taken.parts, taken.chunks, timeout)
        sync_global_devices(f"checkpoint {files} written", timeout)
    else:
        assert isinstance(storage, Local)
        arrays = [
            None if parts is None else join_parts(parts, entry.shape)
            for entry, parts in zip(entries, taken.parts, strict=True)
        ]
        files, checksums = elements.write_safetensors(storage, entries, arrays)
        entries = tuple(
            dataclasses.replace(entry, checksum=checksum)
            for entry, checksum in zip(entries, checksums, strict=True)
        )
    if process_index() == 0:
        contents = Description(files, taken.structure, entries, metadata)
        storage.write(description.NAME, contents.encode())
        # Remove files of an earlier checkpoint, or of a run that was killed.
        for name in storage.names():
            is_old = name.startswith("arrays-") and name != files
            if is_old or TEMPORARY.fullmatch(name):
                storage.remove(name)
        tidy()
    if taken.files:
        sync_global_devices(f"checkpoint {files} complete", timeout)


def _unwrapped(state: Any) -> Any:
    """Returns a state with the arrays that objects, such as handles, stand for."""
    handles = [x for x in tree.leaves(state) if array_method(x) is not None]
    for handle in handles:
        # All copies are under way before the first is waited for.
        getattr(handle, "copy_to_host_async", lambda: None)()
    return tree.map(unwrapped, state) if handles else state


def save(
    where: Where, state: Any, *, metadata: Any = None, timeout: float = TIMEOUT
) -> None:
    """Writes a state, replacing an earlier checkpoint.

    A single process writes a safetensors file to a folder. Several processes, or one
    that writes to a URL, write TensorStore's zarr arrays, each process its own parts.
    `tree.json` describes the arrays. It is written last, which makes saving atomic: a
    reader finds the old checkpoint or the new one.

    Args:
      where: a folder, a URL (`s3://bucket/path`, `gs://…`) or TensorStore's
        specification of a key-value store. If there are several processes, all call
        this, with a folder that all can access.
      state: pytree of arrays, random keys, numbers, strings and bytes. Process 0 writes
        the leaves that do not span processes.
      metadata: a JSON value, stored in `tree.json`.
      timeout: seconds that writing, and waiting for other processes, may take.

    Raises:
      ArgumentError: a leaf cannot be saved.
      CheckpointError: the object store fails, or another writer saves to the folder.
      OSError: the file system fails, such as when the disk is full.
      DistributedError: another process is late or lost.

    Example:
      >>> folder = tempfile.mkdtemp()
      >>> train.checkpoint.save(folder, {"w": fnp.ones(2), "step": 3})
      >>> restored = train.checkpoint.restore(folder)
      >>> restored["w"].tolist(), restored["step"]
      ([1.0, 1.0], 3)
    """
    if isinstance(state, str | os.PathLike) and not isinstance(
        where, str | os.PathLike
    ):
        raise ArgumentError(
            f"save: where must be a folder or a URL, got a {type(where).__name__}: "
            "call save(where, state)"
        )
    storage = storage_of(where, timeout)
    taken = snapshot(state, storage, copy=False)
    unlock = storage.lock(run_address()) if process_index() == 0 else lambda: None
    try:
        write(taken, storage, metadata, timeout)
    finally:
        unlock()


# -- restoring -------------------------------------------------------------------------


def described(storage: Storage) -> Description:
    """Returns the description of a checkpoint.

    Raises:
      CheckpointError: there is no checkpoint, or its description is damaged.
    """
    data = storage.read(description.NAME)
    if data is None:
        raise CheckpointError(
            f"{storage}: there is no checkpoint here (no {description.NAME})"
        )
    return description.decode(data, str(storage))


def metadata(where: Where, *, timeout: float = TIMEOUT) -> Any:
    """Returns the metadata that were passed to `save`.

    Args:
      where: as for `save`.
      timeout: seconds that reading may take.

    Returns:
      A JSON value; None without metadata.

    Raises:
      CheckpointError: there is no checkpoint, or its description is damaged.
    """
    return described(storage_of(where, timeout)).metadata


def restore(
    where: Where,
    like: Any = None,
    *,
    shardings: Any = None,
    rename: Rename | None = None,
    missing: Literal["error", "keep"] = "error",
    unused: Literal["error", "ignore"] = "error",
    cast: bool = False,
    mmap: bool = False,
    timeout: float = TIMEOUT,
) -> Any:
    """Reads a state onto devices.

    Args:
      where: as for `save`. If there are several processes, each reads the parts that
        its devices need.
      like: pytree of the expected leaves: arrays or `ShapeDtypeStruct`, random keys,
        Python values. Arrays are restored with the shardings of its arrays, or of
        `ShapeDtypeStruct(…, sharding=)`; the checkpoint may have been saved with
        another mesh, other devices and another number of processes. In place of a
        `dataflow.RemoteArray` the value is sent to its task's device. NumPy arrays are
        restored as NumPy arrays. None restores everything as NumPy arrays (keys as
        keys), in dictionaries, lists and tuples.
      shardings: a pytree prefix of `like` with shardings that override those of `like`.
      rename: maps a path in `like` (`"layers/0/w"`) to a path in the checkpoint: a
        function, or a dictionary of the paths that differ.
      missing: `"error"`, or `"keep"` to take the leaves that the checkpoint lacks from
        `like`.
      unused: `"error"`, or `"ignore"` to ignore leaves that `like` lacks.
      cast: whether to convert arrays that have another dtype in the checkpoint.
      mmap: whether to memory-map NumPy arrays, read-only, so that they may be larger
        than memory; only for a checkpoint of one process in a folder. The file may be
        removed meanwhile.
      timeout: seconds that reading may take.

    Returns:
      A pytree with the structure of `like`.

    Raises:
      CheckpointError: there is no checkpoint, it is damaged, or its leaves differ from
        those of `like`; the message names them, with both types.

    Example:
      >>> folder = tempfile.mkdtemp()
      >>> train.checkpoint.save(folder, {"w": fnp.ones((2, 2)), "old": 1})
      >>> like = {"weight": fnp.zeros((2, 2))}
      >>> names = {"weight": "w"}
      >>> train.checkpoint.restore(folder, like, rename=names, unused="ignore")
      {'weight': Array([[1., 1.],
             [1., 1.]], dtype=float32)}
    """
    return restored(
        storage_of(where, timeout),
        like,
        shardings=shardings,
        rename=rename,
        missing=missing,
        unused=unused,
        cast=cast,
        mmap=mmap,
        timeout=timeout,
    )


def restored(
    storage: Storage,
    like: Any = None,
    *,
    shardings: Any = None,
    rename: Rename | None = None,
    missing: str = "error",
    unused: str = "error",
    cast: bool = False,
    mmap: bool = False,
    timeout: float = TIMEOUT,
) -> Any:
    """Reads a state from a storage; see `restore`."""
    for name, given, allowed in (
        ("missing", missing, ("error", "keep")),
        ("unused", unused, ("error", "ignore")),
    ):
        if given not in allowed:
            raise ArgumentError(
                f"restore: {name} must be one of {allowed}, got {given!r}"
            )
    saved = described(storage)
    reader = elements.reader(storage, saved.files, timeout)
    try:
        if like is None:
            values = [
                _value(reader, number, entry, None, None, mmap)
                for number, entry in enumerate(saved.entries)
            ]
            reader.finish()
            return description.rebuilt(saved.structure, values)
        pairs = _paired(str(storage), saved, like, rename, missing, unused, cast)
        places = tree.broadcast_prefix(
            shardings, like, is_leaf=lambda x: x is None, name="restore: shardings"
        )
        found = [
            expected if number is None
            else _value(reader, number, saved.entries[number], expected, place, mmap)
            for (expected, number), place in zip(pairs, places, strict=True)
        ]  # fmt: skip
        reader.finish()
        return tree.structure(like).unflatten(found)
    finally:
        reader.close()


def _paired(
    where: str,
    saved: Description,
    like: Any,
    rename: Rename | None,
    missing: str,
    unused: str,
    cast: bool,
) -> list[tuple[Any, int | None]]:
    """Returns each expected leaf with the number of its entry, None if it is missing.

    Raises:
      CheckpointError: leaves do not fit; the message names the first of them.
    """
    numbers = {entry.name: number for number, entry in enumerate(saved.entries)}
    wrong, found, used = [], [], set()
    for name, expected in description.named_leaves(like):
        stored = _renamed(rename, name)
        number = numbers.get(stored)
        if number is None:
            if missing == "error":
                wrong.append(f"{stored}: expected {_type(expected)}, but it is missing")
        else:
            used.add(stored)
            entry = saved.entries[number]
            if not _fits(expected, entry, cast):
                wrong.append(f"{stored}: expected {_type(expected)}, found {entry}")
        found.append((expected, number))
    if unused == "error":
        wrong += [f"{e.name}: not expected, found {e}" for e in saved.entries
                  if e.name not in used]  # fmt: skip
    if wrong:
        more = f"\n  and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        listed = "".join(f"\n  {line}" for line in wrong[:8])
        raise CheckpointError(
            f"restore: the checkpoint in {where} differs from the given tree:{listed}"
            f"{more}\nSee rename=, missing=, unused= and cast="
        )
    return found


def _renamed(rename: Rename | None, name: str) -> str:
    if rename is None:
        return name
    return rename.get(name, name) if isinstance(rename, Mapping) else rename(name)


def _is_python(leaf: Any) -> bool:
    return type(leaf) in description.PYTHON.values()


def _type(leaf: Any) -> str:
    """Returns the type of an expected leaf, for messages."""
    if _is_python(leaf):
        return type(leaf).__name__
    if isinstance(leaf, (np.ndarray, np.generic)):  # 64 bits stay on the host
        dtypes.dtype(leaf.dtype)  # raises if fxflow does not have it
        return str(Aval(leaf.shape, leaf.dtype.newbyteorder("=")))
    try:
        return str(typeof(leaf))
    except TypeError:
        raise ArgumentError(
            f"restore: like has a leaf of type {type(leaf).__name__}; expected arrays, "
            f"ShapeDtypeStruct, keys or Python values"
        ) from None


def _fits(expected: Any, entry: Entry, cast: bool) -> bool:
    if _is_python(expected) or entry.python:
        return type(expected).__name__ == entry.python
    dtype: Any
    if isinstance(expected, (np.ndarray, np.generic)):
        dtype, shape = expected.dtype.newbyteorder("="), expected.shape
    else:
        dtype, shape = typeof(expected).dtype, tuple(typeof(expected).shape)
    if dtypes.is_key(dtype):
        physical = Aval(shape, dtype).physical.shape
        return entry.key == dtype.impl and entry.shape == physical
    return (
        not entry.key
        and entry.shape == shape
        and (
            cast
            or dtype == entry.stored.newbyteorder("=")
            or dtype == _configured_dtype(entry)
        )
    )


def _configured_dtype(entry: Entry) -> Any:
    """Returns the dtype of an entry's array under the current `config.x64`."""
    return dtypes.dtype(entry.stored)


def _value(
    reader: Reader, number: int, entry: Entry, expected: Any, place: Any, mmap: bool
) -> Any:
    """Returns a leaf with the expected type and placement."""
    if entry.python:
        return description.python_value(entry)
    dtype: Any = entry.stored.newbyteorder("=")
    given, weak = isinstance(expected, (np.ndarray, np.generic)), False
    if expected is not None and not entry.key:
        dtype = expected.dtype if given else typeof(expected).dtype
        weak = not given and typeof(expected).weak_type

    def part(index: Index) -> Any:
        return reader.read(number, entry, index).astype(dtype, copy=False)

    moved = place is not None
    if place is None:
        place = _place(expected)
    if isinstance(place, Sharding):
        bits: Any = make_array_from_callback(entry.shape, place, part, dtype=dtype)
    elif place is not None:
        bits = device_put(as_array(part(()), dtype), place)
    elif isinstance(expected, (Array, ShapeDtypeStruct)):
        bits = as_array(part(()), dtype)
    elif mmap and not entry.key:
        bits = reader.mapped(number, entry).astype(dtype, copy=False)
    else:
        bits = part(())
        if isinstance(expected, np.ndarray):  # indexing gives a scalar for 0 axes
            bits = np.asarray(bits, dtype)
    if entry.key:
        bits = wrap_key_data(bits, impl=entry.key)
    elif weak:
        bits = convert(bits, dtype, weak_type=True)
    # An array of a task: its value goes back there.
    put = getattr(type(expected), "__fxflow_put__", None)
    return bits if put is None or moved else put(expected, bits)


def _place(expected: Any) -> Any:
    """Returns the sharding of an expected leaf; None if it has none."""
    if isinstance(expected, Array):
        return expected.sharding if expected.committed else None
    return expected.sharding if isinstance(expected, ShapeDtypeStruct) else None
