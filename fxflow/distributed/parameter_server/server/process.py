"""A server: answers workers, one message after another, in one thread."""

from __future__ import annotations

import dataclasses
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fxflow.devices import clients
from fxflow.distributed.messages.codec import LIMITS, Limits, Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Hub, Listener
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import (
    EntryError,
    LostCutError,
    OtherModelError,
    OtherRunError,
)
from fxflow.distributed.parameter_server.ledger import Turn
from fxflow.distributed.parameter_server.monitor.meter import Meter
from fxflow.distributed.parameter_server.monitor.tracing import ServerTracing, TraceSpan
from fxflow.distributed.parameter_server.server.replicas import Replicas
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.server.snapshots import Cuts
from fxflow.distributed.parameter_server.server.store import Store
from fxflow.distributed.parameter_server.views import View, resumed
from fxflow.errors import DistributedError, FxflowError

#: Seconds between two checks of waiting readers and silent workers.
_TICK = 0.05
#: Seconds after which a silent worker no longer decides on views.
_NO_VOTER = 3.0
#: Seconds of silence after which a worker's connection is checked: two of its
#: heartbeats.
_MISSED = 1.0


class _Known(NamedTuple):
    """A worker's process, as the server knows it.

    Attributes:
      name: its name, for messages.
      peer: its address on the listener.
      heard: the time of its last message.
    """

    name: str
    peer: bytes
    heard: float


_UNKNOWN = _Known("", b"", 0.0)


class _Elsewhere(Exception):
    """A shard is not served here."""


@dataclasses.dataclass
class _Reader:
    """A pull that is not answered yet."""

    peer: bytes
    worker: int
    asked: messages.Gradient | messages.Pull
    clock: int
    begun: int = dataclasses.field(default_factory=time.monotonic_ns)

    def __post_init__(self) -> None:
        self.shard, self.seen = self.asked.shard, self.asked.have
        self.end = time.monotonic() + self.asked.deadline


