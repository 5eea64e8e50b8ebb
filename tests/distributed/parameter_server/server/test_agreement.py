"""Servers and workers that decide on views, over a queue."""

import pytest

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.paxos import Voter, accepted_of, answer_of
from fxflow.distributed.parameter_server.server.agreement import Heard, ViewAgreement
from fxflow.distributed.parameter_server.server.ledger import Position
from fxflow.distributed.parameter_server.views import View, first_view

FIRST = first_view(["a:1", "b:1", "c:1"], 2)
WORKER = 99
MET = FIRST._replace(epoch=2, servers=(10, 11, 12), workers=(WORKER,))


class Ends:
    """Servers 0, 1, 2 with incarnations 10, 11, 12, and a worker."""

    def __init__(self, view: View) -> None:
        self.sent: list[tuple[int, Message]] = []
        self.views: dict[int, View] = {}
        self.servers = {
            10 + n: ViewAgreement(
                n, 10 + n, view, 0.5, lambda v, m: self.sent.append((v, m))
            )
            for n in range(3)
        }
        self.worker = Voter(view.epoch)

    def hear(self, now: float, *numbers: int) -> None:
        for server in self.servers.values():
            for n in numbers:
                server.hear(n, Heard(10 + n, {0: Position(1, n)}, now))

    def carry(self, lost: int = 0) -> None:
        """Delivers everything but what is for a lost end."""
        while self.sent:
            to, message = self.sent.pop(0)
            if to == lost or (to != WORKER and to not in self.servers):
                continue
            if message.kind in ("prepare", "vote"):
                proposer = 10 + message.fields.proposer
                if to == WORKER:
                    answer = answer_of(self.worker, WORKER, message)
                else:
                    answer = self.servers[to].answer(message)
                if answer is not None:
                    self.sent.append((proposer, answer))
            elif message.kind == "promise":
                self.servers[to].on_promise(message, message.fields)
            else:
                view = self.servers[to].on_accepted(message, message.fields)
                if view is not None:
                    self.views[to] = view


def test_the_run_begins_when_all_servers_and_a_worker_are_live() -> None:
    ends = Ends(FIRST)
    zero = ends.servers[10]
    ends.hear(1.0, 1)
    assert zero.absent(1.1) == [2]
    assert zero.wanted(1.1, {WORKER}, {}, {}) is None
    ends.hear(1.1, 0, 2)
    assert zero.absent(1.2) == []
    assert zero.wanted(1.2, {}, {}, {}) is None
    assert ends.servers[11].wanted(1.2, {WORKER}, {}, {}) is None
    wanted = zero.wanted(1.2, {WORKER}, {}, {})
    assert wanted is not None
    assert wanted.servers == (10, 11, 12) and wanted.workers == (WORKER,)
    # Server 1 read more of shard 0's log than server 0.
    assert wanted.holders == ((1,), (1, 2), (2, 0))
    assert zero.propose(wanted, 1.2) and not zero.propose(wanted, 1.2)
    ends.carry()
    assert ends.views == {10: wanted}


def test_a_silent_server_leaves_and_a_restarted_one_is_another_voter() -> None:
    ends = Ends(MET)
    ends.hear(1.0, 0, 1, 2)
    assert ends.servers[10].wanted(1.2, {WORKER}, {}, {}) is None
    ends.hear(2.0, 0, 1)
    wanted = ends.servers[10].wanted(2.0, {WORKER}, {}, {})
    assert wanted is not None
    assert wanted.servers == (10, 11, 0)
    assert wanted.holders == ((0, 1), (1,), (0,))
    # Only the lowest-numbered live server proposes.
    assert ends.servers[11].wanted(2.0, {WORKER}, {}, {}) is None
    ends.servers[10].hear(2, Heard(77, {}, 2.0))
    again = ends.servers[10].wanted(2.0, {WORKER}, {}, {})
    assert again == wanted._replace(servers=(10, 11, 77))


def test_the_next_server_proposes_if_the_first_is_silent() -> None:
    ends = Ends(MET)
    ends.hear(2.0, 1, 2)
    one = ends.servers[11]
    wanted = one.wanted(2.0, {WORKER}, {}, {})
    assert wanted is not None and wanted.holders == ((1,), (1, 2), (2,))
    assert one.propose(wanted, 2.0)
    ends.carry(lost=10)
    assert ends.views == {11: wanted}


def test_a_worker_that_joins_becomes_a_voter() -> None:
    ends = Ends(MET)
    ends.hear(1.0, 0, 1, 2)
    wanted = ends.servers[10].wanted(1.0, {WORKER, 98}, {}, {})
    assert wanted == MET._replace(epoch=3, workers=(98, WORKER))


