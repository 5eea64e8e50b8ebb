"""Rows on disk, by LMDB: an ordered map from ids to bytes in a memory-mapped file.

The file is not durable: after a crash a table is restored from its snapshot and the
log. So nothing waits until bytes are on the disk, and files that another process left
are removed. (LMDB never overwrites a page in use, so the file of a killed process is
consistent.)

Why LMDB: with 10⁶ random rows of 264 bytes, 4096 at a time, a read takes 2.2 µs per row
(RocksDB: 9), a write 2.6 to 3.6 (RocksDB: 2.5 to 5.2); 32 rows, which a worker waits
for, are read in 70 µs (RocksDB: 700). Its memory is the page cache, which the system
reclaims when it needs memory.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from fxflow.devices import files
from fxflow.distributed.parameter_server.tables.memory import Ids
from fxflow.distributed.parameter_server.tables.spec import Field
from fxflow.errors import ArgumentError

Fields = list[npt.NDArray[Any]]

# Ids as keys: big-endian bytes sort like the numbers, so that close ids share a page.
_KEY = np.dtype(">i8")
# A process that writes to a memory map dies if the disk is full: keep this many bytes
# of the disk free.
_SPARE = 256 << 20


class DiskRows:
    """Rows by id, on disk. `close` removes them.

    Args:
      folder: folder of the files, created if necessary; several tables may share it.
      name: name of the table.
      fields: fields of a row.

    Raises:
      ImportError: `lmdb` is not installed.
      ArgumentError: another table of this name uses the folder.
    """

    def __init__(self, folder: str, name: str, fields: Sequence[Field]) -> None:
        self._lmdb = _lmdb()
        self._fields = tuple(fields)
        self._path = Path(folder) / quote(name, safe="")
        self._path.mkdir(parents=True, exist_ok=True)
        self._lock = (self._path / "lock").open("w")
        try:
            files.lock(self._lock.fileno())
        except OSError:
            self._lock.close()
            raise ArgumentError(
                f"table {name!r}: {self._path} is used by another process or table: "
                "use a separate folder for each"
            ) from None
        self._open()

    def _open(self) -> None:
        file = self._path / "rows.mdb"
        for left in (file, file.with_name("rows.mdb-lock")):
            left.unlink(missing_ok=True)
        size = shutil.disk_usage(self._path).free
        while True:
            try:
                self._env = self._lmdb.open(
                    os.fspath(file),
                    subdir=False,
                    map_size=size,
                    sync=False,
                    # Twice as fast as system calls. The file appears as large as the
                    # free space, but occupies only what was written.
                    writemap=True,
                    readahead=False,
                    meminit=False,
                    max_spare_txns=8,
                )
                break
            except self._lmdb.MemoryError:
                # The process may have less address space than there is disk.
                size //= 2
                if size < _SPARE:
                    raise

    def __len__(self) -> int:
        entries: int = self._env.stat()["entries"]
        return entries

    @property
    def nbytes(self) -> int:
        """Bytes that the file occupies on disk."""
        status = (self._path / "rows.mdb").stat()
        if sys.platform == "win32":
            return status.st_size
        return status.st_blocks * 512

    def get(self, ids: Ids) -> tuple[npt.NDArray[np.bool_], Fields]:
        """Returns which rows exist, and their fields.

        Args:
          ids: int64[n], distinct, in increasing order.
        """
        with self._env.begin() as transaction:
            found = transaction.cursor().getmulti(_keys(ids))
        have, fields = self._decode(found)
        here = np.zeros(len(ids), bool)
        here[np.searchsorted(ids, have)] = True
        return here, fields

    def put(self, ids: Ids, fields: Sequence[npt.NDArray[Any]]) -> None:
        """Writes rows; overwrites existing ones.

        Args:
          ids: int64[n], distinct.
          fields: of the rows, each `[n, ...]`.

        Raises:
          OSError: the disk is full; nothing was written.
        """
        if len(ids) == 0:
            return
        order = np.argsort(ids)
        parts = [
            np.ascontiguousarray(f[order]).reshape(len(ids), -1).view(np.uint8)
            for f in fields
        ]
        records = np.concatenate(parts, axis=1)
        width = records.shape[1]
        # A row may need a page of its own, and new pages on the path to its leaf.
        if shutil.disk_usage(self._path).free < _SPARE + 4 * records.nbytes:
            raise OSError(
                f"{self._path}: no space for {len(ids)} more rows of {width} bytes: "
                f"less than {_SPARE} bytes would be left on the disk"
            )
        data = records.tobytes()
        values = [data[i : i + width] for i in range(0, len(data), width)]
        try:
            with self._env.begin(write=True) as transaction:
                transaction.cursor().putmulti(list(zip(_keys(ids[order]), values)))
        except self._lmdb.MapFullError:
            raise OSError(
                f"{self._path}: no space for {len(ids)} more rows of {width} bytes: "
                "the file has reached the free space of the disk when it was created"
            ) from None

    def remove(self, ids: Ids) -> None:
        """Removes rows; missing ones are ignored.

        Args:
          ids: int64[n].
        """
        if len(ids):
            with self._env.begin(write=True) as transaction:
                for key in _keys(ids):
                    transaction.delete(key)

    def view(self) -> DiskView:
        """Returns a view of the current rows, to be read while others are written.

        Space of overwritten rows is not reused before the view is closed.
        """
        return DiskView(self._env.begin(), self._decode)

    def clear(self) -> None:
        """Removes all rows."""
        self._env.close()
        self._open()

    def close(self) -> None:
        """Closes the file and removes it."""
        if not self._lock.closed:
            self._env.close()
            shutil.rmtree(self._path, ignore_errors=True)
            self._lock.close()

    def _decode(self, found: Sequence[tuple[bytes, bytes]]) -> tuple[Ids, Fields]:
        ids = np.frombuffer(b"".join([k for k, _ in found]), _KEY).astype(np.int64)
        records = np.frombuffer(b"".join([v for _, v in found]), np.uint8)
        sizes = [f.dtype.itemsize * math.prod(f.shape) for f in self._fields]
        records = records.reshape(len(ids), sum(sizes))
        ends = np.cumsum(sizes).tolist()
        return ids, [
            np.ascontiguousarray(records[:, end - size : end])
            .view(f.dtype)
            .reshape(len(ids), *f.shape)
            for f, size, end in zip(self._fields, sizes, ends)
        ]


class DiskView:
    """The rows on disk at one moment, in order of ids.

    Args:
      transaction: a read transaction.
      decode: returns the ids and fields of keys and values.
    """

    def __init__(self, transaction: Any, decode: Any) -> None:
        self._transaction, self._decode = transaction, decode
        self._cursor = transaction.cursor()
        self._more = self._cursor.first()

    def read(self, count: int) -> tuple[Ids, Fields] | None:
        """Returns the ids and fields of the next rows; None: there are no more.

        Args:
          count: maximum number of rows.
        """
        if not self._more:
            return None
        found = []
        for item in self._cursor.iternext():
            found.append(item)
            if len(found) == count:
                break
        self._more = len(found) == count and self._cursor.next()
        read: tuple[Ids, Fields] = self._decode(found)
        return read

    def get(self, ids: Ids) -> tuple[Ids, Fields]:
        """Returns which of some ids exist, and their fields.

        Args:
          ids: int64[n], distinct, in increasing order.
        """
        read: tuple[Ids, Fields] = self._decode(self._cursor.getmulti(_keys(ids)))
        return read

    def close(self) -> None:
        """Ends the view, so that space can be reused."""
        self._transaction.abort()


def _keys(ids: Ids) -> list[bytes]:
    data = ids.astype(_KEY).tobytes()
    return [data[i : i + 8] for i in range(0, len(data), 8)]


def _lmdb() -> Any:
    try:
        import lmdb
    except ImportError:
        raise ImportError(
            "tables with rows on disk need lmdb: pip install 'fxflow[tables]'"
        ) from None
    return lmdb
