"""Rows of a snapshot that servers write themselves, to files in a folder they share.

A snapshot of tables that exceed every worker's memory need not pass through a worker:
each server writes the rows of its shards at the moment of the cut, in a thread, while
training continues. A worker asks until the files are complete, and then writes the
manifest that names them (`worker.saving`), without which they do not count.
"""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fxflow.devices import files
from fxflow.distributed.parameter_server.tables.store import TableState
from fxflow.errors import DistributedError

#: Bytes that are written between two looks for a cancellation.
_CHUNK = 1 << 20


class RowWriter:
    """Writes the rows of one shard's tables to files, in a thread.

    Args:
      folder: folder of the files; created if necessary.
      rows: the rows at the moment of the cut, by table.
      whole: whether they are all rows of the tables, not only changed ones.

    Attributes:
      written: number of rows written so far.
    """

    written: int

    def __init__(
        self, folder: Path, rows: Mapping[str, TableState], whole: bool
    ) -> None:
        self._folder, self._rows, self.whole = folder, rows, whole
        self.written = 0
        self._error: Exception | None = None
        self._found: dict[str, Any] = {}
        self._cancelled = False
        self._thread = threading.Thread(
            target=self._run, name="fxflow-snapshot", daemon=True
        )
        self._thread.start()

    def result(self) -> dict[str, Any] | None:
        """Returns the description of the files by table; None: not complete yet.

        Raises:
          DistributedError: they could not be written.
        """
        if self._thread.is_alive():
            return None
        if self._error is not None:
            raise DistributedError(
                f"rows of a snapshot cannot be written to {self._folder}: "
                f"{getattr(self._error, 'strerror', None) or self._error}"
            ) from self._error
        return self._found

    @property
    def failed(self) -> bool:
        """Whether the files could not be written."""
        return self._error is not None

    def close(self) -> None:
        """Cancels writing, and waits for the end of the thread."""
        self._cancelled = True
        self._thread.join()

    def _run(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            found = {name: self._write(name) for name in self._rows}
            files.sync(self._folder)
            self._found = found
        except Exception as error:  # for the worker that asks
            self._error = error

    def _write(self, name: str) -> dict[str, Any]:
        """Writes a table: each field of the rows is one file."""
        columns: list[_Column] = []
        count = 0
        stem = f"table-{list(self._rows).index(name)}"
        with contextlib.ExitStack() as stack:
            for block in self._rows[name]:
                values = [block.ids, block.rows, *block.state]
                if not columns:
                    columns = [
                        stack.enter_context(_Column(self._folder, f"{stem}.{i}", x))
                        for i, x in enumerate(values)
                    ]
                for column, x in zip(columns, values, strict=True):
                    column.append(x)
                    if self._cancelled:
                        raise DistributedError("the server ends")
                count += len(block.ids)
                self.written += len(block.ids)
            if not self._rows[name].complete:
                raise DistributedError("the server has given up the shard")
            for column in columns:
                column.finish()
        fields = [column.described for column in columns]
        return {"rows": count, "whole": self.whole, "fields": fields}


class _Column:
    """A file of one field of rows; it gets its name when it is complete."""

    def __init__(self, folder: Path, name: str, like: np.ndarray[Any, Any]) -> None:
        self._path = folder / name
        self._temporary = folder / f"{name}.new"
        self._file: BinaryIO = self._temporary.open("wb")
        self._checksum = 0
        self.described: dict[str, Any] = {
            "file": name,
            "dtype": like.dtype.name,
            "shape": list(like.shape[1:]),
        }

    def __enter__(self) -> _Column:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)

    def append(self, values: np.ndarray[Any, Any]) -> None:
        # As bytes, because small floats of ml_dtypes have no buffer format.
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        for start in range(0, len(data), _CHUNK):
            chunk = data[start : start + _CHUNK]
            self._checksum = zlib.crc32(chunk, self._checksum)
            self._file.write(chunk)

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)
        self.described["crc32"] = self._checksum
