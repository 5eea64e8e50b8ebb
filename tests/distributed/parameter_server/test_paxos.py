import random

import pytest

from fxflow.distributed.parameter_server.paxos import (
    Ballot,
    Proposal,
    Voter,
    successor,
)
from fxflow.distributed.parameter_server.views import first_view

VIEW = first_view(("a", "b", "c"), 2)._replace(servers=(1, 2, 3))


def decide(seed: int, voters: int) -> tuple[set, bool]:
    """Runs proposers over a network that loses, duplicates and delays messages."""
    rng = random.Random(seed)
    ends = [Voter(VIEW.epoch) for _ in range(voters)]
    decided = set()
    in_flight: list[tuple] = []
    proposals: dict[Ballot, Proposal] = {}

    def send(*message: object) -> None:
        in_flight.extend([message] * rng.choice((0, 1, 1, 1, 2)))

    turn = 0
    for _ in range(300):
        if not in_flight or rng.random() < 0.04:
            turn += 1
            server = rng.randrange(3)
            wanted = successor(VIEW, {(server + 1) % 3})
            ballot = Ballot(turn - rng.randrange(min(turn, 2)), server)
            if ballot in proposals:
                continue
            proposals[ballot] = Proposal(wanted, ballot, VIEW, range(voters))
            for voter in range(voters):
                send("prepare", ballot, voter)
            continue
        kind, ballot, voter, *rest = in_flight.pop(rng.randrange(len(in_flight)))
        end, proposal = ends[voter], proposals[ballot]
        if kind == "prepare":
            promise = end.promise(VIEW.epoch, ballot)
            if promise is not None:
                send("promise", ballot, voter, promise)
        elif kind == "promise":
            vote = proposal.note_promise(voter, *rest)
            if vote is not None:
                for other in range(voters):
                    send("vote", ballot, other, vote)
        elif kind == "vote":
            if end.accept(VIEW.epoch, *rest):
                send("accepted", ballot, voter)
        else:
            view = proposal.note_accepted(voter, ballot)
            if view is not None:
                decided.add(view)
    return decided, len(proposals) > 1


@pytest.mark.parametrize("voters", [2, 3, 4, 5])
def test_at_most_one_view_is_decided_on_any_network(voters: int) -> None:
    found = [decide(seed, voters) for seed in range(100)]
    assert all(len(views) <= 1 for views, _ in found)
    assert sum(len(views) == 1 and several for views, several in found) > 30


def test_a_later_proposer_adopts_a_view_that_may_have_been_decided() -> None:
    ends = [Voter(1) for _ in range(3)]
    first, second = successor(VIEW, {1}), successor(VIEW, {2})
    one = Proposal(first, Ballot(1, 0), VIEW, range(3))
    for i in (0, 1):
        vote = one.note_promise(i, ends[i].promise(1, one.ballot))
    assert ends[1].accept(1, vote)  # then the proposer dies
    two = Proposal(second, Ballot(2, 1), VIEW, range(3))
    assert two.note_promise(1, ends[1].promise(1, two.ballot)) is None
    vote = two.note_promise(2, ends[2].promise(1, two.ballot))
    assert vote.view == first


def test_a_voter_keeps_a_promise_until_the_next_view() -> None:
    voter = Voter(1)
    assert not voter.has_promised
    assert voter.promise(1, Ballot(3, 0)) is not None
    assert voter.has_promised
    assert voter.promise(1, Ballot(2, 5)) is None
    assert voter.promise(2, Ballot(9, 0)) is None
    voter.enter(2)
    voter.enter(1)
    assert not voter.has_promised
    assert voter.promise(2, Ballot(1, 0)) == (Ballot(1, 0), None)


def test_votes_of_non_voters_and_of_other_ballots_do_not_count() -> None:
    proposal = Proposal(successor(VIEW, {0}), Ballot(1, 1), VIEW, (7, 8, 9))
    promise = Voter(1).promise(1, Ballot(1, 1))
    assert proposal.note_promise(1, promise) is None
    assert proposal.note_promise(7, promise) is None
    assert proposal.note_promise(7, promise) is None
    assert proposal.note_promise(8, promise) is not None
    assert proposal.note_accepted(7, Ballot(1, 1)) is None
    assert proposal.note_accepted(8, Ballot(1, 0)) is None
    assert proposal.note_accepted(9, Ballot(1, 1)) == successor(VIEW, {0})


def test_two_servers_and_two_workers_survive_the_loss_of_one_server() -> None:
    view = first_view(("a", "b"), 2)._replace(servers=(1, 2))
    proposal = Proposal(successor(view, {0}), Ballot(1, 1), view, range(4))
    ends = {i: Voter(1) for i in (1, 2, 3)}
    votes = [
        proposal.note_promise(i, e.promise(1, proposal.ballot)) for i, e in ends.items()
    ]
    assert votes[:2] == [None, None]
    assert all(e.accept(1, votes[2]) for e in ends.values())
    decided = [proposal.note_accepted(i, proposal.ballot) for i in ends]
    assert decided[2].holders == ((1,), (1,))
    assert decided[2].epoch == 2


def test_a_shard_without_other_holders_stays_with_its_silent_ones() -> None:
    after = successor(VIEW, {0, 1})
    assert after.holders == ((0, 1), (2,), (2,))
    assert successor(after, {0, 1}) is None


def test_the_half_with_the_first_voter_is_a_quorum() -> None:
    for half, enough in (((1, 2), True), ((3, 4), False)):
        proposal = Proposal(successor(VIEW, {0}), Ballot(1, 1), VIEW, (1, 2, 3, 4))
        votes = [
            proposal.note_promise(i, Voter(1).promise(1, Ballot(1, 1))) for i in half
        ]
        assert (votes[-1] is not None) == enough


def test_a_unanimous_proposal_needs_all_voters() -> None:
    view = first_view(("a", "b", "c"), 2)
    wanted = view._replace(epoch=2, servers=(1, 2, 3))
    proposal = Proposal(wanted, Ballot(1, 0), view, (1, 2, 3), unanimous=True)
    promises = [Voter(1).promise(1, Ballot(1, 0)) for _ in range(3)]
    votes = [proposal.note_promise(i, p) for i, p in zip((1, 2, 3), promises)]
    assert votes[:2] == [None, None]
    assert votes[2] == (Ballot(1, 0), wanted)
    decided = [proposal.note_accepted(i, Ballot(1, 0)) for i in (1, 2, 3)]
    assert decided == [None, None, wanted]
