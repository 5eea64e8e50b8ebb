"""Shared memory through which tensors pass between the server and a model's process.

It is an anonymous file, which the process inherits: it has no name that could be left
behind or guessed, and is gone when both are. Either side makes it larger by need, up
to a limit; the other notices by what it is told to read.
"""

from __future__ import annotations

import mmap
import os
import tempfile

from fxflow.errors import ServeError

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
