"""One server's part in agreeing on the next view: failure detection and proposals.

Every server receives the heartbeats of the others. The view changes when a server falls
silent or restarts as another process, and when workers, which vote, join or leave. The
lowest-numbered live server proposes the next view, and plans which servers should hold
which shards as servers join and leave (`views.replanned`). The primary of a shard also
proposes the servers that have caught up with it. `paxos` holds the rules of the vote.

If many voters die at the same moment, no majority may be left. The servers then
bootstrap the run again, unanimously, if each of them is the process of the view or has
restarted with its log. This is safe: only a server of the view can have proposed the
next one, and it stores a decided view before it serves anything in it. Together they
therefore know the last view that counts, whatever the lost voters had accepted.
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
from fxflow.distributed.parameter_server.server.ledger import Position
from fxflow.distributed.parameter_server.views import (
    Places,
    View,
    replanned,
    settled,
    with_holder,
    with_places,
)

#: Seconds without a quorum after which servers bootstrap again, and after which servers
#: that cannot do so report it.
_STALLED, _LOST = 1.0, 4.0
#: Seconds that a proposal waits for votes before the next one, times 1 to 2 at random.
_PATIENCE = 0.15
_EMPTY = Position(0, 0)


@dataclasses.dataclass(frozen=True)
class Heard:
    """A heartbeat of a server.

    Attributes:
      incarnation: the server's incarnation.
      positions: the positions of its shards, by number.
      when: the time at which the heartbeat was read.
      leaving: whether the server wants to leave the run.
      kept: whether the server began with a view that it had stored on disk.
      sizes: the bytes of each shard that it serves.
    """

    incarnation: int
    positions: Mapping[int, Position]
    when: float
    leaving: bool = False
    kept: bool = False
    sizes: Mapping[int, float] = dataclasses.field(default_factory=dict)


class ViewAgreement:
    """Tracks which servers are alive, proposes views, and votes on them.

    Args:
      number: the server's number.
      incarnation: the server's incarnation.
      view: the initial view.
      silent_after: seconds after which a silent server counts as lost.
      send: sends a message to a voter.
      gone_after: seconds after which other servers get the shards of a silent one.
      kept: whether this server began with a view that it had stored on disk.

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
        #: Silent member → since when it has been silent.
        self._missed: dict[int, float] = {}
        self._voter = Voter(view.epoch)
        self._turn = 0
        self._proposal: Proposal | None = None
        self._until = 0.0
        #: The time of the first call of `wanted`.
        self._began: float | None = None
        #: Since when the view has lacked a quorum; None if it has one.
        self._stalled_since: float | None = None
        #: Whether the next view bootstraps the run: all its servers must accept it.
        self._bootstraps = False

    # -- live servers ------------------------------------------------------------------

    def hear(self, server: int, heard: Heard) -> None:
        """Notes a heartbeat of another server."""
        before = self._heard.get(server)
        if before and before.leaving and before.incarnation == heard.incarnation:
            heard = dataclasses.replace(heard, leaving=True)  # it arrived late
        self._heard[server] = heard

    def enter(self, view: View) -> None:
        """Enters a decided view."""
        self._view = view
        self._voter.enter(view.epoch)
        self._proposal, self._until = None, 0.0

    def live(self, now: float) -> dict[int, int]:
        """Returns the live servers, including this one, with their incarnations."""
        found = {
            server: heard.incarnation
            for server, heard in self._heard.items()
            if now - heard.when <= self._silent_after
        }
        found[self._number] = self._incarnation
        return found

    def by_incarnation(self) -> dict[int, int]:
        """Returns the server of each incarnation, including this one's."""
        heard = {heard.incarnation: s for s, heard in self._heard.items()}
        return {**heard, self._incarnation: self._number}

    def absent(self, now: float) -> list[int]:
        """Returns the servers of the view that are silent."""
        live = self.live(now)
        return [s for s in self._view.peers if s not in live]

    def in_view(self) -> bool:
        """Returns whether the view has this process, not only this address."""
        return self._view.incarnation(self._number) == self._incarnation

    def stalled(self) -> bool:
        """Returns whether too few of the view's voters are live for a quorum."""
        return self._stalled_since is not None

    def has_promised(self) -> bool:
        """Returns whether a view unknown to this server may have been decided."""
        return self._voter.has_promised

    def has_successors(self) -> bool:
        """Returns whether a member, perhaps a silent one, is not leaving."""
        return bool({*self._view.members} - self._leaving())

    def _leaving(self) -> set[int]:
        found = {s for s, heard in self._heard.items() if heard.leaving}
        return found | {self._number} if self.leaving else found - {self._number}

    def _all_restarted(self, live: Mapping[int, int]) -> bool:
        """Returns whether all servers are live, and none is the process of the view.

        This holds at the start of a run, and after all servers were restarted: no
        process is left that has proposed the next view, or could.
        """
        return all(live.get(s, w) != w for s, w in self._incarnations().items())

    def _is_stalled(
        self, now: float, live: Mapping[int, int], workers: Collection[int]
    ) -> bool:
        """Returns whether the view has lacked a quorum of its voters for a while."""
        known = self._incarnations().items()
        servers = [which for s, which in known if which and live.get(s) == which]
        voting = {*servers, *workers} & {*self._view.voters}
        if not self._view.run or is_quorum(voting, self._view.voters):
            self._stalled_since = None
            return False
        if self._stalled_since is None:
            self._stalled_since = now
        return now - self._stalled_since >= max(_STALLED, 2 * self._silent_after)

    def _unrecovered(self, live: Mapping[int, int]) -> list[int]:
        """Returns the servers of the view that are silent, or restarted without a log.

        Only a process of the view, or one with its log, knows its last view.
        """
        known = {s for s, heard in self._heard.items() if heard.kept}
        known |= {self._number} if self._kept else set()
        return [
            s
            for s, which in self._incarnations().items()
            if which and live.get(s) != which and (s not in known or s not in live)
        ]

    def lost(self, now: float) -> str:
        """Returns why no view can follow the current one; empty if one may.

        Args:
          now: the current time.
        """
        since, live = self._stalled_since, self.live(now)
        unrecovered = self._unrecovered(live)
        if since is None or now - since < _LOST or {*unrecovered} - {*live}:
            return ""
        if not unrecovered or self._all_restarted(live):
            return ""
        servers = ", ".join(map(str, unrecovered))
        return (
            "no view can follow: a majority of the servers and workers that decide on "
            f"it ended at the same moment, and servers that restarted ({servers}) have "
            "no log (--folder, or --ps-folder of fxflow launch) of what they had "
            "agreed to. What the run has trained is lost: restart all servers, from a "
            "snapshot if there is one"
        )

    def _incarnations(self) -> dict[int, int]:
        return {s: self._view.incarnation(s) for s in self._view.peers}

    # -- the next view -----------------------------------------------------------------

    def wanted(
        self,
        now: float,
        workers: Collection[int],
        positions: Mapping[int, Position],
        ready: Mapping[int, int],
        *,
        joining: Sequence[str] = (),
        sizes: Mapping[int, float] | None = None,
        places: Places | None = None,
    ) -> View | None:
        """Returns the view that this server should propose; None if it should not.

        Args:
          now: the current time.
          workers: the numbers of the live workers.
          positions: the positions of this server's shards.
          ready: shard that this server serves → a server that has caught up with it.
          joining: addresses of servers that want to join.
          sizes: the bytes of each shard that this server serves.
          places: planned servers that were requested for this view.
        """
        view, live = self._view, self.live(now)
        stalled = self._is_stalled(now, live, workers)
        self._bootstraps = self._all_restarted(live) or (
            stalled and not self._unrecovered(live)
        )
        if self._bootstraps:
            return self._bootstrap(live, workers, positions)
        if not self.in_view() or self._is_new(now):
            return None
        unchanged = {s for s, which in live.items() if view.incarnation(s) == which}
        after = view
        if self._number == min(unchanged):
            numbers = range(len(view.addresses))
            after = successor(view, {*numbers} - unchanged) or view
            servers = tuple(live.get(s, 0) for s in numbers)
            after = after._replace(servers=servers, workers=tuple(sorted(workers)))
            after = self._with_returned(after, unchanged, positions)
            after = replanned(
                after,
                live=live,
                leaving=self._leaving(),
                lost=self._departed(now, live),
                joining=joining,
                weights=self._sizes(sizes or {}),
            )
            if places and after.members == view.members:
                after = with_places(after, places)
            after = settled(after)
        for shard, server in ready.items():
            if server in unchanged and self._number in after.holders[shard]:
                after = with_holder(after, shard, server)
        after = after._replace(epoch=view.epoch)
        # This server's last proposal may have been decided without its knowledge: a
        # proposal of any view finds out.
        if after == view and self._proposal is None:
            return None
        return after._replace(epoch=view.epoch + 1)

    def _is_new(self, now: float) -> bool:
        """Returns whether this process is too new to judge another one silent."""
        self._began = now if self._began is None else self._began
        others = len(self._view.peers) - 1
        return len(self._heard) < others and now - self._began <= self._silent_after

    def _departed(self, now: float, live: Collection[int]) -> set[int]:
        """Returns the members that have been silent for more than `gone_after`."""
        missed = [s for s in self._view.members if s not in live]
        self._missed = {s: self._missed.get(s, now) for s in missed}
        return {s for s, t in self._missed.items() if now - t > self._gone_after}

    def _sizes(self, own: Mapping[int, float]) -> dict[int, float]:
        """Returns the bytes of each shard, as its primary last reported them."""
        found = {n: x for heard in self._heard.values() for n, x in heard.sizes.items()}
        return {**found, **own}

    def _bootstrap(
        self,
        live: Mapping[int, int],
        workers: Collection[int],
        positions: Mapping[int, Position],
    ) -> View | None:
        """Returns the view that starts or restarts the run; None: not proposed here.

        Servers that read logs may differ in position: the most advanced ones serve. A
        worker must be live too, since of two voters neither could continue without the
        other. A shard held only by absent servers waits for them.
        """
        view = self._view
        peers = [s for s in view.peers if s in live]
        if self._number != min(peers) or not workers:
            return None
        at = self._positions(positions)
        epochs = [p.epoch for found in at.values() for p in found.values()]
        present = [[s for s in held if s in live] for held in view.holders]
        which = (live[s] if s in peers else 0 for s in range(len(view.addresses)))
        return view._replace(
            epoch=1 + max([view.epoch, *epochs]),
            holders=tuple(
                _most_advanced(at, shard, servers) if servers else view.holders[shard]
                for shard, servers in enumerate(present)
            ),
            servers=tuple(which),
            workers=tuple(sorted(workers)),
            run=view.run or secrets.randbits(62) or 1,
        )

    def _with_returned(
        self, after: View, unchanged: Collection[int], positions: Mapping[int, Position]
    ) -> View:
        """Returns the view with restarted holders for shards that lost all holders.

        A holder that restarts with its log has every acknowledged entry. One that
        restarts without it must not serve while another may return with a log.
        """
        at = self._positions(positions)
        holders, servers = list(after.holders), list(after.servers)
        for shard, held in enumerate(after.holders):
            back = [s for s in held if after.incarnation(s)]
            if not back or set(held) & set(unchanged):
                continue
            full = [s for s in back if at[s].get(shard, _EMPTY).entries]
            if full:
                holders[shard] = _most_advanced(at, shard, full)
            elif len(back) < len(held):
                for server in back:
                    servers[server] = self._view.incarnation(server)
        return after._replace(holders=tuple(holders), servers=tuple(servers))

    def _positions(
        self, own: Mapping[int, Position]
    ) -> dict[int, Mapping[int, Position]]:
        """Returns the positions of each server's shards, as it last reported them."""
        reported = {s: heard.positions for s, heard in self._heard.items()}
        return {**reported, self._number: own}

    # -- proposals ---------------------------------------------------------------------

    def propose(self, wanted: View, now: float) -> bool:
        """Proposes a view to the voters, unless an attempt is under way.

        Returns:
          Whether it was proposed.
        """
        if now < self._until:
            return False
        self._until = now + _PATIENCE * (1 + random.random())
        self._turn += 1
        ballot = Ballot(self._turn, self._number)
        # All servers vote on a bootstrap, so what any of them had accepted is known.
        every = self._bootstraps
        voters = tuple(filter(None, wanted.servers)) if every else self._view.voters
        self._proposal = Proposal(wanted, ballot, self._view, voters, unanimous=every)
        for voter in voters:
            self._send(voter, self._message(messages.Prepare(*ballot)))
        return True

    def on_promise(self, message: Message, promised: messages.Promised) -> None:
        """Counts a promise; puts a view to the vote once there are enough."""
        proposal = self._current_proposal(message)
        if proposal is None:
            return
        promise = Promise(proposal.ballot, accepted_of(promised))
        vote = proposal.note_promise(promised.voter, promise)
        if vote is not None:
            ask = self._message(messages.Accept(*vote.ballot, vote.view.to_json()))
            for voter in proposal.voters:
                self._send(voter, ask)

    def on_accepted(self, message: Message, accepted: messages.Accepted) -> View | None:
        """Counts a vote; returns the view once it is decided."""
        proposal = self._current_proposal(message)
        if proposal is None:
            return None
        return proposal.note_accepted(accepted.voter, proposal.ballot)

    def answer(self, message: Message) -> Message | None:
        """Answers `Prepare` or `Accept` as a voter."""
        answer = answer_of(self._voter, self._incarnation, message)
        if answer is not None and isinstance(message.fields, messages.Prepare):
            self._turn = max(self._turn, message.fields.turn)
        return answer

    def _current_proposal(self, message: Message) -> Proposal | None:
        proposal = self._proposal
        if proposal is None or message.epoch != self._view.epoch:
            return None
        if proposal.ballot < self._voter.promised:
            return None  # a later proposal, perhaps to other voters, has taken over
        return proposal if ballot_of(message.fields) == proposal.ballot else None

    def _message(self, fields: Any) -> Message:
        return Message.of(fields, epoch=self._view.epoch)


def _most_advanced(
    at: Mapping[int, Mapping[int, Position]], shard: int, servers: Collection[int]
) -> tuple[int, ...]:
    """Returns the servers with the highest position of a shard."""
    most = max(at[server].get(shard, _EMPTY) for server in servers)
    return tuple(s for s in servers if at[s].get(shard, _EMPTY) == most)
