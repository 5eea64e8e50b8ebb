"""Echoes of heartbeats, by clocks that the tests set."""

from fxflow.distributed.parameter_server.server.echoes import Echoes


def test_an_echo_counts_for_its_process_and_epoch_only() -> None:
    copy = Echoes(1, 21)
    assert copy.confirmed(0, 10, 4) is None
    copy.note(0, 10, sent=7, epoch=4, echoes=[[2, 31, 300], [1, 21, 900]])
    assert copy.confirmed(0, 10, 4) == 900
    assert copy.confirmed(0, 10, 5) is None  # the primary is in an earlier view
    assert copy.confirmed(0, 11, 4) is None  # another process at its address
    assert copy.confirmed(2, 31, 4) is None  # no heartbeat of that server


def test_an_echo_of_an_earlier_process_is_ignored() -> None:
    copy = Echoes(1, 22)
    copy.note(0, 10, sent=7, epoch=4, echoes=[[1, 21, 900]])
    assert copy.confirmed(0, 10, 4) is None
    assert copy.heard() == [[0, 10, 7]]


def test_a_heartbeat_without_an_echo_confirms_nothing_new() -> None:
    copy = Echoes(1, 21)
    copy.note(0, 10, sent=7, epoch=4, echoes=[[1, 21, 900]])
    copy.note(0, 10, sent=8, epoch=5, echoes=[])
    # It says that the primary was in epoch 5, but not after which heartbeat.
    assert copy.confirmed(0, 10, 5) is None
    assert copy.confirmed(0, 10, 4) == 900
    assert copy.heard() == [[0, 10, 8]]