def test_a_copy_that_caught_up_is_added_by_the_primary() -> None:
    view = MET._replace(holders=((0,), (1, 2), (2, 0)))
    ends = Ends(view)
    ends.hear(1.0, 0, 1, 2)
    wanted = ends.servers[10].wanted(1.0, {WORKER}, {}, {0: 1})
    assert wanted == view._replace(epoch=3, holders=((0, 1), (1, 2), (2, 0)))


def test_an_empty_restarted_server_does_not_serve_shards_of_another() -> None:
    view = MET._replace(holders=((1, 2), (1, 2), (2, 0)))
    ends = Ends(view)
    zero = ends.servers[10]
    zero.hear(1, Heard(71, {0: Position(0, 0), 1: Position(2, 7)}, 1.0))
    assert zero.wanted(0.4, {WORKER}, {}, {}) is None  # it is too new
    # Server 2 is silent, and may return. Server 1 has shard 1 in its log, not 0.
    wanted = zero.wanted(1.0, {WORKER}, {}, {})
    assert wanted is not None
    assert wanted.servers == (10, 11, 0)
    assert wanted.holders == ((1, 2), (1,), (0,))
    # Server 2 restarts too, and empty: then no server has shard 0.
    zero.hear(2, Heard(72, {}, 1.0))
    wanted = zero.wanted(1.0, {WORKER}, {}, {})
    assert wanted is not None and wanted.servers == (10, 71, 72)
    # Server 2 returns as the process that it was.
    zero.hear(2, Heard(12, {}, 1.0))
    wanted = zero.wanted(1.0, {WORKER}, {}, {})
    assert wanted is not None
    assert (wanted.servers, wanted.holders[0]) == ((10, 71, 12), (2,))


def test_a_proposal_of_unknown_outcome_is_followed_by_another() -> None:
    ends = Ends(MET)
    ends.hear(1.0, 0, 1, 2)
    zero = ends.servers[10]
    wanted = zero.wanted(1.0, {WORKER, 98}, {}, {})
    assert wanted is not None
    assert zero.propose(wanted, 1.0)
    ends.sent.clear()
    same = zero.wanted(1.0, {WORKER}, {}, {})
    assert same == MET._replace(epoch=3)
    assert not zero.propose(same, 1.0)  # the first attempt has time left
    assert zero.propose(same, 2.0)
    ends.carry()
    zero.enter(ends.views[10])
    ends.hear(3.0, 1, 2)
    assert zero.wanted(3.0, {WORKER}, {}, {}) is None


def test_a_process_outside_the_view_proposes_nothing() -> None:
    ends = Ends(MET._replace(servers=(55, 11, 12)))
    ends.hear(1.0, 0, 1, 2)
    assert not ends.servers[10].in_view()
    assert ends.servers[10].wanted(1.0, {}, {}, {0: 1}) is None


# -- a majority of the voters dies at the same moment ----------------------------------

#: Server 2 and all workers are killed: two voters of six are left.
BUSY = MET._replace(run=5, workers=(96, 97, 98))
NEW = (201, 202)


def stalled(ends: Ends, *, kept: bool, number: int = 10) -> View | None:
    """Returns the view that a server wants after server 2 and workers restarted."""
    wanted = None
    for now in (1.0, 1.5, 2.0, 2.5, 6.0):
        ends.hear(now, 0, 1)
        again = Heard(72, {1: Position(2, 9), 2: Position(2, 5)}, now, kept=kept)
        for server in ends.servers.values():
            server.hear(2, again)
        wanted = ends.servers[number].wanted(now, NEW, {0: Position(2, 4)}, {})
        if now < 2.0:  # the workers may be heard again
            assert not ends.servers[number]._bootstraps
    return wanted


def with_the_new(ends: Ends) -> None:
    two = ViewAgreement(
        2, 72, BUSY, 0.5, lambda v, m: ends.sent.append((v, m)), kept=True
    )
    ends.servers[72] = two
    del ends.servers[12]


def test_servers_with_their_logs_bootstrap_the_run_again() -> None:
    ends = Ends(BUSY)
    wanted = stalled(ends, kept=True)
    assert wanted is not None
    assert (wanted.epoch, wanted.run) == (3, 5)
    assert (wanted.servers, wanted.workers) == ((10, 11, 72), NEW)
    # The most advanced holder serves a shard: not always server 2 with its log.
    assert wanted.holders == ((0,), (2,), (2,))
    assert ends.servers[10].lost(6.0) == ""
    # Server 1 is not the first: it proposes nothing.
    assert stalled(ends, kept=True, number=11) is None
    with_the_new(ends)
    assert ends.servers[10].propose(wanted, 6.0)
    ends.carry()
    assert ends.views == {10: wanted}


