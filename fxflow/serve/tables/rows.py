"""Where the rows of a model's tables come from: files that are read lazily.

A source returns the rows of a batch's ids, with their age in seconds. Ids without a
row, which the data had not when the model was saved, get their initial row, as they
would in training.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fxflow.core.arrays import dtypes
from fxflow.errors import ServeError
from fxflow.export.files import Bundle
from fxflow.serve.tables.artifacts import RecommenderFiles, StoredTable
from fxflow.transforms.jit import jit

HostArray = np.ndarray[Any, Any]
Ids = npt.NDArray[np.int64]

#: Number of initial rows that are made together: one program is compiled.
_BLOCK = 128


class RowBatch(NamedTuple):
    """What a batch needs from the tables.

    Attributes:
      rows: by table, `[*ids.shape, *row]`.
      params: the dense parameters; None: those of the files.
      age: seconds since the oldest of them was read from those that train it.
    """

    rows: dict[str, HostArray]
    params: Any
    age: float


class RowSource(Protocol):
    """Returns rows of tables; used by one thread."""

    def read(self, ids: Mapping[str, HostArray]) -> RowBatch:
        """Returns the rows of a batch.

        Args:
          ids: integers of any shape, by table.

        Raises:
          ServeError: an id is out of range, or rows are not available.
        """

    def close(self) -> None:
        """Frees what it holds."""


def checked_ids(name: str, table: StoredTable, ids: HostArray) -> Ids:
    """Returns ids as int64[n], checked.

    Args:
      name: name of the table.
      table: the table.
      ids: integers of any shape.

    Raises:
      ServeError: an id is out of range.
    """
    flat = ids.astype(np.int64).ravel()
    limit = 2**63 if table.limit is None else table.limit
    if flat.size and not 0 <= int(flat.min()) <= int(flat.max()) < limit:
        wrong = flat[(flat < 0) | (flat >= limit)][0]
        raise ServeError(
            f"table {name!r}: ids must be from 0 to {limit - 1}, got {wrong}", 400
        )
    return flat


class InitialRows:
    """The initial rows of a table, by id.

    Args:
      table: the table.
      program: from `u32[n, 2]`, high and low halves of ids, to rows; None: zeros.
    """

    def __init__(self, table: StoredTable, program: Bundle | None) -> None:
        self._shape, self._dtype = table.shape, np.dtype(dtypes.dtype(table.dtype))
        self._run = None if program is None else jit(program.exported.call)
        self(np.zeros(1, np.int64))  # compiles now: a request must not wait for it

    def __call__(self, ids: Ids) -> HostArray:
        """Returns rows.

        Args:
          ids: int64[n].
        """
        rows = np.zeros((len(ids), *self._shape), self._dtype)
        if self._run is None:
            return rows
        for start in range(0, len(ids), _BLOCK):
            part = ids[start : start + _BLOCK].astype(np.uint64)
            halves = np.zeros((_BLOCK, 2), np.uint32)
            halves[: len(part), 0] = part >> np.uint64(32)
            halves[: len(part), 1] = part & np.uint64(0xFFFFFFFF)
            made = np.asarray(self._run(halves))
            rows[start : start + len(part)] = made[: len(part)]
        return rows


class MappedRows:
    """The rows of a folder, memory-mapped: only pages with rows in use are in memory.

    Args:
      files: the folder.

    Raises:
      ServeError: the folder has no rows, or those of another snapshot.
    """

    def __init__(self, files: RecommenderFiles) -> None:
        self._files = files
        self._tables: dict[str, tuple[HostArray, Ids | None, InitialRows]] = {}
        for name, table in files.tables.items():
            if not table.rows:
                raise ServeError(
                    f"{files.path} has no rows of table {name!r}: give the addresses "
                    "of its servers (servers=)"
                )
            whole = not table.ids and table.stored == table.limit
            initial = InitialRows(table, None if whole else files.init(name))
            self._tables[name] = *files.arrays(name), initial

    def read(self, ids: Mapping[str, HostArray]) -> RowBatch:
        """Returns the rows of a batch.

        Args:
          ids: integers of any shape, by table.

        Raises:
          ServeError: an id is out of range.
        """
        found = {}
        for name, given in ids.items():
            table = self._files.tables[name]
            flat = checked_ids(name, table, given)
            found[name] = self._rows(name, flat).reshape(*given.shape, *table.shape)
        return RowBatch(found, None, max(0.0, time.time() - self._files.created))

    def _rows(self, name: str, ids: Ids) -> HostArray:
        rows, known, initial = self._tables[name]
        if known is None:
            if not len(ids) or int(ids.max()) < len(rows):
                return np.asarray(rows[ids])
            here, places = ids < len(rows), ids
        else:
            places = np.searchsorted(known, ids)
            here = places < len(known)
            here[here] = known[places[here]] == ids[here]
        if here.all():
            return np.asarray(rows[places])
        found = initial(ids)
        found[here] = rows[places[here]]
        return found

    def close(self) -> None:
        """Unmaps the files when no batch uses them."""
        self._tables = {}