class ShardServer:
    """One server of a view.

    Args:
      hub: of the thread that calls `serve`, which closes it.
      listener: of the hub, at which workers and other servers reach this one.
      number: of this server.
      view: the initial view.
      folder: for the log of acknowledged entries; None keeps no log.
      keys: of the run; None on the loopback.
      lost_after: seconds after which a silent worker counts as lost.
      silent_after: seconds after which a silent server counts as lost, if others can
        take its place.
      gone_after: seconds after which others get the shards of such a server.
      limits: of a message.

    Raises:
      DistributedError: the folder is another server's or another run's, or damaged.

    Attributes:
      gave_up: whether it ended before others had taken over its shards.
      incarnation: of this process; a restart at the same address has another one.
    """

    gave_up: bool
    incarnation: int
    listener: Listener
    meter: Meter
    number: int
    tracing: ServerTracing

    def __init__(
        self,
        hub: Hub,
        listener: Listener,
        number: int,
        view: View,
        *,
        folder: Path | None = None,
        keys: Keys | None = None,
        lost_after: float = 10.0,
        silent_after: float = 0.5,
        gone_after: float = 60.0,
        limits: Limits = LIMITS,
    ) -> None:
        self._hub, self.listener = hub, listener
        self.number, self._lost_after = number, lost_after
        self.incarnation = secrets.randbits(62)
        self._store = Store(number, folder, limits)
        self._readers: list[_Reader] = []
        self._workers: dict[int, _Known] = {}
        self._cuts = Cuts()
        #: Shard → the worker that sends the rows of its first snapshot.
        self._senders: dict[int, int] = {}
        self._looked = 0.0
        self.meter, self.tracing = Meter(), ServerTracing()
        self._span = self.tracing.recorder.span
        self._handlers: dict[type, Callable[[bytes, Message, Any], None]] = {
            messages.Hello: self._on_hello,
            messages.Heartbeat: self._on_heartbeat,
            messages.Offer: self._on_model,
            messages.PushRows: self._on_push_rows,
            messages.Join: self._on_join,
            messages.Pull: self._on_pull,
            messages.PullRows: self._on_pull_rows,
            messages.Gradient: self._on_push,
            messages.Cut: self._on_cut,
            messages.ReadRows: self._on_snapshot,
            messages.Enlist: self._on_enlist,
            messages.Leave: self._on_leave,
            messages.Stats: self._on_stats,
            messages.Trace: self._on_trace,
        }
        self._end = threading.Event()
        #: When this server ends even if others have not taken over its shards.
        self._leaves_at: float | None = None
        self.gave_up = False
        view, kept = self._resumed(view, folder)
        for shard in view.held_by(number):
            self._store.open(shard)
        for shard in view.served_by(number):
            self._expect(shard)
        self._replicas = Replicas(
            hub,
            listener,
            number,
            self.incarnation,
            view,
            self._store,
            keys=keys,
            silent_after=silent_after,
            gone_after=gone_after,
            kept=kept,
            changed=self._changed,
        )

    def _resumed(self, view: View, folder: Path | None) -> tuple[View, bool]:
        """Returns the initial view, and whether the server was in a view before.

        If a run continues, it is the view that the server was last in.

        Raises:
          DistributedError: the folder is of another run.
        """
        kept = self._store.kept()
        try:
            if kept is None:
                if view.run and not self._store.is_empty:
                    raise ValueError("it has shards of another run")
                return view, False
            if not view.run:
                return resumed(view, kept), True
            if view.run != kept.run:
                raise ValueError("it belongs to another run than the given servers")
            return max(view, kept, key=lambda view: view.epoch), True
        except ValueError as error:
            self._store.close()
            raise DistributedError(
                f"server {self.number} cannot start with the folder {folder}: {error}"
            ) from None

    @property
    def view(self) -> View:
        """The newest view that this server knows."""
        return self._replicas.view

    @property
    def shards(self) -> dict[int, Shard]:
        """The shards that this server holds, by number."""
        return self._store.shards

    # -- the loop ----------------------------------------------------------------------

    def serve(self) -> None:
        """Answers until `stop` is called (from any thread).

        Raises:
          DistributedError: an entry that was, or may be, acknowledged cannot be applied
            here. If others have copies, one of them takes over; otherwise all workers
            get an error.
        """
        try:
            while not self._end.is_set():
                self._hub.wait(_TICK)
                read = time.monotonic()
                came = self.listener.receive()
                for peer, message in (*self._replicas.take_early(), *came):
                    begun = time.monotonic_ns()
                    with self._span(message.kind, message.worker, message.sequence):
                        self.handle(peer, message)
                    self.meter.handled(message.kind, begun)
                if not came or time.monotonic() - self._looked > _TICK:
                    self._check_waiting(read)
        except EntryError as error:
            raise DistributedError(self._report_failure(error)) from error
        finally:
            self.close()

    def stop(self) -> None:
        """Makes `serve` return."""
        self._end.set()
        self._hub.wake()

    def leave(self, within: float) -> None:
        """Makes `serve` return when others, if any, have taken over the shards.

        Args:
          within: seconds after which it returns even if they have not.
        """
        self._leaves_at = time.monotonic() + within
        self._replicas.leave()
        self._hub.wake()

    def _may_end(self, now: float) -> bool:
        """Returns whether the server is leaving and waits for nothing any more."""
        if self._leaves_at is None:
            return False
        if self._replicas.has_left or not self._replicas.has_successors:
            return True
        self.gave_up = now > self._leaves_at
        return self.gave_up

    def close(self) -> None:
        """Closes what is open."""
        self._replicas.close()
        self._store.close()
        self._hub.close()

    def _report_failure(self, error: EntryError) -> str:
        """Sends workers the reason why no server will answer; returns the message."""
        text = self._named(str(error), error.worker)
        why = f"server {self.number} ends: it cannot apply {text}"
        if not self._replicas.alone:
            return f"{why}. Another server with a copy takes over"
        why += ". Its log (--folder), if it keeps one, has all acknowledged entries"
        for worker, known in self._workers.items():
            for shard in self.view.served_by(self.number):
                failure = messages.Failure(why, shard)
                message = Message.of(failure, worker, 0, self.view.epoch)
                self.listener.send(known.peer, message)
        self.listener.close(linger=1.0)
        return why

    def handle(self, peer: bytes, message: Message) -> None:
        """Answers one message, with an error if it is invalid.

        Raises:
          EntryError: its entry was begun and cannot be completed.
        """
        if self._replicas.is_early(peer, message):
            return
        kind = type(message.fields)
        try:
            if self._replicas.takes(kind):
                self._replicas.handle(message)
                return
            self._note_worker(peer, message)
            if kind not in self._handlers:
                raise DistributedError(f"a server takes no message {message.kind!r}")
            self._handlers[kind](peer, message, message.fields)
        except _Elsewhere:
            self._replicas.tell_view(peer, message)
        except (EntryError, OtherRunError):
            raise
        except OtherModelError as error:
            shard = self.shards[message.fields.shard]
            found = shard.model.described if shard.model else {}
            self._fail(peer, message, str(error), model=dict(found))
        except Exception as error:  # of any kind: it must not affect others
            why = str(error) if isinstance(error, FxflowError) else repr(error)
            self._fail(peer, message, why, again=isinstance(error, LostCutError))

    def _fail(self, peer: bytes, message: Message, why: str, **more: Any) -> None:
        """Sends the reason why a request failed."""
        failure = messages.Failure(
            self._named(why, message.worker),
            getattr(message.fields, "shard", -1),
            getattr(message.fields, "request", 0),
            **more,
        )
        self._reply(peer, message, failure)

    def _named(self, text: str, worker: int) -> str:
        """Returns a text with a worker's name in the place of its number."""
        name = self._workers.get(worker, _UNKNOWN).name
        return text.replace(f"worker {worker}", name) if name else text

    def _note_worker(self, peer: bytes, message: Message) -> None:
        if message.worker:
            name = self._workers.get(message.worker, _UNKNOWN).name
            name = getattr(message.fields, "name", "") or name
            self._workers[message.worker] = _Known(name, peer, time.monotonic())

    def _reply(
        self,
        peer: bytes,
        message: Message,
        fields: Any,
        arrays: dict[str, np.ndarray[Any, Any]] | None = None,
    ) -> None:
        """Answers a request under its numbers.

        An answer about a shard waits until no server's death can undo it.
        """
        numbers = message.worker, message.sequence, self.view.epoch
        reply = Message.of(fields, *numbers, arrays)
        shard = getattr(fields, "shard", -1)
        if shard >= 0 and not isinstance(fields, messages.Failure):
            self._replicas.tell(shard, peer, reply)
        else:
            self.listener.send(peer, reply)

    def _check_waiting(self, read: float) -> None:
        """Drops silent workers, and reads that took too long.

        Args:
          read: the time up to which all messages were read: later ones may be waiting
            while a long message is handled, so their senders are not silent.
        """
        now = self._looked = time.monotonic()
        if self._may_end(now):
            self._end.set()
            return
        self._replicas.maintain(
            {
                worker: known.peer
                for worker, known in self._workers.items()
                if read - known.heard < _NO_VOTER
            },
            read,
        )
        for worker, known in list(self._workers.items()):
            silent = read - known.heard
            if silent > self._lost_after:
                self._lose(worker, "silent")
            elif silent > _MISSED and known.peer and self._is_disconnected(known):
                self._lose(worker, "gone")
        for number in self._cuts.late(now):
            self._end_cut(number)
        for number, peer in self._cuts.makers():
            if not self.listener.send(peer, self._replicas.view_message()):
                self._end_cut(number)  # its maker has ended
        late = [reader for reader in self._readers if reader.end <= now]
        if late:
            self._readers = [reader for reader in self._readers if reader.end > now]
        for reader in late:
            shard = self.shards[reader.shard]
            names = [f"{name}, which has not joined yet" for name in shard.awaited]
            names += map(self._name, shard.late(reader.worker, reader.clock))
            why = f"waits for {', '.join(names) or 'a push of its own'}"
            failure = messages.Failure(
                why, reader.shard, reader.asked.request, late=names
            )
            self.listener.send(reader.peer, Message.of(failure, reader.worker))

    def _name(self, worker: int) -> str:
        name, _, heard = self._workers.get(worker, _UNKNOWN)
        ago = f", heard {time.monotonic() - heard:.1f} s ago" if heard else ""
        return f"{name or f'worker {worker}'}{ago}"

    def _changed(self, before: View) -> None:
        """Drops readers of shards that another server serves now."""
        self._readers = [r for r in self._readers if self._replicas.serves(r.shard)]
        for number in self.view.served_by(self.number):
            if before.primary(number) != self.number:
                self._expect(number)

    def _is_disconnected(self, known: _Known) -> bool:
        """Returns whether a worker's connection is closed, as when it was killed.

        A worker that only lost its connection joins again.
        """
        return not self.listener.send(known.peer, self._replicas.view_message())

    def _expect(self, number: int) -> None:
        """Registers the workers of a shard that this server begins to serve.

        Those that never send a message here are dropped as silent.
        """
        shard, now = self.shards[number], time.monotonic()
        for worker in shard.group:
            known = _Known(shard.names.get(worker, ""), b"", now)
            self._workers.setdefault(worker, known)

    def _lose(self, worker: int, why: str) -> None:
        """Drops a lost worker; tries again later if the log cannot be written."""
        known = self._workers[worker]
        try:
            self._drop_worker(worker, why)
        except EntryError:
            raise
        except DistributedError as error:
            print(f"fxflow parameter-server: {error}", file=sys.stderr, flush=True)
            self._workers[worker] = known._replace(heard=time.monotonic())

    def _drop_worker(self, worker: int, why: str) -> None:
        self._workers.pop(worker, None)
        self._readers = [r for r in self._readers if r.worker != worker]
        for number, shard in self.shards.items():
            if worker in shard.group and self._replicas.serves(number):
                entry = Message.of(messages.Leave(number, why), worker)
                self._commit(number, entry)

    # -- entries -----------------------------------------------------------------------

    def _served(self, number: int) -> Shard:
        """Returns a shard that a request is about.

        Raises:
          DistributedError: there is no such shard.
          _Elsewhere: another server serves it.
        """
        if not 0 <= number < len(self.view.holders):
            raise DistributedError(
                f"there is no shard {number}: the run has {len(self.view.holders)}"
            )
        if not self._replicas.serves(number):
            raise _Elsewhere
        return self.shards[number]

    def _commit(self, number: int, entry: Message) -> str:
        """Enters an entry that is due, and answers the readers that wait for it."""
        dropped = self._enter(number, entry)
        self._answer_readers(number)
        self._take_cut(number)
        return dropped

    def _enter(self, number: int, entry: Message) -> str:
        """Appends an entry to this server's and the copies' logs, and applies it."""
        with self._span("apply", entry.worker, entry.sequence, number):
            return self._replicas.enter(number, entry)

    def _answer_readers(self, number: int) -> None:
        shard = self.shards[number]
        ready = [
            r
            for r in self._readers
            if r.shard == number and shard.may_read(r.worker, r.clock)
        ]
        if not ready:
            return
        self._readers = [r for r in self._readers if r not in ready]
        for reader in ready:
            now, worker = time.monotonic_ns(), reader.worker
            span = TraceSpan(reader.begun, now, "wait", worker, shard=number)
            self.tracing.recorder.add(span)
            self._answer(reader)

    def _answer(self, reader: _Reader, sequence: int = 0, dropped: str = "") -> None:
        """Sends parameters; with a sequence number also that push's acknowledgement."""
        shard = self.shards[reader.shard]
        assert shard.model is not None
        version = shard.group.version
        if shard.model.consistency.compensation:
            entry = Message.of(messages.Read(reader.shard), reader.worker)
            self._enter(reader.shard, entry)
        arrays = {}
        if version != reader.seen:
            with self._span("parameters", reader.worker, sequence, reader.shard):
                arrays = {str(i): value for i, value in enumerate(shard.sent())}
            self.meter.moved("pull", shard.model.filters["pull"], arrays)
        same = version == reader.seen
        reply = Message.of(
            messages.Params(reader.shard, reader.asked.request, version, same, dropped),
            reader.worker,
            sequence,
            self.view.epoch,
            arrays,
        )
        self._replicas.tell(reader.shard, reader.peer, reply)

    # -- messages ----------------------------------------------------------------------

    def _on_hello(self, peer: bytes, message: Message, asked: messages.Hello) -> None:
        self._require_same_run(asked)
        shard = self._served(asked.shard)
        if asked.fingerprint is not None and shard.model is not None:
            name = asked.name or f"worker {message.worker}"
            shard.require_same(asked.fingerprint, name)
        shards = {}
        for number in self.view.served_by(self.number):
            shards[str(number)] = self.shards[number].fingerprint
        parts, waits = self._rows_progress(asked.shard, message.worker)
        welcome = messages.Welcome(
            asked.shard,
            asked.request,
            view=self.view.to_json(),
            server=self.number,
            incarnation=self.incarnation,
            platform=clients.default_backend(),
            shards=shards,
            pid=os.getpid(),
            parts=parts,
            waits=waits,
        )
        self._reply(peer, message, welcome)

    def _require_same_run(self, asked: messages.Hello) -> None:
        """Checks that the sender of a hello has the run's shards and servers.

        Raises:
          DistributedError: it has others.
        """
        count = len(self.view.holders)
        if asked.shards not in (None, count):
            raise DistributedError(
                f"the run has {count} shards, the cluster of "
                f"{asked.name or 'this worker'} {asked.shards}: give both the same "
                "list of servers and, if it differs, the same number of shards "
                "(FXFLOW_PS_SHARDS)"
            )
        if asked.server not in (None, self.number):
            raise DistributedError(
                f"it is server {self.number} of its run, and not {asked.server}: the "
                "addresses are in another order, one is duplicate, or they belong to "
                "two runs"
            )

    def _on_heartbeat(
        self, peer: bytes, message: Message, beat: messages.Heartbeat
    ) -> None:
        worker = message.worker
        pong = messages.Pong(
            self.incarnation,
            [n for n, shard in self.shards.items() if worker in shard.group],
            self._replicas.absent,
            self._replicas.lost,
            *self.tracing.heartbeat(worker, beat, message.arrays),
        )
        self._reply(peer, message, pong)
        self._replicas.tell_view(peer, message)

    def _on_model(self, peer: bytes, message: Message, offer: messages.Offer) -> None:
        if self._served(offer.shard).turn(message) is Turn.NEXT:
            self._commit(offer.shard, message)
        self._reply(peer, message, self._begun(message, offer))

    def _on_push_rows(
        self, peer: bytes, message: Message, rows: messages.PushRows
    ) -> None:
        shard = self._served(rows.shard)
        turn = Turn.EARLY if shard.model is None else shard.turn(message)
        if turn is Turn.EARLY:
            refusal = messages.Refuse(rows.shard, rows.request, "early")
            self._reply(peer, message, refusal)
            return
        if turn is Turn.NEXT:
            self._commit(rows.shard, message)
        self._reply(peer, message, self._begun(message, rows))

    def _begun(
        self, message: Message, asked: messages.Offer | messages.PushRows
    ) -> messages.ModelTaken:
        """Returns whether a shard's run has begun, and picks a sender of rows.

        Raises:
          DistributedError: the worker must send them, and cannot.
        """
        shard = self.shards[asked.shard]
        parts, waits = self._rows_progress(asked.shard, message.worker)
        if shard.lacking is not None and not waits:
            shard.require_snapshot(message)
            self._senders[asked.shard] = message.worker
        begun = shard.lacking is None
        return messages.ModelTaken(asked.shard, asked.request, parts, waits, begun)

    def _rows_progress(self, number: int, worker: int) -> tuple[int, bool]:
        """Returns how much a shard has of a snapshot, and whether another sends more.

        All workers have the same snapshot, but one sends it: the first, or another one
        after the first has ended.
        """
        lacking, sender = self.shards[number].lacking, self._senders.get(number)
        other = sender != worker and sender in self._workers
        parts = lacking.taken if lacking is not None else 0
        return parts, lacking is not None and other

    def _on_join(self, peer: bytes, message: Message, asked: messages.Join) -> None:
        shard = self._served(asked.shard)
        if shard.lacking is not None:
            refusal = messages.Refuse(asked.shard, asked.request, "early")
            self._reply(peer, message, refusal)
            return
        shard.require_same(asked.fingerprint, f"worker {message.worker}")
        # A second request, after a late answer, must not reset its clock.
        if message.worker not in shard.group:
            self._replace(message.worker)
            self._commit(asked.shard, message)
        joined = messages.Joined(
            asked.shard,
            asked.request,
            clock=shard.group[message.worker].clock,
            version=shard.group.version,
            last=shard.ledger.last(message.worker),
        )
        self._reply(peer, message, joined)

    def _replace(self, worker: int) -> None:
        """Drops the previous process of a worker, if it has ended."""
        name = self._workers.get(worker, _UNKNOWN).name
        for other, known in list(self._workers.items()):
            same = other != worker and name and known.name == name
            if same and self._is_disconnected(known):
                self._drop_worker(other, "replaced")

    def _on_pull(self, peer: bytes, message: Message, asked: messages.Pull) -> None:
        shard = self._served(asked.shard)
        reader = _Reader(peer, message.worker, asked, asked.clock)
        if shard.may_read(reader.worker, reader.clock):
            self._answer(reader)
        else:
            self._wait(reader)

    def _on_pull_rows(
        self, peer: bytes, message: Message, asked: messages.PullRows
    ) -> None:
        shard = self._served(asked.shard)
        rows = {
            name: shard.table(name).pull(ids) for name, ids in message.arrays.items()
        }
        self.meter.moved("pull", {}, rows, tables=True)
        self._reply(peer, message, messages.Rows(asked.shard, asked.request), rows)

    def _wait(self, reader: _Reader) -> None:
        # A repeated request replaces the one before it.
        mine = reader.worker, reader.shard
        others = [r for r in self._readers if (r.worker, r.shard) != mine]
        self._readers = [*others, reader]

    def _on_push(self, peer: bytes, message: Message, push: messages.Gradient) -> None:
        number, request = push.shard, push.request
        shard = self._served(number)
        if shard.model is None:
            self._reply(peer, message, messages.Refuse(number, request, "empty"))
            return
        if self._cuts.holds(number, peer, message):
            return
        turn = shard.turn(message)
        filters, tables = shard.model.filters["push"], bool(shard.tables)
        self.meter.moved("push", filters, message.arrays, tables)
        dropped = ""
        if turn is Turn.NEXT:
            if message.worker not in shard.group:
                self._reply(peer, message, messages.Refuse(number, request, "join"))
                return
            dropped = self._commit(number, message)
        elif turn is Turn.EARLY:
            last = shard.ledger.last(message.worker)
            refusal = messages.Refuse(number, request, "early", last)
            self._reply(peer, message, refusal)
            return
        ack = messages.Ack(number, request, shard.group.version, dropped)
        if not push.pull:
            self._reply(peer, message, ack)
            return
        reader = _Reader(peer, message.worker, push, push.clock + 1)
        if shard.may_read(reader.worker, reader.clock):
            # One message for both: each costs a worker as much as a small step does.
            self._answer(reader, message.sequence, dropped)
        else:
            self._reply(peer, message, ack)
            self._wait(reader)

    def _on_cut(self, peer: bytes, message: Message, asked: messages.Cut) -> None:
        number = asked.shard
        shard = self._served(number)
        if asked.upto is None:
            now = time.monotonic()
            self._cuts.begin(number, asked.cut, now, peer, asked.looks)
            last = [[worker, last] for worker, last in shard.ledger.items()]
            made = messages.CutMade(number, asked.request, last)
            self._reply(peer, message, made)
            return
        for item in self._cuts.ask(asked, peer, message):
            self.handle(*item)
        self._take_cut(number)

    def _take_cut(self, number: int) -> None:
        """Answers the maker of a snapshot, once the shard has reached the cut."""
        shard = self.shards[number]
        waits = self._cuts.taken(number, shard)
        if waits is None:
            return
        asked: messages.Cut = waits[1].fields
        made = messages.CutMade(number, asked.request, version=shard.group.version)
        if asked.looks:
            arrays = {str(i): value for i, value in enumerate(shard.sent())}
        else:
            keys, arrays = shard.values()
            tables = self._cuts.keep(number, asked.cut, shard, time.monotonic())
            made = made._replace(keys=keys, tables=tables)
        self._reply(*waits, made, arrays)
        self._end_cut(number)

    def _end_cut(self, number: int) -> None:
        for item in self._cuts.end(number):
            self.handle(*item)

    def _on_snapshot(
        self, peer: bytes, message: Message, asked: messages.ReadRows
    ) -> None:
        self._served(asked.shard)
        arrays = self._cuts.rows(asked, time.monotonic())
        read = messages.RowsRead(asked.shard, asked.request, end=not arrays)
        self._reply(peer, message, read, arrays)

    def _on_enlist(self, peer: bytes, message: Message, asked: messages.Enlist) -> None:
        """Answers a server that asks to join."""
        number, why = self._replicas.admit(asked.address)
        enlisted = messages.Enlisted(self.view.to_json(), number, why)
        self._reply(peer, message, enlisted)

    def _on_leave(self, peer: bytes, message: Message, leave: messages.Leave) -> None:
        self._drop_worker(message.worker, "done")
        self._reply(peer, message, messages.Ack())

    def _on_stats(self, peer: bytes, message: Message, asked: messages.Stats) -> None:
        self._reply(peer, message, messages.StatsAre(asked.request, self.stats()))

    def _on_trace(self, peer: bytes, message: Message, asked: messages.Trace) -> None:
        traces, arrays = self.tracing.asked(peer, asked)
        names = {str(worker): known.name for worker, known in self._workers.items()}
        traces = traces._replace(names=names, request=asked.request)
        self._reply(peer, message, traces, arrays)

    def stats(self) -> dict[str, Any]:
        """Returns the state and statistics of this server, as JSON."""
        now = time.monotonic()
        shards = {}
        for number, shard in self.shards.items():
            shards[str(number)] = {
                "bytes": shard.model.nbytes if shard.model else 0,
                "index": shard.position.entries,
                "version": shard.group.version,
                "serves": self._replicas.serves(number),
                "holders": list(self.view.holders[number]),
                "places": list(self.view.places[number]),
                **dataclasses.asdict(shard.counts),
                "clocks": {str(w): shard.group[w].clock for w in shard.group},
            }
        workers = {
            str(worker): {"name": known.name, "heard": now - known.heard}
            for worker, known in self._workers.items()
        }
        return {
            "server": self.number,
            "epoch": self.view.epoch,
            "view": self.view.to_json(),
            "shards": shards,
            "workers": workers,
            "waiting": len(self._readers),
            "traffic": self.listener.traffic.to_dict(),
            "incarnation": self.incarnation,
            **self.meter.to_dict(),
        }
