"""The worker's client: runs the protocol, on the caller's thread or another (`turns`).

For each shard, it finds the server, offers the model or checks that it is the run's,
joins, and sends pushes until they are acknowledged, repeatedly and to the next server
if necessary. The caller queues pushes and waits for pulls.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fxflow.distributed.addresses import endpoint
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Dialer, Hub
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.model import Model
from fxflow.distributed.parameter_server.monitor.tracing import TraceSpan, WorkerTracing
from fxflow.distributed.parameter_server.paxos import Voter, answer_of
from fxflow.distributed.parameter_server.tables.remote import NOTHING, Beginning
from fxflow.distributed.parameter_server.views import View
from fxflow.distributed.parameter_server.worker.questions import (
    RETRY,
    Questions,
    error_text,
)
from fxflow.distributed.parameter_server.worker.tickets import Deadline, Pulled, Ticket
from fxflow.distributed.parameter_server.worker.turns import Turns
from fxflow.errors import DistributedError

HostArray = np.ndarray[Any, Any]
#: Seconds between heartbeats.
_HEARTBEAT = 0.5
#: Bytes of a push from which another thread copies it to the server, so that the caller
#: continues meanwhile.
_LARGE = 64 << 10
#: Seconds after which a waiting worker reports what it waits for.
_REPORT = 5.0
#: Seconds that a leaving worker waits until its vote is no longer needed: longer than
#: servers take to notice that one of them died.
_LEAVE = 5.0


@dataclasses.dataclass
class _Shard:
    """The state of the protocol for one shard.

    Attributes:
      round: increases with each phase: an answer to an earlier phase may arrive late.
      acked: the last acknowledged number when this phase began.
      parts: number of parts of a snapshot's rows that the shard has.
    """

    number: int
    model: Model
    values: dict[str, HostArray]
    beginning: Beginning
    phase: str = "hello"
    round: int = 0
    acked: int = 0
    parts: int = 0
    asked: float = 0.0
    clock: int = 0
    have: Pulled = dataclasses.field(default_factory=lambda: Pulled(-1, []))
    unacked: collections.deque[Message] = dataclasses.field(
        default_factory=collections.deque
    )
    request: int = 0
    ticket: Ticket | None = None


class WorkerClient:
    """A worker's connection to the servers.

    Args:
      view: the run's view, as far as it is known.
      keys: the run's keys; None on the loopback.
      name: name of this worker, for messages.
      deadline: seconds after which a wait fails.
      workers: names of the workers that begin together, including this one; empty: each
        begins when it joins.
      joins: whether it trains; otherwise it only reads: no worker waits for it, it has
        no vote, and servers ignore its death.

    Raises:
      DistributedError: an address is not valid, or needs keys.

    Attributes:
      number: identifies this worker's process to the servers.
      tracing: this worker's spans, while the run is traced.
    """

    view: View
    name: str
    seconds: float
    workers: list[str]
    number: int
    tracing: WorkerTracing

    def __init__(
        self,
        view: View,
        *,
        keys: Keys | None = None,
        name: str = "worker",
        deadline: float = 60.0,
        workers: Sequence[str] = (),
        joins: bool = True,
    ) -> None:
        for address in view.addresses:
            endpoint(address, bind=False, keys=keys)
        self.view, self.name, self.seconds = view, name, deadline
        self.workers = list(workers)
        self.number = secrets.randbits(62) or 1
        self._joins = joins
        #: Whether pushes that servers reject are left out, and how many were.
        self.skips_rejected, self.rejected = False, 0
        self._last_rejected = 0
        self.dropped: collections.Counter[str] = collections.Counter()
        self._sequence = 0
        self._shards: dict[int, _Shard] = {}
        self._dialers: dict[int, Dialer] = {}
        self._incarnations: dict[int, int] = {}
        self._heard: dict[int, float] = {}
        #: The servers that a server waits for before it serves anything.
        self._absent: dict[int, Sequence[int]] = {}
        self._lost: dict[int, str] = {}
        self._voter = Voter(view.epoch)
        self.tracing = WorkerTracing()
        self._leaving: Deadline | None = None
        self._left: Deadline | None = None
        self._beaten = 0.0
        self._requests = itertools.count(1)
        self._error: Exception | None = None
        #: Methods to call in the next turn, with their arguments; None: leave the run.
        self._orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._handlers: dict[type, Callable[[_Shard, Message, Any], None]] = {
            messages.Welcome: self._on_welcome,
            messages.ModelAck: self._on_model_ack,
            messages.Joined: self._on_joined,
            messages.Refuse: self._on_refuse,
            messages.Ack: self._on_ack,
            messages.Params: self._on_params,
            messages.Failure: self._on_failure,
        }
        self._hub = Hub(keys)
        has_orders = lambda: not self._orders.empty()
        self._turns = Turns(self._turn, self._hub.wake, has_orders)
        view_of, wait = lambda: self.view, self._turns.wait
        self._questions = Questions(
            self.number if joins else 0,
            *(self._call, self._send, view_of, self._late, wait),
        )
        self._thread = threading.Thread(
            target=self._run, name="fxflow-parameter-server", daemon=True
        )
        self._thread.start()

    # -- the caller's side -------------------------------------------------------------

    def begin(
        self,
        models: Sequence[Model],
        values: Sequence[Sequence[Any]],
        beginnings: Sequence[Beginning] | None = None,
    ) -> Ticket:
        """Offers a model, joins, and pulls.

        Args:
          models: one model for each shard.
          values: the initial values of each model's pieces.
          beginnings: the rest of each shard's initial state.

        Returns:
          The first pull. Its result is `values` unless the run had begun already.
        """
        shards = []
        for i, (model, given) in enumerate(zip(models, values, strict=True)):
            named = zip(model.names, given, strict=True)
            first = {f"param/{n}": np.asarray(value) for n, value in named}
            more = NOTHING if beginnings is None else beginnings[i]
            shards.append(_Shard(i, model, first, more))
        ticket = self._ticket(range(len(shards)))
        self._call(self._do_begin, shards, ticket)
        return ticket

    def push(
        self,
        parts: Sequence[Sequence[HostArray]] | None,
        why: str = "",
        rows: Sequence[Mapping[str, HostArray]] | None = None,
    ) -> Ticket:
        """Pushes a gradient, and pulls the next parameters.

        Args:
          parts: for each shard, the arrays of its encoded part; None: no gradient, but
            the step counts.
          why: why there is no gradient, for the servers' counts.
          rows: for each shard, ids and gradients of rows of tables, by the names of
            `tables.remote.rows_of`.

        Returns:
          The pull.
        """
        ticket = self._ticket(self._shards)
        lists = [*(parts or ()), *(part.values() for part in rows or ())]
        size = sum(array.nbytes for arrays in lists for array in arrays)
        order = self._do_push, parts, why, rows, ticket
        self._call(*order, soon=size < _LARGE)
        return ticket

    def pull(self) -> Ticket:
        """Pulls the current parameters."""
        ticket = self._ticket(self._shards)
        self._call(self._do_pull, ticket)
        return ticket

    def wait(self, ticket: Ticket, *, report: bool = False) -> list[Pulled]:
        """Waits for a pull; returns its results by shard.

        Args:
          ticket: the pull.
          report: whether to print to stderr what a long wait is for.

        Raises:
          DistributedError: a server did not answer in time, or refused.
        """
        if report and not self._awaited(ticket, _REPORT) and ticket.deadline.left:
            print(
                f"fxflow: {self.name} waits for {self._late(ticket.missing)}; it gives "
                f"up in {ticket.deadline.left:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        while not self._awaited(ticket, ticket.deadline.left):
            if ticket.deadline.passed:  # False if it was renewed meanwhile.
                break
        return ticket.result(self._late)

    def _awaited(self, ticket: Ticket, seconds: float) -> bool:
        """Waits for at most `seconds`; returns whether a pull has a result."""
        seconds = min(seconds, ticket.deadline.left)
        return self._turns.wait(lambda: ticket.is_done, seconds, ticket.wait)

    def rows(
        self, ids: Sequence[Mapping[str, HostArray]]
    ) -> dict[int, dict[str, HostArray]]:
        """Pulls rows of tables; a process that does not train creates none.

        Args:
          ids: ids by table, for each shard; empty: the shard gets no request.

        Returns:
          The rows, by shard and table.

        Raises:
          DistributedError: a server did not answer in time.
        """
        wanted = {shard: arrays for shard, arrays in enumerate(ids) if arrays}
        asked = {
            shard: messages.PullRows(shard, create=self._joins) for shard in wanted
        }
        answers = self.ask(asked, wanted)
        return {shard: answer.arrays for shard, answer in answers.items()}

    def ask(
        self,
        asked: Mapping[int, Any],
        arrays: Mapping[int, Mapping[str, HostArray]] | None = None,
        models: Sequence[Model] | None = None,
    ) -> dict[int, Message]:
        """Sends requests to the servers of some shards, and waits for all answers.

        Args:
          asked: requests of one type in `messages`, by shard; the method sets their
            `request`.
          arrays: arrays of the requests, by shard.
          models: this worker's models, for errors about a different one.

        Raises:
          DistributedError: a server did not answer in time, or refused.
        """
        requests = [(s, f, (arrays or {}).get(s, {})) for s, f in asked.items()]
        return dict(zip(asked, self.ask_together(requests, models), strict=True))

    def ask_together(
        self,
        requests: Sequence[tuple[int, Any, Mapping[str, HostArray]]],
        models: Sequence[Model] | None = None,
        *,
        copies: bool = False,
    ) -> list[Message]:
        """Sends requests of any types, several to a shard, and waits for all answers.

        Args:
          requests: shard, request and arrays of each.
          models: as for `ask`, which raises the same.
          copies: whether servers with copies of a shard get requests, in turn. A
            request that a copy refuses, or does not answer soon, goes to the primary.
        """
        return self._questions.ask(requests, self.seconds, models, copies=copies)

    def learn(self, view: View) -> None:
        """Enters a view if it is newer.

        Args:
          view: a view that a server sent.
        """
        self._call(self._enter_view, view)

    def traffic(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns the bytes sent and received so far, by kind of message."""
        sent: collections.Counter[str] = collections.Counter()
        received: collections.Counter[str] = collections.Counter()
        for dialer in list(self._dialers.values()):
            sent.update(dict(dialer.traffic.sent_bytes))
            received.update(dict(dialer.traffic.received_bytes))
        return dict(sent), dict(received)

    def close(self) -> None:
        """Leaves the run; waits until all pushes are acknowledged."""
        # Not `_call`, which raises the error that ended the thread.
        deadline = Deadline(self.seconds, "the last acknowledgements")
        self._orders.put((None, deadline))
        self._turns.hand_over()
        self._thread.join(self.seconds + 1)

    def _call(self, *order: Any, soon: bool = True) -> None:
        """Calls a method in a turn: `soon`, or on the thread while this one goes on."""
        if self._error is not None:
            raise self._error
        self._orders.put(order)
        if soon:
            self._turns.do()
        else:
            self._turns.hand_over()

    def _ticket(self, shards: Any) -> Ticket:
        return Ticket(list(shards), Deadline(self.seconds, "parameters"))

    def _server(self, number: int) -> str:
        dialer = self._dialers.get(number)
        address = self.view.addresses[number]
        problem = (
            f" ({dialer.problem})" if dialer is not None and dialer.problem else ""
        )
        heard = self._heard.get(number)
        ago = f", heard {time.monotonic() - heard:.1f} s ago" if heard else ""
        absent = self._absent.get(number)
        waits = f", waits for servers {list(absent)}" if absent else ""
        if lost := self._lost.get(number):
            waits = f", says that {lost}"
        return f"server {number} at {address}{ago}{waits}{problem}"

    def _late(self, shards: Sequence[int]) -> str:
        servers = sorted({self.view.primary(s) for s in shards})
        return ", ".join(map(self._server, servers))

    # -- turns -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._turns.serve(_HEARTBEAT / 4)
        finally:
            for dialer in self._dialers.values():
                dialer.close(linger=1.0)
            self._hub.close()

    def _turn(self, seconds: float) -> bool:
        """Waits for messages, and handles them and all orders; 0: only the orders.

        Returns:
          Whether the client goes on: it has neither left nor failed.
        """
        try:
            ready = seconds and self._hub.wait(min(seconds, _HEARTBEAT / 4))
            while not self._orders.empty():
                order, *args = self._orders.get()
                if order is None:
                    (self._leaving,) = args
                else:
                    order(*args)
            for number, dialer in list(self._dialers.items()) if ready else ():
                # An earlier message may have closed it.
                for message in [] if dialer.closed else dialer.receive():
                    self._heard[number] = time.monotonic()
                    self._on(number, message)
            now = time.monotonic()
            if now - self._beaten >= _HEARTBEAT:
                self._beaten = now
                self._beat(now)
            return self._leaving is None or not self._may_leave(self._leaving)
        except Exception as error:
            self._fail(error)
            return False

    def _fail(self, error: Exception) -> None:
        self._error = error
        for shard in self._shards.values():
            if shard.ticket is not None:
                shard.ticket.fail(error)
        self._questions.fail(str(error))

    def _may_leave(self, deadline: Deadline) -> bool:
        """Sends `Leave` once all pushes are acknowledged; returns whether to exit.

        A worker with a vote waits until its vote is no longer needed: if a server died
        meanwhile, the other voters might be too few without both.
        """
        unacked = any(shard.unacked for shard in self._shards.values())
        if unacked and not deadline.passed:
            return False
        if self._left is None:
            self._left = Deadline(_LEAVE, "a view without this worker")
            self._beat(time.monotonic())
        return self.number not in self.view.workers or self._left.passed

    def _dialer(self, server: int) -> Dialer:
        dialer = self._dialers.get(server)
        if dialer is None:
            identity = self.number.to_bytes(8, "big")
            address = self.view.addresses[server]
            dialer = self._dialers[server] = self._hub.dial(address, b"w" + identity)
        return dialer

    def _send(self, server: int, message: Message) -> None:
        if message.epoch != self.view.epoch:
            message = dataclasses.replace(message, epoch=self.view.epoch)
        self._dialer(server).send(message)

    def _send_to_primary(
        self,
        shard: _Shard,
        fields: Any,
        sequence: int = 0,
        arrays: dict[str, HostArray] | None = None,
    ) -> None:
        """Sends a message about a shard to the server that serves it."""
        shard.asked = time.monotonic()
        message = Message.of(fields, self.number, sequence, arrays=arrays)
        self._send(self.view.primary(shard.number), message)

    def _beat(self, now: float) -> None:
        if not self._joins:
            self._ask_for_view()
            return
        for server in list(self._dialers):
            if self._left is None:
                beat, arrays = self.tracing.heartbeat(server, self.name)
                self._send(server, Message.of(beat, self.number, arrays=arrays))
            else:
                self._send(server, Message.of(messages.Leave(), self.number))
        for shard in self._shards.values():
            if now - shard.asked < RETRY:
                continue
            if shard.phase != "joined":
                self._send_phase(shard)
            elif shard.unacked or shard.ticket is not None:
                # The server may wait for others, or a message may be lost.
                self._enter(shard, "hello")

    def _ask_for_view(self) -> None:
        """Asks all servers for a newer view, while a request is unanswered."""
        if self._questions:
            for server in self.view.peers:
                self._send(server, Message.of(messages.Hello(0)))

    # -- the protocol for a shard ------------------------------------------------------

    def _send_phase(self, shard: _Shard) -> None:
        """Sends the message of a shard's phase."""
        shard.asked = time.monotonic()
        number, request, more = shard.number, shard.round, shard.beginning
        if shard.phase == "hello":
            server = self.view.primary(number)
            shards = len(self.view.holders)
            hello = messages.Hello(number, self.name, request, server, shards)
            self._send(server, Message.of(hello, self.number))
        elif shard.phase == "model":
            model, arrays = shard.model.to_message()
            offer = messages.Offer(number, model, self.workers, request)
            if more.keys is not None:
                offer = offer._replace(
                    keys=more.keys, snapshot=more.snapshot, parts=len(more.rows)
                )
            arrays = {**arrays, **shard.values, **more.arrays}
            self._send_to_primary(shard, offer, arrays=arrays)
        elif shard.phase == "rows":
            table, block = more.rows[shard.parts]
            rows = messages.PushRows(number, table, more.snapshot, request)
            arrays = {str(i): values for i, values in enumerate(block)}
            self._send_to_primary(shard, rows, shard.parts + 1, arrays)
        elif shard.phase == "join":
            fingerprint = shard.model.fingerprint
            join = messages.Join(number, fingerprint, self.name, request)
            self._send_to_primary(shard, join)

    def _enter(self, shard: _Shard, phase: str) -> None:
        shard.phase = phase
        shard.round += 1
        shard.acked = self._acked(shard)
        self._send_phase(shard)

    def _acked(self, shard: _Shard) -> int:
        """Returns the last number that was acknowledged."""
        return (shard.unacked[0].sequence if shard.unacked else self._sequence + 1) - 1

    def _on(self, server: int, message: Message) -> None:
        """Handles one message from a server."""
        said = message.fields
        if getattr(said, "request", 0) < 0:
            self._questions.note(message)
            return
        if isinstance(said, messages.Announce):
            view = View.from_json(said.view)
            if view.run and self.view.run not in (0, view.run):
                raise DistributedError(
                    f"{self._server(server)} serves another run now and has lost the "
                    f"progress of the run of {self.name}. Restart from a checkpoint"
                )
            self._enter_view(view)
            self._send_view(server, view.epoch)
            return
        if isinstance(said, messages.Prepare | messages.Accept):
            answer = answer_of(self._voter, self.number, message)
            if answer is not None:
                self._send(server, answer)
            else:
                self._send_view(server, message.epoch)
            return
        if isinstance(said, messages.Pong | messages.Welcome):
            self._note_incarnation(server, said.incarnation)
        if isinstance(said, messages.Pong):
            self.tracing.answered(server, said)
            self._absent[server], self._lost[server] = said.absent, said.lost
            self._note_absence(server, said.inside)
        shard = self._shards.get(getattr(said, "shard", -1))
        handle = self._handlers.get(type(said))
        # A message from a server that no longer serves the shard may be old.
        if shard and handle and self.view.primary(shard.number) == server:
            handle(shard, message, said)

    def _send_view(self, server: int, epoch: int) -> None:
        """Sends the view to a server that has an older one.

        The server that decided on the view may have died before announcing it.
        """
        if epoch < self.view.epoch and self._joins:
            said = messages.Announce(self.view.to_json())
            self._send(server, Message.of(said, self.number))

    def _enter_view(self, view: View) -> None:
        """Enters a newer view, and continues with its servers."""
        before = self.view
        if view.epoch <= before.epoch:
            return
        self.view = view
        self._voter.enter(view.epoch)
        self._connect()
        for shard in self._shards.values():
            moved = view.primary(shard.number) != before.primary(shard.number)
            if moved or shard.phase != "joined":
                self._enter(shard, "hello")
        self._questions.repeat()

    def _note_incarnation(self, server: int, incarnation: int) -> None:
        """Restarts the protocol with a server that was restarted."""
        before = self._incarnations.get(server)
        self._incarnations[server] = incarnation
        if before in (None, incarnation):
            return
        for shard in self._shards.values():
            if self.view.primary(shard.number) == server and shard.phase != "hello":
                self._enter(shard, "hello")

    def _note_absence(self, server: int, inside: Sequence[int]) -> None:
        """Joins again if a server counts this worker as lost."""
        for shard in self._shards.values():
            served = self.view.primary(shard.number) == server
            if served and shard.phase == "joined" and shard.number not in inside:
                self._enter(shard, "hello")

    def _on_welcome(
        self, shard: _Shard, message: Message, welcome: messages.Welcome
    ) -> None:
        if shard.phase != "hello" or welcome.request != shard.round:
            return
        if welcome.waits:
            self._wait_for_rows(shard, welcome.parts)
        elif welcome.shards.get(str(shard.number)):
            self._enter(shard, "join")
        elif shard.unacked or shard.have.version > 0:
            raise DistributedError(
                f"{self._server(self.view.primary(shard.number))} returned without "
                f"shard {shard.number}: its state is lost. Keep a log of it "
                "(--folder), and restart from a checkpoint"
            )
        else:
            self._enter(shard, "model")

    def _on_model_ack(
        self, shard: _Shard, message: Message, ack: messages.ModelAck
    ) -> None:
        if shard.phase not in ("model", "rows") or ack.request != shard.round:
            return
        if ack.begun:
            self._enter(shard, "join")
        elif ack.waits:
            self._wait_for_rows(shard, ack.parts)
        else:
            self._note_parts(shard, ack.parts)
            self._enter(shard, "rows")

    def _wait_for_rows(self, shard: _Shard, parts: int) -> None:
        """Retries soon, because another worker sends the rows of the snapshot."""
        self._note_parts(shard, parts)
        shard.phase = "hello"
        shard.asked = time.monotonic() - RETRY + _HEARTBEAT

    def _note_parts(self, shard: _Shard, parts: int) -> None:
        if parts > shard.parts and shard.ticket is not None:
            shard.ticket.deadline.renew()
        shard.parts = parts

    def _on_joined(
        self, shard: _Shard, message: Message, joined: messages.Joined
    ) -> None:
        if shard.phase != "join" or joined.request != shard.round:
            return
        shard.phase = "joined"
        last, clock = joined.last, joined.clock
        while shard.unacked and shard.unacked[0].sequence <= last:
            shard.unacked.popleft()
        if last < shard.acked:
            raise DistributedError(
                f"{self._server(self.view.primary(shard.number))} has lost pushes "
                f"{last + 1} to {shard.acked} of {self.name}, which were acknowledged"
            )
        # Pushes acknowledged since the request advance the server's clock, too.
        clock += self._acked(shard) - last
        again = list(shard.unacked)
        shard.unacked.clear()
        for message in again:
            fields = message.fields._replace(clock=clock)
            shard.unacked.append(dataclasses.replace(message, fields=fields))
            self._send(self.view.primary(shard.number), shard.unacked[-1])
            clock += 1
        shard.clock = clock
        if shard.ticket is not None:
            self._ask_params(shard)

    def _on_refuse(
        self, shard: _Shard, message: Message, refusal: messages.Refuse
    ) -> None:
        """Restarts the protocol, because the server lacks what this worker expects."""
        mine = refusal.request == shard.round
        if shard.phase == "joined" or (shard.phase in ("join", "rows") and mine):
            self._enter(shard, "hello")

    def _on_ack(
        self, shard: _Shard, message: Message, ack: messages.Ack | messages.Params
    ) -> None:
        while shard.unacked and shard.unacked[0].sequence <= message.sequence:
            shard.unacked.popleft()
        if ack.dropped:
            self.dropped[ack.dropped.partition(":")[0]] += 1

    def _on_params(
        self, shard: _Shard, message: Message, params: messages.Params
    ) -> None:
        if message.sequence:
            self._on_ack(shard, message, params)
        if params.request != shard.request or shard.ticket is None:
            return
        if not params.same:
            values = [message.arrays[str(i)] for i in range(len(shard.model.params))]
            shard.have = Pulled(params.version, values)
        ticket, shard.ticket = shard.ticket, None
        ticket.give(shard.number, shard.have)

    def _on_failure(
        self, shard: _Shard, message: Message, failure: messages.Failure
    ) -> None:
        server = self._server(self.view.primary(shard.number))
        if failure.rejected and self.skips_rejected:
            self._leave_out(shard, message.sequence, f"{server}: {failure.why}")
            return
        error = DistributedError(f"{server}: {error_text(message, shard.model)}")
        if shard.ticket is None:
            raise error
        ticket, shard.ticket = shard.ticket, None
        ticket.fail(error)

    def _leave_out(self, shard: _Shard, sequence: int, why: str) -> None:
        """Sends an empty push in place of one that a server has rejected."""
        for i, push in enumerate(shard.unacked):
            if push.sequence == sequence and push.arrays:
                fields = push.fields._replace(why="rejected")
                empty = dataclasses.replace(push, fields=fields, arrays={})
                shard.unacked[i] = empty
                self._send(self.view.primary(shard.number), empty)
                break
        if sequence <= self._last_rejected:
            return  # another shard has rejected its part of it
        self._last_rejected = sequence
        self.rejected += 1
        if self.rejected == 1:
            text = f"fxflow: {self.name} leaves out push {sequence}, which {why}"
            print(text, file=sys.stderr, flush=True)

    def _ask_params(self, shard: _Shard) -> None:
        assert shard.ticket is not None
        shard.request = next(self._requests)
        seconds = max(0.0, shard.ticket.deadline.left - 0.5)
        have, request = shard.have.version, shard.request
        pull = messages.Pull(shard.number, shard.clock, have, request, seconds)
        self._send_to_primary(shard, pull)

    # -- orders ------------------------------------------------------------------------

    def _do_begin(self, shards: Sequence[_Shard], ticket: Ticket) -> None:
        for shard in shards:
            self._shards[shard.number] = shard
            shard.ticket = ticket
        self._connect()
        for shard in shards:
            self._send_phase(shard)

    def _connect(self) -> None:
        """Connects to all servers of the view, which must know this worker."""
        for server in set(self._dialers) - set(self.view.peers):
            dialer = self._dialers.pop(server)
            # A dialer that still connects would reach the server after a restart, and
            # receive this worker's answers.
            dialer.close(linger=1.0 if dialer.connected else 0.0)
        for server in self.view.peers if self._shards else ():
            self._dialer(server)

    def _do_pull(self, ticket: Ticket) -> None:
        for shard in self._shards.values():
            shard.ticket = ticket
            if shard.phase == "joined":
                self._ask_params(shard)

    def _do_push(
        self,
        parts: Sequence[Sequence[HostArray]] | None,
        why: str,
        rows: Sequence[Mapping[str, HostArray]] | None,
        ticket: Ticket,
    ) -> None:
        self._sequence += 1
        head = self.number, self._sequence, self.view.epoch
        begun = time.monotonic_ns()
        for i, shard in self._shards.items():
            shard.request, shard.ticket = next(self._requests), ticket
            arrays: dict[str, HostArray] = {}
            if parts is not None:
                arrays = {str(j): x for j, x in enumerate(parts[i])}
            if rows is not None:
                arrays.update(rows[i])
            version, seconds = shard.have.version, max(0.0, ticket.deadline.left - 0.5)
            push = messages.Gradient(
                *(i, shard.clock, version, version, True, shard.request, seconds, why)
            )
            message = Message.of(push, *head, arrays)
            shard.unacked.append(message)
            if shard.phase == "joined":
                shard.clock += 1
                shard.asked = time.monotonic()
                self._send(self.view.primary(i), message)
        sent = TraceSpan(begun, time.monotonic_ns(), "send", sequence=self._sequence)
        self.tracing.recorder.add(sent)
