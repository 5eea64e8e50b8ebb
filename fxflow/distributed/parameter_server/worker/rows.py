"""A worker's rows of tables: those of a batch, pulled before it and pushed after it."""

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
from fxflow.distributed.parameter_server.tables.remote import parted
from fxflow.distributed.parameter_server.tables.row_programs import sum_dtype
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.errors import ArgumentError

HostArray = npt.NDArray[Any]


class Gathered(NamedTuple):
    """The rows of one table that a batch uses.

    Attributes:
      ids: int64[n], distinct.
      rows: `[size, *row]`, n of them and then zeros.
      inverse: int32, of the shape of the batch's ids: which row each is.
    """

    ids: HostArray
    rows: HostArray
    inverse: HostArray


class WorkerTables:
    """Tables as one worker uses them.

    Args:
      specs: of the tables.
      bound: for how many steps a row that was pulled may be used again, without what
        was changed since, by this worker either.
      rows: how many rows of each are kept for that.

    Raises:
      ArgumentError: two tables have one name.
    """

    specs: dict[str, TableSpec]

    def __init__(
        self, specs: Sequence[TableSpec], *, bound: int = 0, rows: int = 1 << 20
    ) -> None:
        self.specs = {spec.name: spec for spec in specs}
        if len(self.specs) < len(specs):
            names = [spec.name for spec in specs]
            raise ArgumentError(f"parameter_server: two tables have one name: {names}")
        self._caches = {
            name: RowCache(spec.shape, spec.dtype, bound=bound, rows=rows)
            for name, spec in (self.specs.items() if bound else ())
        }

    def gather(
        self, client: WorkerClient, count: int, ids: Mapping[str, Any], clock: int
    ) -> dict[str, Gathered]:
        """Returns the rows that a batch names; pulls those that are not at hand.

        Args:
          client: the connection.
          count: of servers.
          ids: integers of any shape, by table.
          clock: number of the step.

        Raises:
          ArgumentError: a table is missing, or unknown; or ids are not integers.
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
            who = f"parameter_server: table {name!r}"
            distinct, inverse = unique_rows(given, who=who)
            real = real_ids(distinct)
            spec = self.specs[name]
            rows = np.empty((len(real), *spec.shape), spec.dtype)
            missing = np.arange(len(real))
            if name in self._caches:
                kept, here = self._caches[name].lookup(real, clock)
                rows[here] = kept[here]
                missing = np.flatnonzero(~here)
            places[name] = [missing[part] for part in parted(real[missing], count)]
            for server, part in enumerate(places[name]):
                if len(part):
                    asked[server][name] = real[part]
            found[name] = real, rows, inverse, len(distinct)
        for server, answer in client.rows(asked).items():
            for name, came in answer.items():
                found[name][1][places[name][server]] = came
                if name in self._caches:
                    self._caches[name].put(asked[server][name], came, clock)
        return {
            name: Gathered(real, pad_rows(rows, size), inverse)
            for name, (real, rows, inverse, size) in found.items()
        }

    def parts(
        self, gathered: Mapping[str, Gathered], slopes: Mapping[str, Any], count: int
    ) -> list[dict[str, HostArray]]:
        """Returns what is pushed to each server.

        Args:
          gathered: of the batch.
          slopes: gradients of its rows.
          count: of servers.
        """
        sent: list[dict[str, HostArray]] = [{} for _ in range(count)]
        for name, (ids, _, _) in gathered.items():
            slope = np.asarray(slopes[name])[: len(ids)]
            wide = sum_dtype(self.specs[name].dtype)
            slope = slope.astype(wide, copy=False)
            for server, part in enumerate(parted(ids, count)):
                if len(part):
                    sent[server][f"rows/{name}/ids"] = ids[part]
                    sent[server][f"rows/{name}/gradients"] = slope[part]
        return sent
