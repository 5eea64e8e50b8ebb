"""Each push counts once."""

import pytest

from fxflow.distributed.parameter_server.server.ledger import Ledger, Turn


def test_each_number_is_accepted_once_and_in_order() -> None:
    ledger = Ledger()
    assert ledger.turn(7, 2) is Turn.EARLY
    assert ledger.turn(7, 1) is Turn.NEXT
    ledger.note(7, 1)
    assert ledger.turn(7, 1) is Turn.SEEN
    assert ledger.turn(7, 2) is Turn.NEXT
    assert ledger.turn(8, 1) is Turn.NEXT  # each worker has its own
    with pytest.raises(ValueError, match="number 3 of worker 7 after 1"):
        ledger.note(7, 3)


def test_a_ledger_is_restored_from_its_items() -> None:
    ledger = Ledger({3: 4, 1: 2})
    assert ledger.items() == [(1, 2), (3, 4)]
    assert Ledger(dict(ledger.items())) == ledger
    assert ledger.last(3) == 4
    assert ledger.last(9) == 0
