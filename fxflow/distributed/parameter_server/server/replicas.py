"""Replication of a server's shards, and its part in agreeing on views.

If each shard stays on one server, nothing is done here, and nothing is sent.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
import time
from collections.abc import Callable
from typing import Any

from fxflow.distributed.addresses import endpoint
from fxflow.distributed.messages.codec import Message, typed
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.zeromq import Dialer, Hub, Listener
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import EntryError, OtherRunError
from fxflow.distributed.parameter_server.server.agreement import Heard, ViewAgreement
from fxflow.distributed.parameter_server.server.heartbeats import Heartbeats
from fxflow.distributed.parameter_server.server.replication import Copies
from fxflow.distributed.parameter_server.server.shard import Position
from fxflow.distributed.parameter_server.server.store import Store
from fxflow.distributed.parameter_server.views import View, room
from fxflow.errors import DistributedError

#: Heartbeats within the time after which a silent server counts as lost.
_BEATS = 5
#: Seconds after which a follower that does not answer is asked for its position.
_ASK_AGAIN = 1.0
#: The most messages that wait for a view that this server does not know yet.
_MOST_EARLY = 4096
#: A server that wants to join repeats its request more often than this, in seconds.
_ASKS_TO_JOIN = 2.0


class Replicas:
    """Replicates a server's shards, so that another server can take its place.

    Args:
      hub: of the server's thread.
      listener: of the hub.
      number: of the server.
      incarnation: of the process.
      view: the initial view.
      store: the server's shards.
      keys: of the run.
      silent_after: seconds after which a silent server counts as lost.
      gone_after: seconds after which others get its shards.
      kept: whether the initial view was kept on the server's disk.
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
        #: Server → when its newest process began, and when that was last heard.
        self._newest: dict[int, tuple[int, float]] = {}
        self._store, self._changed = store, changed
        self.view = view
        self._alone = not view.members
        #: The copies of the shards that this server serves.
        self._copies: dict[int, Copies] = {}
        self._outbox: dict[int, collections.deque[tuple[int, bytes, Message]]] = {}
        self._dialers: dict[int, Dialer] = {}
        #: Workers that are heard or have a vote: a worker that leaves keeps its vote
        #: until a view without it is decided.
        self._workers: dict[int, bytes] = {}
        self._own: collections.deque[Message] = collections.deque()
        #: The epoch since which a shard has its primary, as far as is known.
        self._since = dict.fromkeys(range(len(view.holders)), view.epoch)
        self._early: list[tuple[bytes, Message]] = []
        self._kept = kept
        self._agreement = ViewAgreement(
            *(number, incarnation, view, silent_after, self._to_voter, gone_after),
            kept=kept,
        )
        self._handlers: dict[type, Callable[[Message, Any], None]] = {
            messages.Alive: self._on_alive,
            messages.ViewIs: self._on_view,
            messages.Prepare: self._vote,
            messages.PutToVote: self._vote,
            messages.Promised: self._agreement.on_promise,
            messages.Accepted: self._on_accepted,
            messages.Entry: self._on_entry,
            messages.EntryTaken: self._on_entry_taken,
            messages.State: self._on_state,
        }
        #: Why no view can follow, as last reported.
        self._lost = ""
        #: Address that wants to join → the time of its last request.
        self._joining: dict[str, float] = {}
        #: When the view was last sent to silent servers.
        self._view_sent = 0.0
        #: Bytes of the shards that are served here, for the thread of the heartbeats.
        self._sizes: dict[int, float] = {}
        self._heartbeats: Heartbeats | None = None
        if not self._alone:
            self._heartbeats = Heartbeats(keys, silent_after / _BEATS, self._heartbeat)
            self._dial()

    def close(self) -> None:
        """Ends the heartbeats."""
        if self._heartbeats is not None:
            self._heartbeats.close()
        if self._agreement.leaving:
            # Otherwise the others would wait for this server when they leave.
            for dialer in self._dialers.values():
                dialer.send(self._heartbeat())
                dialer.close(linger=1.0)

    @property
    def alone(self) -> bool:
        """Whether no other server can take this one's place."""
        return self.view.copies == 1

    # -- what this server serves -------------------------------------------------------

    def serves(self, shard: int) -> bool:
        """Returns whether this process serves a shard."""
        mine = self.view.primary(shard) == self._number
        return mine and (self._alone or self._agreement.in_view())

    @property
    def absent(self) -> list[int]:
        """The servers that this one waits for before it serves anything again."""
        agreement = self._agreement
        if self._alone or (agreement.in_view() and not agreement.stalled()):
            return []
        return self._agreement.absent(time.monotonic())

    @property
    def lost(self) -> str:
        """Why no view can follow the current one; empty if one can."""
        return "" if self._alone else self._agreement.lost(time.monotonic())

    # -- joining and leaving -----------------------------------------------------------

    def admit(self, address: str) -> tuple[int, str]:
        """Notes that a server wants to join.

        Returns:
          Its number, once the view has it; until then −1, and what it waits for.

        Raises:
          DistributedError: it cannot join this run.
        """
        endpoint(address, bind=False, keys=self._keys)
        if self._alone:
            raise DistributedError(
                f"the run has {len(self.view.holders)} shards, one for each of its "
                f"first servers, and no copies: no shard is left for {address}. "
                "Restart the run with more --shards than servers"
            )
        if address in self.view.addresses:
            number = self.view.addresses.index(address)
            if number == self._number or number in self._agreement.live(_now()):
                return -1, f"server {number}, which already runs at {address}"
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
        """Begins to hand over the shards held here."""
        self._agreement.leaving = True

    @property
    def has_left(self) -> bool:
        """Whether everything was handed over, and all other servers know."""
        if self._alone:
            return True
        if not self.view.run:
            # The first view may give it shards before it learns of the view.
            return not self._agreement.has_promised()
        # Servers that have entered the view without this one send it no heartbeats.
        heard = self._agreement.live(_now()).keys() - {self._number}
        return self._number not in self.view.peers and not heard

    @property
    def has_successors(self) -> bool:
        """Whether there is another server that stays, or may return."""
        return not self._alone and self._agreement.has_successors()

    def enter(self, number: int, entry: Message) -> str:
        """Makes an entry: sends it to the followers, logs it, and applies it.

        Returns:
          Why a push was not used; empty if it was, or will be.

        Raises:
          EntryError: it cannot be applied here, or cannot be logged while others have
            it: this server must not continue.
          DistributedError: it cannot be logged, and no server has it: it is not an
            entry.
        """
        entry = self._sent(number, entry)
        if self._alone:
            return self._store.append(number, entry)
        return self._entered(number, entry)

    def _entered(self, number: int, entry: Message) -> str:
        try:
            return self._store.append(number, entry)
        except EntryError:
            raise
        except DistributedError as error:
            raise EntryError(entry, str(error)) from error

    def _sent(self, number: int, entry: Message) -> Message:
        """Sends an entry to the followers; returns it, with this epoch."""
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
            self._ask(number, server, wrapped)
        return entry

    def tell(self, number: int, peer: bytes, message: Message) -> None:
        """Sends an answer about a shard, once no death can undo the state it shows."""
        copies = self._copies.get(number)
        if copies is not None:
            index = self._store.shards[number].position.entries
            if copies.committed < index:
                self._outbox[number].append((index, peer, message))
                return
        self._listener.send(peer, message)

    def _release(self, number: int) -> None:
        """Sends the answers that waited for copies to catch up."""
        outbox, committed = self._outbox[number], self._copies[number].committed
        while outbox and outbox[0][0] <= committed:
            _, peer, message = outbox.popleft()
            self._listener.send(peer, message)

    # -- messages ----------------------------------------------------------------------

    def is_early(self, peer: bytes, message: Message) -> bool:
        """Keeps a message of a view that is not known here yet, for `take_early`."""
        early = not self._alone and message.epoch > self.view.epoch
        if not early or isinstance(message.fields, messages.ViewIs):
            return False
        if isinstance(message.fields, messages.Heartbeat):
            # The server that told the worker may have died before it told another.
            self.tell_view(peer, message)
        if len(self._early) < _MOST_EARLY:
            self._early.append((peer, message))
        return True

    def take_early(self) -> list[tuple[bytes, Message]]:
        """Returns the messages that arrived before their view, if it is known now."""
        known = [item for item in self._early if item[1].epoch <= self.view.epoch]
        if known:
            self._early = [e for e in self._early if e[1].epoch > self.view.epoch]
        return known

    def tell_view(self, peer: bytes, message: Message) -> None:
        """Sends a worker the view if it has another; a newer one comes back."""
        if message.epoch != self.view.epoch:
            self._listener.send(peer, self.view_message())

    def takes(self, kind: type) -> bool:
        """Returns whether it handles such messages: those among servers and voters."""
        return kind in self._handlers

    def handle(self, message: Message) -> None:
        """Handles a message of another server, or a vote of a worker.

        Raises:
          ValueError: it is not a message among servers.
        """
        if self._alone:
            raise ValueError(f"a message {message.kind!r} among servers")
        self._handlers[type(message.fields)](message, message.fields)
        self._handle_own()

    def _handle_own(self) -> None:
        while self._own:
            message = self._own.popleft()
            self._handlers[type(message.fields)](message, message.fields)

    def _on_alive(self, message: Message, alive: messages.Alive) -> None:
        server = self._other(alive.server)
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
        if message.epoch < self.view.epoch:
            self._send(server, self.view_message())

    def _is_stale(self, server: int, began: int) -> bool:
        """Returns whether a heartbeat is of a process that another has replaced.

        It may arrive late, by the old connection. Clocks may also be set back, so a
        silent process no longer counts as the newer one.
        """
        now = time.monotonic()
        newest, heard = self._newest.get(server, (began, now))
        if began < newest and now - heard < self._silent_after:
            return True
        self._newest[server] = began, now
        return False

    def _on_view(self, message: Message, said: messages.ViewIs) -> None:
        view = View.from_json(said.view)
        if self.view.run in (0, view.run):
            self._enter(view)
        elif not message.worker and not self._agreement.in_view():
            raise OtherRunError(
                f"the servers at {', '.join(self.view.addresses)} are of another run "
                "than this one's folder: give it an empty one, or start the servers of "
                "its own run"
            )

    def _vote(
        self, message: Message, asked: messages.Prepare | messages.PutToVote
    ) -> None:
        answer = self._agreement.answer(message)
        if answer is not None:
            self._send(asked.proposer, answer)

    def _on_accepted(self, message: Message, accepted: messages.Accepted) -> None:
        view = self._agreement.on_accepted(message, accepted)
        if view is not None:
            self._enter(view)

    def _on_entry(self, message: Message, sent: messages.Entry) -> None:
        """Applies an entry of the shard's primary, and replies with the position."""
        number = sent.shard
        if not self._is_of_primary(message, number):
            return
        after, shard = Position(*sent.after), self._store.open(number)
        if sent.kind and after == shard.position:
            fields = typed(sent.kind, sent.fields)
            numbers = message.worker, message.sequence, sent.epoch
            entry = Message(sent.kind, *numbers, fields, message.arrays)
            self._entered(number, entry)
        self._answer(number, gap=after.entries > shard.position.entries)

    def _on_state(self, message: Message, state: messages.State) -> None:
        """Takes the whole state of a shard from its primary."""
        number = state.shard
        if not self._is_of_primary(message, number):
            return
        at = Position(*(state.at or ()))
        here = self._store.open(number).position
        # A late or repeated state lacks the entries that this primary has sent since,
        # and counts as applied.
        late = here.epoch >= self._since[number] and at.entries < here.entries
        if not late:
            self._store.load(number, message)
        self._answer(number, gap=False)

    def _on_entry_taken(self, message: Message, taken: messages.EntryTaken) -> None:
        """Notes a copy's position, and releases answers that all copies now have."""
        number, server = taken.shard, taken.server
        copies = self._copies.get(number)
        if copies is None or not copies.awaits(server, message.epoch):
            return
        position = Position(*taken.at)
        if not copies.note(server, position, time.monotonic()):
            state = self._store.state(number)
            copies.loading(server)
            self._ask(number, server, state)
        elif taken.gap:
            for entry in copies.lacking(server):
                self._ask(number, server, entry)
        self._release(number)

    # -- periodically ------------------------------------------------------------------

    def maintain(self, workers: dict[int, bytes], now: float) -> None:
        """Asks followers that do not answer, and proposes another view if needed.

        Args:
          workers: the workers that are heard, and their addresses.
          now: the time up to which all messages were read.
        """
        if self._alone:
            return
        for dialer in self._dialers.values():
            dialer.receive()  # errors about messages that it should not have received
        self._send_view_to_absent(now)
        voting = {w: p for w, p in self._workers.items() if w in self.view.workers}
        self._workers = {**voting, **workers}
        ready = self._catch_up(now)
        positions = {n: shard.position for n, shard in self._store.shards.items()}
        asked = self._joining.items()
        self._joining = {a: t for a, t in asked if now - t < _ASKS_TO_JOIN}
        self._sizes = {n: self._store.shards[n].nbytes for n in self._copies}
        wanted = self._agreement.wanted(
            now,
            workers,
            positions,
            ready,
            joining=list(self._joining),
            sizes=self._sizes,
        )
        if wanted is not None:
            self._agreement.propose(wanted, now)
            self._handle_own()
        if (lost := self._agreement.lost(now)) != self._lost:
            self._lost = lost
            if lost:
                text = f"fxflow parameter-server: {lost}"
                print(text, file=sys.stderr, flush=True)

    def _catch_up(self, now: float) -> dict[int, int]:
        """Updates the copies; returns the servers that have caught up, by shard."""
        there, view, ready = self._agreement.live(now), self.view, {}
        for number, copies in self._copies.items():
            coming = [
                server
                for server in view.places[number]
                if server != self._number
                and server in there
                and view.incarnation(server) == there[server]
            ]
            new = copies.follow(coming)  # first: lost servers are asked nothing
            for server in {*new, *copies.silent(now, _ASK_AGAIN)}:
                self._probe(number, server)
            for server in copies.ready():
                ready[number] = server
        return ready

    def _probe(self, number: int, server: int) -> None:
        """Asks a copy for its position."""
        after = list(self._copies[number].position)
        self._ask(number, server, Message.of(messages.Entry(number, after)))

    # -- the view ----------------------------------------------------------------------

    def _send_view_to_absent(self, now: float) -> None:
        """Sends the view to silent servers.

        A restarted server may not know which servers to ask.
        """
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
        """Enters a decided view; does nothing if it is known."""
        before = self.view
        if view.epoch <= before.epoch:
            return
        self._store.keep(view)
        self.view = view
        self._agreement.enter(view)
        for number, held in enumerate(view.holders):
            same = before.process(number) == view.process(number) != (held[0], 0)
            if not same or view.epoch > before.epoch + 1:
                self._since[number] = view.epoch
            if self._number in held:
                self._store.open(number)
            elif self._number not in view.places[number]:
                self._store.drop(number)
            copies = self._copies.pop(number, None)
            outbox = self._outbox.pop(number, collections.deque())
            if not self.serves(number):
                continue
            if copies is None or copies.epoch < self._since[number]:
                copies = Copies(self._store.shards[number].position, view.epoch)
                outbox.clear()
            others = [s for s in held if s != self._number]
            copies.begin(others, view.epoch)
            self._copies[number], self._outbox[number] = copies, outbox
        said = self.view_message()
        for server in self._dialers:
            self._send(server, said)
        self._dial()
        for peer in self._workers.values():
            self._listener.send(peer, said)
        for number, copies in self._copies.items():
            for server in copies.follow(()):
                self._probe(number, server)
            self._release(number)
        self._changed(before)

    def view_message(self) -> Message:
        """Returns a message with the view; a peer that knows the view ignores it."""
        said = messages.ViewIs(self.view.to_json())
        return Message.of(said, epoch=self.view.epoch)

    # -- to others ---------------------------------------------------------------------

    def _heartbeat(self) -> Message:
        shards = list(self._store.shards.items())
        alive = messages.Alive(
            self._number,
            self._incarnation,
            self._began,
            self._kept,
            self._agreement.leaving,
            sizes=[[number, size] for number, size in list(self._sizes.items())],
            at=[[number, *shard.position] for number, shard in shards],
        )
        return Message.of(alive, epoch=self.view.epoch)

    def _to_voter(self, voter: int, message: Message) -> None:
        servers = self._agreement.by_incarnation()
        if voter in servers:
            self._send(servers[voter], message)
        elif voter in self._workers:
            self._listener.send(self._workers[voter], message)

    def _send(self, server: int, message: Message) -> None:
        """Sends a message to a server, which may be this one."""
        if server == self._number:
            self._own.append(message)
        else:
            self._dialer(self._other(server)).send(message)

    def _ask(self, number: int, server: int, message: Message) -> None:
        """Sends a copy of a shard a message that it must answer."""
        self._copies[number].said(server, time.monotonic())
        self._send(server, dataclasses.replace(message, epoch=self.view.epoch))

    def _answer(self, number: int, *, gap: bool) -> None:
        at = list(self._store.shards[number].position)
        taken = messages.EntryTaken(number, self._number, at, gap)
        message = Message.of(taken, epoch=self.view.epoch)
        self._send(self.view.primary(number), message)

    def _is_of_primary(self, message: Message, number: int) -> bool:
        """Returns whether an entry of a shard is useful here, and from its primary."""
        if not 0 <= number < len(self.view.holders):
            raise ValueError(f"an entry of shard {number}")
        replaced = message.epoch < self._since[number]
        here = {*self.view.holders[number], *self.view.places[number]}
        unused = self._number not in here
        return not (replaced or unused or self.serves(number))

    def _other(self, server: int) -> int:
        if server == self._number or not 0 <= server < len(self.view.addresses):
            raise ValueError(f"server {server} is not one of the others")
        return server

    def _dialer(self, server: int) -> Dialer:
        if server not in self._dialers:
            self._dialers[server] = self._hub.dial(self.view.addresses[server])
        return self._dialers[server]


def _now() -> float:
    return time.monotonic()
