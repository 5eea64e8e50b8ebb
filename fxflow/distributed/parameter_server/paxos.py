"""Agreement on the next view: a vote by Paxos, without I/O.

The voters of a view decide once which view is next. A proposer first requests promises
for its ballot, and adopts the view that a voter has already accepted, if any. Another
proposer can therefore never contradict one that died halfway, and concurrent
proposers, or lost, late and duplicated messages, lead to one next view or to none yet.
A vote counts for one epoch only; the voters of the next one start afresh.

A restarted process has forgotten its promises: it is a new voter, with a new number,
and votes as soon as a view includes it.

Reference: Lamport 1998, "The part-time parliament"; Lamport, Malkhi, Zhou 2009,
"Vertical Paxos and primary-backup replication".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.views import View, without


class Ballot(NamedTuple):
    """An attempt to decide; a greater ballot supersedes a lesser one.

    Attributes:
      turn: increases with each attempt.
      proposer: the server that makes the attempt.
    """

    turn: int
    proposer: int


class Vote(NamedTuple):
    """A view that a voter accepts, and the ballot that proposes it."""

    ballot: Ballot
    view: View


class Promise(NamedTuple):
    """A voter's promise to accept nothing from a lesser ballot.

    Attributes:
      ballot: the ballot that requested the promise.
      accepted: the last vote that the voter accepted; None: none.
    """

    ballot: Ballot
    accepted: Vote | None


class Voter:
    """What one process has promised and accepted about the next view.

    Args:
      epoch: epoch of the process's view.
    """

    epoch: int

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._promised = Ballot(0, -1)
        self._accepted: Vote | None = None

    @property
    def promised(self) -> Ballot:
        """The greatest ballot that this voter has promised or accepted."""
        return self._promised

    @property
    def has_promised(self) -> bool:
        """Whether this voter may have taken part in deciding the next view."""
        return self._promised.proposer >= 0

    def promise(self, epoch: int, ballot: Ballot) -> Promise | None:
        """Returns a promise; None in another epoch, or after a greater ballot."""
        if epoch != self.epoch or ballot < self._promised:
            return None
        self._promised = ballot
        return Promise(ballot, self._accepted)

    def accept(self, epoch: int, vote: Vote) -> bool:
        """Accepts a vote if no greater ballot was promised; returns whether it did."""
        if epoch != self.epoch or vote.ballot < self._promised:
            return False
        self._promised = vote.ballot
        self._accepted = vote
        return True

    def enter(self, epoch: int) -> None:
        """Starts afresh with a decided view; an older view changes nothing."""
        if epoch > self.epoch:
            self.epoch = epoch
            self._promised, self._accepted = Ballot(0, -1), None


class Proposal:
    """One attempt of a server to get a view decided.

    Args:
      wanted: the proposed view.
      ballot: ballot of this attempt; a server never reuses one.
      view: the present view, which the proposed one follows.
      voters: voters of the present view.
      unanimous: whether all of them must agree. This is necessary while the view does
        not know the processes: one that restarts meanwhile forgets its promises.
    """

    epoch: int
    ballot: Ballot
    voters: tuple[int, ...]

    def __init__(
        self,
        wanted: View,
        ballot: Ballot,
        view: View,
        voters: Sequence[int],
        *,
        unanimous: bool = False,
    ) -> None:
        self.epoch, self.ballot = view.epoch, ballot
        self.voters = tuple(voters)
        self._unanimous = unanimous
        self._wanted = wanted
        self._promises: dict[int, Promise] = {}
        self._accepted: set[int] = set()
        self._vote: Vote | None = None

    def note_promise(self, voter: int, promise: Promise) -> Vote | None:
        """Returns the vote to request, once, when a quorum has promised; else None."""
        if voter in self.voters and promise.ballot == self.ballot:
            self._promises[voter] = promise
        if self._vote is not None or not self._is_quorum(self._promises):
            return None
        before = [p.accepted for p in self._promises.values() if p.accepted is not None]
        # A view that a voter has accepted may be decided already: propose it again.
        view = max(before, key=lambda vote: vote.ballot).view if before else None
        self._vote = Vote(self.ballot, view or self._wanted)
        return self._vote

    def note_accepted(self, voter: int, ballot: Ballot) -> View | None:
        """Returns the decided view; None until a quorum has accepted."""
        if self._vote is None or ballot != self.ballot or voter not in self.voters:
            return None
        self._accepted.add(voter)
        return self._vote.view if self._is_quorum(self._accepted) else None

    def _is_quorum(self, voters: Collection[int]) -> bool:
        if self._unanimous:
            return len(voters) == len(self.voters)
        return is_quorum(voters, self.voters)


def is_quorum(some: Collection[int], voters: Sequence[int]) -> bool:
    """Returns whether some voters are a quorum: any two quorums have a common voter.

    Args:
      some: some of the voters.
      voters: all voters.
    """
    if 2 * len(some) == len(voters):
        # Exactly one of two halves has the first voter.
        return voters[0] in some
    return 2 * len(some) > len(voters)


def successor(view: View, silent: Collection[int]) -> View | None:
    """Returns the view without silent servers; None if it would be the same.

    A shard that only silent servers hold stays with them until one returns.
    """
    after = view
    for server in sorted(silent):
        after = without(after, server)
    # Each holder has the whole shard: the first one to return can serve it.
    holders = tuple(
        held if set(held) <= set(silent) else new
        for held, new in zip(view.holders, after.holders, strict=True)
    )
    if holders == view.holders:
        return None
    return view._replace(epoch=view.epoch + 1, holders=holders)


# -- messages --------------------------------------------------------------------------


def ballot_of(
    said: messages.Prepare | messages.Promised | messages.Accept | messages.Accepted,
) -> Ballot:
    """Returns the ballot of a message."""
    return Ballot(said.turn, said.proposer)


def answer_of(voter: Voter, number: int, message: Message) -> Message | None:
    """Returns a voter's answer to `Prepare` or `Accept`; None if it may not answer.

    Args:
      voter: the voter of a server or a worker.
      number: number of the voter in the view.
      message: message from a proposer.

    Raises:
      ValueError: the message has no view.
    """
    said: messages.Prepare | messages.Accept = message.fields
    ballot = ballot_of(said)
    if isinstance(said, messages.Prepare):
        promise = voter.promise(message.epoch, ballot)
        if promise is None:
            return None
        vote = promise.accepted
        accepted = None
        if vote is not None:
            accepted = {**vote.ballot._asdict(), "view": vote.view.to_json()}
        answer: Any = messages.Promised(*ballot, number, accepted)
    else:
        vote = Vote(ballot, View.from_json(said.view))
        if not voter.accept(message.epoch, vote):
            return None
        answer = messages.Accepted(*ballot, number)
    return Message.of(answer, epoch=message.epoch)


def accepted_of(promised: messages.Promised) -> Vote | None:
    """Returns the vote that a voter accepted before its promise; None: none.

    Raises:
      ValueError: the message has something else.
    """
    said = promised.accepted
    if said is None:
        return None
    try:
        ballot = Ballot(int(said["turn"]), int(said["proposer"]))
        return Vote(ballot, View.from_json(said["view"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a vote: {error!r}") from error
