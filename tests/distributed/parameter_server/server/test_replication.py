from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.ledger import Position
from fxflow.distributed.parameter_server.server.replication import Copies


def at(entries: int, epoch: int = 2) -> Position:
    return Position(epoch, entries)


def copies_of(*holders: int) -> Copies:
    copies = Copies(at(10), 2)
    copies.begin(holders, 2)
    for server in holders:
        assert copies.note_position(server, at(10), 100.0)
    return copies


def add(copies: Copies, count: int) -> None:
    for _ in range(count):
        entries = copies.position.entries + 1
        copies.add(at(entries), Message.of(messages.Entry(0, [1, 0]), sequence=entries))


def test_entries_that_all_holders_have_are_committed() -> None:
    copies = copies_of(1, 2)
    add(copies, 3)
    assert (copies.position, copies.committed) == (at(13), 10)
    copies.note_position(1, at(13), 100.0)
    assert copies.committed == 10
    copies.note_position(2, at(12), 100.0)
    assert copies.committed == 12
    copies.note_position(2, at(11), 100.0)  # an old answer
    assert copies.committed == 12


def test_the_next_view_keeps_the_positions_of_holders() -> None:
    copies = copies_of(1, 2)
    add(copies, 1)
    copies.note_position(1, at(11), 100.0)
    copies.begin([1, 2], 3)
    assert copies.followers and copies.committed == 10
    assert copies.follow([]) == []
    assert [m.sequence for m in copies.missing(2)] == [11]


def test_without_other_holders_every_entry_is_committed() -> None:
    copies = copies_of()
    add(copies, 3)
    assert copies.committed == 13
    assert copies.follow([4]) == [4]
    assert copies.committed == 13  # it does not count yet
    add(copies, 1)
    assert [m.sequence for m in copies.missing(4)] == [14]


def test_a_new_primary_probes_holders_before_it_commits() -> None:
    copies = Copies(at(10), 3)
    copies.begin([1], 3)
    assert copies.committed == -1
    assert copies.follow([]) == [1]  # to be probed


def test_copies_get_the_entries_they_lack_or_the_whole_state() -> None:
    copies = copies_of(1)
    add(copies, 3)
    assert copies.note_position(1, at(11), 100.0)
    assert [m.sequence for m in copies.missing(1)] == [12, 13]
    copies.follow([2])
    assert not copies.note_position(
        2, at(4), 100.0
    )  # the entries that it lacks are no longer kept
    copies.note_state_sent(2)
    assert copies.note_position(2, at(4), 100.0)  # the state is under way
    assert copies.note_position(2, at(13), 100.0) and copies.missing(2) == []


def test_entries_of_another_epoch_need_the_whole_state() -> None:
    copies = copies_of(1)
    add(copies, 1)
    copies.follow([2])
    assert not copies.note_position(2, at(11, epoch=1), 100.0)


def test_a_copy_that_caught_up_counts_before_it_is_proposed() -> None:
    copies = copies_of(1)
    copies.follow([2])
    assert copies.ready() == []
    copies.note_position(2, at(10), 100.0)
    assert copies.ready() == [2]
    add(copies, 1)
    copies.note_position(1, at(11), 100.0)
    assert (copies.committed, copies.ready()) == (10, [2])
    # It no longer follows, but the view with it may have been decided.
    copies.follow([])
    assert copies.followers == [1, 2]
    copies.begin([1], 3)
    assert copies.followers == [1] and copies.committed == 11


def test_a_copy_without_acknowledged_entries_is_not_added() -> None:
    copies = copies_of(1)
    copies.follow([2])
    copies.note_position(2, at(10), 100.0)
    add(copies, 3)
    copies.note_position(1, at(12), 100.0)
    assert copies.committed == 12  # which workers have read
    # Near enough to count, so that no more is acknowledged; not yet to serve.
    assert (copies.ready(), copies.committed) == ([], 10)
    copies.note_position(1, at(13), 100.0)
    assert copies.committed == 10
    copies.note_position(2, at(12), 100.0)
    assert (copies.ready(), copies.committed) == ([2], 12)


def test_a_new_primary_commits_nothing_before_an_answer() -> None:
    copies = Copies(at(10), 3)  # of a new primary
    copies.begin([1], 3)
    add(copies, 1)
    copies.follow([2])
    copies.note_position(2, at(10), 100.0)
    assert (copies.committed, copies.ready()) == (-1, [2])


def test_a_copy_that_does_not_answer_is_reported_once() -> None:
    copies = copies_of(1)
    copies.note_sent(1, 100.0)
    copies.note_sent(1, 101.0)
    assert copies.silent(100.5, 1.0) == []
    assert copies.silent(101.5, 1.0) == [1]
    assert copies.silent(102.0, 1.0) == []
    copies.note_sent(1, 103.0)
    copies.note_position(1, at(10), 100.0)
    assert copies.silent(109.0, 1.0) == []


def test_an_answer_with_entries_missing_leaves_an_answer_owed() -> None:
    copies = copies_of(1)
    add(copies, 2)
    copies.note_sent(1, 100.0)
    assert copies.note_position(1, at(11), 101.0)
    # The answer to the second entry is lost, and no other message may follow.
    assert copies.silent(101.5, 1.0) == []
    assert copies.silent(102.5, 1.0) == [1]


def test_a_lost_state_is_sent_again() -> None:
    copies = copies_of(1)
    add(copies, 1)
    copies.follow([2])
    assert not copies.note_position(2, at(4), 100.0)
    copies.note_state_sent(2)
    copies.note_sent(2, 100.0)
    # Meanwhile it still gets, and answers, entries that it cannot apply.
    assert copies.note_position(2, at(4), 100.9) and copies.missing(2) == []
    assert copies.silent(101.5, 1.0) == [2]
    assert not copies.note_position(2, at(4), 102.0)  # so it is sent again


def test_answers_about_a_dropped_copy_do_not_count() -> None:
    copies = copies_of(1)
    copies.follow([2])
    assert copies.is_current(2, 2) and not copies.is_current(3, 2)
    # One view drops its copy, and the next one adds it again.
    copies.begin([1], 3)
    assert not copies.is_current(2, 3)
    copies.begin([1], 4)
    copies.follow([2])
    assert not copies.is_current(2, 2) and copies.is_current(2, 4)
    assert copies.is_current(1, 2)  # it held the shard throughout
