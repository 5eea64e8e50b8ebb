"""Agreement on the next view: a vote by Paxos, without input or output.

The voters of a view decide once which view is next: a proposer first asks for promises
under a ballot of its own, and adopts a view that a voter has accepted already. So a
proposer that dies halfway leaves nothing that another could contradict, and two
proposers at once, or lost, late and duplicated messages, give one next view or none
yet. A vote counts for one epoch only; the voters of the next one begin anew.

A restarted process has forgotten its promises: it is another voter (another number),
and votes when a view has taken it in.

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
    """An attempt to decide; of two, the greater one counts.

    Attributes:
      turn: grows with each attempt.
      proposer: the server whose attempt it is.
    """

    turn: int
    proposer: int


class Vote(NamedTuple):
    """What a voter has accepted."""

    ballot: Ballot
    view: View


class Promise(NamedTuple):
    """A voter's promise to accept nothing of a lesser ballot.

    Attributes:
      ballot: that it is given to.
      accepted: what the voter has accepted before; None: nothing.
    """

    ballot: Ballot
    accepted: Vote | None


class Voter:
    """What one process has promised and accepted about the view that follows its own.

    Args:
      epoch: of its view.
    """

    epoch: int

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._promised = Ballot(0, -1)
        self._accepted: Vote | None = None

    @property
    def promised(self) -> Ballot:
        """The greatest ballot that it has promised itself to."""
        return self._promised

    @property
    def has_promised(self) -> bool:
        """Whether the view that follows may be decided with it."""
        return self._promised.proposer >= 0

    def promise(self, epoch: int, ballot: Ballot) -> Promise | None:
        """Returns a promise; None if another view is its own, or a greater ballot's."""
        if epoch != self.epoch or ballot < self._promised:
            return None
        self._promised = ballot
        return Promise(ballot, self._accepted)

    def accept(self, epoch: int, vote: Vote) -> bool:
        """Returns whether it votes for a view; not if it promised a greater ballot."""
        if epoch != self.epoch or vote.ballot < self._promised:
            return False
        self._promised = vote.ballot
        self._accepted = vote
        return True

    def enter(self, epoch: int) -> None:
        """Begins anew with a view that was decided; an older one changes nothing."""
        if epoch > self.epoch:
            self.epoch = epoch
            self._promised, self._accepted = Ballot(0, -1), None


class Proposal:
    """One attempt of a server to have a view decided.

    Args:
      wanted: the view.
      ballot: of this attempt; a server never uses one twice.
      view: the voters', which is left.
      voters: those of the view that is left.
      unanimous: whether all of them must agree. So it is where processes meet that the
        view does not know: one that is restarted meanwhile has forgotten its promises.
    """

    ballot: Ballot
    epoch: int
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
        """Returns what is put to the vote, once: when a majority has promised."""
        if voter in self.voters and promise.ballot == self.ballot:
            self._promises[voter] = promise
        if self._vote is not None or not self._is_quorum(self._promises):
            return None
        before = [p.accepted for p in self._promises.values() if p.accepted is not None]
        # It may have been decided already: nothing else may be.
        view = max(before, key=lambda vote: vote.ballot).view if before else None
        self._vote = Vote(self.ballot, view or self._wanted)
        return self._vote

    def note_accepted(self, voter: int, ballot: Ballot) -> View | None:
        """Returns the view that is decided; None while no majority has accepted."""
        if self._vote is None or ballot != self.ballot or voter not in self.voters:
            return None
        self._accepted.add(voter)
        return self._vote.view if self._is_quorum(self._accepted) else None

    def _is_quorum(self, voters: Collection[int]) -> bool:
        if self._unanimous:
            return len(voters) == len(self.voters)
        return is_quorum(voters, self.voters)


def is_quorum(some: Collection[int], voters: Sequence[int]) -> bool:
    """Returns whether any other quorum has a voter in common with this one.

    Args:
      some: of the voters.
      voters: all of them.
    """
    if 2 * len(some) == len(voters):
        # One of two halves has the first voter.
        return voters[0] in some
    return 2 * len(some) > len(voters)


def successor(view: View, silent: Collection[int]) -> View | None:
    """Returns the view without servers that are silent; None if it would be the same.

    What only silent servers hold stays with them: it waits until one comes back.
    """
    after = view
    for server in sorted(silent):
        after = without(after, server)
    # Each of a shard's holders has all of it: whichever comes back first will do.
    holders = tuple(
        held if set(held) <= set(silent) else new
        for held, new in zip(view.holders, after.holders, strict=True)
    )
    if holders == view.holders:
        return None
    return view._replace(epoch=view.epoch + 1, holders=holders)


# -- messages --------------------------------------------------------------------------


def ballot_of(
    said: messages.Prepare | messages.Promised | messages.PutToVote | messages.Accepted,
) -> Ballot:
    """Returns the ballot that a message is about."""
    return Ballot(said.turn, said.proposer)


def answer_of(voter: Voter, number: int, message: Message) -> Message | None:
    """Returns a voter's answer to `Prepare` or `PutToVote`; None if it may not answer.

    Args:
      voter: of a server or a worker.
      number: of the voter, in the view.
      message: of a proposer.

    Raises:
      ValueError: the message has no view.
    """
    said: messages.Prepare | messages.PutToVote = message.fields
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
    """Returns the vote that a voter accepted before its promise; None: there was none.

    Raises:
      ValueError: it is not a vote.
    """
    said = promised.accepted
    if said is None:
        return None
    try:
        ballot = Ballot(int(said["turn"]), int(said["proposer"]))
        return Vote(ballot, View.from_json(said["view"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a vote: {error!r}") from error
