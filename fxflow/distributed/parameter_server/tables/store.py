"""A table: rows that are created on first access and updated by pushes.

The cost of a call depends on the number of rows that it names, not on the size of the
table. Rows that have not been used for long go to disk, and are loaded when needed,
which affects only the time of a call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server.tables.admission import FrequencySketch
from fxflow.distributed.parameter_server.tables.cuts import RowBlock, TableCut
from fxflow.distributed.parameter_server.tables.disk import DiskRows
from fxflow.distributed.parameter_server.tables.expiry import Sweep
from fxflow.distributed.parameter_server.tables.gradients import sum_rows
from fxflow.distributed.parameter_server.tables.memory import Ids, Memory, Slots
from fxflow.distributed.parameter_server.tables.quantization import decode_rows
from fxflow.distributed.parameter_server.tables.spec import (
    Field,
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
# Number of pushes after which the ids of changed rows are joined.
_NOTED = 4096
# Evict at most this many rows at a time, and this fraction: pauses are short and few.
_EVICTED, _PART = 4096, 8
# Bytes of initial values that are kept for later reads of ids without a row.
_INITIAL = 16 << 20


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
      expired: rows forgotten, because no push had named them for `expire_after` pushes.
      unadmitted: gradients of a row dropped, because its id was not pushed
        `admit_after` times yet.
    """

    rows: int = 0
    in_memory: int = 0
    created: int = 0
    evicted: int = 0
    loaded: int = 0
    updated: int = 0
    non_finite: int = 0
    rejected: int = 0
    expired: int = 0
    unadmitted: int = 0


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

    #: Counts of ids that have no row yet; None: the first push creates a row.
    admission: FrequencySketch | None
    programs: RowPrograms

    def __init__(self, spec: TableSpec, programs: RowPrograms | None = None) -> None:
        self.spec = spec
        self.programs = programs = programs or row_programs(spec)
        self._lock = threading.Lock()
        self._expires = spec.expire_after is not None
        #: The last field, if rows expire: the number of the last push that named it.
        pushed = (Field((), np.dtype(np.int64)),) if self._expires else ()
        self._fields = (*programs.fields, *pushed)
        #: The number of pushes, of which the rows of the last have the number.
        self._pushes = 0
        self._sweep = Sweep()
        self.admission = FrequencySketch() if spec.admit_after > 1 else None
        on_disk = spec.folder is not None
        self._memory = Memory(self._fields, spec.rows_in_memory, evicts=on_disk)
        self._disk: DiskRows | None = None
        if spec.folder is not None:
            self._disk = DiskRows(spec.folder, spec.name, self._fields)
        #: Initial values of rows that do not exist, as they were read.
        self._initial: Memory | None = None
        self._cuts: list[TableCut] = []
        #: Who asked for them → the ids of rows that have changed since.
        self._changed: dict[str, list[Ids]] = {}
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
        fields = self._fields
        row: int = sum(math.prod(f.shape) * f.dtype.itemsize for f in fields)
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
            self._sweep.close()
            self._memory.clear()
            if self._disk is not None:
                self._disk.close()

    def pull(self, ids: npt.ArrayLike) -> Rows:
        """Returns rows; missing rows are created, if their first push would do that.

        Args:
          ids: integers ≥ 0, `[n]`, with or without repetitions.

        Returns:
          `[n, *shape]`, a copy.

        Raises:
          ArgumentError: the ids are not integers in one axis.
          OutOfRangeError: an id is negative, or 2⁶³ or more.
          OutOfMemoryError: there is no room for the rows.
        """
        if self.admission is not None:
            return self.read(ids)
        ids = self._ids(ids)
        with self._lock:
            if self._disk is None:
                return self._values(self._locate(ids))
            found = self._empty(len(ids))
            for piece in self._pieces(len(ids)):
                found[piece] = self._values(self._locate(ids[piece]))
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
        found = self._empty(len(ids))
        with self._lock:
            slots = self._memory.find(ids)
            here = slots >= 0
            if self._expires:
                here[here] = ~self._is_old(self._memory.fields[-1][slots[here]])
            found[here] = self._values(slots[here])
            missing = (~here).nonzero()[0]
            if len(missing):
                new, inverse = np.unique(ids[missing], return_inverse=True)
                found[missing] = self._read_missing(new)[inverse]
        return found

    def _read_missing(self, ids: Ids) -> Rows:
        """Returns distinct rows that are not in memory, or have expired there."""
        disk = self._disk
        found = self._empty(len(ids))
        here = np.zeros(len(ids), bool)
        if disk is not None and len(disk):
            here, loaded = disk.get(ids)
            if self._expires:
                fresh = ~self._is_old(loaded[-1])
                here[here] = fresh
                loaded = [field[fresh] for field in loaded]
            found[here] = self._decoded(loaded)
        if not here.all():
            found[~here] = self._initial_rows(ids[~here])
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
            if self.admission is not None:
                ids, sums = self._admit(self.admission, ids, sums)
            self._note_changed(ids)
            for piece in self._pieces(len(ids)):
                self._update(self._locate(ids[piece]), sums[piece], scale)
            self._count(updated=len(ids))
            if self._expires and len(ids):
                self._pushes += 1
                self._forget_old(len(ids))

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

    def state(self, changed: str = "") -> TableState:
        """Returns all current rows, in blocks; the table may change meanwhile.

        Rows that change before their block is read are copied first, once for each
        iterator. An iterator ends after the last block, or when it is closed or
        collected.

        Args:
          changed: a name: to return only rows that have changed since `note_changes`,
            or the last call of this method, with this name. Empty: all rows. Without
            `note_changes`, it also returns all rows.

        Returns:
          An iterator over blocks; each id is in one of them.
        """
        with self._lock:
            ids = None
            if changed in self._changed:
                ids = _union(self._changed[changed])
                self._changed[changed] = []
            cut = TableCut(self._memory, self._disk, ids)
            self._cuts = [*self._reading(), cut]
            return TableState(self, cut)

    def note_changes(self, name: str) -> None:
        """Starts to record which rows change, for `state(changed=name)`.

        Args:
          name: a name for who asks; each has its own record.
        """
        with self._lock:
            self._changed[name] = []

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
            self._sweep.close()
            self._pushes = 0
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
            if self._expires and len(ids):
                self._pushes = max(self._pushes, int(fields[-1].max()))
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
        own = self._fields
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
        missing = (slots < 0).nonzero()[0]
        if len(missing):
            memory.touch(slots[slots >= 0])
            new, first, inverse = np.unique(
                ids[missing], return_index=True, return_inverse=True
            )
            given = None if values is None else [v[missing[first]] for v in values]
            self._make_room(len(new))
            slots[missing] = self._load_or_create(new, given)[inverse]
        memory.touch(slots)
        if self._expires and values is None:
            old = np.unique(slots[self._is_old(memory.fields[-1][slots])])
            if len(old):
                self._change(old, self._make(memory.ids[old]))
                self._count(expired=len(old))
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
        fields = [np.empty((len(ids), *f.shape), f.dtype) for f in self._fields]
        if self._expires:
            fields[-1][:] = self._pushes
        halves = np.stack([ids >> 32, ids & 0xFFFFFFFF], axis=1).astype(np.uint32)
        for start, stop, size in _cuts(len(ids), self.programs.blocks):
            block = np.zeros((size, 2), np.uint32)
            block[: stop - start] = halves[start:stop]
            for field, made in zip(fields, self.programs.init(block)):
                field[start:stop] = np.asarray(made)[: stop - start]
        return fields

    def _initial_rows(self, ids: Ids) -> Rows:
        """Returns the initial values of distinct rows, without creating the rows.

        Values that were read last are kept, as they never change and a served model may
        read an id that was never trained again and again.
        """
        if self._initial is None:
            field = Field(self.spec.shape, self.spec.dtype)
            row = 64 + self.spec.width * field.dtype.itemsize  # with its id and place
            self._initial = Memory((field,), max(1, _INITIAL // row))
        kept = self._initial
        kept.tick()
        slots = kept.find(ids)
        known = slots >= 0
        kept.touch(slots[known])
        found = self._empty(len(ids))
        found[known] = kept.fields[0][slots[known]]
        new = (~known).nonzero()[0]
        if len(new):
            found[new] = self._decoded(self._make(ids[new]))
            new = new[: kept.capacity - int(known.sum())]
            excess = len(kept) + len(new) - kept.capacity
            if excess > 0:
                kept.remove(kept.coldest(excess, frequency=False))
            kept.write(kept.add(ids[new]), [found[new]])
        return found

    def _update(self, slots: Slots, gradients: Rows, scale: float) -> None:
        """Updates distinct rows."""
        for start, stop, size in _cuts(len(slots), self.programs.blocks):
            own = slots[start:stop]
            # The rest of the block repeats a row with a zero gradient, and is dropped.
            padded = np.full(size, own[0])
            padded[: len(own)] = own
            block = np.zeros((size, *gradients.shape[1:]), gradients.dtype)
            block[: len(own)] = gradients[start:stop]
            fields = self._memory.gather(padded)[: len(self.programs.fields)]
            for fresh in (block, *fields):
                fresh.flags.writeable = False  # so that they are not copied
            new = self.programs.update(fields, block, scale)
            changed = [np.asarray(x)[: len(own)] for x in new]
            if self._expires:
                changed.append(np.full(len(own), self._pushes + 1))
            self._change(own, changed)

    # -- values, admission and expiry --------------------------------------------------

    def _empty(self, count: int) -> Rows:
        """Returns an array for rows."""
        return np.empty((count, *self.spec.shape), self.spec.dtype)

    def _values(self, slots: Slots) -> Rows:
        """Returns the rows in some slots; a copy."""
        # With mode="clip" `take` is several times as fast; no slot is out of range.
        first, *others = self._memory.fields
        rows: Rows = first.take(slots, axis=0, mode="clip")
        if self.spec.stored == "exact":
            return rows
        return self._decoded([rows, others[0].take(slots, mode="clip")])

    def _decoded(self, fields: Sequence[Rows]) -> Rows:
        """Returns the rows that fields have."""
        if self.spec.stored == "exact":
            return fields[0]
        return decode_rows(fields[0], fields[1], self.spec.dtype)

    def _admit(
        self, admission: FrequencySketch, ids: Ids, sums: Rows
    ) -> tuple[Ids, Rows]:
        """Returns the ids, with gradients, that have a row or were pushed often enough.

        Only pushes decide, so that all replicas of a table agree.
        """
        slots = self._memory.find(ids)
        known = slots >= 0
        if self._expires:
            known[known] = ~self._is_old(self._memory.fields[-1][slots[known]])
        elsewhere = np.flatnonzero(slots < 0)
        if self._disk is not None and len(self._disk) and len(elsewhere):
            here, loaded = self._disk.get(ids[elsewhere])
            if self._expires:
                here[here] = ~self._is_old(loaded[-1])
            known[elsewhere] = here
        new = np.flatnonzero(~known)
        if len(new):
            known[new] = admission.add(ids[new]) >= self.spec.admit_after
            self._count(unadmitted=int((~known).sum()))
        return ids[known], sums[known]

    def _is_old(self, pushed: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Returns which rows have expired, from the last pushes that named them.

        An expired row counts as missing, whether its memory is free yet or not: when
        that happens depends on the replica.
        """
        assert self.spec.expire_after is not None
        old: npt.NDArray[np.bool_] = self._pushes - pushed > self.spec.expire_after
        return old

    def _forget_old(self, count: int) -> None:
        """Frees the memory of some expired rows, in proportion to the rows pushed."""
        memory, disk = self._memory, self._disk
        slots = self._sweep.slots(memory, count)
        old = slots[self._is_old(memory.fields[-1][slots])]
        if len(old):
            for cut in self._reading():
                cut.changing(old)
            stored = old[memory.stored[old]]
            if disk is not None and len(stored):
                disk.remove(memory.ids[stored])
                self._both -= len(stored)
            memory.remove(old)
        forgotten = len(old)
        if disk is not None:
            ids, pushed = self._sweep.stored(disk, count)
            ids = ids[self._is_old(pushed)]
            ids = ids[memory.find(ids) < 0]  # Those in memory are found there.
            if len(ids):
                here, loaded = disk.get(ids)  # They may have changed since.
                gone = ids[here][self._is_old(loaded[-1])]
                disk.remove(gone)
                forgotten += len(gone)
        self._count(expired=forgotten)

    def _change(self, slots: Slots, fields: Sequence[Rows]) -> None:
        for cut in self._reading():
            cut.changing(slots)
        self._memory.write(slots, fields)
        if self._disk is not None:
            self._memory.dirty[slots] = True

    def _note_changed(self, ids: Ids) -> None:
        for noted in self._changed.values() if len(ids) else ():
            noted.append(ids)
            if len(noted) >= _NOTED:
                noted[:] = [_union(noted)]

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
    """The rows of a table at one moment: an iterator over `RowBlock`s.

    Attributes:
      complete: whether all rows were read: the table had not been closed before.
    """

    complete: bool

    def __init__(self, table: RowTable, cut: TableCut) -> None:
        self._table, self._cut = table, cut
        self.complete = False

    def __iter__(self) -> TableState:
        return self

    def __next__(self) -> RowBlock:
        block = self._table._next(self._cut)
        if block is None:
            self.complete = self.complete or not self._cut.closed
            self.close()
            raise StopIteration
        return block

    def close(self) -> None:
        """Ends the iterator; the table then copies no more rows for it."""
        self._cut.close()

    def __del__(self) -> None:
        self.close()


def _union(parts: Sequence[Ids]) -> Ids:
    """Returns the distinct ids of some arrays, in increasing order."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))


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
