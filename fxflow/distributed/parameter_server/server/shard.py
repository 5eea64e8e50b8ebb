"""A shard as a replicated state machine: its state, and the entries that change it.

Only entries change a shard: a model, rows of a snapshot, a worker that joins or leaves,
a push, and (with delay compensation) a read. The same entries produce the same bits:
replicas apply the primary's entries, a restarted server those of its log. Pending
requests and the network are not part of a shard.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, Aval, dtypes
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import consistency as deciding
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.consistency import (
    Push,
    UpdateDecision,
    WorkerGroup,
)
from fxflow.distributed.parameter_server.errors import EntryError, OtherModelError
from fxflow.distributed.parameter_server.model import Model
from fxflow.distributed.parameter_server.server.ledger import (
    Counts,
    Ledger,
    Position,
    SnapshotProgress,
    Turn,
)
from fxflow.distributed.parameter_server.tables.cuts import RowBlock
from fxflow.distributed.parameter_server.tables.remote import make_table, rows_of
from fxflow.distributed.parameter_server.tables.store import RowTable
from fxflow.distributed.program_text import Runner
from fxflow.distributed.serialization import HostLeaf, from_host, to_host
from fxflow.errors import DistributedError, FxflowError

Arrays = Mapping[str, np.ndarray[Any, Any]]
#: Maximum number of weights that are kept on the device.
_MAX_WEIGHTS = 256


class _Prepared(NamedTuple):
    """A model that passed its trial step, and is ready to be applied.

    Attributes:
      model: the model.
      runners: its compiled programs.
      tables: its tables, empty.
    """

    model: Model
    runners: dict[str, Runner]
    tables: dict[str, RowTable]


class Shard:
    """Parameters, optimizer state, tables, and the progress of workers.

    Args:
      place: a name for the files of tables, unique on this machine.
    """

    group: WorkerGroup
    ledger: Ledger
    counts: Counts
    position: Position

    def __init__(self, place: str = "shard") -> None:
        self._place = place
        self.model: Model | None = None
        self.params: list[Array] = []
        self.optimizer: list[Array] = []
        self.group = WorkerGroup()
        self.ledger = Ledger()
        self.counts = Counts()
        self.position = Position(0, 0)
        self._last = Message.of(messages.Offer(-1, {}, []))
        self._runners: dict[str, Runner] = {}
        #: Parameters, and the values made from them that workers pull.
        self._encoded: tuple[list[Array], list[np.ndarray[Any, Any]]] | None = None
        self._weights: dict[float, Array] = {}
        #: Push that waits for its update → its arrays.
        self._waiting: dict[Push, Mapping[str, Any]] = {}
        self.tables: dict[str, RowTable] = {}
        self._prepared: _Prepared | None = None
        #: Progress of the initial snapshot's rows; None: the shard lacks none.
        self.lacking: SnapshotProgress | None = None
        #: Names of the workers in the group, for messages.
        self.names: dict[int, str] = {}
        #: Names of workers that the first round waits for.
        self.awaited: tuple[str, ...] = ()
        #: Version → the parameters, while a worker computes with them.
        self._seen: dict[int, list[Array]] = {}
        #: Worker → the version that it last read.
        self._reads: dict[int, int] = {}
        self._appliers: dict[type, Callable[[Message], str | None]] = {
            messages.Offer: self._apply_model,
            messages.PushRows: self._apply_push_rows,
            messages.Join: self._apply_join,
            messages.Leave: self._apply_leave,
            messages.Read: self._apply_read,
            messages.Gradient: self._apply_push,
        }

    # -- entries -----------------------------------------------------------------------

    def turn(self, entry: Message) -> Turn:
        """Checks an entry, and returns whether it is due.

        Args:
          entry: of kind `model`, `push_rows`, `join`, `leave`, `read` or `push`.

        Returns:
          `NEXT` if `apply` accepts the entry; another if it changes nothing.

        Raises:
          DistributedError: the entry is invalid: it has another model, a model that
            this server cannot run, other types, or precedes the model.
          Exception: rows of a table are invalid; see `RowTable.check`.
        """
        if entry.kind == "model":
            model = Model.from_message(entry.fields.model, entry.arrays)
            if self.model is not None:
                self.require_same(model.fingerprint, f"worker {entry.worker}")
                return Turn.SEEN
            _check_types(entry, "param/", model.names, model.params)
            if entry.fields.keys is not None:
                _check_snapshot(model, entry)
            self._prepare(model, entry)
            return Turn.NEXT
        model = self._require_model(entry)
        if entry.kind == "push_rows":
            return self._turn_of_rows(entry)
        if entry.kind != "push":
            return Turn.NEXT
        turn = self.ledger.turn(entry.worker, entry.sequence)
        _push_of(entry)
        if turn is Turn.NEXT and entry.arrays:
            parts = [str(i) for i in range(len(model.coded))]
            _check_types(entry, "", parts, model.coded)
            for name, table in self.tables.items():
                rows = rows_of(entry.arrays, name)
                if rows is not None:
                    table.check(*rows)
        self.counts.repeated += turn is Turn.SEEN
        return turn

    def _turn_of_rows(self, entry: Message) -> Turn:
        if self.lacking is None:
            return Turn.SEEN
        self.require_snapshot(entry)
        if entry.sequence != self.lacking.taken + 1:
            return Turn.SEEN if entry.sequence <= self.lacking.taken else Turn.EARLY
        name, block = _block_of(entry)
        self._table(name).check_block(block)
        return Turn.NEXT

    def apply(self, entry: Message) -> str:
        """Applies an entry that is due.

        Args:
          entry: an entry for which `turn` returned `NEXT`.

        Returns:
          Why a push was not used; empty if it was, or will be.

        Raises:
          EntryError: the entry cannot be applied; the shard is no longer usable.
        """
        try:
            dropped = self._appliers[type(entry.fields)](entry) or ""
        except Exception as error:
            raise EntryError(entry, self._describe(error)) from error
        self._last = entry
        self.position = Position(entry.epoch, self.position.entries + 1)
        return dropped

    def _describe(self, error: Exception) -> str:
        """Returns an error's text after the names of the shard's parameters."""
        names = list(map(repr, self.model.names)) if self.model else []
        names += [f"table {name!r}" for name in self.tables]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        return f"{', '.join(names[:4])}{more}: {_error_text(error)}"

    def _prepare(self, model: Model, entry: Message) -> None:
        """Makes a trial step with a model before any worker relies on it.

        Raises:
          DistributedError: this server cannot run the programs or create the tables.
        """
        if self._prepared is not None:
            _close(self._prepared.tables)
        self._prepared, runners = None, {}
        params = [_array(entry.arrays[f"param/{n}"]) for n in model.names]
        zeros = [np.zeros(a.shape, a.dtype) for a in model.coded]
        program, tables = "init", {}
        try:
            runners["init"] = Runner(model.programs["init"])
            state = runners["init"](params)
            if params:
                program = "apply"
                runners["apply"] = Runner(model.programs["apply"])
                seen = params if model.consistency.compensation else []
                outs = runners["apply"]([*params, *state, _scalar(0.0), *zeros, *seen])
                for out in outs:
                    out.block_until_ready()
            for program in model.tables:
                tables[program] = make_table(model.tables[program], self._place)
        except Exception as error:
            _close(tables)
            place = (
                f"table {program!r}"
                if program in model.tables
                else (f"the program {program!r} of {', '.join(map(repr, model.names))}")
            )
            raise DistributedError(
                f"the model of worker {entry.worker} cannot be trained here: {place}: "
                f"{_error_text(error)}"
            ) from error
        self._prepared = _Prepared(model, runners, tables)

    def _apply_model(self, entry: Message) -> None:
        ready, self._prepared = self._prepared, None
        if ready is None:
            self.model = Model.from_message(entry.fields.model, entry.arrays)
            self._open_tables()
        else:
            self.model, self._runners, self.tables = ready
        values = [entry.arrays[f"param/{n}"] for n in self.model.names]
        self.params = [_array(p) for p in values]
        self.optimizer = self._runner("init")(self.params)
        if self.model.consistency.in_rounds:
            self.awaited = tuple(entry.fields.workers)
        if entry.fields.keys is not None:
            self._begin_with(entry.fields, entry.arrays)

    def _begin_with(self, offer: messages.Offer, arrays: Arrays) -> None:
        """Restores the optimizer's state from a snapshot, whose rows follow."""
        self.optimizer = [
            _array(from_host(HostLeaf(arrays[f"optimizer/{i}"], key)))
            for i, key in enumerate(offer.keys or [])
        ]
        if offer.parts:
            self.lacking = SnapshotProgress(offer.snapshot or "", offer.parts, 0)

    def _apply_push_rows(self, entry: Message) -> None:
        assert self.lacking is not None
        name, block = _block_of(entry)
        self.tables[name].put(block)
        lacking = self.lacking._replace(taken=entry.sequence)
        self.lacking = lacking if lacking.taken < lacking.parts else None

    def require_snapshot(self, message: Message) -> None:
        """Checks that a worker has the snapshot whose rows the shard lacks, if any.

        Raises:
          DistributedError: the worker has another snapshot, or none.
        """
        if self.lacking is None:
            return
        snapshot, parts, taken = self.lacking
        fields = message.fields
        has_parts = getattr(fields, "parts", parts)
        if (fields.snapshot, has_parts) != (snapshot, parts):
            raise DistributedError(
                f"the run begins with a snapshot, of which {taken} of {parts} parts "
                "have arrived, and the worker that sent them has exited; worker "
                f"{message.worker} has another snapshot, or none: give all workers the "
                "same one, or restart the servers with empty folders"
            )

    def require_same(self, fingerprint: str, worker: str) -> None:
        """Checks that a worker trains this shard's model.

        Raises:
          OtherModelError: the worker trains another model.
        """
        if self.model is None or self.model.fingerprint != fingerprint:
            raise OtherModelError(
                f"{worker} has another model than the run: its parameters, "
                "optimizer, consistency or filters differ from those of the worker "
                "that joined first. Start all workers with the same program and options"
            )

    def _apply_join(self, entry: Message) -> None:
        model = self._require_model(entry)
        self.group, decision = deciding.join(
            model.consistency, self.group, entry.worker
        )
        name = self.names[entry.worker] = entry.fields.name
        self.awaited = tuple(other for other in self.awaited if other != name)
        self._follow(decision)

    def _apply_leave(self, entry: Message) -> None:
        model = self._require_model(entry)
        self.group, decision = deciding.leave(
            model.consistency, self.group, entry.worker
        )
        self.names.pop(entry.worker, None)
        self._forget_read(entry.worker)
        self._follow(decision)

    def _apply_read(self, entry: Message) -> None:
        self._forget_read(entry.worker)
        # Without compensation no gradient needs them: an update may overwrite them.
        if self._require_model(entry).consistency.compensation:
            self._reads[entry.worker] = self.group.version
            self._seen[self.group.version] = self.params

    def _apply_push(self, entry: Message) -> str:
        model = self._require_model(entry)
        self.ledger.note(entry.worker, entry.sequence)
        push = _push_of(entry)
        self.group, decision = deciding.arrive(model.consistency, self.group, push)
        self.counts.pushes += 1
        dropped = decision.drop
        if entry.arrays and not dropped:
            self._waiting[push] = entry.arrays
        elif model.coded or model.tables:
            dropped = dropped or entry.fields.why or "empty"
            kind = dropped.partition(":")[0]
            self.counts.dropped[kind] = self.counts.dropped.get(kind, 0) + 1
        self._follow(decision)
        return dropped

    def _require_model(self, entry: Message) -> Model:
        if self.model is None:
            raise DistributedError(
                f"a {entry.kind} of worker {entry.worker} arrived before any model"
            )
        return self.model

    # -- gradients ---------------------------------------------------------------------

    def _follow(self, decision: UpdateDecision) -> None:
        """Applies the pushes that a decision selects, as one update."""
        assert self.model is not None
        given = [
            (w, self._waiting.pop(w.push))
            for w in decision.apply
            if w.push in self._waiting
        ]
        for weighted in decision.apply:
            of_staleness = self.counts.staleness
            count = of_staleness.get(weighted.staleness, 0)
            of_staleness[weighted.staleness] = count + 1
        if not given:
            return
        self.counts.updates += 1
        # The order must be the same on all replicas.
        given.sort(key=lambda item: item[0].push)
        for weighted, arrays in given:
            for name, table in self.tables.items():
                rows = rows_of(arrays, name)
                if rows is not None:
                    table.push(*rows, scale=weighted.weight)
        if not self.params:
            return
        parts = range(len(self.model.coded))
        # The update may overwrite the parameters, of which these may be views.
        self._encoded = None
        if len(given) == 1:
            ((weighted, arrays),) = given
            compensated = self.model.consistency.compensation
            seen = self._seen_by(weighted.push) if compensated else []
            coded = [arrays[str(i)] for i in parts]
            weight = self._weight(weighted.weight)
            outs = self._runner("apply")(
                [*self.params, *self.optimizer, weight, *coded, *seen]
            )
        else:
            total: list[Any] = []
            for weighted, arrays in given:
                seen = self._seen_by(weighted.push)
                coded = [arrays[str(i)] for i in parts]
                weight = self._weight(weighted.weight)
                program = "add" if total else "begin"
                total = self._runner(program)(
                    [*total, weight, *coded, *self.params, *seen]
                )
            outs = self._runner("update")([*self.params, *self.optimizer, *total])
        count = len(self.params)
        self.params, self.optimizer = outs[:count], outs[count:]

    def _open_tables(self) -> None:
        assert self.model is not None
        self.tables = {
            name: make_table(table, self._place)
            for name, table in self.model.tables.items()
        }

    @property
    def fingerprint(self) -> str:
        """The model's fingerprint once the shard has all of it; before, empty."""
        return self.model.fingerprint if self.model and not self.lacking else ""

    def table(self, name: str) -> RowTable:
        """Returns a table.

        Raises:
          DistributedError: there is no such table, or the shard lacks rows of it.
        """
        if self.lacking is not None:
            raise DistributedError(
                f"table {name!r} is not complete yet: {self.lacking.taken} of "
                f"{self.lacking.parts} parts of the run's initial snapshot have arrived"
            )
        return self._table(name)

    def _table(self, name: str) -> RowTable:
        if name not in self.tables:
            raise DistributedError(
                f"there is no table {name!r}: the run has "
                f"{', '.join(map(repr, self.tables)) or 'none'}"
            )
        return self.tables[name]

    @property
    def nbytes(self) -> int:
        """Bytes of parameters and tables, without the parameters' optimizer state."""
        dense = self.model.nbytes if self.model else 0
        return dense + sum(table.nbytes for table in self.tables.values())

    def close(self) -> None:
        """Closes the tables."""
        _close(self.tables)
        if self._prepared is not None:
            _close(self._prepared.tables)

    def _seen_by(self, push: Push) -> list[Array]:
        """Returns the parameters that a gradient was computed from."""
        return self._seen.get(push.version, self.params)

    def _forget_read(self, worker: int) -> None:
        version = self._reads.pop(worker, None)
        if version is not None and version not in self._reads.values():
            self._seen.pop(version, None)

    def _runner(self, name: str) -> Runner:
        """Returns a program, which is compiled at its first use."""
        assert self.model is not None
        runner = self._runners.get(name)
        if runner is None:
            runner = self._runners[name] = Runner(self.model.programs[name])
        return runner

    def _weight(self, weight: float) -> Array:
        """Returns a weight on the device, from a cache: a transfer takes 20 µs."""
        found = self._weights.get(weight)
        if found is None:
            if len(self._weights) >= _MAX_WEIGHTS:
                self._weights.clear()
            found = self._weights[weight] = _scalar(weight)
        return found

    # -- reads and the whole state -----------------------------------------------------

    def may_read(self, worker: int, clock: int) -> bool:
        """Returns whether a pull of a worker at a clock may be answered now."""
        return (
            self.model is not None
            and not self.awaited
            and worker in self.group
            and deciding.may_read(self.model.consistency, self.group, worker, clock)
        )

    def late(self, worker: int, clock: int) -> tuple[int, ...]:
        """Returns the workers that a pull waits for."""
        if self.model is None or worker not in self.group:
            return ()
        return deciding.late(self.model.consistency, self.group, worker, clock)

    def encoded(self) -> list[np.ndarray[Any, Any]]:
        """Returns the parameters as workers pull them, encoded once for all workers.

        Raises:
          EntryError: the update that made the parameters failed.
        """
        if self._encoded is None or self._encoded[0] is not self.params:
            assert self.model is not None
            coded = "send" in self.model.programs
            try:
                values = self._runner("send")(self.params) if coded else self.params
                self._encoded = self.params, [np.asarray(value) for value in values]
            except Exception as error:  # of an update that was still running
                raise EntryError(self._last, self._describe(error)) from error
        return self._encoded[1]

    def values(self) -> tuple[list[str], dict[str, Any]]:
        """Returns the part of a snapshot other than rows of tables.

        Returns:
          The kinds of random keys in the optimizer's state, and arrays: the parameters
          by name, and the optimizer's state. The arrays are not copied.

        Raises:
          DistributedError: the run has not begun.
        """
        if not self.fingerprint:
            raise DistributedError("the run has not begun: it has no values to save")
        assert self.model is not None
        state = [_host(leaf) for leaf in self.optimizer]
        named = zip(self.model.names, self.params, strict=True)
        arrays = {f"param/{name}": np.asarray(value) for name, value in named}
        arrays |= {f"optimizer/{i}": leaf.data for i, leaf in enumerate(state)}
        return [leaf.key for leaf in state], arrays

    def state(self, *, with_rows: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the whole state as JSON and arrays; the arrays are not copied.

        Args:
          with_rows: whether to include rows of tables, which are copied.
        """
        model, arrays = ({}, {}) if self.model is None else self.model.to_message()
        values: dict[str, Any] = dict(arrays)
        kinds = {}

        def keep(name: str, leaves: Sequence[Any]) -> None:
            hosts = [_host(leaf) for leaf in leaves]
            kinds[name] = [leaf.key for leaf in hosts]
            for i, leaf in enumerate(hosts):
                values[f"{name}/{i}"] = leaf.data

        keep("params", self.params)
        keep("optimizer", self.optimizer)
        for version, params in self._seen.items():
            keep(f"seen/{version}", params)
        waiting = []
        for i, (push, brought) in enumerate(self._waiting.items()):
            waiting.append([list(push), list(brought)])
            keep(f"waiting/{i}", list(brought.values()))
        for name, table in self.tables.items():
            if table.admission is not None:
                keep(f"admission/{name}", table.admission.state())
        rows = {}
        for name, table in self.tables.items() if with_rows else ():
            blocks = list(table.state())
            rows[name] = len(blocks)
            for i, block in enumerate(blocks):
                keep(f"rows/{name}/{i}", [block.ids, block.rows, *block.state])
        fields = {
            "model": model,
            "group": self.group.to_json(),
            "ledger": self.ledger.items(),
            "position": list(self.position),
            "waiting": waiting,
            "rows": rows,
            "lacking": self.lacking,
            "awaited": list(self.awaited),
            "names": sorted(self.names.items()),
            "reads": sorted(self._reads.items()),
            "seen": sorted(self._seen),
            "kinds": kinds,
            "counts": dataclasses.asdict(self.counts),
        }
        return fields, values

    @staticmethod
    def of_state(
        fields: Mapping[str, Any], arrays: Arrays, place: str = "shard"
    ) -> Shard:
        """Returns a shard with the given state.

        Args:
          fields: the JSON that `state` returned.
          arrays: the arrays that `state` returned.
          place: see `Shard`.

        Raises:
          ValueError: the fields are not those of `state`.
        """
        shard = Shard(place)
        try:
            if fields["model"]:
                shard.model = Model.from_message(fields["model"], arrays)
                shard._open_tables()
            kinds = fields["kinds"]

            def restored(name: str) -> list[Any]:
                return [
                    from_host(HostLeaf(arrays[f"{name}/{i}"], key))
                    for i, key in enumerate(kinds[name])
                ]

            shard.params = [_array(x) for x in restored("params")]
            shard.optimizer = [_array(x) for x in restored("optimizer")]
            shard.group = WorkerGroup.from_json(fields["group"])
            shard.ledger = Ledger({int(w): int(n) for w, n in fields["ledger"]})
            epoch, index = fields["position"]
            shard.position = Position(int(epoch), int(index))
            for i, (push, names) in enumerate(fields["waiting"]):
                brought = dict(zip(names, restored(f"waiting/{i}"), strict=True))
                shard._waiting[Push(*push)] = brought
            for name, count in fields["rows"].items():
                blocks = (_rows_of(arrays, name, i) for i in range(count))
                shard.tables[name].load(blocks)
            for name, table in shard.tables.items():
                if table.admission is not None:
                    keys = (f"admission/{name}/{i}" for i in range(2))
                    table.admission.load([arrays[key] for key in keys])
            if fields["lacking"]:
                shard.lacking = SnapshotProgress(*fields["lacking"])
            shard.awaited = tuple(map(str, fields["awaited"]))
            shard.names = {int(w): str(n) for w, n in fields["names"]}
            shard._reads = {int(w): int(v) for w, v in fields["reads"]}
            for version in fields["seen"]:
                seen = [_array(x) for x in restored(f"seen/{version}")]
                shard._seen[int(version)] = seen
            counts = dict(fields["counts"])
            staleness = counts.pop("staleness")
            shard.counts = Counts(**counts)
            shard.counts.staleness = {int(k): n for k, n in staleness.items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not the state of a shard: {error!r}") from error
        return shard


def _push_of(entry: Message) -> Push:
    return Push(entry.worker, entry.fields.clock, entry.fields.seen)


def _error_text(error: Exception) -> str:
    """Returns an error's text, with its class unless it is one of fxflow's."""
    text = str(error) or type(error).__name__
    return text if isinstance(error, FxflowError) else f"{type(error).__name__}: {text}"


def _close(tables: Mapping[str, RowTable]) -> None:
    for table in tables.values():
        table.close()


def _rows_of(arrays: Arrays, name: str, i: int) -> RowBlock:
    """Returns block `i` of a table's rows in a state."""
    keys = (f"rows/{name}/{i}/{j}" for j in itertools.count())
    there = itertools.takewhile(arrays.__contains__, keys)
    ids, rows, *state = [arrays[key] for key in there]
    return RowBlock(ids, rows, tuple(state))


def _block_of(entry: Message) -> tuple[str, RowBlock]:
    """Returns the table and the rows of a part of a snapshot."""
    ids, rows, *state = entry.arrays.values()
    return entry.fields.table, RowBlock(ids, rows, tuple(state))


def _check_snapshot(model: Model, entry: Message) -> None:
    """Checks that a snapshot fits a model before any of it is used.

    Raises:
      DistributedError: it does not.
    """
    names = [str(i) for i in range(len(model.state))]
    _check_types(entry, "optimizer/", names, model.state)
    parts = entry.fields.parts
    if parts is None or parts < 0 or (parts and not model.tables):
        raise DistributedError(
            f"worker {entry.worker} sent a snapshot with {parts!r} parts of rows for "
            f"{len(model.tables)} tables"
        )


def _host(leaf: Any) -> HostLeaf:
    """Returns a leaf in host memory, without a copy: arrays never change."""
    if isinstance(leaf, Array) and dtypes.is_key(leaf.dtype):
        return to_host(leaf)
    return HostLeaf(np.asarray(leaf))


def _array(leaf: Any) -> Array:
    """Returns a message's array on the device, with the same dtype."""
    return fnp.asarray(leaf, leaf.dtype)


def _check_types(
    entry: Message, prefix: str, names: Sequence[str], avals: Sequence[Aval]
) -> None:
    for name, aval in zip(names, avals, strict=True):
        value = entry.arrays.get(f"{prefix}{name}")
        physical = aval.physical
        if (
            value is None
            or value.shape != physical.shape
            or value.dtype != physical.dtype
        ):
            given = "nothing" if value is None else Aval(value.shape, value.dtype)
            what = "the first value of" if entry.kind == "model" else "part"
            raise DistributedError(
                f"worker {entry.worker} sent {given} as {what} {name}, where the model "
                f"has {aval}: its parameters have another structure or dtype than "
                "those that the run began with"
            )


def _scalar(weight: float) -> Array:
    return fnp.array(weight, fnp.float32)
