"""A server process: one thread that handles the messages of workers and servers."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fxflow.devices import clients
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Hub, Listener
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import (
    EntryError,
    LostCutError,
    NotServedError,
    OtherModelError,
    OtherRunError,
    RejectedPushError,
)
from fxflow.distributed.parameter_server.monitor.tracing import (
    Meter,
    ServerTracing,
    TraceSpan,
)
from fxflow.distributed.parameter_server.server.ledger import Turn
from fxflow.distributed.parameter_server.server.peers import (
    UNKNOWN,
    PendingPull,
    WorkerProcess,
)
from fxflow.distributed.parameter_server.server.reads import Reads, statistics
from fxflow.distributed.parameter_server.server.replicas import Replicas
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.server.snapshots import Cuts
from fxflow.distributed.parameter_server.server.store import Store
from fxflow.distributed.parameter_server.views import View
from fxflow.errors import DistributedError, FxflowError

#: Seconds between two checks for late pulls and silent workers.
_TICK = 0.05
#: Seconds after which a silent worker no longer votes on views.
_VOTE_TIMEOUT = 3.0
#: Seconds for the answer to a request to restart to be sent.
_ANSWER = 0.1
#: Seconds of silence, two heartbeats, after which a worker's connection is checked.
_CHECK_AFTER = 1.0


class ShardServer:
    """One server of a run.

    Args:
      hub: the hub of the thread that calls `serve`; `serve` closes it.
      listener: the hub's listener, where workers and other servers reach this one.
      number: the server's number.
      view: the initial view.
      folder: the folder of the log of acknowledged entries; None keeps no log.
      keys: the run's keys; None on the loopback interface.
      lost_after: seconds after which a silent worker counts as lost.
      silent_after: seconds after which a silent server counts as lost, if others can
        take its place.
      gone_after: seconds after which others get the shards of a silent server.

    Raises:
      DistributedError: the folder is damaged, or belongs to another server or run.

    Attributes:
      gave_up: whether the server ended before others had taken over its shards.
      restarts: whether it ended to be started again, as a client had requested.
      incarnation: a random number of this process; a restarted server has another.
    """

    listener: Listener
    number: int
    incarnation: int
    meter: Meter
    tracing: ServerTracing
    gave_up: bool
    restarts: bool

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
    ) -> None:
        self._hub, self.listener = hub, listener
        self.number, self._lost_after = number, lost_after
        self.incarnation = secrets.randbits(62)
        self._store = Store(number, folder)
        self._pending: list[PendingPull] = []
        self._workers: dict[int, WorkerProcess] = {}
        self._cuts = Cuts()
        #: Shard → the worker that sends the rows of its initial snapshot.
        self._senders: dict[int, int] = {}
        self._checked = 0.0
        self.meter, self.tracing = Meter(), ServerTracing()
        self._span = self.tracing.recorder.span
        self._handlers: dict[type, Callable[[bytes, Message, Any], None]] = {
            messages.Hello: self._on_hello,
            messages.Heartbeat: self._on_heartbeat,
            messages.Offer: self._on_model,
            messages.PushRows: self._on_push_rows,
            messages.Join: self._on_join,
            messages.Pull: self._on_pull,
            messages.Gradient: self._on_push,
            messages.Cut: self._on_cut,
            messages.ReadRows: self._on_read_rows,
            messages.SaveRows: self._on_save_rows,
            messages.Enlist: self._on_enlist,
            messages.Leave: self._on_leave,
            messages.Stats: self._on_stats,
            messages.Trace: self._on_trace,
            messages.Restart: self._on_restart,
            messages.Plan: self._on_plan,
        }
        self._end = threading.Event()
        #: When a leaving server ends even if others have not taken over its shards.
        self._leaves_at: float | None = None
        self.gave_up = self.restarts = False
        self._keeps = folder is not None
        view, kept = self._store.initial_view(view)
        for shard in view.held_by(number):
            self._store.open(shard)
        for shard in view.served_by(number):
            self._register_workers(shard)
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
            changed=self._on_new_view,
        )
        self._served = self._replicas.served
        self._handlers |= Reads(self._replicas, self.meter, self._reply).handlers

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
        """Handles messages until `stop` is called (from any thread).

        Raises:
          DistributedError: an entry that was, or may be, acknowledged cannot be applied
            here. If other servers have copies, one takes over; otherwise all workers
            get an error.
        """
        try:
            while not self._end.is_set():
                self._hub.wait(_TICK)
                read = time.monotonic()
                received = self.listener.receive()
                for peer, message in (*self._replicas.take_early(), *received):
                    begun = time.monotonic_ns()
                    with self._span(message.kind, message.worker, message.sequence):
                        self.handle(peer, message)
                    shard = getattr(message.fields, "shard", -1)
                    held = shard if shard in self.shards else None
                    self.meter.handled(message.kind, begun, held)
                if not received or time.monotonic() - self._checked > _TICK:
                    self._check_timeouts(read)
        except EntryError as error:
            raise DistributedError(self._report_failure(error)) from error
        finally:
            self.close()

    def stop(self) -> None:
        """Makes `serve` return."""
        self._end.set()
        self._hub.wake()

    def leave(self, within: float) -> None:
        """Makes `serve` return once other servers, if any, have taken over its shards.

        Args:
          within: seconds after which `serve` returns in any case.
        """
        self._leaves_at = time.monotonic() + within
        self._replicas.leave()
        self._hub.wake()

    def _may_end(self, now: float) -> bool:
        """Returns whether the server is leaving and has nothing left to wait for."""
        if self._leaves_at is None:
            return False
        if self.restarts:
            return now > self._leaves_at
        if self._replicas.has_left or not self._replicas.has_successors:
            return True
        self.gave_up = now > self._leaves_at
        return self.gave_up

    def close(self) -> None:
        """Closes the connections and the files."""
        self._replicas.close()
        self._cuts.close()
        self._store.close()
        self._hub.close()

    def _report_failure(self, error: EntryError) -> str:
        """Returns why the server ends; reports it to workers if no copy takes over."""
        text = self._with_name(str(error), error.worker)
        why = f"server {self.number} ends: it cannot apply {text}"
        if self.view.copies > 1:
            return f"{why}. Another server with a copy takes over"
        why += ". Its log (--folder), if it has one, has all acknowledged entries"
        for worker, known in self._workers.items():
            for shard in self.view.served_by(self.number):
                failure = messages.Failure(why, shard)
                message = Message.of(failure, worker, 0, self.view.epoch)
                self.listener.send(known.peer, message)
        self.listener.close(linger=1.0)
        return why

    def handle(self, peer: bytes, message: Message) -> None:
        """Handles one message, and answers with an error if it is invalid.

        Raises:
          EntryError: an entry was appended and cannot be applied.
        """
        if self._replicas.defer_if_early(peer, message):
            return
        kind = type(message.fields)
        try:
            if self._replicas.handles(kind):
                self._replicas.handle(message)
                return
            self._note_worker(peer, message)
            if kind not in self._handlers:
                raise DistributedError(
                    f"servers do not accept the message {message.kind!r}"
                )
            self._handlers[kind](peer, message, message.fields)
        except NotServedError:
            self._replicas.send_view(peer, message)
        except (EntryError, OtherRunError):
            raise
        except OtherModelError as error:
            shard = self.shards[message.fields.shard]
            found = shard.model.described if shard.model else {}
            self._fail(peer, message, str(error), model=dict(found))
        except Exception as error:  # any error of one request must not affect others
            why = str(error) if isinstance(error, FxflowError) else repr(error)
            again = isinstance(error, LostCutError)
            rejected = isinstance(error, RejectedPushError)
            self._fail(peer, message, why, again=again, rejected=rejected)

    def _fail(self, peer: bytes, message: Message, why: str, **more: Any) -> None:
        """Answers a request with an error."""
        failure = messages.Failure(
            self._with_name(why, message.worker),
            getattr(message.fields, "shard", -1),
            getattr(message.fields, "request", 0),
            **more,
        )
        self._reply(peer, message, failure)

    def _with_name(self, text: str, worker: int) -> str:
        """Returns a text with the worker's name in place of its number."""
        name = self._workers.get(worker, UNKNOWN).name
        return text.replace(f"worker {worker}", name) if name else text

    def _note_worker(self, peer: bytes, message: Message) -> None:
        if message.worker:
            name = self._workers.get(message.worker, UNKNOWN).name
            name = getattr(message.fields, "name", "") or name
            self._workers[message.worker] = WorkerProcess(name, peer, time.monotonic())

    def _reply(
        self,
        peer: bytes,
        message: Message,
        fields: Any,
        arrays: dict[str, np.ndarray[Any, Any]] | None = None,
    ) -> None:
        """Answers a request under its worker's and sequence numbers.

        An answer about a shard waits until the shard's entries are committed.
        """
        numbers = message.worker, message.sequence, self.view.epoch
        reply = Message.of(fields, *numbers, arrays)
        shard = getattr(fields, "shard", -1)
        if shard >= 0 and not isinstance(fields, messages.Failure):
            self._replicas.send_committed(shard, peer, reply)
        else:
            self.listener.send(peer, reply)

    def _check_timeouts(self, read: float) -> None:
        """Drops silent workers, and answers late pulls with an error.

        Args:
          read: the time up to which all messages were read. Later messages may wait
            while a long one is handled, so their senders do not count as silent.
        """
        now = self._checked = time.monotonic()
        if self._may_end(now):
            self._end.set()
            return
        self._replicas.maintain(
            {
                worker: known.peer
                for worker, known in self._workers.items()
                if read - known.heard < _VOTE_TIMEOUT
            },
            read,
        )
        for worker, known in list(self._workers.items()):
            silent = read - known.heard
            if silent > self._lost_after:
                self._drop_lost(worker, "silent")
            elif silent > _CHECK_AFTER and known.peer and self._is_disconnected(known):
                self._drop_lost(worker, "disconnected")
        for number in self._cuts.expired(now):
            self._end_cut(number)
        for number, peer in self._cuts.requesters():
            if not self.listener.send(peer, self._replicas.view_message()):
                self._end_cut(number)  # its requester has exited
        late = [p for p in self._pending if p.end <= now]
        if late:
            self._pending = [p for p in self._pending if p.end > now]
        for pull in late:
            shard = self.shards[pull.shard]
            names = [f"{name}, which has not joined yet" for name in shard.awaited]
            names += map(self._described, shard.late(pull.worker, pull.clock))
            why = f"waits for {', '.join(names) or 'a push of its own'}"
            failure = messages.Failure(why, pull.shard, pull.fields.request, late=names)
            self.listener.send(pull.peer, Message.of(failure, pull.worker))

    def _described(self, worker: int) -> str:
        name, _, heard = self._workers.get(worker, UNKNOWN)
        ago = f", heard {time.monotonic() - heard:.1f} s ago" if heard else ""
        return f"{name or f'worker {worker}'}{ago}"

    def _on_new_view(self, previous: View) -> None:
        """Drops the pulls of shards that another server now serves."""
        self._pending = [p for p in self._pending if self._replicas.serves(p.shard)]
        self.meter.loads.keep(self.shards)
        for number in self.view.served_by(self.number):
            if previous.primary(number) != self.number:
                self._register_workers(number)

    def _is_disconnected(self, known: WorkerProcess) -> bool:
        """Returns whether a worker's connection is closed, as after a kill.

        A worker that only lost its connection will join again.
        """
        return not self.listener.send(known.peer, self._replicas.view_message())

    def _register_workers(self, number: int) -> None:
        """Registers the workers of a shard that this server begins to serve.

        Workers that never send it a message are then dropped as silent.
        """
        shard, now = self.shards[number], time.monotonic()
        for worker in shard.group:
            known = WorkerProcess(shard.names.get(worker, ""), b"", now)
            self._workers.setdefault(worker, known)

    def _drop_lost(self, worker: int, why: str) -> None:
        """Drops a lost worker; retries later if the log cannot be written."""
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
        self._pending = [p for p in self._pending if p.worker != worker]
        for number, shard in self.shards.items():
            if worker in shard.group and self._replicas.serves(number):
                entry = Message.of(messages.Leave(number, why), worker)
                self._apply_entry(number, entry)

    # -- entries -----------------------------------------------------------------------

    def _apply_entry(self, number: int, entry: Message) -> str:
        """Appends an entry that is due, and answers the pulls that wait for it."""
        dropped = self._append(number, entry)
        self._answer_pulls(number)
        self._answer_cut(number)
        return dropped

    def _append(self, number: int, entry: Message) -> str:
        """Replicates, logs and applies an entry."""
        with self._span("apply", entry.worker, entry.sequence, number):
            return self._replicas.append(number, entry)

    def _answer_pulls(self, number: int) -> None:
        shard = self.shards[number]
        ready = [
            pull
            for pull in self._pending
            if pull.shard == number and shard.may_read(pull.worker, pull.clock)
        ]
        if not ready:
            return
        self._pending = [p for p in self._pending if p not in ready]
        for pull in ready:
            now, worker = time.monotonic_ns(), pull.worker
            span = TraceSpan(pull.begun, now, "wait", worker, shard=number)
            self.tracing.recorder.add(span)
            self._answer(pull)

    def _answer(self, pull: PendingPull, sequence: int = 0, dropped: str = "") -> None:
        """Sends parameters; with a sequence number, also acknowledges that push."""
        shard = self.shards[pull.shard]
        assert shard.model is not None
        version = shard.group.version
        if shard.model.consistency.compensation:
            entry = Message.of(messages.Read(pull.shard), pull.worker)
            self._append(pull.shard, entry)
        arrays = {}
        if version != pull.seen:
            with self._span("parameters", pull.worker, sequence, pull.shard):
                arrays = {str(i): value for i, value in enumerate(shard.encoded())}
            self.meter.moved("pull", shard.model.filters["pull"], arrays)
        same = version == pull.seen
        reply = Message.of(
            messages.Params(pull.shard, pull.fields.request, version, same, dropped),
            pull.worker,
            sequence,
            self.view.epoch,
            arrays,
        )
        self._replicas.send_committed(pull.shard, pull.peer, reply)

    # -- messages ----------------------------------------------------------------------

    def _on_hello(self, peer: bytes, message: Message, hello: messages.Hello) -> None:
        self._require_same_run(hello)
        shard = self._served(hello.shard)
        if hello.fingerprint is not None and shard.model is not None:
            name = hello.name or f"worker {message.worker}"
            shard.require_same(hello.fingerprint, name)
        shards = {}
        for number in self.view.served_by(self.number):
            shards[str(number)] = self.shards[number].fingerprint
        if not message.worker:
            self._replicas.send_view(peer, message)  # that is what a reader asks for
        parts, waits = self._rows_progress(hello.shard, message.worker)
        welcome = messages.Welcome(
            hello.shard,
            hello.request,
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

    def _require_same_run(self, hello: messages.Hello) -> None:
        """Checks that a sender agrees on the run's number of shards and its servers.

        Raises:
          DistributedError: it does not.
        """
        count = len(self.view.holders)
        if hello.shards not in (None, count):
            raise DistributedError(
                f"the run has {count} shards, the cluster of "
                f"{hello.name or 'this worker'} {hello.shards}: give both the same "
                "list of servers and, if it differs, the same number of shards "
                "(FXFLOW_PS_SHARDS)"
            )
        if hello.server not in (None, self.number):
            raise DistributedError(
                f"it is server {self.number} of its run, and not {hello.server}: the "
                "addresses are in another order, contain a duplicate, or belong to "
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
        self._replicas.send_view(peer, message)

    def _on_model(self, peer: bytes, message: Message, offer: messages.Offer) -> None:
        if self._served(offer.shard).turn(message) is Turn.NEXT:
            self._apply_entry(offer.shard, message)
        self._reply(peer, message, self._model_ack(message, offer))

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
            self._apply_entry(rows.shard, message)
        self._reply(peer, message, self._model_ack(message, rows))

    def _model_ack(
        self, message: Message, fields: messages.Offer | messages.PushRows
    ) -> messages.ModelAck:
        """Returns the answer to an offer, and chooses the sender of a snapshot's rows.

        Raises:
          DistributedError: the worker must send the rows, and does not have them.
        """
        shard = self.shards[fields.shard]
        parts, waits = self._rows_progress(fields.shard, message.worker)
        if shard.lacking is not None and not waits:
            shard.require_snapshot(message)
            self._senders[fields.shard] = message.worker
        begun = shard.lacking is None
        return messages.ModelAck(fields.shard, fields.request, parts, waits, begun)

    def _rows_progress(self, number: int, worker: int) -> tuple[int, bool]:
        """Returns the parts of a snapshot received, and whether another worker sends.

        All workers have the same snapshot, but only one sends it: the first, or another
        after the first has exited.
        """
        lacking, sender = self.shards[number].lacking, self._senders.get(number)
        other = sender != worker and sender in self._workers
        parts = lacking.taken if lacking is not None else 0
        return parts, lacking is not None and other

    def _on_join(self, peer: bytes, message: Message, join: messages.Join) -> None:
        shard = self._served(join.shard)
        if shard.lacking is not None:
            refusal = messages.Refuse(join.shard, join.request, "early")
            self._reply(peer, message, refusal)
            return
        shard.require_same(join.fingerprint, f"worker {message.worker}")
        # A second request, after a late answer, must not reset the worker's clock.
        if message.worker not in shard.group:
            self._drop_previous(message.worker)
            self._apply_entry(join.shard, message)
        joined = messages.Joined(
            join.shard,
            join.request,
            clock=shard.group[message.worker].clock,
            version=shard.group.version,
            last=shard.ledger.last(message.worker),
        )
        self._reply(peer, message, joined)

    def _drop_previous(self, worker: int) -> None:
        """Drops the previous process of a worker if it has exited."""
        name = self._workers.get(worker, UNKNOWN).name
        for other, known in list(self._workers.items()):
            same = other != worker and name and known.name == name
            if same and self._is_disconnected(known):
                self._drop_worker(other, "replaced")

    def _on_pull(self, peer: bytes, message: Message, asked: messages.Pull) -> None:
        shard = self._served(asked.shard)
        pull = PendingPull(peer, message.worker, asked, asked.clock)
        if shard.may_read(pull.worker, pull.clock):
            self._answer(pull)
        else:
            self._defer(pull)

    def _defer(self, pull: PendingPull) -> None:
        # A repeated request replaces the earlier one.
        mine = pull.worker, pull.shard
        others = [p for p in self._pending if (p.worker, p.shard) != mine]
        self._pending = [*others, pull]

    def _on_push(self, peer: bytes, message: Message, push: messages.Gradient) -> None:
        number, request = push.shard, push.request
        shard = self._served(number)
        if shard.model is None:
            self._reply(peer, message, messages.Refuse(number, request, "empty"))
            return
        if self._cuts.hold(number, peer, message):
            return
        try:
            turn = shard.turn(message)
        except Exception as error:
            why = str(error) if isinstance(error, FxflowError) else repr(error)
            raise RejectedPushError(why) from error
        filters, tables = shard.model.filters["push"], bool(shard.tables)
        self.meter.moved("push", filters, message.arrays, tables)
        dropped = ""
        if turn is Turn.NEXT:
            if message.worker not in shard.group:
                self._reply(peer, message, messages.Refuse(number, request, "join"))
                return
            dropped = self._apply_entry(number, message)
        elif turn is Turn.EARLY:
            last = shard.ledger.last(message.worker)
            refusal = messages.Refuse(number, request, "early", last)
            self._reply(peer, message, refusal)
            return
        ack = messages.Ack(number, request, shard.group.version, dropped)
        if not push.pull:
            self._reply(peer, message, ack)
            return
        pull = PendingPull(peer, message.worker, push, push.clock + 1)
        if shard.may_read(pull.worker, pull.clock):
            # One message for both: a message costs a worker as much as a small step.
            self._answer(pull, message.sequence, dropped)
        else:
            self._reply(peer, message, ack)
            self._defer(pull)

    def _on_cut(self, peer: bytes, message: Message, cut: messages.Cut) -> None:
        number = cut.shard
        shard = self._served(number)
        if cut.upto is None:
            now = time.monotonic()
            self._cuts.begin(number, cut.cut, now, peer, cut.params_only)
            last = [[worker, last] for worker, last in shard.ledger.items()]
            made = messages.CutMade(number, cut.request, last)
            self._reply(peer, message, made)
            return
        for item in self._cuts.define(cut, peer, message):
            self.handle(*item)
        self._answer_cut(number)

    def _answer_cut(self, number: int) -> None:
        """Answers the requester of a cut once the shard has reached it."""
        shard = self.shards[number]
        request = self._cuts.completed(number, shard)
        if request is None:
            return
        cut: messages.Cut = request[1].fields
        made = messages.CutMade(number, cut.request, version=shard.group.version)
        if cut.params_only:
            arrays = {str(i): value for i, value in enumerate(shard.encoded())}
        else:
            keys, arrays = shard.values()
            tables = self._cuts.keep(cut, shard, time.monotonic())
            made = made._replace(keys=keys, tables=tables)
        self._reply(*request, made, arrays)
        self._end_cut(number)

    def _end_cut(self, number: int) -> None:
        for item in self._cuts.end(number):
            self.handle(*item)

    def _on_read_rows(
        self, peer: bytes, message: Message, read: messages.ReadRows
    ) -> None:
        self._served(read.shard)
        arrays = self._cuts.rows(read, time.monotonic())
        answer = messages.RowsRead(read.shard, read.request, end=not arrays)
        self._reply(peer, message, answer, arrays)

    def _on_save_rows(
        self, peer: bytes, message: Message, asked: messages.SaveRows
    ) -> None:
        self._served(asked.shard)
        self._reply(peer, message, self._cuts.save(asked))

    def _on_enlist(
        self, peer: bytes, message: Message, enlist: messages.Enlist
    ) -> None:
        """Answers a server that requests to join."""
        number, why = self._replicas.admit(enlist.address)
        enlisted = messages.Enlisted(self.view.to_json(), number, why)
        self._reply(peer, message, enlisted)

    def _on_leave(self, peer: bytes, message: Message, leave: messages.Leave) -> None:
        self._drop_worker(message.worker, "done")
        self._reply(peer, message, messages.Ack())

    def _on_stats(self, peer: bytes, message: Message, query: messages.Stats) -> None:
        self._reply(peer, message, messages.StatsReply(query.request, self.stats()))

    def _on_restart(
        self, peer: bytes, message: Message, asked: messages.Restart
    ) -> None:
        """Ends soon, without leaving the run, to be started again."""
        if not self._keeps and self.view.copies < 2:
            raise DistributedError(
                f"server {self.number} has neither a folder nor copies: a restart "
                "would lose its state"
            )
        self._reply(peer, message, messages.Restarting(asked.request, self.incarnation))
        self.restarts, self._leaves_at = True, time.monotonic() + _ANSWER

    def _on_plan(self, peer: bytes, message: Message, asked: messages.Plan) -> None:
        """Notes planned servers that a client requests."""
        plans = (tuple(map(tuple, places)) for places in (asked.before, asked.places))
        self._replicas.plan(*plans)
        self._reply(peer, message, messages.Planned(asked.request))

    def _on_trace(self, peer: bytes, message: Message, query: messages.Trace) -> None:
        traces, arrays = self.tracing.collect(peer, query)
        names = {str(worker): known.name for worker, known in self._workers.items()}
        traces = traces._replace(names=names, request=query.request)
        self._reply(peer, message, traces, arrays)

    def stats(self) -> dict[str, Any]:
        """Returns the state and statistics of this server, as JSON."""
        now = time.monotonic()
        workers = {
            str(worker): {"name": known.name, "heard": now - known.heard}
            for worker, known in self._workers.items()
        }
        return {
            "server": self.number,
            "epoch": self.view.epoch,
            "view": self.view.to_json(),
            "shards": {
                str(number): statistics(
                    *(number, shard, self.view, self._replicas.serves(number)),
                    self.meter.loads.load(number, now),
                )
                for number, shard in self.shards.items()
            },
            "workers": workers,
            "waiting": len(self._pending),
            "traffic": self.listener.traffic.to_dict(),
            "incarnation": self.incarnation,
            **self.meter.to_dict(),
        }
