"""Trees of arrays as bytes, for messages.

No pickle: the text says of each leaf what it is, then come the elements. The structure
of the tree does not travel; both ends run the same program and have it.

Layout: a mark, the length of a JSON text, the text, the elements of each leaf in C
order, and the CRC-32 of all that comes before.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fxflow import random
from fxflow.core.arrays import Array, dtypes, not_an_array
from fxflow.errors import ArgumentError

_MARK = b"fxv1"
_HEAD = struct.Struct("!4sQ")


class HostLeaf(NamedTuple):
    """A leaf in host memory.

    Attributes:
      data: the elements; of keys, their bits.
      key: the generator, if these are random keys; else empty.
    """

    data: np.ndarray[Any, Any]
    key: str = ""


def to_host(leaf: Any) -> HostLeaf:
    """Returns a leaf's elements; a copy, unless it is a NumPy array.

    NumPy data keep their dtype, at 64 bits too: no device is involved.

    Args:
      leaf: an array all of which is in this process, or a Python number.

    Raises:
      ArgumentError: it is not.
    """
    if isinstance(leaf, Array):
        if not (leaf.is_fully_addressable or leaf.is_fully_replicated):
            raise ArgumentError(
                f"{leaf.aval} has parts in other processes ({leaf.sharding}); gather "
                "it with multihost.process_allgather first"
            )
        if dtypes.is_key(leaf.dtype):
            bits = np.array(random.key_data(leaf))
            return HostLeaf(bits, random.key_impl(leaf))
        return HostLeaf(np.array(leaf))
    if isinstance(leaf, (np.ndarray, np.generic)):
        return HostLeaf(dtypes.host_array(leaf, leaf.dtype.newbyteorder("=")))
    if isinstance(leaf, (bool, int, float, complex)):
        return HostLeaf(np.asarray(leaf, dtypes.of_python(leaf)))
    raise not_an_array(leaf, "fxflow.distributed")


def from_host(leaf: HostLeaf) -> Any:
    """Returns the NumPy array, or the array of keys, that a leaf is."""
    if leaf.key:
        return random.wrap_key_data(leaf.data, impl=leaf.key)
    return leaf.data


def encode(leaves: Iterable[HostLeaf], **extra: Any) -> bytes:
    """Returns leaves as bytes.

    Args:
      leaves: the leaves.
      **extra: what JSON can say, kept beside them.
    """
    parts, described = [], []
    for leaf in leaves:
        data = np.ascontiguousarray(leaf.data).reshape(leaf.data.shape)
        described.append([data.dtype.name, list(data.shape), leaf.key])
        parts.append(data.tobytes())
    text = json.dumps({**extra, "leaves": described}).encode()
    body = b"".join([_HEAD.pack(_MARK, len(text)), text, *parts])
    return body + struct.pack("!I", zlib.crc32(body))


def decode(payload: bytes | bytearray) -> tuple[list[HostLeaf], dict[str, Any]]:
    """Returns the leaves and the rest of what `encode` wrote.

    Raises:
      ValueError: the bytes are not that, or not all of it.
    """
    view = memoryview(payload)
    if len(view) < _HEAD.size + 4 or bytes(view[:4]) != _MARK:
        raise ValueError("these bytes are not a tree of arrays")
    if zlib.crc32(view[:-4]) != struct.unpack("!I", view[-4:])[0]:
        raise ValueError("these bytes are damaged or cut off")
    _, length = _HEAD.unpack(view[: _HEAD.size])
    start = _HEAD.size + length
    text = json.loads(bytes(view[_HEAD.size : start]))
    leaves = []
    for name, shape, key in text.pop("leaves"):
        dtype = dtypes.dtype(name)
        count = int(np.prod(shape, dtype=np.int64))
        end = start + count * dtype.itemsize
        # A copy, so that it is aligned and does not keep all the others.
        data = np.frombuffer(view[start:end], np.uint8).copy().view(dtype)
        leaves.append(HostLeaf(data.reshape(shape), key))
        start = end
    return leaves, text
