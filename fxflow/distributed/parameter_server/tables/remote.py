"""Tables on servers: their serialized form, the shard of each row, initial rows.

A worker sends the optimizer and the initializer as program text, for a few block sizes;
a server runs them. Row i is in shard i mod n, which spreads any batch of ids. The
initial rows of a shard, from a snapshot, travel in parts that fit into messages.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.core.arrays import ShapeDtypeStruct, dtypes
from fxflow.distributed.parameter_server.tables.memory import Ids
from fxflow.distributed.parameter_server.tables.spec import (
    BLOCKS,
    Field,
    RowPrograms,
    TableSpec,
    row_functions,
)
from fxflow.distributed.parameter_server.tables.store import RowTable
from fxflow.distributed.program_text import ProgramText, Runner, write
from fxflow.optim.rows import sum_dtype


class TableModel(NamedTuple):
    """The serialized form of a table.

    Attributes:
      description: its spec, as JSON.
      fields: shapes and dtypes of a row: its value, then its optimizer's state.
      programs: `init/32`, `update/32`, …, by block size.
    """

    description: dict[str, Any]
    fields: list[tuple[tuple[int, ...], str]]
    programs: dict[str, ProgramText]


def table_model(spec: TableSpec) -> TableModel:
    """Returns the serialized form of a table.

    Args:
      spec: specification of the table, with its optimizer.

    Raises:
      ArgumentError: the specification has no optimizer.
      DistributedError: the optimizer or the initializer calls Python.
    """
    functions = row_functions(spec)
    programs = {}
    for block in BLOCKS:
        fields = tuple(
            ShapeDtypeStruct((block, *f.shape), f.dtype) for f in functions.fields
        )
        ids = ShapeDtypeStruct((block, 2), dtypes.uint32)
        shape = (block, *spec.shape)
        gradients = ShapeDtypeStruct(shape, sum_dtype(spec.dtype))
        scale = ShapeDtypeStruct((), dtypes.float32)
        name = f"table.{spec.name}"
        programs[f"init/{block}"], _ = write(functions.init, ids, name=f"{name}.init")
        programs[f"update/{block}"], _ = write(
            functions.update, fields, gradients, scale, name=f"{name}.update"
        )
    kept = [(f.shape, f.dtype.name) for f in functions.fields]
    return TableModel(spec.describe(), kept, programs)


def make_table(model: TableModel, place: str) -> RowTable:
    """Returns an empty table on a server.

    Args:
      model: the table that a worker sent.
      place: folder of its files, within the folder of the spec.
    """
    runners: dict[str, Runner] = {}

    def runner(what: str, block: int) -> Runner:
        name = f"{what}/{block}"
        if name not in runners:
            runners[name] = Runner(model.programs[name])
        return runners[name]

    def init(halves: npt.NDArray[np.uint32]) -> Sequence[Any]:
        return runner("init", len(halves))([halves])

    def update(fields: Sequence[Any], gradients: Any, scale: Any) -> Sequence[Any]:
        run = runner("update", len(gradients))
        return run([*fields, gradients, np.float32(scale)])

    spec = TableSpec.from_description(model.description)
    if spec.folder is not None:
        described = {**model.description, "folder": f"{spec.folder}/{place}"}
        spec = TableSpec.from_description(described)
    fields = tuple(Field(tuple(s), np.dtype(dtypes.dtype(d))) for s, d in model.fields)
    return RowTable(spec, RowPrograms(fields, init, update, BLOCKS))


def by_shard(ids: Ids, count: int) -> list[npt.NDArray[np.intp]]:
    """Returns the positions of each shard's ids in `ids`.

    Args:
      ids: int64[n].
      count: number of shards.

    Example:
      >>> [p.tolist() for p in by_shard(np.array([4, 7, 1, 6]), 2)]
      [[0, 3], [1, 2]]
    """
    shard = ids % count
    return [(shard == i).nonzero()[0] for i in range(count)]


def rows_of(arrays: Mapping[str, Any], name: str) -> tuple[Any, Any] | None:
    """Returns the ids and gradients of a push for a table, if any."""
    ids = arrays.get(f"rows/{name}/ids")
    return None if ids is None else (ids, arrays[f"rows/{name}/gradients"])


# -- initial rows ----------------------------------------------------------------------

HostArray = np.ndarray[Any, Any]
#: A block of a table: ids, rows, and the arrays of their optimizer's state.
Block = Sequence[HostArray]

#: Bytes of a part. All workers must have the same number, to cut the same parts.
PART_BYTES = 4 << 20


class Beginning(NamedTuple):
    """The initial state of a shard in addition to its parameters.

    Attributes:
      keys: kinds of random keys in the optimizer's state; None: there is no snapshot.
      snapshot: its name.
      arrays: arrays of the optimizer's state, sent with the model.
      rows: parts of the rows of tables, sent afterwards.
    """

    keys: list[str] | None
    snapshot: str
    arrays: dict[str, HostArray]
    rows: Sequence[tuple[str, Block]]


NOTHING = Beginning(None, "", {}, ())


class RowParts(Sequence[tuple[str, Block]]):
    """Rows of tables in parts of bounded size, each made on access.

    Parts are the same in every process that has the same blocks.

    Args:
      tables: blocks by table; they may lie in files.
      share: number of a shard, and the number of shards: only the rows of this shard;
        None: all rows.

    Example:
      >>> blocks = [[np.arange(4), np.ones((4, 2))], [np.arange(4, 6), np.ones((2, 2))]]
      >>> parts = RowParts({"words": blocks}, share=(1, 2))
      >>> [(name, ids.tolist()) for name, (ids, rows) in parts]
      [('words', [1, 3, 5])]
    """

    def __init__(
        self,
        tables: Mapping[str, Sequence[Block]],
        share: tuple[int, int] | None = None,
    ) -> None:
        self._share = share
        self._blocks: dict[str, list[Block]] = {}
        self._ends: dict[str, np.ndarray[Any, Any]] = {}
        #: For each part, its table, first row and the row after its last.
        self._parts: list[tuple[str, int, int]] = []
        for name, given in sorted(tables.items()):
            blocks = [block for block in given if len(block[0])]
            ends = np.cumsum([len(block[0]) for block in blocks], dtype=np.int64)
            self._blocks[name], self._ends[name] = blocks, ends
            count = int(ends[-1]) if blocks else 0
            row = sum(values[:1].nbytes for values in blocks[0]) if blocks else 1
            most = max(1, PART_BYTES // row)
            for start in range(0, count, most):
                self._parts.append((name, start, min(start + most, count)))

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: Any) -> Any:
        name, start, stop = self._parts[index]
        blocks, ends = self._blocks[name], self._ends[name]
        pieces = []
        at = int(np.searchsorted(ends, start, side="right"))
        while start < stop:
            block, end = blocks[at], int(ends[at])
            first, last = start - end + len(block[0]), min(stop, end)
            pieces.append([x[first : first + last - start] for x in block])
            start, at = last, at + 1
        if self._share is not None:
            number, count = self._share
            chosen = (by_shard(piece[0], count)[number] for piece in pieces)
            pieces = [[x[c] for x in p] for p, c in zip(pieces, chosen, strict=True)]
        if len(pieces) == 1:
            return name, pieces[0]
        return name, [np.concatenate(fields) for fields in zip(*pieces, strict=True)]


# -- rows on disk ----------------------------------------------------------------------


class RowFiles:
    """Arrays that grow in files, one for each field of a row.

    The files have no names: the system frees their space when no array refers to them
    any more, or the process dies.

    Args:
      folder: folder for the files; created if necessary.

    Raises:
      OSError: no file can be created there.
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
          fields: fields of the same rows, each `[n, ...]`; their types never change.

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
                # As bytes, because small floats of ml_dtypes have no buffer format.
                file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise OSError(
                error.errno,
                f"rows of a snapshot cannot be written to {self._folder}: "
                f"{error.strerror}",
            ) from error
        self._rows += len(fields[0])

    def blocks(self) -> list[list[HostArray]]:
        """Ends writing; returns a block of all rows, or no block without rows.

        Returns:
          The block, memory-mapped and read-only, in a list.
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