def test_a_bootstrap_needs_the_votes_of_all_servers() -> None:
    ends = Ends(BUSY)
    wanted = stalled(ends, kept=True)
    assert wanted is not None and ends.servers[10].propose(wanted, 6.0)
    with_the_new(ends)
    ends.carry(lost=11)
    assert ends.views == {}


def test_the_run_is_lost_if_a_server_restarts_without_its_log() -> None:
    ends = Ends(BUSY)
    zero = ends.servers[10]
    wanted = stalled(ends, kept=False)
    assert not zero._bootstraps
    # No server accepts its proposal.
    assert wanted is None or zero.propose(wanted, 6.0)
    ends.carry(lost=12)
    assert ends.views == {}
    why = zero.lost(6.0)
    assert "a majority" in why and "servers that restarted (2) have no log" in why
    assert zero.stalled()
    # Workers that were only silent restore the majority.
    ends.hear(6.1, 0, 1)
    zero.wanted(6.1, (96, 97), {}, {})
    assert zero.lost(6.1) == "" and not zero.stalled()


def test_a_bootstrap_waits_for_a_server_that_has_not_returned() -> None:
    ends = Ends(BUSY)
    zero = ends.servers[10]
    for now in (1.0, 3.0, 9.0):
        ends.hear(now, 1)
        zero.wanted(now, NEW, {}, {})
    assert not zero._bootstraps and zero.lost(9.0) == ""
    assert zero.stalled() and zero.absent(9.0) == [2]


def test_late_votes_decide_nothing_after_a_bootstrap_began() -> None:
    """The bootstrap adopts a survivor's earlier proposal: one view is decided."""
    ends = Ends(BUSY)
    one = ends.servers[11]
    ends.hear(1.0, 1, 2)  # server 0 seems silent to the others
    before = one.wanted(1.0, (96, 97, 98), {}, {})
    assert before is not None and one.propose(before, 1.0)
    asked = [message for to, message in ends.sent if to == 98]
    ends.sent.clear()
    dead = {n: Voter(2) for n in (96, 97, 98)}
    for n, voter in dead.items():
        promise = answer_of(voter, n, asked[0])
        one.on_promise(promise, promise.fields)
    promise = one.answer(asked[0])
    one.on_promise(promise, promise.fields)
    (vote,) = {id(m): m for to, m in ends.sent if to == 98}.values()
    late = [answer_of(voter, n, vote) for n, voter in dead.items()]
    one.answer(vote)
    ends.sent.clear()  # the voters die, and server 2 with them

    wanted = stalled(ends, kept=True)
    with_the_new(ends)
    zero = ends.servers[10]
    zero._turn = vote.fields.turn  # of equal turns, its ballot is the lesser
    assert wanted is not None and zero.propose(wanted, 6.0)
    while ends.sent and ends.sent[0][1].kind == "prepare":
        to, message = ends.sent.pop(0)
        answer = ends.servers[to].answer(message)
        assert answer is not None
        ends.sent.append((10, answer))
    decided = [one.on_accepted(m, m.fields) for m in late if m is not None]
    assert decided == [None] * 3
    ends.carry()
    assert ends.views == {10: before}  # which one server may have entered


def test_malformed_views_and_votes_are_refused() -> None:
    for view in ({}, {"epoch": "x"}):
        with pytest.raises(ValueError, match=r"not a view|invalid literal"):
            vote = Message.of(messages.Accept(1, 0, view), epoch=1)
            answer_of(Voter(1), 1, vote)
    with pytest.raises(ValueError, match="not a vote"):
        accepted_of(messages.Promised(1, 0, 1, {"turn": 1}))


def test_a_new_server_does_not_judge_others_silent_at_once() -> None:
    ends = Ends(MET)
    one = ends.servers[11]
    # It enters the view before it hears the others.
    one.hear(2, Heard(12, {}, 1.0))
    assert one.wanted(1.0, {WORKER}, {}, {}) is None
    assert one.wanted(1.4, {WORKER}, {}, {}) is None
    one.hear(2, Heard(12, {}, 1.6))
    wanted = one.wanted(1.6, {WORKER}, {}, {})
    assert wanted is not None and wanted.servers == (0, 11, 12)
    # A server that has heard all others judges by their silence alone.
    two = ends.servers[12]
    two.hear(0, Heard(10, {}, 1.0))
    two.hear(1, Heard(11, {}, 1.0))
    wanted = two.wanted(1.6, {WORKER}, {}, {})
    assert wanted is not None and wanted.servers == (0, 0, 12)


