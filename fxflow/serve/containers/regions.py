"""Shared memory that passes tensors between the server and a model's process.

A region is an anonymous file that the process inherits: its name cannot be guessed or
left behind, and the system frees it when both processes have exited. Either side grows
it as needed, up to a limit; the other side maps it again when it reads beyond its map.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.signatures import TensorSpec, from_bytes, to_bytes

#: Tensors start at multiples of a cache line.
ALIGNMENT = 64


def aligned(offset: int) -> int:
    """Rounds an offset up to a multiple of 64.

    Args:
      offset: the first free byte.

    Returns:
      The offset at which the next tensor starts.

    Example:
      >>> aligned(1), aligned(64)
      (64, 64)
    """
    return -(-offset // ALIGNMENT) * ALIGNMENT


class Region:
    """A growable piece of shared memory.

    Args:
      fd: descriptor of an existing region; None: create one.
      limit: most bytes of the region.

    Attributes:
      fd: descriptor of the file.

    Raises:
      ServeError: `view` needs more than the limit.

    Example:
      >>> ours = Region(limit=1 << 20)
      >>> theirs = Region(os.dup(ours.fd), limit=1 << 20)
      >>> ours.view(4)[:] = b"abcd"
      >>> bytes(theirs.view(4)[:2])
      b'ab'
      >>> ours.close(), theirs.close()
      (None, None)
    """

    def __init__(self, fd: int | None = None, *, limit: int) -> None:
        if fd is None:
            if hasattr(os, "memfd_create"):
                fd = os.memfd_create("fxflow-serve")
            else:
                with tempfile.TemporaryFile() as file:
                    fd = os.dup(file.fileno())
        self.fd = fd
        self._limit = limit
        self._map: mmap.mmap | None = None

    def view(self, nbytes: int) -> memoryview:
        """Returns the first bytes of the region, which grows if it is smaller.

        Args:
          nbytes: number of bytes.

        Returns:
          A view of the shared memory.
        """
        if nbytes > self._limit:
            raise ServeError(
                f"a batch and its results need {nbytes} bytes, and the limit is "
                f"{self._limit}: set max_batch_bytes",
                413,
            )
        if self._map is None or len(self._map) < nbytes:
            size = os.fstat(self.fd).st_size
            if size < nbytes:
                size = min(self._limit, max(nbytes, 2 * size, 1 << 16))
                os.ftruncate(self.fd, size)
            # Views keep the old map alive; it is unmapped with the last one.
            self._map = mmap.mmap(self.fd, size)
        return memoryview(self._map)[:nbytes]

    def close(self) -> None:
        """Closes the file; views stay valid."""
        self._map = None
        os.close(self.fd)


# -- tensors in a region ---------------------------------------------------------------


def read_inputs(
    region: Region, tensors: Iterable[Sequence[Any]]
) -> tuple[list[np.ndarray[Any, Any]], int]:
    """Returns the inputs of a call.

    Args:
      region: the shared memory.
      tensors: datatype, shape, offset and number of bytes of each input.

    Returns:
      Arrays, and the offset after the last. The arrays are copies: a model may keep
      its inputs, and the memory is reused.
    """
    free, arrays = 0, []
    for datatype, shape, offset, nbytes in tensors:
        free = max(free, offset + nbytes)
        memory = region.view(offset + nbytes)[offset:]
        arrays.append(from_bytes(memory, datatype, tuple(shape)).copy())
    return arrays, free


def write_outputs(
    region: Region, outputs: Iterable[np.ndarray[Any, Any]], at: int
) -> list[list[Any]]:
    """Writes the outputs of a model.

    Args:
      region: the shared memory.
      outputs: arrays, in order.
      at: offset of the first output.

    Returns:
      The shape, offset and number of bytes of each output.
    """
    places: list[list[Any]] = []
    data = []
    for value in outputs:
        # Converting waits for computations on the device.
        data.append(to_bytes(np.ascontiguousarray(value)))
        places.append([list(value.shape), at, len(data[-1])])
        at = aligned(at + len(data[-1]))
    memory = region.view(max(at, 1))
    for text, (_, offset, nbytes) in zip(data, places, strict=True):
        memory[offset : offset + nbytes] = text
    return places


def read_outputs(
    region: Region, specs: Iterable[TensorSpec], places: Iterable[Sequence[Any]]
) -> list[np.ndarray[Any, Any]]:
    """Returns copies of the outputs that `write_outputs` wrote.

    Args:
      region: the shared memory.
      specs: specifications of the outputs, in order.
      places: the result of `write_outputs`.

    Returns:
      Arrays, in order.

    Raises:
      ValueError: the number of places differs from that of the outputs.
    """
    arrays = []
    for spec, (shape, offset, nbytes) in zip(specs, places, strict=True):
        memory = region.view(offset + nbytes)[offset:]
        arrays.append(from_bytes(memory, spec.datatype, tuple(shape)).copy())
    return arrays
