"""The rows of tables as one worker uses them, with a cache.

`WorkerTables` pulls the rows that a batch uses before a step, and divides their
gradients among the shards after it. Rows in a `RowCache` need not be pulled in every
step. A clock counts the worker's steps. A row that was pulled at clock c may be used up
to clock c + bound; then it is pulled again. The worker can announce the rows of the
next batches, to request them during the current step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.gradients import (
    pad_rows,
    real_ids,
    unique_rows,
)
from fxflow.distributed.parameter_server.tables.memory import Ids, Memory
from fxflow.distributed.parameter_server.tables.remote import HostArray, by_shard
from fxflow.distributed.parameter_server.tables.spec import (
    Field,
    TableSpec,
)
from fxflow.errors import ArgumentError, ShapeError
from fxflow.optim.rows import sum_dtype

_ROWS, _CLOCKS = range(2)


class CacheCounts(NamedTuple):
    """Statistics of a cache, in rows.

    Attributes:
      hits: rows found.
      misses: rows not found, or too old.
      stale: the misses that were too old.
      announced: rows that `announce` returned, for early requests.
    """

    hits: int = 0
    misses: int = 0
    stale: int = 0
    announced: int = 0


class RowCache:
    """Rows by id, each with the clock at which it was pulled.

    Args:
      shape: shape of a row.
      dtype: dtype of a row.
      bound: number of clocks after its pull that a row may be used; 0: in that step
        only.
      rows: maximum number of rows; the least recently used rows are evicted.

    Raises:
      ArgumentError: the bound is negative, or `rows` is less than 1.

    Example:
      >>> cache = RowCache((2,), np.float32, bound=1, rows=100)
      >>> cache.put(np.array([3, 8]), np.ones((2, 2), np.float32), clock=5)
      >>> rows, here = cache.lookup(np.array([8, 9]), clock=6)
      >>> here.tolist(), rows[0].tolist()
      ([True, False], [1.0, 1.0])
      >>> cache.lookup(np.array([8]), clock=7)[1].tolist()
      [False]
    """

    counts: CacheCounts

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, *, bound: int, rows: int
    ) -> None:
        if bound < 0 or rows < 1:
            raise ArgumentError(
                f"RowCache: needs bound ≥ 0 and rows ≥ 1, got {bound} and {rows}"
            )
        self._fields = (Field(shape, np.dtype(dtype)), Field((), np.dtype(np.int64)))
        self._memory = Memory(self._fields, rows)
        self._bound = bound
        self._requested: Ids = np.empty(0, np.int64)
        self.counts = CacheCounts()

    def __len__(self) -> int:
        return len(self._memory)

    def lookup(
        self, ids: Ids, clock: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Returns the cached rows that are fresh enough.

        Args:
          ids: int64[n].
          clock: the current clock.

        Returns:
          `[n, *shape]`, zeros for other rows; bool[n], whether the row was found.
        """
        memory = self._memory
        slots = memory.find(ids)
        known = slots >= 0
        here = known.copy()
        pulled = memory.fields[_CLOCKS][slots[known]]
        here[known] = pulled + self._bound >= clock
        memory.tick()
        memory.touch(slots[here])
        field = self._fields[_ROWS]
        rows = np.zeros((len(ids), *field.shape), field.dtype)
        rows[here] = memory.fields[_ROWS][slots[here]]
        hits = int(here.sum())
        self._count(hits=hits, misses=len(ids) - hits, stale=int(known.sum()) - hits)
        return rows, here

    def lookup_all(self, ids: Ids) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Returns cached rows, whether fresh or not, and when they were pulled.

        Args:
          ids: int64[n].

        Returns:
          `[n, *shape]`, zeros for rows that are not cached; int64[n], the clocks at
          which rows were pulled, −1 for others.
        """
        memory = self._memory
        slots = memory.find(ids)
        known = (slots >= 0).nonzero()[0]
        slots = slots[known]
        memory.tick()
        memory.touch(slots)
        field = self._fields[_ROWS]
        rows = np.zeros((len(ids), *field.shape), field.dtype)
        clocks = np.full(len(ids), -1, np.int64)
        rows[known] = memory.fields[_ROWS][slots]
        clocks[known] = memory.fields[_CLOCKS][slots]
        self._count(hits=len(known), misses=len(ids) - len(known))
        return rows, clocks

    def put(self, ids: Ids, rows: npt.NDArray[Any], clock: int) -> None:
        """Adds pulled rows.

        Args:
          ids: int64[n], distinct.
          rows: `[n, *shape]`.
          clock: clock of the pull. Rows with a later one are not replaced.

        Raises:
          ShapeError: there is not one row of the shape for each id.
        """
        if rows.shape != (len(ids), *self._fields[_ROWS].shape):
            raise ShapeError(
                f"RowCache: expected {len(ids)} rows of shape "
                f"{self._fields[_ROWS].shape}, got an array of shape {rows.shape}"
            )
        if len(self._requested):
            self._requested = np.setdiff1d(self._requested, ids)
        memory = self._memory
        ids, rows = ids[-memory.capacity :], rows[-memory.capacity :]
        slots = memory.find(ids)
        memory.tick()
        new = slots < 0
        if not new.all():
            old = slots[~new]
            memory.touch(old)
            newest = memory.fields[_CLOCKS][old] <= clock
            memory.write(old[newest], [rows[~new][newest], clock])
            ids, rows = ids[new], rows[new]
        if len(ids):
            excess = len(memory) + len(ids) - memory.capacity
            if excess > 0:
                memory.remove(memory.coldest(excess, frequency=False))
            memory.write(memory.add(ids), [rows, clock])

    def drop(self, ids: Ids) -> None:
        """Removes rows, such as those for which this worker has just pushed gradients.

        Args:
          ids: int64[n]; missing rows are ignored.
        """
        slots = self._memory.find(np.unique(ids))
        self._memory.remove(slots[slots >= 0])

    def announce(self, ids: Ids, clock: int, at: int) -> Ids:
        """Returns the rows to request now for a later batch.

        A row is returned once until it is put, and not if it would be too old by then.

        Args:
          ids: int64[n], the rows of the batch.
          clock: the current clock.
          at: the clock of the batch.

        Returns:
          int64[m], distinct, in increasing order.
        """
        if at > clock + self._bound:
            return np.empty(0, np.int64)
        wanted = np.setdiff1d(ids, self._requested)
        slots = self._memory.find(wanted)
        known = slots >= 0
        fresh = known.copy()
        pulled = self._memory.fields[_CLOCKS][slots[known]]
        fresh[known] = pulled + self._bound >= at
        wanted = wanted[~fresh]
        self._requested = np.union1d(self._requested, wanted)
        self._count(announced=len(wanted))
        return wanted

    def clear(self) -> None:
        """Removes all rows and announcements, as the servers may have changed."""
        self._memory.clear()
        self._requested = self._requested[:0]

    def _count(self, **more: int) -> None:
        now = self.counts
        self.counts = now._replace(**{k: getattr(now, k) + n for k, n in more.items()})


# -- a worker's rows -------------------------------------------------------------------

#: Number of rows of each table to keep for reuse.
_CACHED = 1 << 20


#: Returns the rows, by shard and table, with the given ids of each shard by table.
PullRows = Callable[
    [Sequence[Mapping[str, HostArray]]], Mapping[int, Mapping[str, HostArray]]
]


class Gathered(NamedTuple):
    """The rows of one table that a batch uses.

    Attributes:
      ids: int64[n], distinct.
      rows: `[size, *row]`: n rows, then zeros.
      inverse: int32, in the shape of the batch's ids: the index of each id's row.
    """

    ids: HostArray
    rows: HostArray
    inverse: HostArray


class WorkerTables:
    """Tables as one worker uses them.

    Args:
      specs: specifications of the tables.
      bound: number of steps for which a pulled row may be reused, without any later
        changes, even this worker's.

    Raises:
      ArgumentError: two tables have the same name.
    """

    specs: dict[str, TableSpec]

    def __init__(self, specs: Sequence[TableSpec], *, bound: int = 0) -> None:
        self.specs = {spec.name: spec for spec in specs}
        if len(self.specs) < len(specs):
            names = [spec.name for spec in specs]
            raise ArgumentError(
                f"parameter_server: two tables have the same name: {names}"
            )
        self._caches = {
            name: RowCache(spec.shape, spec.dtype, bound=bound, rows=_CACHED)
            for name, spec in (self.specs.items() if bound else ())
        }

    def gather(
        self, pull: PullRows, count: int, ids: Mapping[str, Any], clock: int
    ) -> dict[str, Gathered]:
        """Returns the rows that a batch names; pulls those that are not cached.

        Args:
          pull: pulls rows from shards: `WorkerClient.rows`.
          count: number of shards.
          ids: integers of any shape, by table.
          clock: number of the step.

        Raises:
          ArgumentError: a table is missing or unknown, or ids are not integers.
          OutOfRangeError: an id is negative, or 2**63 or more.
        """
        if set(ids) != set(self.specs):
            raise ArgumentError(
                f"parameter_server: ids must name the tables {sorted(self.specs)}, got "
                f"{sorted(ids)}"
            )
        asked: list[dict[str, HostArray]] = [{} for _ in range(count)]
        found = {}
        places: dict[str, list[HostArray]] = {}
        for name, given in ids.items():
            caller = f"parameter_server: table {name!r}"
            distinct, inverse = unique_rows(given, caller=caller)
            real = real_ids(distinct)
            spec = self.specs[name]
            if len(real):
                spec.check_ids(real[0], real[-1], "parameter_server")
            rows = np.empty((len(real), *spec.shape), spec.dtype)
            missing = np.arange(len(real))
            if name in self._caches:
                kept, is_cached = self._caches[name].lookup(real, clock)
                rows[is_cached] = kept[is_cached]
                missing = (~is_cached).nonzero()[0]
            places[name] = [missing[part] for part in by_shard(real[missing], count)]
            for shard, part in enumerate(places[name]):
                if len(part):
                    asked[shard][name] = real[part]
            found[name] = real, rows, inverse, len(distinct)
        for shard, answer in pull(asked).items():
            for name, received in answer.items():
                found[name][1][places[name][shard]] = received
                if name in self._caches:
                    self._caches[name].put(asked[shard][name], received, clock)
        return {
            name: Gathered(real, pad_rows(rows, size), inverse)
            for name, (real, rows, inverse, size) in found.items()
        }

    def parts(
        self, gathered: Mapping[str, Gathered], gradients: Mapping[str, Any], count: int
    ) -> list[dict[str, HostArray]]:
        """Returns the arrays to push to each shard.

        Args:
          gathered: rows of the batch.
          gradients: gradients of the rows.
          count: number of shards.
        """
        sent: list[dict[str, HostArray]] = [{} for _ in range(count)]
        for name, (ids, _, _) in gathered.items():
            gradient = np.asarray(gradients[name])[: len(ids)]
            wide = sum_dtype(self.specs[name].dtype)
            gradient = gradient.astype(wide, copy=False)
            for shard, part in enumerate(by_shard(ids, count)):
                if len(part):
                    sent[shard][f"rows/{name}/ids"] = ids[part]
                    sent[shard][f"rows/{name}/gradients"] = gradient[part]
        return sent
