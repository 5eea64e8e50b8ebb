"""The rows of tables that a batch uses: pulled before a step, pushed after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.cache import RowCache
from fxflow.distributed.parameter_server.tables.gradients import (
    pad_rows,
    real_ids,
    unique_rows,
)
from fxflow.distributed.parameter_server.tables.remote import by_shard
from fxflow.distributed.parameter_server.tables.spec import TableSpec, sum_dtype
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.errors import ArgumentError

HostArray = npt.NDArray[Any]


#: Number of rows of each table to keep for reuse.
_CACHED = 1 << 20


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
        self, client: WorkerClient, count: int, ids: Mapping[str, Any], clock: int
    ) -> dict[str, Gathered]:
        """Returns the rows that a batch names; pulls those that are not cached.

        Args:
          client: the connection.
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
            rows = np.empty((len(real), *spec.shape), spec.dtype)
            missing = np.arange(len(real))
            if name in self._caches:
                kept, is_cached = self._caches[name].lookup(real, clock)
                rows[is_cached] = kept[is_cached]
                missing = np.flatnonzero(~is_cached)
            places[name] = [missing[part] for part in by_shard(real[missing], count)]
            for shard, part in enumerate(places[name]):
                if len(part):
                    asked[shard][name] = real[part]
            found[name] = real, rows, inverse, len(distinct)
        for shard, answer in client.rows(asked).items():
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
