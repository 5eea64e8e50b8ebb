from types import SimpleNamespace

from fxflow.distributed.messages.traffic import Traffic, Waiting


def test_messages_and_bytes_are_counted_by_kind() -> None:
    traffic = Traffic()
    traffic.count_sent("push", 30)
    traffic.count_sent("push", 20)
    traffic.count_received("ack", 10)
    traffic.dropped["slow"] += 1
    assert traffic.to_dict() == {
        "sent": {"push": 2},
        "sent_bytes": {"push": 50},
        "received": {"ack": 1},
        "received_bytes": {"ack": 10},
        "shared_bytes": {},
        "dropped": {"slow": 1},
    }


def test_bytes_wait_until_they_and_those_before_are_sent() -> None:
    waiting, trackers = Waiting(), [SimpleNamespace(done=False) for _ in "ab"]
    assert not waiting
    for tracker, size in zip(trackers, (3, 4)):
        waiting.add(tracker, size)
    trackers[1].done = True
    assert waiting and waiting.size() == 7
    trackers[0].done = True
    assert waiting.size() == 0 and not waiting