def test_a_joining_server_is_in_the_next_view() -> None:
    ends = Ends(MET._replace(run=5))
    ends.hear(1.0, 0, 1, 2)
    zero = ends.servers[10]
    wanted = zero.wanted(1.0, {WORKER}, {}, {}, joining=["d:1"])
    assert wanted is not None
    assert (wanted.addresses[3], wanted.servers[3]) == ("d:1", 0)
    assert wanted.members == (0, 1, 2, 3) and wanted.holders == MET.holders
    coming = [shard for shard, planned in enumerate(wanted.places) if 3 in planned]
    # Once it answers, the view has it; then the primaries of its shards add it.
    for server in ends.servers.values():
        server.enter(wanted)
    zero.hear(3, Heard(13, {}, 1.0))
    let_in = zero.wanted(1.0, {WORKER}, {}, {})
    assert let_in is not None and let_in.servers == (10, 11, 12, 13)
    for server in ends.servers.values():
        server.enter(let_in)
        server.hear(3, Heard(13, {}, 1.0))
    serves = ends.servers[10 + let_in.holders[coming[0]][0]]
    taken = serves.wanted(1.0, {WORKER}, {}, {coming[0]: 3})
    assert taken is not None and 3 in taken.holders[coming[0]]


def test_larger_shards_count_for_more() -> None:
    view = first_view(["a:1", "b:1"], shards=4)
    ends = Ends(view._replace(epoch=2, servers=(10, 11), workers=(WORKER,), run=5))
    sizes = {1: 10.0, 3: 10.0}
    ends.servers[10].hear(1, Heard(11, {}, 1.0, sizes=sizes))
    found = ends.servers[10].wanted(
        1.0, {WORKER}, {}, {}, joining=["c:1"], sizes={0: 1.0, 2: 1.0}
    )
    assert found is not None and found.places == ((0,), (2,), (0,), (1,))


def test_a_leaving_server_stops_being_a_member_and_then_a_voter() -> None:
    ends = Ends(MET)
    ends.hear(1.0, 0, 1, 2)
    zero, one = ends.servers[10], ends.servers[11]
    one.leaving = True
    assert one.has_successors()
    zero.hear(1, Heard(11, {}, 1.0, leaving=True))
    wanted = zero.wanted(1.0, {WORKER}, {}, {})
    assert wanted is not None and wanted.members == (0, 2)
    assert wanted.servers == (10, 11, 12)
    away = wanted._replace(holders=wanted.places)
    zero.enter(away)
    # Its earlier heartbeat arrives late, and changes nothing.
    zero.hear(1, Heard(11, {}, 1.0))
    wanted = zero.wanted(1.0, {WORKER}, {}, {})
    assert wanted is not None and wanted.servers == (10, 0, 12)
    # All of them leave: no server remains to wait for.
    for n in (0, 2):
        one.hear(n, Heard(10 + n, {}, 1.0, leaving=True))
    assert not one.has_successors()


def test_a_server_that_stays_silent_loses_its_shards() -> None:
    ends = Ends(MET)
    ends.hear(1.0, 0, 1, 2)
    zero = ends.servers[10]
    for now in (2.0, 40.0, 63.0):
        for n in (0, 2):
            zero.hear(n, Heard(10 + n, {}, now))
        wanted = zero.wanted(now, {WORKER}, {}, {})
        assert wanted is not None
        assert wanted.members == ((0, 1, 2) if now < 63 else (0, 2))


def test_servers_that_all_restarted_bootstrap_the_run_again() -> None:
    view = MET._replace(run=5, epoch=7)
    zero = ViewAgreement(0, 20, view, 0.5, lambda *_: None)
    zero.hear(1, Heard(21, {1: Position(6, 4)}, 1.0))
    # Server 2 is not heard yet, or did not restart: it may know more.
    assert zero.wanted(1.0, {WORKER}, {}, {}) is None
    zero.hear(2, Heard(12, {}, 1.0))
    assert zero.wanted(1.0, {WORKER}, {}, {}) is None
    zero.hear(2, Heard(22, {1: Position(6, 5)}, 1.0))
    wanted = zero.wanted(1.0, {WORKER}, {}, {})
    assert wanted is not None
    assert (wanted.epoch, wanted.run, wanted.servers) == (8, 5, (20, 21, 22))
    assert wanted.holders == ((0, 1), (2,), (2, 0))
    assert zero.propose(wanted, 1.0)
    assert zero._proposal is not None and zero._proposal.voters == (20, 21, 22)
