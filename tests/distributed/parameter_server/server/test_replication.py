from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.replication import Copies
from fxflow.distributed.parameter_server.server.shard import Position


def at(entries: int, epoch: int = 2) -> Position:
    return Position(epoch, entries)


def copies_of(*holders: int) -> Copies:
    copies = Copies(at(10), 2)
    copies.begin(holders, 2)
    for server in holders:
        assert copies.note(server, at(10), 100.0)
    return copies


def add(copies: Copies, count: int) -> None:
    for _ in range(count):
        entries = copies.position.entries + 1
        copies.add(at(entries), Message.of(messages.Entry(0, [1, 0]), sequence=entries))


def test_what_all_have_is_committed() -> None:
    copies = copies_of(1, 2)
    add(copies, 3)
    assert (copies.position, copies.committed) == (at(13), 10)
    copies.note(1, at(13), 100.0)
    assert copies.committed == 10
    copies.note(2, at(12), 100.0)
    assert copies.committed == 12
    copies.note(2, at(11), 100.0)  # an old answer
    assert copies.committed == 12


def test_what_is_known_of_holders_outlives_a_view() -> None:
    copies = copies_of(1, 2)
    add(copies, 1)
    copies.note(1, at(11), 100.0)
    copies.begin([1, 2], 3)
    assert copies.followers and copies.committed == 10
    assert copies.follow([]) == []
    assert [m.sequence for m in copies.lacking(2)] == [11]


def test_without_holders_everything_is_committed() -> None:
    copies = copies_of()
    add(copies, 3)
    assert copies.committed == 13
    assert copies.follow([4]) == [4]
    assert copies.committed == 13  # it does not count yet
    add(copies, 1)
    assert [m.sequence for m in copies.lacking(4)] == [14]


def test_a_new_primary_tells_nothing_before_it_was_answered() -> None:
    copies = Copies(at(10), 3)
    copies.begin([1], 3)
    assert copies.committed == -1
    assert copies.follow([]) == [1]  # so it has to be asked


def test_copies_get_the_entries_they_lack_or_the_whole_state() -> None:
    copies = copies_of(1)
    add(copies, 3)
    assert copies.note(1, at(11), 100.0)
    assert [m.sequence for m in copies.lacking(1)] == [12, 13]
    copies.follow([2])
    assert not copies.note(2, at(4), 100.0)  # what it lacks is no longer here
    copies.loading(2)
    assert copies.note(2, at(4), 100.0)  # the state is under way
    assert copies.note(2, at(13), 100.0) and copies.lacking(2) == []


def test_the_same_number_of_other_entries_is_elsewhere() -> None:
    copies = copies_of(1)
    add(copies, 1)
    copies.follow([2])
    assert not copies.note(2, at(11, epoch=1), 100.0)


def test_a_copy_that_caught_up_counts_before_it_is_proposed() -> None:
    copies = copies_of(1)
    copies.follow([2])
    assert copies.ready() == []
    copies.note(2, at(10), 100.0)
    assert copies.ready() == [2]
    add(copies, 1)
    copies.note(1, at(11), 100.0)
    assert (copies.committed, copies.ready()) == (10, [2])
    # It left again, but the view with it may have been decided.
    copies.follow([])
    assert copies.followers == [1, 2]
    copies.begin([1], 3)
    assert copies.followers == [1] and copies.committed == 11


def test_a_copy_without_acknowledged_entries_is_not_added() -> None:
    copies = copies_of(1)
    copies.follow([2])
    copies.note(2, at(10), 100.0)
    add(copies, 3)
    copies.note(1, at(12), 100.0)
    assert copies.committed == 12  # which workers have read
    # Near enough to count, so that no more is acknowledged; not yet to serve.
    assert (copies.ready(), copies.committed) == ([], 10)
    copies.note(1, at(13), 100.0)
    assert copies.committed == 10
    copies.note(2, at(12), 100.0)
    assert (copies.ready(), copies.committed) == ([2], 12)


def test_a_new_primary_commits_nothing_before_an_answer() -> None:
    copies = Copies(at(10), 3)  # of a new primary
    copies.begin([1], 3)
    add(copies, 1)
    copies.follow([2])
    copies.note(2, at(10), 100.0)
    assert (copies.committed, copies.ready()) == (-1, [2])


def test_a_silent_copy_is_asked_again() -> None:
    copies = copies_of(1)
    copies.said(1, 100.0)
    copies.said(1, 101.0)
    assert copies.silent(100.5, 1.0) == []
    assert copies.silent(101.5, 1.0) == [1]
    assert copies.silent(102.0, 1.0) == []
    copies.said(1, 103.0)
    copies.note(1, at(10), 100.0)
    assert copies.silent(109.0, 1.0) == []


def test_an_answer_to_less_than_was_sent_leaves_an_answer_owed() -> None:
    copies = copies_of(1)
    add(copies, 2)
    copies.said(1, 100.0)
    assert copies.note(1, at(11), 101.0)
    # That of the second entry is lost; nothing else may ever be sent.
    assert copies.silent(101.5, 1.0) == []
    assert copies.silent(102.5, 1.0) == [1]


def test_a_state_that_is_lost_is_missed() -> None:
    copies = copies_of(1)
    add(copies, 1)
    copies.follow([2])
    assert not copies.note(2, at(4), 100.0)
    copies.loading(2)
    copies.said(2, 100.0)
    # Entries that it cannot take go on to be sent and answered meanwhile.
    assert copies.note(2, at(4), 100.9) and copies.lacking(2) == []
    assert copies.silent(101.5, 1.0) == [2]
    assert not copies.note(2, at(4), 102.0)  # so it is sent again


def test_answers_of_a_lost_copy_do_not_count() -> None:
    copies = copies_of(1)
    copies.follow([2])
    assert copies.awaits(2, 2) and not copies.awaits(3, 2)
    # It has left the shard in a view, and is to take it again in the next.
    copies.begin([1], 3)
    assert not copies.awaits(2, 3)
    copies.begin([1], 4)
    copies.follow([2])
    assert not copies.awaits(2, 2) and copies.awaits(2, 4)
    assert copies.awaits(1, 2)  # who has stayed is known as before
