"""One server's part in agreeing on the view: which servers it hears, what it proposes.

Every server hears the heartbeats of the others. One that is silent, or was restarted as
another process, is to leave the view; so are workers that join or leave, for they vote.
The lowest-numbered server that is heard proposes, and plans which servers are to hold
which shard when servers join or leave (`views.replanned`); the server of a shard
proposes those that have caught up with it. `paxos` decides; here is what one end says
and hears of it.

Voters that die at one moment may leave no majority. Then the servers meet anew, as at
the beginning, if each of them is the process that the view knows or was restarted with
its log. Only a server that was in the view can have proposed the next one, which it
writes down before it serves anything in it. So among them they know the last view that
counts, whatever the lost voters had accepted.
"""

from __future__ import annotations

import dataclasses
import random
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.paxos import (
    Ballot,
    Promise,
    Proposal,
    Voter,
    accepted_of,
    answer_of,
    ballot_of,
    is_quorum,
    successor,
)
from fxflow.distributed.parameter_server.server.shard import Position
from fxflow.distributed.parameter_server.views import (
    View,
    replanned,
    settled,
    with_holder,
)

#: Seconds without enough voters after which servers that can meet anew do so, and after
#: which those that cannot say so.
_STALLED, _LOST = 1.0, 4.0
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
      leaving: whether it wants to leave the run.
      sizes: bytes of the shards that it serves.
      kept: whether it began with the view that it had kept on its disk.
    """

    incarnation: int
    positions: Mapping[int, Position]
    when: float
    leaving: bool = False
    kept: bool = False
    sizes: Mapping[int, float] = dataclasses.field(default_factory=dict)


class ViewAgreement:
    """What a server knows of the others, and its votes.

    Args:
      number: of the server.
      incarnation: of the server.
      view: to begin with.
      silent_after: seconds after which a silent server is taken for lost.
      send: sends a message to a voter.
      gone_after: seconds after which what a silent server held is given to others.
      kept: whether this server began with the view that it had kept on its disk.

    Attributes:
      leaving: whether this server wants to leave the run.
    """

    leaving: bool

    def __init__(
        self,
        number: int,
        incarnation: int,
        view: View,
        silent_after: float,
        send: Callable[[int, Message], None],
        gone_after: float = 60.0,
        *,
        kept: bool = False,
    ) -> None:
        self._kept = kept
        self._number, self._incarnation = number, incarnation
        self._view, self._silent_after, self._send = view, silent_after, send
        self._gone_after, self.leaving = gone_after, False
        self._heard: dict[int, Heard] = {}
        #: Since when a member is not heard.
        self._missed: dict[int, float] = {}
        self._voter = Voter(view.epoch)
        self._turn = 0
        self._proposal: Proposal | None = None
        self._until = 0.0
        #: When this process first looked after the view.
        self._began: float | None = None
        #: Since when too few voters are left; whether those who propose meet anew.
        self._stalled_since: float | None = None
        self._meets = False

    # -- who is there ------------------------------------------------------------------

    def hear(self, server: int, heard: Heard) -> None:
        """Notes a heartbeat of another server."""
        before = self._heard.get(server)
        if before and before.leaving and before.incarnation == heard.incarnation:
            heard = dataclasses.replace(heard, leaving=True)  # this one came late
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
        """Returns the servers of the view that are not heard."""
        there = self.there(now)
        return [s for s in self._view.peers if s not in there]

    def inside(self) -> bool:
        """Returns whether the view knows this process, not only its address."""
        return self._view.incarnation(self._number) == self._incarnation

    def stalled(self) -> bool:
        """Returns whether too few of the view's voters are heard to decide anything."""
        return self._stalled_since is not None

    def has_promised(self) -> bool:
        """Returns whether a view that is not known here may have been decided."""
        return self._voter.has_promised

    def stays(self) -> bool:
        """Returns whether there is another server that does not leave, or may come."""
        return bool({*self._view.members} - self._leaving())

    def _leaving(self) -> set[int]:
        found = {s for s, heard in self._heard.items() if heard.leaving}
        return found | {self._number} if self.leaving else found - {self._number}

    def _is_over(self, there: Mapping[int, int]) -> bool:
        """Returns whether all servers are there, and none as the view knows it.

        So it is at first, and when all were restarted: no process is left that could
        propose what follows the view, or has.
        """
        return all(there.get(s, w) != w for s, w in self._incarnations().items())

    def _is_stalled(
        self, now: float, there: Mapping[int, int], workers: Collection[int]
    ) -> bool:
        """Returns whether too few of the view's voters have been heard for a while."""
        known = self._incarnations().items()
        servers = [which for s, which in known if which and there.get(s) == which]
        voting = {*servers, *workers} & {*self._view.voters}
        if not self._view.run or is_quorum(voting, self._view.voters):
            self._stalled_since = None
            return False
        if self._stalled_since is None:
            self._stalled_since = now
        return now - self._stalled_since >= max(_STALLED, 2 * self._silent_after)

    def _strangers(self, there: Mapping[int, int]) -> list[int]:
        """Returns servers of the view that do not know which view they were last in.

        Those are not heard, or were restarted as another process without its log.
        """
        known = {s for s, heard in self._heard.items() if heard.kept}
        known |= {self._number} if self._kept else set()
        return [
            s
            for s, which in self._incarnations().items()
            if which and there.get(s) != which and (s not in known or s not in there)
        ]

    def lost(self, now: float) -> str:
        """Returns why no view can follow any more; empty if one can, or may.

        Args:
          now: the time.
        """
        since, there = self._stalled_since, self.there(now)
        strangers = self._strangers(there)
        if since is None or now - since < _LOST or {*strangers} - {*there}:
            return ""
        if not strangers or self._is_over(there):
            return ""
        servers = ", ".join(map(str, strangers))
        return (
            "no view can follow: a majority of the servers and workers that decide on "
            f"it ended at one moment, and servers that came again ({servers}) keep no "
            "log (--folder, or --ps-folder of fxflow launch) that says what they had "
            "agreed to. What the run has trained is lost: start all servers anew, from "
            "a snapshot if there is one"
        )

    def _incarnations(self) -> dict[int, int]:
        return {s: self._view.incarnation(s) for s in self._view.peers}

    # -- what is to be -----------------------------------------------------------------

    def wanted(
        self,
        now: float,
        workers: Collection[int],
        positions: Mapping[int, Position],
        ready: Mapping[int, int],
        *,
        joining: Sequence[str] = (),
        sizes: Mapping[int, float] | None = None,
    ) -> View | None:
        """Returns the view that this server would propose; None if it has no reason to.

        Args:
          now: the time.
          workers: those that are heard.
          positions: of this server's shards.
          ready: server that has caught up, by shard that this one serves.
          joining: addresses of servers that want to join.
          sizes: bytes of the shards that this server serves.
        """
        view, there = self._view, self.there(now)
        stalled = self._is_stalled(now, there, workers)
        self._meets = self._is_over(there) or (stalled and not self._strangers(there))
        if self._meets:
            return self._meeting(there, workers, positions)
        if not self.inside() or self._is_new(now):
            return None
        same = {s for s, which in there.items() if view.incarnation(s) == which}
        after = view
        if self._number == min(same):
            everybody = range(len(view.addresses))
            after = successor(view, {*everybody} - same) or view
            servers = tuple(there.get(s, 0) for s in everybody)
            after = after._replace(servers=servers, workers=tuple(sorted(workers)))
            after = self._orphans_served(after, same, positions)
            after = replanned(
                after,
                there=there,
                leaving=self._leaving(),
                lost=self._lost(now, there),
                joining=joining,
                weights=self._sizes(sizes or {}),
            )
            after = settled(after)
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
        others = len(self._view.peers) - 1
        return len(self._heard) < others and now - self._began <= self._silent_after

    def _lost(self, now: float, there: Collection[int]) -> set[int]:
        """Returns the members that have not been heard for too long."""
        missed = [s for s in self._view.members if s not in there]
        self._missed = {s: self._missed.get(s, now) for s in missed}
        return {s for s, t in self._missed.items() if now - t > self._gone_after}

    def _sizes(self, own: Mapping[int, float]) -> dict[int, float]:
        """Returns the bytes of each shard, as its server said last."""
        found = {n: x for heard in self._heard.values() for n, x in heard.sizes.items()}
        return {**found, **own}

    def _meeting(
        self,
        there: Mapping[int, int],
        workers: Collection[int],
        positions: Mapping[int, Position],
    ) -> View | None:
        """Returns the view with which a run begins, or begins again.

        Servers that read logs may not be equally far: who is farthest serves. A worker
        has to be there, too, or two servers could not go on without one of them. What
        only servers hold that are not there waits for them.
        """
        view = self._view
        peers = [s for s in view.peers if s in there]
        if self._number != min(peers) or not workers:
            return None
        at = self._positions(positions)
        epochs = [p.epoch for found in at.values() for p in found.values()]
        present = [[s for s in held if s in there] for held in view.holders]
        which = (there[s] if s in peers else 0 for s in range(len(view.addresses)))
        return view._replace(
            epoch=1 + max([view.epoch, *epochs]),
            holders=tuple(
                _farthest(at, shard, servers) if servers else view.holders[shard]
                for shard, servers in enumerate(present)
            ),
            servers=tuple(which),
            workers=tuple(sorted(workers)),
            run=view.run or secrets.randbits(62) or 1,
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
            back = [s for s in held if after.incarnation(s)]
            if not back or set(held) & set(same):
                continue
            full = [s for s in back if at[s].get(shard, _NOWHERE).entries]
            if full:
                holders[shard] = _farthest(at, shard, full)
            elif len(back) < len(held):
                for server in back:
                    servers[server] = self._view.incarnation(server)
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
        # All servers meet, so whatever one of them has accepted before is known.
        met = self._meets
        voters = tuple(filter(None, wanted.servers)) if met else self._view.voters
        self._proposal = Proposal(wanted, ballot, self._view, voters, unanimous=met)
        for voter in voters:
            self._send(voter, self._message(messages.Prepare(*ballot)))
        return True

    def on_promise(self, message: Message, promised: messages.Promised) -> None:
        """Takes a promise; puts a view to the vote when there are enough."""
        proposal = self._mine(message)
        if proposal is None:
            return
        promise = Promise(proposal.ballot, accepted_of(promised))
        vote = proposal.note_promise(promised.voter, promise)
        if vote is not None:
            ask = self._message(messages.PutToVote(*vote.ballot, vote.view.to_json()))
            for voter in proposal.voters:
                self._send(voter, ask)

    def on_vote_ok(self, message: Message, accepted: messages.Accepted) -> View | None:
        """Takes a vote; returns the view once it is decided."""
        proposal = self._mine(message)
        if proposal is None:
            return None
        return proposal.note_accepted(accepted.voter, proposal.ballot)

    def answer(self, message: Message) -> Message | None:
        """Answers `Prepare` or `PutToVote` as a voter."""
        answer = answer_of(self._voter, self._incarnation, message)
        if answer is not None and isinstance(message.fields, messages.Prepare):
            self._turn = max(self._turn, message.fields.turn)
        return answer

    def _mine(self, message: Message) -> Proposal | None:
        proposal = self._proposal
        if proposal is None or message.epoch != self._view.epoch:
            return None
        if proposal.ballot < self._voter.promised:
            return None  # another one has taken over; it may ask other voters
        return proposal if ballot_of(message.fields) == proposal.ballot else None

    def _message(self, fields: Any) -> Message:
        return Message.of(fields, epoch=self._view.epoch)


def _farthest(
    at: Mapping[int, Mapping[int, Position]], shard: int, servers: Collection[int]
) -> tuple[int, ...]:
    """Returns the servers that are farthest with a shard: they have all of it."""
    most = max(at[server].get(shard, _NOWHERE) for server in servers)
    return tuple(s for s in servers if at[s].get(shard, _NOWHERE) == most)
