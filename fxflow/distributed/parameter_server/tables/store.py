"""A table: rows that are created on first access and updated by pushes.

The cost of a call depends on the number of rows that it names, not on the size of the
table. Rows that have not been used for long go to disk, and are loaded when needed,
which affects only the time of a call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server.tables.disk import DiskRows
from fxflow.distributed.parameter_server.tables.gradients import sum_rows
from fxflow.distributed.parameter_server.tables.memory import NONE, Ids, Memory, Slots
from fxflow.distributed.parameter_server.tables.spec import (
    RowPrograms,
    TableSpec,
    row_programs,
)
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    NonFiniteError,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
)
from fxflow.optim.rows import sum_dtype

Rows = npt.NDArray[Any]

# Number of ids that are looked up together if the rows in memory are limited.
_PIECE = 65536
# Evict at most this many rows at a time, and this fraction: pauses are short and few.
_EVICTED, _PART = 4096, 8


class TableCounts(NamedTuple):
    """Statistics of a table.

    Attributes:
      rows: the rows that exist.
      in_memory: the rows in memory.
      created: rows created.
      evicted: rows moved to disk.
      loaded: rows loaded from disk.
      updated: updates of a row.
      non_finite: gradients of a row with inf or nan that were skipped or applied.
      rejected: pushes rejected because of such a gradient.
    """

    rows: int = 0
    in_memory: int = 0
    created: int = 0
    evicted: int = 0
    loaded: int = 0
    updated: int = 0
    non_finite: int = 0
    rejected: int = 0


class RowTable:
    """Rows by id. Several threads may use it; their calls are serialized.

    Args:
      spec: specification of the table.
      programs: compiled programs; None: made from the spec's optimizer and initializer.

    Raises:
      ArgumentError: there are neither programs nor an optimizer.
      ImportError: the spec has a folder, and `lmdb` is not installed.

    Example:
      >>> table = RowTable(TableSpec("words", 4, optim.sgd(0.5), nn.initializers.zeros))
      >>> table.push([7, 2, 7], np.ones((3, 4), np.float32))
      >>> table.pull([2, 7, 10**18])[:, 0].tolist()
      [-0.5, -1.0, 0.0]
    """

    programs: RowPrograms

    def __init__(self, spec: TableSpec, programs: RowPrograms | None = None) -> None:
        self.spec = spec
        self.programs = programs = programs or row_programs(spec)
        self._lock = threading.Lock()
        self._memory = Memory(programs.fields, spec.rows_in_memory)
        self._disk: DiskRows | None = None
        if spec.folder is not None:
            self._disk = DiskRows(spec.folder, spec.name, programs.fields)
        self._cuts: list[TableCut] = []
        self._changed: list[Ids] | None = None
        self._both = 0  # rows that are both in memory and on disk
        self._counts = TableCounts()

    def __enter__(self) -> RowTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        stored = 0 if self._disk is None else len(self._disk) - self._both
        return len(self._memory) + stored

    @property
    def counts(self) -> TableCounts:
        """Statistics of the table."""
        with self._lock:
            return self._counts._replace(rows=len(self), in_memory=len(self._memory))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows and their optimizer's state, in memory and on disk."""
        fields = self.programs.fields
        row = sum(math.prod(f.shape) * f.dtype.itemsize for f in fields)
        return row * len(self)

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the rows on disk."""
        with self._lock:
            return 0 if self._disk is None else self._disk.nbytes

    def close(self) -> None:
        """Closes and removes the files, and drops the rows in memory."""
        with self._lock:
            for cut in self._cuts:
                cut.close()
            self._memory.clear()
            if self._disk is not None:
                self._disk.close()

    def pull(self, ids: npt.ArrayLike) -> Rows:
        """Returns rows; missing rows are created.

        Args:
          ids: integers ≥ 0, `[n]`, with or without repetitions.

        Returns:
          `[n, *shape]`, a copy.

        Raises:
          ArgumentError: the ids are not integers in one axis.
          OutOfRangeError: an id is negative, or 2⁶³ or more.
          OutOfMemoryError: there is no room for the rows.
        """
        ids = self._ids(ids)
        rows = self._memory.fields[0]
        with self._lock:
            if self._disk is None:
                return rows.take(self._locate(ids), axis=0, mode="clip")
            found = np.empty((len(ids), *rows.shape[1:]), rows.dtype)
            for piece in self._pieces(len(ids)):
                found[piece] = rows[self._locate(ids[piece])]
            return found

    def read(self, ids: npt.ArrayLike) -> Rows:
        """Returns rows without a change of the table: missing rows are not created.

        Rows on disk stay there, and the order of eviction is that before the call.

        Args:
          ids: integers ≥ 0, `[n]`, with or without repetitions.

        Returns:
          `[n, *shape]`, a copy; missing rows have their initial values.

        Raises:
          ArgumentError: the ids are not integers in one axis.
          OutOfRangeError: an id is negative, or 2⁶³ or more.
        """
        ids = self._ids(ids)
        rows = self._memory.fields[0]
        found = np.empty((len(ids), *rows.shape[1:]), rows.dtype)
        with self._lock:
            slots = self._memory.find(ids)
            here = slots >= 0
            found[here] = rows[slots[here]]
            missing = np.flatnonzero(~here)
            if len(missing):
                new, inverse = np.unique(ids[missing], return_inverse=True)
                found[missing] = self._read_missing(new)[inverse]
        return found

    def _read_missing(self, ids: Ids) -> Rows:
        """Returns distinct rows that are not in memory."""
        disk = self._disk
        here = np.zeros(len(ids), bool)
        loaded: Sequence[Rows] = ()
        if disk is not None and len(disk):
            here, loaded = disk.get(ids)
        made = self._make(ids[~here])[0]
        found = np.empty((len(ids), *made.shape[1:]), made.dtype)
        found[~here] = made
        if loaded:
            found[here] = loaded[0]
        return found

    def push(
        self, ids: npt.ArrayLike, gradients: npt.ArrayLike, scale: float = 1.0
    ) -> None:
        """Updates rows; missing rows are created first.

        Gradients of one id are added in the given order; the row is updated once.

        Args:
          ids: integers ≥ 0, `[n]`.
          gradients: `[n, *shape]`, in the table's dtype, or float32 for shorter dtypes.
          scale: factor of the change of each row.

        Raises:
          ArgumentError: the ids are not integers in one axis.
          OutOfRangeError: an id is negative, or 2⁶³ or more.
          ShapeError: there is not one gradient of a row's shape for each id.
          DtypeError: the gradients have another dtype.
          NonFiniteError: they have inf or nan, and the table rejects these; no row has
            changed.
          OutOfMemoryError: there is no room for the rows.
        """
        ids = self._ids(ids)
        ids, sums = sum_rows(ids, self._gradients(ids, gradients))
        finite = np.isfinite(sums).reshape(len(ids), self.spec.width).all(axis=1)
        with self._lock:
            if not finite.all():
                ids, sums = self._check_finite(ids, sums, finite)
            self._note_changed(ids)
            for piece in self._pieces(len(ids)):
                self._update(self._locate(ids[piece]), sums[piece], scale)
            self._count(updated=len(ids))

    def check(self, ids: npt.ArrayLike, gradients: npt.ArrayLike) -> None:
        """Raises what `push` would raise for invalid arguments.

        Args:
          ids: as for `push`.
          gradients: as for `push`.
        """
        ids = self._ids(ids)
        given = self._gradients(ids, gradients).reshape(len(ids), self.spec.width)
        if self.spec.non_finite == "reject":
            with np.errstate(over="ignore"):
                if np.isfinite(np.abs(given).sum(axis=0)).all():
                    return  # Then sums of some of them are finite, too.
                ids, given = sum_rows(ids, given)
            bad = ~np.isfinite(given).all(axis=1)
            if bad.any():
                raise self._rejected(ids[bad])

    def check_block(self, block: RowBlock) -> None:
        """Raises what `put` would raise for an invalid argument.

        Args:
          block: as for `put`.
        """
        self._check_fields(self._ids(block.ids), [block.rows, *block.state])

    def state(self, changed: bool = False) -> TableState:
        """Returns all current rows, in blocks; the table may change meanwhile.

        Rows that change before their block is read are copied first, once for each
        iterator. An iterator ends after the last block, or when it is closed or
        collected.

        Args:
          changed: whether to return only rows that have changed since `note_changes` or
            the last call with `changed`.

        Returns:
          An iterator over blocks; each id is in one of them.
        """
        with self._lock:
            ids = None
            if changed and self._changed is not None:
                none = np.empty(0, np.int64)
                ids = np.unique(np.concatenate([none, *self._changed]))
                self._changed = []
            cut = TableCut(self._memory, self._disk, ids)
            self._cuts = [*self._reading(), cut]
            return TableState(self, cut)

    def note_changes(self) -> None:
        """Starts to record which rows change, for `state(changed=True)`."""
        with self._lock:
            self._changed = []

    def load(self, blocks: Iterable[RowBlock]) -> None:
        """Replaces all rows.

        Args:
          blocks: a result of `state`, of any table with the same fields.

        Raises:
          ArgumentError: an iterator of `state` has not ended.
          ShapeError: a block has other fields.
          DtypeError: a block has other dtypes.
        """
        with self._lock:
            self._require_no_reading()
            self._memory.clear()
            self._both = 0
            if self._disk is not None:
                self._disk.clear()
        for block in blocks:
            self.put(block)

    def put(self, block: RowBlock) -> None:
        """Writes rows with their optimizer's state, replacing existing ones.

        Args:
          block: a block of `state`.

        Raises:
          ShapeError: the block has other fields.
          DtypeError: the block has other dtypes.
        """
        ids = self._ids(block.ids)
        fields = [block.rows, *block.state]
        self._check_fields(ids, fields)
        with self._lock:
            self._note_changed(ids)
            for piece in self._pieces(len(ids)):
                slots = self._locate(ids[piece], [f[piece] for f in fields])
                self._change(slots, [f[piece] for f in fields])

    # -- checks ------------------------------------------------------------------------

    def _require_no_reading(self) -> None:
        if self._reading():
            raise ArgumentError(
                f"{self.spec}: a state is being read: read it to the end, or close it"
            )

    def _ids(self, ids: npt.ArrayLike) -> Ids:
        given = np.asarray(ids)
        if given.size == 0 and given.ndim == 1:
            return np.empty(0, np.int64)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise ArgumentError(
                f"{self.spec}: ids must be integers in one axis, got "
                f"{dtypes.short_name(given.dtype)}{list(given.shape)}"
            )
        found = given.astype(np.int64, copy=False)
        if int(found.min()) < 0:
            wrong = given[found < 0][0]
            raise OutOfRangeError(
                f"{self.spec}: ids must be from 0 to 2**63 - 1, got {wrong}"
            )
        return found

    def _gradients(self, ids: Ids, gradients: npt.ArrayLike) -> Rows:
        given = np.asarray(gradients)
        expected = (len(ids), *self.spec.shape)
        wide = sum_dtype(self.spec.dtype)
        if given.shape != expected:
            raise ShapeError(
                f"{self.spec}: gradients of {len(ids)} rows must have shape "
                f"{list(expected)}, got {list(given.shape)}"
            )
        if given.dtype not in (wide, self.spec.dtype):
            raise DtypeError(
                f"{self.spec}: gradients must be {self.spec.dtype}"
                f"{'' if wide == self.spec.dtype else f' or {wide}'}, got {given.dtype}"
            )
        return given.astype(wide, copy=False)

    def _check_fields(self, ids: Ids, fields: Sequence[Rows]) -> None:
        own = self.programs.fields
        shapes = [(len(ids), *f.shape) for f in own]
        if [f.shape for f in fields] != shapes:
            raise ShapeError(
                f"{self.spec}: a block of {len(ids)} rows must have fields {shapes}, "
                f"got {[f.shape for f in fields]}: is it of another optimizer?"
            )
        if [f.dtype for f in fields] != [f.dtype for f in own]:
            raise DtypeError(
                f"{self.spec}: fields must be {[str(f.dtype) for f in own]}, got "
                f"{[str(f.dtype) for f in fields]}: are they of another optimizer?"
            )

    def _check_finite(
        self, ids: Ids, sums: Rows, finite: npt.NDArray[np.bool_]
    ) -> tuple[Ids, Rows]:
        """Rejects, skips or keeps gradients that are not finite, as the spec says."""
        bad = ids[~finite]
        if self.spec.non_finite == "reject":
            raise self._rejected(bad)
        self._count(non_finite=len(bad))
        if self.spec.non_finite == "skip":
            return ids[finite], sums[finite]
        return ids, sums

    def _rejected(self, bad: Ids) -> NonFiniteError:
        self._count(rejected=1)
        return NonFiniteError(
            f"{self.spec}: gradients of {len(bad)} rows have inf or nan, the first "
            f"that of id {bad[0]}: nothing was changed "
            "(TableSpec(non_finite='skip') skips these rows)"
        )

    def _count(self, **more: int) -> None:
        now = self._counts
        self._counts = now._replace(**{k: getattr(now, k) + n for k, n in more.items()})

    # -- rows --------------------------------------------------------------------------

    def _pieces(self, count: int) -> Iterator[slice]:
        """Yields slices of ids whose rows may be in memory together."""
        most = count if self._disk is None else min(self._memory.capacity, _PIECE)
        for start in range(0, count, max(most, 1)):
            yield slice(start, min(start + most, count))

    def _locate(self, ids: Ids, values: Sequence[Rows] | None = None) -> Slots:
        """Returns the slots of rows; missing rows are loaded or created.

        Args:
          ids: ids of the rows, with or without repetitions.
          values: values of new rows; None: those of the initializer.
        """
        memory = self._memory
        memory.tick()
        slots = memory.find(ids)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            memory.touch(slots[slots >= 0])
            new, first, inverse = np.unique(
                ids[missing], return_index=True, return_inverse=True
            )
            given = None if values is None else [v[missing[first]] for v in values]
            self._make_room(len(new))
            slots[missing] = self._load_or_create(new, given)[inverse]
        memory.touch(slots)
        return slots

    def _load_or_create(self, ids: Ids, values: Sequence[Rows] | None) -> Slots:
        """Loads or creates distinct rows that are not in memory."""
        memory, disk = self._memory, self._disk
        here = np.zeros(len(ids), bool)
        loaded: Sequence[Rows] = ()
        if disk is not None and len(disk):
            here, loaded = disk.get(ids)
        new = ids[~here]
        made = self._make(new) if values is None else [v[~here] for v in values]
        slots = memory.add(ids)
        if loaded:
            memory.write(slots[here], loaded)
            memory.stored[slots[here]] = True
        memory.write(slots[~here], made)
        self._both += len(ids) - len(new)
        self._count(created=len(new), loaded=len(ids) - len(new))
        return slots

    def _make(self, ids: Ids) -> Sequence[Rows]:
        """Returns the initial values of rows."""
        fields = [np.empty((len(ids), *f.shape), f.dtype) for f in self.programs.fields]
        halves = np.stack([ids >> 32, ids & 0xFFFFFFFF], axis=1).astype(np.uint32)
        for start, stop, size in _cuts(len(ids), self.programs.blocks):
            block = np.zeros((size, 2), np.uint32)
            block[: stop - start] = halves[start:stop]
            for field, made in zip(fields, self.programs.init(block)):
                field[start:stop] = np.asarray(made)[: stop - start]
        return fields

    def _update(self, slots: Slots, gradients: Rows, scale: float) -> None:
        """Updates distinct rows."""
        for start, stop, size in _cuts(len(slots), self.programs.blocks):
            own = slots[start:stop]
            # The rest of the block repeats a row with a zero gradient, and is dropped.
            padded = np.full(size, own[0])
            padded[: len(own)] = own
            block = np.zeros((size, *gradients.shape[1:]), gradients.dtype)
            block[: len(own)] = gradients[start:stop]
            fields = self._memory.gather(padded)
            for fresh in (block, *fields):
                fresh.flags.writeable = False  # so that they are not copied
            new = self.programs.update(fields, block, scale)
            self._change(own, [np.asarray(x)[: len(own)] for x in new])

    def _change(self, slots: Slots, fields: Sequence[Rows]) -> None:
        for cut in self._reading():
            cut.changing(slots)
        self._memory.write(slots, fields)
        self._memory.dirty[slots] = True

    def _note_changed(self, ids: Ids) -> None:
        if self._changed is not None and len(ids):
            self._changed.append(ids)

    def _make_room(self, count: int) -> None:
        """Evicts rows if there is no room for `count` more."""
        memory, disk = self._memory, self._disk
        excess = len(memory) + count - memory.capacity
        if excess <= 0:
            return
        if disk is None:
            raise OutOfMemoryError(
                f"{self.spec}: no memory for more than {memory.capacity} rows: give "
                "rows_in_memory= and folder="
            )
        many = max(excess, min(memory.capacity // _PART, _EVICTED))
        slots = memory.coldest(many, self.spec.evict == "lfu")
        for cut in self._reading():
            cut.changing(slots)
        write = slots[memory.dirty[slots] | ~memory.stored[slots]]
        disk.put(memory.ids[write], memory.gather(write))
        self._both -= int(memory.stored[slots].sum())
        memory.remove(slots)
        self._count(evicted=len(slots))

    def _next(self, cut: TableCut) -> RowBlock | None:
        """Returns the next block of a cut; None at the end, or if the cut is closed."""
        with self._lock:
            return None if cut.closed else cut.next()

    def _reading(self) -> list[TableCut]:
        """Returns the cuts whose reading has not ended."""
        return [cut for cut in self._cuts if not cut.closed]


class TableState:
    """The rows of a table at one moment: an iterator over `RowBlock`s."""

    def __init__(self, table: RowTable, cut: TableCut) -> None:
        self._table, self._cut = table, cut

    def __iter__(self) -> TableState:
        return self

    def __next__(self) -> RowBlock:
        block = self._table._next(self._cut)
        if block is None:
            self.close()
            raise StopIteration
        return block

    def close(self) -> None:
        """Ends the iterator; the table then copies no more rows for it."""
        self._cut.close()

    def __del__(self) -> None:
        self.close()


def _cuts(count: int, blocks: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields (start, stop, block); rows fill half of a block or more, or the smallest.

    Args:
      count: number of rows.
      blocks: sizes of blocks, in increasing order.
    """
    start = 0
    while start < count:
        rest = count - start
        size = next((b for b in blocks if rest <= b <= 2 * rest), None)
        if size is None:  # Cut off a full block, or pad the smallest one.
            size = max((b for b in blocks if b <= rest), default=blocks[0])
        stop = min(start + size, count)
        yield start, stop, size
        start = stop


