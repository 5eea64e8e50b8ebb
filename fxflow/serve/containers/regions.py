"""Shared memory through which tensors pass between the server and a model's process.

It is an anonymous file, which the process inherits: it has no name that could be left
behind or guessed, and the system frees it when both have exited. Either side grows it
as needed, up to a limit; the other learns the new size from the places it is to read.
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

#: Tensors begin at multiples of a cache line.
ALIGNMENT = 64


def aligned(offset: int) -> int:
    """Returns the next place at which a tensor may begin.

    Args:
      offset: the first free byte.

    Returns:
      It or the next multiple of 64.

    Example:
      >>> aligned(1), aligned(64)
      (64, 64)
    """
    return -(-offset // ALIGNMENT) * ALIGNMENT


class Region:
    """A piece of shared memory.

    Args:
      fd: of the file; None makes a new one.
      limit: the most bytes that it may have.

    Attributes:
      fd: of the file.

    Raises:
      ServeError: more than the limit is asked for (by `view`).

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
        """Returns the first bytes; the file becomes so large if it is not.

        Args:
          nbytes: how many.

        Returns:
          Memory that both sides see.
        """
        if nbytes > self._limit:
            raise ServeError(
                f"a batch and its results need {nbytes} bytes, and {self._limit} are "
                "allowed: set max_batch_bytes",
                413,
            )
        if self._map is None or len(self._map) < nbytes:
            size = os.fstat(self.fd).st_size
            if size < nbytes:
                size = min(self._limit, max(nbytes, 2 * size, 1 << 16))
                os.ftruncate(self.fd, size)
            # Views of the old map keep it alive; it is unmapped with the last.
            self._map = mmap.mmap(self.fd, size)
        return memoryview(self._map)[:nbytes]

    def close(self) -> None:
        """Closes the file; views stay valid."""
        self._map = None
        os.close(self.fd)


# -- what lies in a region -------------------------------------------------------------


def read_inputs(
    region: Region, tensors: Iterable[Sequence[Any]]
) -> tuple[list[np.ndarray[Any, Any]], int]:
    """Returns the inputs of a call.

    Args:
      region: the shared memory.
      tensors: of each, its datatype, shape, offset and bytes.

    Returns:
      Arrays, and the first byte behind them. They are copies: a model may keep its
      inputs, and the memory is written again.
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
      at: where the first begins.

    Returns:
      The shape, offset and size in bytes of each output.
    """
    places: list[list[Any]] = []
    data = []
    for value in outputs:
        # On the device the work is done when the arrays are here.
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
    """Returns what `write_outputs` has written.

    Args:
      region: the shared memory.
      specs: of the outputs, in order.
      places: what `write_outputs` gave.

    Returns:
      Arrays of their own memory.

    Raises:
      ValueError: there are more or fewer places than outputs.
    """
    arrays = []
    for spec, (shape, offset, nbytes) in zip(specs, places, strict=True):
        memory = region.view(offset + nbytes)[offset:]
        arrays.append(from_bytes(memory, spec.datatype, tuple(shape)).copy())
    return arrays
