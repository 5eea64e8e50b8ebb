"""Serializes the leaves of trees of arrays.

The bytes are a message of `messages.codec`. They do not include the tree's structure:
both ends run the same program and know it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fxflow import random
from fxflow.core.arrays import Array, dtypes, not_an_array
from fxflow.distributed.messages import codec
from fxflow.errors import ArgumentError, MessageError

_LIMITS = codec.Limits(text=1 << 28, arrays=1 << 20, size=1 << 40)


class HostLeaf(NamedTuple):
    """A leaf in host memory.

    Attributes:
      data: the elements; for random keys, their bits.
      key: the keys' generator; empty for other arrays.
    """

    data: np.ndarray[Any, Any]
    key: str = ""


def to_host(leaf: Any) -> HostLeaf:
    """Returns a leaf's elements, copied unless the leaf is a NumPy array.

    NumPy arrays keep their dtype, including 64-bit dtypes: no device is involved.

    Args:
      leaf: an array that is entirely in this process, or a Python number.

    Raises:
      ArgumentError: the leaf is not.
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
    """Returns a leaf as a NumPy array, or as an array of random keys."""
    if leaf.key:
        return random.wrap_key_data(leaf.data, impl=leaf.key)
    return leaf.data


def encode(leaves: Iterable[HostLeaf], **extra: Any) -> bytes:
    """Returns leaves as bytes.

    Args:
      leaves: the leaves.
      **extra: JSON values, stored with them.
    """
    leaves = list(leaves)
    message = codec.Message(
        "control",
        fields={"keys": [leaf.key for leaf in leaves], "extra": extra},
        arrays={str(i): leaf.data for i, leaf in enumerate(leaves)},
    )
    return b"".join(codec.encode(message, limits=_LIMITS))


def decode(payload: bytes | bytearray | memoryview) -> tuple[list[HostLeaf], Any]:
    """Returns the leaves, and the dictionary `extra`, that `encode` wrote.

    Raises:
      ValueError: `encode` did not write these bytes, or they are incomplete.
    """
    try:
        incoming = codec.Incoming(_LIMITS)
        found = list(incoming.feed(payload))
    except MessageError as error:
        raise ValueError(f"these bytes are not a tree of arrays: {error}") from None
    if len(found) != 1 or not incoming.idle:
        raise ValueError("these bytes are truncated, or longer than a tree of arrays")
    fields, arrays = found[0].fields, found[0].arrays
    for array in arrays.values():
        array.flags.writeable = True  # only this message uses the memory
    return list(map(HostLeaf, arrays.values(), fields["keys"])), fields["extra"]
