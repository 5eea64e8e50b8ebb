"""One server's part in deciding who serves what: whom it hears, what it proposes.

Every server hears the heartbeats of the others. One that is silent, or has come again
as another process, is to leave the view; workers that come or go, too, for they vote.
The lowest-numbered server that is heard proposes; who serves a shard proposes whoever
has caught up with it. `succession` decides; here is what one end says and hears of it.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fxflow.distributed.parameter_server.messages import Message
from fxflow.distributed.parameter_server.server.shard import Position
from fxflow.distributed.parameter_server.server.succession import (
    Ballot,
    Promise,
    Proposal,
    Vote,
    Voter,
    successor,
)
from fxflow.distributed.parameter_server.views import View, with_holder

#: How long a proposal waits for votes before the next one, in seconds; times 1 to 2.
_PATIENCE = 0.15
_NOWHERE = Position(0, 0)


@dataclasses.dataclass(frozen=True)
class Heard:
    """A heartbeat of a server.

    Attributes:
      incarnation: of the server.
      positions: of its shards.
      when: it was read.
    """

    incarnation: int
    positions: Mapping[int, Position]
    when: float


class Agreement:
    """What a server knows of the others, and its votes.

    Args:
      number: of the server.
      incarnation: of the server.
      view: to begin with.
      silent_after: seconds after which a silent server is taken for lost.
      send: sends a message to a voter.
    """

    def __init__(
        self,
        number: int,
        incarnation: int,
        view: View,
        silent_after: float,
        send: Callable[[int, Message], None],
    ) -> None:
        self._number, self._incarnation = number, incarnation
        self._view, self._silent_after, self._send = view, silent_after, send
        self._heard: dict[int, Heard] = {}
        self._voter = Voter(view.epoch)
        self._turn = 0
        self._proposal: Proposal | None = None
        self._until = 0.0
        #: When this process first looked after the view.
        self._began: float | None = None

    # -- who is there ------------------------------------------------------------------

    def hear(self, server: int, heard: Heard) -> None:
        """Notes a heartbeat of another server."""
        self._heard[server] = heard

    def enter(self, view: View) -> None:
        """Goes on in a view that was decided."""
        self._view = view
        self._voter.enter(view.epoch)
        self._proposal, self._until = None, 0.0

    def there(self, now: float) -> dict[int, int]:
        """Returns the servers that are heard, with their incarnations; this one too."""
        found = {
            server: heard.incarnation
            for server, heard in self._heard.items()
            if now - heard.when <= self._silent_after
        }
        found[self._number] = self._incarnation
        return found

    def numbers(self) -> dict[int, int]:
        """Returns the server of each incarnation that was heard last; this one too."""
        heard = {heard.incarnation: s for s, heard in self._heard.items()}
        return {**heard, self._incarnation: self._number}

    def absent(self, now: float) -> list[int]:
        """Returns the servers that are not heard."""
        there = self.there(now)
        return [s for s in range(len(self._view.addresses)) if s not in there]

    def inside(self) -> bool:
        """Returns whether the view knows this process, not only its address."""
        servers = self._view.servers
        return bool(servers) and servers[self._number] == self._incarnation

    # -- what is to be -----------------------------------------------------------------

    def wanted(
        self,
        now: float,
        workers: Collection[int],
        positions: Mapping[int, Position],
        ready: Mapping[int, int],
    ) -> View | None:
        """Returns the view that this server would propose; None if it has no reason to.

        Args:
          now: the time.
          workers: those that are heard.
          positions: of this server's shards.
          ready: server that has caught up, by shard that this one serves.
        """
        view = self._view
        if not view.servers:
            return self._meeting(now, workers, positions)
        if not self.inside() or self._is_new(now):
            return None
        there = self.there(now)
        same = {s for s, which in there.items() if view.servers[s] == which}
        after = view
        if self._number == min(same):
            gone = set(range(len(view.addresses))) - same
            after = successor(view, gone) or view
            servers = tuple(there.get(s, 0) for s in range(len(view.addresses)))
            after = after._replace(servers=servers, workers=tuple(sorted(workers)))
            after = self._orphans_served(after, same, positions)
        for shard, server in ready.items():
            if server in same and self._number in after.holders[shard]:
                after = with_holder(after, shard, server)
        after = after._replace(epoch=view.epoch)
        # What this server proposed may have been decided without its knowing: then a
        # proposal of anything brings that to light.
        if after == view and self._proposal is None:
            return None
        return after._replace(epoch=view.epoch + 1)

    def _is_new(self, now: float) -> bool:
        """Returns whether this process is too young to say that another is silent."""
        self._began = now if self._began is None else self._began
        others = len(self._view.addresses) - 1
        return len(self._heard) < others and now - self._began <= self._silent_after

    def _meeting(
        self, now: float, workers: Collection[int], positions: Mapping[int, Position]
    ) -> View | None:
        """Returns the first view with everybody in it, when everybody is there.

        Servers that read logs may not be equally far: who is farthest serves. A worker
        has to be there, too, or two servers could not go on without one of them.
        """
        if self._number or self.absent(now) or not workers:
            return None
        view, there = self._view, self.there(now)
        at = self._positions(positions)
        epochs = [p.epoch for found in at.values() for p in found.values()]
        held = enumerate(view.holders)
        return view._replace(
            epoch=1 + max([1, *epochs]),
            holders=tuple(_farthest(at, shard, servers) for shard, servers in held),
            servers=tuple(there[s] for s in range(len(view.addresses))),
            workers=tuple(sorted(workers)),
        )

    def _orphans_served(
        self, after: View, same: Collection[int], positions: Mapping[int, Position]
    ) -> View:
        """Returns the view with servers for shards all of whose holders died.

        One that comes again with its log has all that was acknowledged. One that
        comes without must not serve while another may come with it.
        """
        at = self._positions(positions)
        holders, servers = list(after.holders), list(after.servers)
        for shard, held in enumerate(after.holders):
            back = [s for s in held if after.servers[s]]
            if not back or set(held) & set(same):
                continue
            full = [s for s in back if at[s].get(shard, _NOWHERE).entries]
            if full:
                holders[shard] = _farthest(at, shard, full)
            elif len(back) < len(held):
                for server in back:
                    servers[server] = self._view.servers[server]
        return after._replace(holders=tuple(holders), servers=tuple(servers))

    def _positions(
        self, own: Mapping[int, Position]
    ) -> dict[int, Mapping[int, Position]]:
        """Returns how far each server is with each shard, as it said last."""
        said = {s: heard.positions for s, heard in self._heard.items()}
        return {**said, self._number: own}

    # -- proposals ---------------------------------------------------------------------

    def propose(self, wanted: View, now: float) -> bool:
        """Asks the voters for a view, unless an attempt is under way.

        Returns:
          Whether they were asked.
        """
        if now < self._until:
            return False
        self._until = now + _PATIENCE * (1 + random.random())
        self._turn += 1
        ballot = Ballot(self._turn, self._number)
        voters = self._view.voters or wanted.servers
        self._proposal = Proposal(wanted, ballot, self._view, voters)
        for voter in voters:
            self._send(voter, self._message("prepare", ballot))
        return True

    def on_promise(self, message: Message) -> None:
        """Takes a promise; puts a view to the vote when there are enough."""
        proposal = self._mine(message)
        if proposal is None:
            return
        accepted = message.fields["accepted"]
        promise = Promise(
            proposal.ballot, None if accepted is None else _vote(accepted)
        )
        vote = proposal.note_promise(int(message.fields["voter"]), promise)
        if vote is not None:
            ask = self._message("vote", vote.ballot, view=vote.view.to_json())
            for voter in proposal.voters:
                self._send(voter, ask)

    def on_vote_ok(self, message: Message) -> View | None:
        """Takes a vote; returns the view once it is decided."""
        proposal = self._mine(message)
        if proposal is None:
            return None
        return proposal.note_accepted(int(message.fields["voter"]), proposal.ballot)

    def answer(self, message: Message) -> Message | None:
        """Answers `prepare` or `vote` as a voter."""
        answer = answer_of(self._voter, self._incarnation, message)
        if answer is not None and message.kind == "prepare":
            self._turn = max(self._turn, int(message.fields["turn"]))
        return answer

    def _mine(self, message: Message) -> Proposal | None:
        proposal = self._proposal
        if proposal is None or message.epoch != self._view.epoch:
            return None
        return proposal if _ballot(message.fields) == proposal.ballot else None

    def _message(self, kind: str, ballot: Ballot, **more: Any) -> Message:
        fields = {**ballot._asdict(), **more}
        return Message(kind, epoch=self._view.epoch, fields=fields)


def _farthest(
    at: Mapping[int, Mapping[int, Position]], shard: int, servers: Collection[int]
) -> tuple[int, ...]:
    """Returns the servers that are farthest with a shard: they have all of it."""
    most = max(at[server].get(shard, _NOWHERE) for server in servers)
    return tuple(s for s in servers if at[s].get(shard, _NOWHERE) == most)


def _ballot(said: Mapping[str, Any]) -> Ballot:
    return Ballot(int(said["turn"]), int(said["proposer"]))


def _vote(said: Mapping[str, Any]) -> Vote:
    return Vote(_ballot(said), View.from_json(said["view"]))


def answer_of(voter: Voter, number: int, message: Message) -> Message | None:
    """Returns what a voter answers to `prepare` or `vote`; None: it has no say.

    Args:
      voter: of a server or a worker.
      number: by which the view knows it.
      message: of a proposer.

    Raises:
      ValueError: it has not the fields it should have.
    """
    ballot = _ballot(message.fields)
    fields: dict[str, Any] = {**ballot._asdict(), "voter": number}
    if message.kind == "prepare":
        promise = voter.promise(message.epoch, ballot)
        if promise is None:
            return None
        vote = promise.accepted
        accepted = None
        if vote is not None:
            accepted = {**vote.ballot._asdict(), "view": vote.view.to_json()}
        return Message(
            "promise", epoch=message.epoch, fields={**fields, "accepted": accepted}
        )
    if not voter.accept(message.epoch, _vote(message.fields)):
        return None
    return Message("vote_ok", epoch=message.epoch, fields=fields)
