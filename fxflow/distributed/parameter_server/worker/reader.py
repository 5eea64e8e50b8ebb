"""Reads a run's parameters and rows without taking part in it: for serving."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.placement import place, tensors_of
from fxflow.distributed.parameter_server.running import (
    Cluster,
    client_of,
    cluster_of,
)
from fxflow.distributed.parameter_server.tables.cache import RowCache
from fxflow.distributed.parameter_server.tables.gradients import real_ids, unique_rows
from fxflow.distributed.parameter_server.tables.remote import by_shard
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.views import View
from fxflow.distributed.parameter_server.worker.pieces import Cutter
from fxflow.distributed.parameter_server.worker.tickets import Deadline, HostArray
from fxflow.distributed.program_text import adopted, type_of_text
from fxflow.errors import ArgumentError, DistributedError

OnLate = Literal["error", "stale"]
#: A bound that no clock exceeds: `RowCache` keeps rows, and the reader checks ages.
_FOREVER = 1 << 62
#: Seconds between requests to a run that has not begun.
_POLL = 0.2


class Reading(NamedTuple):
    """Values that a `ParameterReader` returns, and how old they may be.

    Attributes:
      values: the parameters, or the rows by table.
      age: seconds. The values include every update that the servers had acknowledged
        `age` seconds before the call returned, and perhaps later ones.
    """

    values: Any
    age: float


class _Part(NamedTuple):
    """The parameters of one shard.

    Attributes:
      version: their version; −1: none yet.
      values: the pieces.
      asked: when they were requested, by `time.monotonic_ns`; earlier by the time for
        which the copy that answered may lack updates.
      epoch: that of the copy's position.
    """

    version: int
    values: list[HostArray]
    asked: int
    epoch: int = 0


class ParameterReader:
    """Reads the parameters and rows of a run, and never becomes a worker.

    No worker waits for a reader, it has no vote, servers do not register it, and it may
    start and end at any time. It needs neither the loss function nor the optimizer: the
    servers describe their tables. Reading changes nothing: a row that was never trained
    has its initial value, and is not created.

    **Staleness** is in seconds, and is bounded: a call may return values from memory if
    they were requested at most `staleness` seconds ago; older ones are requested again
    first. The `age` of a `Reading` counts from that request, so it bounds how long ago
    an update may have been acknowledged and still be missing. It is at most
    `staleness`, or the duration of the call if that is longer. With `staleness=0` each
    call asks the servers. Shards answer independently: while workers push, one shard
    may have a push that another one lacks, as for asynchronous workers. (An evaluator's
    `params` are after the same pushes on all servers.)

    **Copies.** In a run with copies, `copies=True` spreads requests over all servers
    that hold a shard. A copy answers only if it has every update that had been
    acknowledged `staleness / 2` seconds before, as the heartbeats of the servers show,
    and if it is not behind an earlier answer; otherwise the server that serves the
    shard is asked. The age of a `Reading` includes the time for which the copy may be
    behind, usually 0.1 to 0.3 seconds, so less `staleness` than 0.6 gains nothing.

    If the servers do not answer within `deadline`, a call raises an error that names
    them or, with `on_late="stale"`, returns what it has, with its age. A reader follows
    servers that join, leave or take over. Several threads may use it.

    Args:
      cluster: the run's servers, as for `parameter_server`; None: the environment's.
      like: pytree of arrays or `ShapeDtypeStruct`s, structured like the parameters;
        None: only rows can be read.
      staleness: seconds for which values may be reused.
      deadline: seconds after which a wait fails.
      start: seconds to wait for the servers and for the run to begin; None: `deadline`.
      on_late: what to do then: "error", or "stale": return old values if there are any.
      cached_rows: maximum number of rows of each table in memory; the least recently
        used ones are evicted.
      copies: whether to read from all servers that hold a shard, in turn, and not only
        from the one that serves it.

    Raises:
      ArgumentError: there is no cluster, an option is not one of these, or the run has
        other parameters than `like`.
      DistributedError: a server does not answer in time, or the run has not begun.

    Example:
      >>> from fxflow import optim
      >>> from fxflow.distributed.parameter_server import (
      ...     LocalServers, asynchronous, parameter_server
      ... )
      >>> servers = LocalServers(2)
      >>> options = {"consistency": asynchronous(), "cluster": servers.cluster}
      >>> def loss(w, x):
      ...     return (w * x).sum()
      >>> server = parameter_server(loss, optim.sgd(1.0), **options)
      >>> params = np.zeros(3, np.float32)
      >>> state = server.init(params)
      >>> state, _ = server.step(state, np.ones(3, np.float32))
      >>> with ParameterReader(servers.cluster, like=params) as reader:
      ...     reading = reader.params()
      >>> reading.values.tolist(), reading.age < 60
      ([-1.0, -1.0, -1.0], True)
      >>> server.close()
      >>> servers.close()
    """

    #: Specifications of the run's tables by name, without optimizer and initializer.
    tables: dict[str, TableSpec]

    def __init__(
        self,
        cluster: Cluster | Mapping[str, Any] | str | None = None,
        *,
        like: Any = None,
        staleness: float = 1.0,
        deadline: float = 10.0,
        start: float | None = None,
        on_late: OnLate = "error",
        cached_rows: int = 1 << 20,
        copies: bool = False,
    ) -> None:
        found = cluster_of(cluster)
        if found is None:
            raise ArgumentError(
                "ParameterReader: give the run's servers: cluster={'ps': [...]}, or "
                "set FXFLOW_PS_SERVERS"
            )
        if on_late not in get_args(OnLate):
            raise ArgumentError(
                f"ParameterReader: on_late must be one of {list(get_args(OnLate))}, "
                f"got {on_late!r}"
            )
        if not staleness >= 0 or not deadline > 0 or cached_rows < 1:
            raise ArgumentError(
                "ParameterReader: needs staleness ≥ 0, deadline > 0 and "
                f"cached_rows ≥ 1, got {staleness}, {deadline} and {cached_rows}"
            )
        self._staleness, self._on_late, self._copies = staleness, on_late, copies
        #: Shard → the most advanced position of an answer.
        self._at: dict[int, list[int]] = {}
        self._lock = threading.Lock()
        self._client = client_of(
            dataclasses.replace(found, job="reader"), start or deadline
        )
        try:
            described = self._described()
            self._client.seconds = deadline
            self.tables = {
                name: TableSpec.from_description(description)
                for name, description in described[0]["tables"].items()
            }
            self._caches = {
                name: RowCache(s.shape, s.dtype, bound=_FOREVER, rows=cached_rows)
                for name, s in self.tables.items()
            }
            self._like = like
            self._cutter: Cutter | None = None
            if like is not None:
                self._cutter = Cutter(place(tensors_of(like), len(described)))
                self._check(self._cutter, like, described)
            self._parts = {shard: _Part(-1, [], 0) for shard in described}
            self._values: tuple[list[tuple[int, int]], Any] = [], None
        except BaseException:
            self._client.close()
            raise

    def params(self, *, staleness: float | None = None) -> Reading:
        """Returns the parameters, structured like the argument `like`.

        Shards whose version has not changed send no arrays again.

        Args:
          staleness: in place of the reader's.

        Raises:
          ArgumentError: the reader was made without `like`.
          DistributedError: a server does not answer in time; with `on_late="stale"`
            only if there are no values yet.
        """
        return self._read({}, staleness, with_params=True)[0]

    def rows(
        self, ids: Mapping[str, Any], *, staleness: float | None = None
    ) -> Reading:
        """Returns rows of tables.

        Args:
          ids: integers of any shape, by table; other tables are not read.
          staleness: in place of the reader's.

        Returns:
          A `Reading`, whose values are arrays with the shape of the ids followed by
          that of a row, by table.

        Raises:
          ArgumentError: there is no such table, or ids are not integers.
          OutOfRangeError: an id is negative, or not below the table's `rows`.
          DistributedError: a server does not answer in time; with `on_late="stale"`
            only if there are no old values of some row.
        """
        return self._read(ids, staleness, with_params=False)[1]

    def read(
        self, ids: Mapping[str, Any], *, staleness: float | None = None
    ) -> tuple[Reading, Reading]:
        """Returns the parameters and rows of tables, as `params` and `rows` do.

        What is too old is requested together: each server is waited for once.

        Args:
          ids: integers of any shape, by table.
          staleness: in place of the reader's.

        Returns:
          The parameters, and the rows.

        Raises:
          ArgumentError: the reader was made without `like`, there is no such table, or
            ids are not integers.
          OutOfRangeError: an id is negative, or not below the table's `rows`.
          DistributedError: as for `params` and `rows`.
        """
        return self._read(ids, staleness, with_params=True)

    def cached(self, name: str, ids: Any) -> tuple[HostArray, HostArray, float]:
        """Returns rows that are in memory, of any age, without a request.

        Args:
          name: name of the table.
          ids: int64[n].

        Returns:
          Rows `[n, *row]`, zeros for others; bool[n], whether each is in memory; and
          the age of the oldest one in seconds, 0 if there is none.

        Raises:
          ArgumentError: there is no such table, or ids are not integers.
          OutOfRangeError: an id is negative, or not below the table's `rows`.
        """
        rows = self._cached(name, ids)
        here = rows.clocks >= 0
        age = _age(int(rows.clocks[here].min())) if here.any() else 0.0
        return rows.values[rows.inverse], here[rows.inverse], age

    def close(self) -> None:
        """Closes the connections; may be called again."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- requests ----------------------------------------------------------------------

    def _described(self) -> dict[int, dict[str, Any]]:
        """Returns the description of each shard, once the run has begun.

        Raises:
          DistributedError: a server does not answer in time, or the run has not begun.
        """
        client = self._client
        deadline = Deadline(client.seconds, "the model", "any worker")
        while True:
            answer = client.ask({0: messages.Describe(0)})[0]
            client.learn(View.from_json(answer.fields.view))
            shards = range(len(answer.fields.view["holders"]))
            if answer.fields.begun:
                answers = client.ask({s: messages.Describe(s) for s in shards})
                if all(found.fields.begun for found in answers.values()):
                    return {s: _description(found) for s, found in answers.items()}
            deadline.check()
            time.sleep(_POLL)

    def _read(
        self, ids: Mapping[str, Any], staleness: float | None, *, with_params: bool
    ) -> tuple[Reading, Reading]:
        """Returns the parameters, if they are wanted, and rows.

        Raises:
          ArgumentError: as for `read`.
          OutOfRangeError: an id is out of range.
          DistributedError: a server does not answer in time.
        """
        if with_params and self._cutter is None:
            raise ArgumentError("ParameterReader: give like= to read parameters")
        now = time.monotonic_ns()
        bound = self._staleness if staleness is None else staleness
        oldest = now - _nanoseconds(bound)
        # The other half of the bound is left for the reuse of the answer.
        within = min(bound, 1e9) / 2 if self._copies else 0.0
        requests: list[tuple[int, Any, Mapping[str, HostArray]]] = []
        has_old = True
        with self._lock:
            due = {s: p for s, p in self._parts.items() if p.asked < oldest}
            at = dict(self._at)
        if with_params:
            has_old = all(p.values or p.version >= 0 for p in due.values())
            for shard, part in due.items():
                read = messages.ReadParams(
                    *(shard, part.version),
                    epoch=part.epoch,
                    within=within,
                    at=at.get(shard),
                )
                requests.append((shard, read, {}))
        found, asked = self._wanted(ids, oldest)
        has_old = has_old and all(rows.has_old for rows in found.values())
        for shard, arrays in asked.items():
            pull = messages.PullRows(
                shard, create=False, within=within, at=at.get(shard)
            )
            requests.append((shard, pull, arrays))
        #: Table and clock → positions of rows that were received.
        new: dict[tuple[str, int], list[HostArray]] = {}
        for shard, answer in self._ask(requests, has_old=has_old, copies=within > 0):
            clock = now - answer.fields.behind
            with self._lock:
                self._at[shard] = max(answer.fields.at, self._at.get(shard, [0, 0]))
            if isinstance(answer.fields, messages.Params):
                self._note_part(shard, answer, clock)
                continue
            for name, received in answer.arrays.items():
                rows = found[name]
                places = rows.places[shard]
                rows.values[places], rows.clocks[places] = received, clock
                new.setdefault((name, clock), []).append(places)
        self._keep(new, found)
        params = self._params() if with_params else Reading(None, 0.0)
        clocks = [int(r.clocks.min()) for r in found.values() if len(r.clocks)]
        values = {name: r.values[r.inverse] for name, r in found.items()}
        age = _age(min(clocks, default=time.monotonic_ns()))
        return params, Reading(values, age)

    def _ask(
        self,
        requests: list[tuple[int, Any, Mapping[str, HostArray]]],
        *,
        has_old: bool,
        copies: bool,
    ) -> list[tuple[int, Message]]:
        """Returns the shards and answers of requests.

        There are none if they are late and old values suffice.

        Raises:
          DistributedError: a server does not answer in time.
        """
        if not requests:
            return []
        try:
            answers = self._client.ask_together(requests, copies=copies)
        except DistributedError:
            if self._on_late == "error" or not has_old:
                raise
            return []
        return [(r[0], answer) for r, answer in zip(requests, answers, strict=True)]

    def _params(self) -> Reading:
        """Returns the parameters in memory."""
        with self._lock:
            parts = [part for _, part in sorted(self._parts.items())]
            versions = [(part.version, part.epoch) for part in parts]
            if self._values[0] != versions:
                self._values = versions, self._joined(parts)
            values = self._values[1]
        return Reading(values, _age(min(part.asked for part in parts)))

    def _wanted(
        self, ids: Mapping[str, Any], oldest: int
    ) -> tuple[dict[str, _Rows], dict[int, dict[str, HostArray]]]:
        """Returns the rows in memory by table, and the ids to request by shard.

        Raises:
          ArgumentError: there is no such table, or ids are not integers.
          OutOfRangeError: an id is out of range.
        """
        count = len(self._parts)
        found: dict[str, _Rows] = {}
        asked: dict[int, dict[str, HostArray]] = {}
        for name, given in ids.items():
            if name not in self.tables:
                raise ArgumentError(
                    f"ParameterReader: there is no table {name!r}: the run has "
                    f"{sorted(self.tables)}"
                )
            rows = found[name] = self._cached(name, given)
            due = np.flatnonzero(rows.clocks < oldest)
            if not len(due):
                continue
            wanted = rows.ids[due]
            for shard, part in enumerate(by_shard(wanted, count)):
                if len(part):
                    rows.places[shard] = due[part]
                    asked.setdefault(shard, {})[name] = wanted[part]
        return found, asked

    def _keep(
        self,
        new: Mapping[tuple[str, int], list[HostArray]],
        found: Mapping[str, _Rows],
    ) -> None:
        """Keeps rows that were received, those of all shards together."""
        for (name, clock), parts in new.items():
            rows = found[name]
            places = parts[0] if len(parts) == 1 else np.concatenate(parts)
            with self._lock:
                self._caches[name].put(rows.ids[places], rows.values[places], clock)

    def _cached(self, name: str, given: Any) -> _Rows:
        """Returns the rows of a table in memory, with the times of their requests."""
        spec = self.tables[name]
        distinct, inverse = unique_rows(given, caller=f"ParameterReader: {spec}")
        real = real_ids(distinct)
        if len(real):
            spec.check_ids(real[0], real[-1], "ParameterReader")
        with self._lock:
            values, clocks = self._caches[name].lookup_all(real)
        return _Rows(real, values, clocks, np.asarray(inverse), {})

    def _note_part(self, shard: int, answer: Message, asked: int) -> None:
        """Keeps a shard's answer, unless a later request was answered before."""
        fields: messages.Params = answer.fields
        with self._lock:
            known = self._parts[shard]
            if asked < known.asked:
                return
            values = known.values
            if not fields.same:
                values = [answer.arrays[str(i)] for i in range(len(answer.arrays))]
            elif fields.version != known.version:
                return  # Another thread has replaced the version of the request.
            epoch, _ = fields.at or (0, 0)
            self._parts[shard] = _Part(fields.version, values, asked, epoch)

    def _joined(self, parts: list[_Part]) -> Any:
        """Returns the pytree of parameters from the shards' pieces."""
        assert self._cutter is not None
        leaves = tree.leaves(self._like)
        types = {
            tensor.name: leaf
            for tensor, leaf in zip(self._cutter.plan.tensors, leaves, strict=True)
        }
        joined = self._cutter.join([part.values for part in parts])
        values = [adopted(joined[n]).astype(like.dtype) for n, like in types.items()]
        return tree.structure(self._like).unflatten(values)

    @staticmethod
    def _check(
        cutter: Cutter, like: Any, described: Mapping[int, Mapping[str, Any]]
    ) -> None:
        """Checks that the run has the given parameters.

        Raises:
          ArgumentError: it has others.
        """
        types = {t.name: Aval(t.shape, np.dtype(t.dtype)) for t in cutter.plan.tensors}
        for shard, found in described.items():
            expected = {}
            pieces = zip(cutter.names[shard], cutter.pieces[shard], strict=True)
            for name, piece in pieces:
                whole = types[piece.name]
                shape = whole.shape
                if name != piece.name:
                    shape = (piece.stop - piece.start, *shape[1:])
                expected[name] = Aval(shape, whole.dtype)
            given = dict(
                zip(found["names"], map(type_of_text, found["params"]), strict=True)
            )
            for name in sorted({*expected, *given}):
                if expected.get(name) != given.get(name):
                    raise ArgumentError(
                        f"ParameterReader: like has {expected.get(name, 'no')} "
                        f"{name!r} in shard {shard}, the run has "
                        f"{given.get(name, 'none')}: give the structure, shapes and "
                        "dtypes of the run's parameters"
                    )


class _Rows(NamedTuple):
    """The rows of one table that a call reads.

    Attributes:
      ids: int64[n], distinct.
      values: `[n, *row]`.
      clocks: when each was requested, in nanoseconds; −1: never.
      inverse: in the shape of the given ids: the index of each id's row.
      places: positions in `ids` of the rows to request, by shard.
    """

    ids: HostArray
    values: HostArray
    clocks: HostArray
    inverse: HostArray
    places: dict[int, HostArray]

    @property
    def has_old(self) -> bool:
        """Whether rows of any age are in memory for all that are to be requested."""
        return all((self.clocks[part] >= 0).all() for part in self.places.values())


def _description(answer: Message) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(bytes(answer.arrays["text"]))
    return described


def _nanoseconds(seconds: float) -> int:
    return int(min(seconds, 1e9) * 1e9)


def _age(asked: int) -> float:
    return (time.monotonic_ns() - asked) * 1e-9
