"""Replication of a server's shards, and its messages about views.

If each shard is fixed to one server, `Replicas` does nothing and sends nothing.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fxflow.distributed.addresses import endpoint
from fxflow.distributed.messages.codec import Message, typed
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Dialer, Hub, Listener
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import (
    EntryError,
    NotServedError,
    OtherRunError,
)
from fxflow.distributed.parameter_server.server.agreement import Heard, ViewAgreement
from fxflow.distributed.parameter_server.server.echoes import Echoes
from fxflow.distributed.parameter_server.server.ledger import Position
from fxflow.distributed.parameter_server.server.replication import Copies
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.server.store import Store
from fxflow.distributed.parameter_server.views import Places, View, room, with_places
from fxflow.errors import DistributedError

#: Heartbeats sent in the time after which a silent server counts as lost.
_BEATS = 5
#: Seconds after which a follower that does not answer is probed for its position.
_PROBE_AFTER = 1.0
#: Maximum number of messages that wait for a view unknown to this server.
_MAX_EARLY = 4096
#: Seconds after its last request for which a server counts as joining, and for which
#: requested places are proposed.
_JOIN_TIMEOUT = 2.0


class Replicas:
    """Replicates a server's shards, so that another server can take its place.

    Args:
      hub: the hub of the server's thread.
      listener: the hub's listener.
      number: the server's number.
      incarnation: the process's incarnation.
      view: the initial view.
      store: the server's shards.
      keys: the run's keys.
      silent_after: seconds after which a silent server counts as lost.
      gone_after: seconds after which others get its shards.
      kept: whether the initial view was stored on the server's disk.
      changed: called with the previous view when a new one is entered.
    """

    view: View

    def __init__(
        self,
        hub: Hub,
        listener: Listener,
        number: int,
        incarnation: int,
        view: View,
        store: Store,
        *,
        keys: Keys | None,
        silent_after: float,
        gone_after: float,
        kept: bool,
        changed: Callable[[View], None],
    ) -> None:
        self._hub, self._listener, self._keys = hub, listener, keys
        self._number, self._incarnation = number, incarnation
        self._began, self._silent_after = time.time_ns(), silent_after
        #: Server → when its newest process began, and the time of its last heartbeat.
        self._newest: dict[int, tuple[int, float]] = {}
        self._store, self._changed = store, changed
        self.view = view
        #: Whether each shard is fixed to one server.
        self._fixed = not view.members
        #: The copies of the shards that this server serves.
        self._copies: dict[int, Copies] = {}
        #: Shard → answers to send once its entries up to an index are committed.
        self._outbox: dict[int, collections.deque[tuple[int, bytes, Message]]] = {}
        self._dialers: dict[int, Dialer] = {}
        #: Workers that are live or have a vote: a worker that leaves keeps its vote
        #: until a view without it is decided.
        self._workers: dict[int, bytes] = {}
        #: Messages to this server itself.
        self._loopback: collections.deque[Message] = collections.deque()
        #: Shard → the epoch in which its primary began to serve it, as far as known.
        self._primary_since = dict.fromkeys(range(len(view.holders)), view.epoch)
        self._early: list[tuple[bytes, Message]] = []
        self._kept = kept
        self._echoes = Echoes(number, incarnation)
        self._agreement = ViewAgreement(
            *(number, incarnation, view, silent_after, self._send_to_voter, gone_after),
            kept=kept,
        )
        self._handlers: dict[type, Callable[[Message, Any], None]] = {
            messages.Alive: self._on_alive,
            messages.Announce: self._on_view,
            messages.Prepare: self._vote,
            messages.Accept: self._vote,
            messages.Promised: self._agreement.on_promise,
            messages.Accepted: self._on_accepted,
            messages.Entry: self._on_entry,
            messages.EntryAck: self._on_entry_ack,
            messages.State: self._on_state,
        }
        #: The last reported reason why no view can follow.
        self._reported_loss = ""
        #: Address that wants to join → the time of its last request.
        self._joining: dict[str, float] = {}
        #: Requested places, those that they replace, and the time of the request.
        self._requested: tuple[Places, Places, float] = (), (), 0.0
        #: When the view was last sent to silent servers.
        self._view_sent = 0.0
        #: Bytes of the shards that this server serves, for the heartbeat thread.
        self._sizes: dict[int, float] = {}
        self._heartbeats: Heartbeats | None = None
        if not self._fixed:
            self._heartbeats = Heartbeats(keys, silent_after / _BEATS, self._heartbeat)
            self._dial()

    def close(self) -> None:
        """Ends the heartbeats."""
        if self._heartbeats is not None:
            self._heartbeats.close()
        if self._agreement.leaving:
            # Otherwise the others would wait for this server before they leave.
            for dialer in self._dialers.values():
                dialer.send(self._heartbeat())
                dialer.close(linger=1.0)

    # -- what this server serves -------------------------------------------------------

    def serves(self, shard: int) -> bool:
        """Returns whether this process serves a shard."""
        mine = self.view.primary(shard) == self._number
        return mine and (self._fixed or self._agreement.in_view())

    def served(self, shard: int) -> Shard:
        """Returns a shard that this server serves.

        Raises:
          DistributedError: there is no such shard.
          NotServedError: another server serves it.
        """
        if not 0 <= shard < len(self.view.holders):
            raise DistributedError(
                f"there is no shard {shard}: the run has {len(self.view.holders)}"
            )
        if not self.serves(shard):
            raise NotServedError
        return self._store.shards[shard]

    def readable(
        self, shard: int, within: float, at: Sequence[int] | None
    ) -> tuple[Shard, int]:
        """Returns a shard from which a reader may be answered.

        Args:
          shard: the number of the shard.
          within: seconds for which a copy may lack acknowledged entries.
          at: a position that a copy must have reached; None: any.

        Returns:
          The shard, and the nanoseconds for which it may lack acknowledged entries; 0:
          this server serves it.

        Raises:
          DistributedError: there is no such shard.
          NotServedError: another server serves it, and a copy here may be older.
        """
        view, agreement = self.view, self._agreement
        known = 0 <= shard < len(view.holders)
        if not within > 0 or not known or self.serves(shard):
            return self.served(shard), 0
        holds = self._number in view.holders[shard] and agreement.in_view()
        sent = self._echoes.confirmed(*view.process(shard), view.epoch)
        if not holds or sent is None or agreement.stalled():
            raise NotServedError
        copy, behind = self._store.shards[shard], time.monotonic_ns() - sent
        if behind > within * 1e9 or copy.position < Position(*(at or (0, 0))):
            raise NotServedError
        return copy, max(1, behind)

    @property
    def absent(self) -> list[int]:
        """The servers that must return before this one serves shards again."""
        agreement = self._agreement
        if self._fixed or (agreement.in_view() and not agreement.stalled()):
            return []
        return self._agreement.absent(time.monotonic())

    @property
    def lost(self) -> str:
        """Why no view can follow the current one; empty if one may."""
        return "" if self._fixed else self._agreement.lost(time.monotonic())

    # -- joining and leaving -----------------------------------------------------------

    def admit(self, address: str) -> tuple[int, str]:
        """Notes that a server wants to join.

        Returns:
          Its number and "" once the view includes it; before, −1 and what it waits for.

        Raises:
          DistributedError: the server cannot join this run.
        """
        endpoint(address, bind=False, keys=self._keys)
        if self._fixed:
            raise DistributedError(
                f"the run has {len(self.view.holders)} shards, one for each of its "
                f"first servers, and no copies: no shard is left for {address}. "
                "Restart the run with more --shards than servers"
            )
        if address in self.view.addresses:
            number = self.view.addresses.index(address)
            if number == self._number or number in self._agreement.live(_now()):
                return -1, f"server {number}, which already runs at {address},"
            return number, ""
        if room(self.view) < 1:
            raise DistributedError(
                f"the run has {len(self.view.holders)} shards on {self.view.copies} "
                f"servers each and {len(self.view.members)} servers: no shard is "
                f"left for {address}. Restart the run with more --shards"
            )
        self._joining[address] = _now()
        if self._agreement.in_view():
            return -1, "a majority of servers and workers"
        return -1, "servers whose run has not begun"

    def leave(self) -> None:
        """Begins to move this server's shards to other servers."""
        self._agreement.leaving = True

    @property
    def has_left(self) -> bool:
        """Whether other servers have all shards and a view without this server."""
        if self._fixed:
            return True
        if not self.view.run:
            # A first view with this server may be decided, unknown to it.
            return not self._agreement.has_promised()
        # Servers that have entered a view without this one send it no heartbeats.
        heard = self._agreement.live(_now()).keys() - {self._number}
        return self._number not in self.view.peers and not heard

    @property
    def has_successors(self) -> bool:
        """Whether another server stays, or may return."""
        return not self._fixed and self._agreement.has_successors()

    def plan(self, before: Places, places: Places) -> None:
        """Notes planned servers for the next view, which a client has requested.

        Args:
          before: the planned servers that the client knows.
          places: those that it requests.

        Raises:
          DistributedError: shards cannot move there, or the run has not begun.
        """
        if not self.view.run:
            raise DistributedError("the run has not begun: no shard can move yet")
        try:
            with_places(self.view, places)
        except ValueError as error:
            raise DistributedError(str(error)) from None
        self._requested = before, places, _now()

    def _planned(self, now: float) -> Places | None:
        """Returns the requested places if they are for the current ones."""
        before, places, at = self._requested
        recent = now - at < _JOIN_TIMEOUT and before == self.view.places
        return places if recent else None

    def append(self, number: int, entry: Message) -> str:
        """Sends an entry to the followers, logs it, and applies it.

        Returns:
          Why a push was not used; empty if it was, or will be.

        Raises:
          EntryError: the entry cannot be applied, or cannot be logged although others
            have it: this server must not continue.
          DistributedError: the entry cannot be logged, and no other server has it:
            nothing has changed.
        """
        entry = self._replicate(number, entry)
        if self._fixed:
            return self._store.append(number, entry)
        return self._append_here(number, entry)

    def _append_here(self, number: int, entry: Message) -> str:
        try:
            return self._store.append(number, entry)
        except EntryError:
            raise
        except DistributedError as error:
            raise EntryError(entry, str(error)) from error

    def _replicate(self, number: int, entry: Message) -> Message:
        """Sends an entry to the followers; returns it with the current epoch."""
        if entry.epoch != self.view.epoch:
            entry = dataclasses.replace(entry, epoch=self.view.epoch)
        copies = self._copies.get(number)
        if copies is None:
            return entry
        before = self._store.shards[number].position
        wrapped = Message.of(
            messages.Entry(
                number, list(before), entry.kind, entry.epoch, list(entry.fields)
            ),
            *(entry.worker, entry.sequence, entry.epoch),
            entry.arrays,
        )
        copies.add(Position(entry.epoch, before.entries + 1), wrapped)
        for server in copies.followers:
            self._send_to_follower(number, server, wrapped)
        return entry

    def send_committed(self, number: int, peer: bytes, message: Message) -> None:
        """Sends an answer about a shard once the shard's entries are committed."""
        copies = self._copies.get(number)
        if copies is not None:
            index = self._store.shards[number].position.entries
            if copies.committed < index:
                self._outbox[number].append((index, peer, message))
                return
        self._listener.send(peer, message)

    def _release(self, number: int) -> None:
        """Sends the answers whose entries are now committed."""
        outbox, committed = self._outbox[number], self._copies[number].committed
        while outbox and outbox[0][0] <= committed:
            _, peer, message = outbox.popleft()
            self._listener.send(peer, message)

    # -- messages ----------------------------------------------------------------------

    def defer_if_early(self, peer: bytes, message: Message) -> bool:
        """Keeps a message of a later view for `take_early`; returns whether it did."""
        early = not self._fixed and message.epoch > self.view.epoch
        if not early or isinstance(message.fields, messages.Announce):
            return False
        if isinstance(message.fields, messages.Heartbeat):
            # The server that sent the worker its view may have died before sending
            # it to another server.
            self.send_view(peer, message)
        if len(self._early) < _MAX_EARLY:
            self._early.append((peer, message))
        return True

    def take_early(self) -> list[tuple[bytes, Message]]:
        """Returns the messages that arrived before a view that is now known."""
        known = [item for item in self._early if item[1].epoch <= self.view.epoch]
        if known:
            self._early = [e for e in self._early if e[1].epoch > self.view.epoch]
        return known

    def send_view(self, peer: bytes, message: Message) -> None:
        """Sends a worker the view if it has another; it answers with a newer one."""
        if message.epoch != self.view.epoch:
            self._listener.send(peer, self.view_message())

    def handles(self, kind: type) -> bool:
        """Returns whether messages of a kind are between servers, or votes."""
        return kind in self._handlers

    def handle(self, message: Message) -> None:
        """Handles a message of another server, or a vote of a worker.

        Raises:
          ValueError: each shard of the run is fixed to one server.
        """
        if self._fixed:
            raise ValueError(f"a message {message.kind!r} between independent servers")
        self._handlers[type(message.fields)](message, message.fields)
        self._handle_loopback()

    def _handle_loopback(self) -> None:
        while self._loopback:
            message = self._loopback.popleft()
            self._handlers[type(message.fields)](message, message.fields)

    def _on_alive(self, message: Message, alive: messages.Alive) -> None:
        server = self._require_other(alive.server)
        if self._is_stale(server, alive.began):
            return
        heard = Heard(
            alive.incarnation,
            {shard: Position(epoch, entries) for shard, epoch, entries in alive.at},
            time.monotonic(),
            alive.leaving,
            alive.kept,
            {int(number): size for number, size in alive.sizes},
        )
        self._agreement.hear(server, heard)
        self._echoes.note(
            *(server, alive.incarnation, alive.sent, message.epoch, alive.echoes)
        )
        if message.epoch < self.view.epoch:
            self._send(server, self.view_message())

    def _is_stale(self, server: int, began: int) -> bool:
        """Returns whether a heartbeat is of a process that a newer one has replaced.

        It may arrive late, over the old connection. Clocks may also be set back, so a
        silent process no longer counts as the newer one.
        """
        now = time.monotonic()
        newest, heard = self._newest.get(server, (began, now))
        if began < newest and now - heard < self._silent_after:
            return True
        self._newest[server] = began, now
        return False

    def _on_view(self, message: Message, fields: messages.Announce) -> None:
        view = View.from_json(fields.view)
        if self.view.run in (0, view.run):
            self._enter(view)
        elif not message.worker and not self._agreement.in_view():
            raise OtherRunError(
                f"the servers at {', '.join(self.view.addresses)} are of another run "
                "than this server's folder: give it an empty folder, or start it with "
                "the servers of its own run"
            )

    def _vote(
        self, message: Message, request: messages.Prepare | messages.Accept
    ) -> None:
        answer = self._agreement.answer(message)
        if answer is not None:
            self._send(request.proposer, answer)

    def _on_accepted(self, message: Message, accepted: messages.Accepted) -> None:
        view = self._agreement.on_accepted(message, accepted)
        if view is not None:
            self._enter(view)

    def _on_entry(self, message: Message, sent: messages.Entry) -> None:
        """Applies an entry of the shard's primary, and answers with the position."""
        number = sent.shard
        if not self._is_from_primary(message, number):
            return
        after, shard = Position(*sent.after), self._store.open(number)
        if sent.kind and after == shard.position:
            fields = typed(sent.kind, sent.fields)
            numbers = message.worker, message.sequence, sent.epoch
            entry = Message(sent.kind, *numbers, fields, message.arrays)
            self._append_here(number, entry)
        self._send_position(number, gap=after.entries > shard.position.entries)

    def _on_state(self, message: Message, state: messages.State) -> None:
        """Loads the whole state of a shard from its primary."""
        number = state.shard
        if not self._is_from_primary(message, number):
            return
        at = Position(*(state.at or ()))
        here = self._store.open(number).position
        # A late or repeated state lacks entries that this primary has sent since. It
        # is answered, not loaded.
        late = here.epoch >= self._primary_since[number] and at.entries < here.entries
        if not late:
            self._store.load(number, message)
        self._send_position(number, gap=False)

    def _on_entry_ack(self, message: Message, taken: messages.EntryAck) -> None:
        """Notes a copy's position, and sends the answers that are now committed."""
        number, server = taken.shard, taken.server
        copies = self._copies.get(number)
        if copies is None or not copies.is_current(server, message.epoch):
            return
        position = Position(*taken.at)
        if not copies.note_position(server, position, time.monotonic()):
            state = self._store.state(number)
            copies.note_state_sent(server)
            self._send_to_follower(number, server, state)
        elif taken.gap:
            for entry in copies.missing(server):
                self._send_to_follower(number, server, entry)
        self._release(number)

    # -- periodically ------------------------------------------------------------------

    def maintain(self, workers: dict[int, bytes], now: float) -> None:
        """Probes silent followers, and proposes the next view if needed.

        Args:
          workers: the live workers' numbers and addresses.
          now: the time up to which all messages were read.
        """
        if self._fixed:
            return
        for dialer in self._dialers.values():
            dialer.receive()  # drops errors about messages sent to the wrong server
        self._send_view_to_absent(now)
        voting = {w: p for w, p in self._workers.items() if w in self.view.workers}
        self._workers = {**voting, **workers}
        ready = self._catch_up(now)
        positions = {n: shard.position for n, shard in self._store.shards.items()}
        requests = self._joining.items()
        self._joining = {a: t for a, t in requests if now - t < _JOIN_TIMEOUT}
        self._sizes = {n: self._store.shards[n].nbytes for n in self._copies}
        wanted = self._agreement.wanted(
            now,
            workers,
            positions,
            ready,
            joining=list(self._joining),
            sizes=self._sizes,
            places=self._planned(now),
        )
        if wanted is not None:
            self._agreement.propose(wanted, now)
            self._handle_loopback()
        if (lost := self._agreement.lost(now)) != self._reported_loss:
            self._reported_loss = lost
            if lost:
                text = f"fxflow parameter-server: {lost}"
                print(text, file=sys.stderr, flush=True)

    def _catch_up(self, now: float) -> dict[int, int]:
        """Updates the followers; returns a server that has caught up, by shard."""
        live, view, ready = self._agreement.live(now), self.view, {}
        for number, copies in self._copies.items():
            joining = [
                server
                for server in view.places[number]
                if server != self._number
                and server in live
                and view.incarnation(server) == live[server]
            ]
            new = copies.follow(joining)  # first, so that lost servers are not probed
            for server in {*new, *copies.silent(now, _PROBE_AFTER)}:
                self._probe(number, server)
            for server in copies.ready():
                ready[number] = server
        return ready

    def _probe(self, number: int, server: int) -> None:
        """Asks a follower for its position."""
        probe = messages.Entry(number, list(self._copies[number].position))
        self._send_to_follower(number, server, Message.of(probe))

    # -- the view ----------------------------------------------------------------------

    def _send_view_to_absent(self, now: float) -> None:
        """Sends the view to silent servers: a restarted one may not know it."""
        if now - self._view_sent > self._silent_after and self._agreement.in_view():
            self._view_sent = now
            for server in self._agreement.absent(now):
                self._send(server, self.view_message())

    def _dial(self) -> None:
        """Connects to the servers of the view, and closes other connections."""
        others = [s for s in self.view.peers if s != self._number]
        for server in [s for s in self._dialers if s not in others]:
            self._dialers.pop(server).close(linger=1.0)
        for server in others:
            self._dialer(server)
        if self._heartbeats is not None:
            self._heartbeats.set_addresses([self.view.addresses[s] for s in others])

    def _enter(self, view: View) -> None:
        """Enters a decided view, unless it is known already."""
        previous = self.view
        if view.epoch <= previous.epoch:
            return
        self._store.keep(view)
        self.view = view
        self._agreement.enter(view)
        for number, held in enumerate(view.holders):
            same = previous.process(number) == view.process(number) != (held[0], 0)
            if not same or view.epoch > previous.epoch + 1:
                self._primary_since[number] = view.epoch
            if self._number in held:
                self._store.open(number)
            elif self._number not in view.places[number]:
                self._store.drop(number)
            copies = self._copies.pop(number, None)
            outbox = self._outbox.pop(number, collections.deque())
            if not self.serves(number):
                continue
            if copies is None or copies.epoch < self._primary_since[number]:
                copies = Copies(self._store.shards[number].position, view.epoch)
                outbox.clear()
            others = [s for s in held if s != self._number]
            copies.begin(others, view.epoch)
            self._copies[number], self._outbox[number] = copies, outbox
        message = self.view_message()
        for server in self._dialers:
            self._send(server, message)
        self._dial()
        for peer in self._workers.values():
            self._listener.send(peer, message)
        for number, copies in self._copies.items():
            for server in copies.follow(()):
                self._probe(number, server)
            self._release(number)
        self._changed(previous)

    def view_message(self) -> Message:
        """Returns a message with the view; a peer that knows the view ignores it."""
        fields = messages.Announce(self.view.to_json())
        return Message.of(fields, epoch=self.view.epoch)

    # -- sending -----------------------------------------------------------------------

    def _heartbeat(self) -> Message:
        shards = list(self._store.shards.items())
        # Before the epoch is read: see `Echoes`.
        echoes = self._echoes.heard()
        alive = messages.Alive(
            self._number,
            self._incarnation,
            self._began,
            self._kept,
            self._agreement.leaving,
            sizes=[[number, size] for number, size in list(self._sizes.items())],
            at=[[number, *shard.position] for number, shard in shards],
            sent=time.monotonic_ns(),
            echoes=echoes,
        )
        return Message.of(alive, epoch=self.view.epoch)

    def _send_to_voter(self, voter: int, message: Message) -> None:
        servers = self._agreement.by_incarnation()
        if voter in servers:
            self._send(servers[voter], message)
        elif voter in self._workers:
            self._listener.send(self._workers[voter], message)

    def _send(self, server: int, message: Message) -> None:
        """Sends a message to a server, which may be this one."""
        if server == self._number:
            self._loopback.append(message)
        else:
            self._dialer(self._require_other(server)).send(message)

    def _send_to_follower(self, number: int, server: int, message: Message) -> None:
        """Sends a follower a message that it must answer."""
        self._copies[number].note_sent(server, time.monotonic())
        self._send(server, dataclasses.replace(message, epoch=self.view.epoch))

    def _send_position(self, number: int, *, gap: bool) -> None:
        at = list(self._store.shards[number].position)
        taken = messages.EntryAck(number, self._number, at, gap)
        message = Message.of(taken, epoch=self.view.epoch)
        self._send(self.view.primary(number), message)

    def _is_from_primary(self, message: Message, number: int) -> bool:
        """Returns whether a message is from a shard's primary, and useful here."""
        if not 0 <= number < len(self.view.holders):
            raise ValueError(f"an entry of shard {number}")
        replaced = message.epoch < self._primary_since[number]
        here = {*self.view.holders[number], *self.view.places[number]}
        unused = self._number not in here
        return not (replaced or unused or self.serves(number))

    def _require_other(self, server: int) -> int:
        if server == self._number or not 0 <= server < len(self.view.addresses):
            raise ValueError(f"server {server} is not one of the others")
        return server

    def _dialer(self, server: int) -> Dialer:
        if server not in self._dialers:
            self._dialers[server] = self._hub.dial(self.view.addresses[server])
        return self._dialers[server]


def _now() -> float:
    return time.monotonic()


# -- heartbeats ------------------------------------------------------------------------


class Heartbeats:
    """Sends heartbeats to other servers periodically.

    Args:
      keys: the run's keys.
      every: seconds between two heartbeats.
      message: returns the next heartbeat; called in the thread.
    """

    def __init__(
        self, keys: Keys | None, every: float, message: Callable[[], Message]
    ) -> None:
        self._addresses: list[str] = []
        self._keys, self._every, self._message = keys, every, message
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="fxflow-parameter-server-heartbeats", daemon=True
        )
        self._thread.start()

    def set_addresses(self, addresses: Iterable[str]) -> None:
        """Sets the addresses of the other servers."""
        self._addresses = list(addresses)

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        dialers: dict[str, Dialer] = {}
        with Hub(self._keys) as hub:
            while not self._stop.is_set():
                addresses, message = self._addresses, self._message()
                for address in dialers.keys() - {*addresses}:
                    dialers.pop(address).close()
                for address in addresses:
                    if address not in dialers:
                        dialers[address] = hub.dial(address)
                    dialers[address].send(message)
                    dialers[address].receive()
                hub.wait(self._every)