# -- the rows at one moment ------------------------------------------------------------

#: Maximum number of rows in a block, and of their bytes.
BLOCK, BLOCK_BYTES = 8192, 4 << 20


class RowBlock(NamedTuple):
    """Some rows of a table.

    Attributes:
      ids: int64[n], distinct.
      rows: `[n, *shape]`.
      state: arrays of the optimizer's state, each `[n, ...]`.
    """

    ids: Ids
    rows: npt.NDArray[Any]
    state: tuple[npt.NDArray[Any], ...]


class TableCut:
    """The rows of a table at the moment when the cut is made.

    Rows in memory are copied when their block is read, or before they change, whichever
    comes first; for rows on disk, LMDB keeps the pages of that moment.

    Args:
      memory: the rows in memory.
      disk: rows that are not in memory, and earlier values of some that are.
      only: ids of the rows to read, distinct, in increasing order; None: all. Their
        cost does not depend on the size of the table.

    Attributes:
      closed: whether reading has ended.
    """

    closed: bool

    def __init__(
        self, memory: Memory, disk: DiskRows | None, only: Ids | None = None
    ) -> None:
        self.closed = False
        self._memory, self._end = memory, memory.end
        row = sum(math.prod(f.shape[1:]) * f.dtype.itemsize for f in memory.fields)
        self._most = max(1, min(BLOCK, BLOCK_BYTES // max(row, 1)))
        self._copied: list[RowBlock] = []
        self._view = None if disk is None else disk.view()
        self._slots: Slots | None = None
        #: On disk: ids to read, or, for `only=None`, ids to skip, as memory has them.
        self._stored: Ids
        if only is None:
            self._waiting = memory.ids[: self._end] != NONE
            self._stored = np.sort(memory.ids[: self._end][memory.stored[: self._end]])
        else:
            slots = memory.find(only)
            self._slots = np.sort(slots[slots >= 0])
            self._stored = only[slots < 0]
            # Untouched pages of zeros take no memory.
            self._waiting = np.zeros(self._end, bool)
            self._waiting[self._slots] = True
        self._blocks = self._read()

    def changing(self, slots: Slots) -> None:
        """Copies rows that are about to change and were not read yet."""
        old = slots[slots < self._end]
        old = old[self._waiting[old]]
        old = np.unique(old)
        for start in range(0, len(old), self._most):
            self._copied.append(self._take(old[start : start + self._most]))

    def next(self) -> RowBlock | None:
        """Returns the next rows; None: there are no more.

        The table may change between calls, but not during one.
        """
        return next(self._blocks, None)

    def close(self) -> None:
        """Ends reading; any thread may call it at any time."""
        if self.closed:
            return
        self.closed = True
        self._blocks.close()
        if self._view is not None:
            self._view.close()

    def _read(self) -> Generator[RowBlock, None, None]:
        count = self._end if self._slots is None else len(self._slots)
        most = self._most
        for start in range(0, count, most):
            if self._slots is None:
                here = np.flatnonzero(self._waiting[start : start + most]) + start
            else:
                slots = self._slots[start : start + most]
                here = slots[self._waiting[slots]]
            if len(here):
                yield self._take(here)
            while self._copied:
                yield self._copied.pop()
        while self._copied:
            yield self._copied.pop()
        if self._view is not None and self._slots is not None:
            for start in range(0, len(self._stored), most):
                ids, fields = self._view.get(self._stored[start : start + most])
                yield _block(ids, fields)
        elif self._view is not None:
            while (found := self._view.read(most)) is not None:
                ids, fields = found
                alone = ~_among(ids, self._stored)
                if alone.any():
                    yield _block(ids[alone], [f[alone] for f in fields])

    def _take(self, slots: Slots) -> RowBlock:
        self._waiting[slots] = False
        return _block(self._memory.ids[slots], self._memory.gather(slots))


def _block(ids: Ids, fields: list[npt.NDArray[Any]]) -> RowBlock:
    return RowBlock(ids, fields[0], tuple(fields[1:]))


def _among(ids: Ids, others: Ids) -> npt.NDArray[np.bool_]:
    """Returns which ids are among others, which are sorted."""
    if len(others) == 0:
        return np.zeros(len(ids), bool)
    at = np.minimum(np.searchsorted(others, ids), len(others) - 1)
    among: npt.NDArray[np.bool_] = others[at] == ids
    return among
