from types import SimpleNamespace

from fxflow.distributed.messages.traffic import Traffic, Waiting


def test_counts_by_name() -> None:
    traffic = Traffic()
    traffic.sent["push"] += 1
    traffic.shared_bytes["push"] += 5
    told = traffic.to_dict()
    assert told["sent"] == {"push": 1} and told["shared_bytes"] == {"push": 5}
    assert told["dropped"] == told["received"] == {}


def test_waiting_until_it_is_out() -> None:
    waiting = Waiting()
    assert not waiting
    one, two = SimpleNamespace(done=False), SimpleNamespace(done=True)
    waiting.add(one, 3)
    waiting.add(two, 4)
    assert waiting and waiting.size() == 7  # in order: the second is not before one
    one.done = True
    assert waiting.size() == 0 and not waiting
