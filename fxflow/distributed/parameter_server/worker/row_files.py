"""Rows of a snapshot on disk, for a process whose memory they have no room in."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

HostArray = np.ndarray[Any, Any]


class RowFiles:
    """Arrays that grow in files, one for each field of a row.

    The files have no names: their space is given back with the last array that is in
    them, and when the process dies.

    Args:
      folder: on the disk; made if it is not there.

    Raises:
      OSError: no file can be made there.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._files: list[IO[bytes]] = []
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._like: list[HostArray] = []
        self._rows = 0

    def append(self, fields: Sequence[HostArray]) -> None:
        """Writes rows.

        Args:
          fields: of the same rows, each `[n, ...]`, of the same types every time.

        Raises:
          OSError: the disk is full, or cannot be written to.
        """
        try:
            if not self._files:
                self._like = [values[:0].copy() for values in fields]
                for _ in fields:
                    new = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
                    self._files.append(new)
            for file, values in zip(self._files, fields, strict=True):
                # As bytes, since the small floats of ml_dtypes have no format.
                file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise OSError(
                error.errno,
                f"rows of a snapshot cannot be written to {self._folder}: "
                f"{error.strerror}",
            ) from error
        self._rows += len(fields[0])

    def blocks(self) -> list[list[HostArray]]:
        """Ends the writing.

        Returns:
          One block of all rows, memory-mapped and read-only; none if there are no rows.
        """
        block: list[HostArray] = []
        for file, like in zip(self._files, self._like, strict=True):
            with file:
                file.flush()
                shape = (self._rows, *like.shape[1:])
                block.append(
                    np.memmap(file, like.dtype, "r", shape=shape)
                    if math.prod(shape)
                    else np.empty(shape, like.dtype)
                )
        return [block] if self._rows else []

    def __del__(self) -> None:
        for file in self._files:
            file.close()
