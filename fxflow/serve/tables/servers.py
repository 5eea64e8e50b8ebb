"""Rows of the servers that train the model, cached, with bounded staleness.

A `ServerRows` only reads: no worker waits for it. Rows and parameters that requests use
are read again in the background before they are too old, so that a request waits for
the servers only if it is the first to name a row. If the servers do not answer, the
model goes on with what is in memory, whose age grows, or refuses requests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server.worker.reader import ParameterReader, Reading
from fxflow.errors import ArgumentError, DistributedError, ServeError
from fxflow.lax.pytree_transfer import device_put
from fxflow.serve.tables.artifacts import RecommenderFiles
from fxflow.serve.tables.rows import (
    HostArray,
    Ids,
    InitialRows,
    MappedRows,
    RowBatch,
    checked_ids,
)

Unavailable = Literal["cached", "error"]
#: Most ids of a table that are read again in the background.
_HOT = 1 << 20
#: Fractions of the staleness: between two readings in the background, and the age from
#: which they read a value again.
_EVERY, _OLD = 0.25, 0.4
#: Seconds between attempts to reach servers that do not answer.
_RETRY = 1.0


class ServerRows:
    """Rows and dense parameters of the servers of a run.

    Args:
      files: the model's folder. Its rows, if there are any, and its parameters stand in
        for those that were never read.
      cluster: the servers: ``host:port`` separated by commas, a sequence of them, or
        as for `parameter_server`.
      staleness: seconds for which what was read may be used.
      timeout: seconds after which the servers count as unavailable.
      unavailable: what to do then: ``cached`` answers with what there is, ``error``
        refuses requests (503).
      cached_rows: most rows of each table in memory.
      copies: whether to read from all servers that hold a shard.
      start: seconds to wait for the servers when the model is loaded. After that, a
        folder with rows is served with ``cached``.

    Raises:
      ServeError: the servers do not answer, or train another model.
      ArgumentError: an option is not one of these.
    """

    def __init__(
        self,
        files: RecommenderFiles,
        cluster: Any,
        *,
        staleness: float = 1.0,
        timeout: float = 0.25,
        unavailable: Unavailable = "cached",
        cached_rows: int = 1 << 20,
        copies: bool = False,
        start: float = 10.0,
    ) -> None:
        if unavailable not in get_args(Unavailable):
            raise ArgumentError(
                f"load_recommender: unavailable must be one of "
                f"{list(get_args(Unavailable))}, got {unavailable!r}"
            )
        if not staleness > 0 or not timeout > 0:
            raise ArgumentError(
                "load_recommender: needs staleness > 0 and timeout > 0, got "
                f"{staleness} and {timeout}"
            )
        self._files, self._cluster = files, _cluster_of(cluster)
        self._staleness, self._timeout = float(staleness), float(timeout)
        self._unavailable, self._cached_rows = unavailable, cached_rows
        self._copies = copies
        self._saved = (
            MappedRows(files) if all(t.rows for t in files.tables.values()) else None
        )
        self._initial = {
            name: InitialRows(table, files.init(name))
            for name, table in files.tables.items()
        }
        self._reader: ParameterReader | None = None
        self._why = ""
        #: The parameters that were read last, here and on the device.
        self._placed: tuple[Any, Any] = None, None
        self._placed_at = 0.0
        self._lock = threading.Lock()
        self._used: dict[str, list[Ids]] = {name: [] for name in files.tables}
        try:
            self._connect(start)
        except DistributedError as error:
            if self._saved is None or unavailable == "error":
                raise ServeError(
                    f"the servers of the tables of {files.path} do not answer: {error}"
                ) from None
            self._why = str(error)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def unavailable(self) -> str:
        """Why the servers are not available; empty if they are."""
        return self._why

    def read(self, ids: Mapping[str, HostArray]) -> RowBatch:
        """Returns the rows of a batch, and the parameters.

        Args:
          ids: integers of any shape, by table.

        Raises:
          ServeError: an id is out of range; or the servers do not answer, and the model
            shall not answer without them.
        """
        flat = {
            name: checked_ids(name, self._files.tables[name], given)
            for name, given in ids.items()
        }
        found: tuple[Mapping[str, HostArray], float] | None = None
        reader = self._reader
        if reader is not None and not self._why:
            try:
                read, rows_read = reader.read(flat, staleness=self._staleness)
                params = self._on_device(read)
                found = rows_read.values, max(rows_read.age, read.age)
            except DistributedError as error:
                self._why = str(error)
        if found is None:
            if self._unavailable == "error":
                raise ServeError(
                    f"the servers of the tables do not answer: {self._why}", 503, _RETRY
                )
            found = self._kept(flat)
            params = self._placed[1]
        with self._lock:
            for name, used in flat.items():
                self._used[name].append(used)
        rows = {
            name: np.asarray(found[0][name]).reshape(
                *given.shape, *self._files.tables[name].shape
            )
            for name, given in ids.items()
        }
        return RowBatch(rows, params, found[1])

    def close(self) -> None:
        """Disconnects from the servers."""
        self._closed.set()
        self._thread.join()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    # -- servers -----------------------------------------------------------------------

    def _connect(self, seconds: float) -> None:
        """Finds the servers, and checks that they train this model.

        Raises:
          DistributedError: they do not answer in time.
          ServeError: they train another model.
        """
        try:
            reader = ParameterReader(
                self._cluster,
                like=self._files.dense.params,
                staleness=self._staleness,
                deadline=self._timeout,
                start=seconds,
                cached_rows=self._cached_rows,
                copies=self._copies,
            )
        except ArgumentError as error:
            raise ServeError(f"{self._files.path}: {error}") from None
        try:
            for name, table in self._files.tables.items():
                spec = reader.tables.get(name)
                here = table.shape, dtypes.dtype(table.dtype), table.limit
                there = spec and (spec.shape, spec.dtype, spec.rows)
                if here != there:
                    raise ServeError(
                        f"{self._files.path} has table {name!r} with rows "
                        f"{here[1]}{list(here[0])} and ids below {here[2]}, the servers"
                        + (
                            f" have {there[1]}{list(there[0])} and ids below {there[2]}"
                            if there
                            else f" have the tables {sorted(reader.tables)}"
                        )
                        + ": the folder is of another version of the model"
                    )
            self._on_device(reader.params(staleness=0.0))
        except BaseException:
            reader.close()
            raise
        self._reader = reader

    def _on_device(self, reading: Reading) -> Any:
        """Returns the parameters on the device."""
        read, placed = self._placed
        if read is not reading.values:
            placed = device_put(reading.values)
            self._placed = reading.values, placed
        self._placed_at = time.monotonic() - reading.age
        return placed

    def _params_age(self) -> float:
        return time.monotonic() - self._placed_at

    def _kept(self, ids: Mapping[str, Ids]) -> tuple[dict[str, HostArray], float]:
        """Returns rows of any age from memory, those of the folder, or initial ones."""
        ages = [time.time() - self._files.created]
        if self._placed_at:
            ages = [self._params_age()]
        reader, found = self._reader, {}
        for name, wanted in ids.items():
            if reader is None:
                here = np.zeros(len(wanted), bool)
                values = self._initial[name](wanted[:0])
            else:
                values, here, age = reader.cached(name, wanted)
                ages.append(age)
            if not here.all():
                other = wanted[~here]
                if self._saved is None:
                    rows = self._initial[name](other)
                else:
                    rows = self._saved.read({name: other}).rows[name]
                    ages.append(time.time() - self._files.created)
                whole = np.zeros((len(wanted), *rows.shape[1:]), rows.dtype)
                whole[here] = values[here] if reader is not None else values
                whole[~here] = rows
                values = whole
            found[name] = values
        return found, max(ages)

    # -- the background ----------------------------------------------------------------

    def _run(self) -> None:
        wait = self._staleness * _EVERY
        while not self._closed.wait(wait):
            try:
                if self._reader is None:
                    self._connect(self._timeout)
                self._refresh()
                self._why, wait = "", self._staleness * _EVERY
            except (DistributedError, ServeError) as error:
                self._why, wait = str(error), _RETRY

    def _refresh(self) -> None:
        """Reads what requests have used, before it is too old."""
        reader = self._reader
        assert reader is not None
        with self._lock:
            used, self._used = self._used, {name: [] for name in self._used}
        wanted = {
            name: np.unique(np.concatenate(parts))[:_HOT]
            for name, parts in used.items()
            if parts
        }
        read, _ = reader.read(wanted, staleness=self._staleness * _OLD)
        self._on_device(read)


def _cluster_of(given: Any) -> Any:
    if isinstance(given, str) and ":" in given:
        given = [address.strip() for address in given.split(",")]
    if isinstance(given, Sequence) and not isinstance(given, str):
        return {"ps": list(given)}
    return given
