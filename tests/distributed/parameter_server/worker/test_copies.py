"""The order in which readers ask the copies of shards."""

from collections import Counter

from fxflow.distributed.parameter_server.views import first_view
from fxflow.distributed.parameter_server.worker.copies import CopyRotation

VIEW = first_view(["a:1", "b:1", "c:1"], copies=2)


def test_each_holder_is_asked_equally_often() -> None:
    rotation = CopyRotation()
    asked = [rotation.choose(VIEW, [0, 1, 2], now=0.0) for _ in range(10)]
    for shard in range(3):
        servers = Counter(one[shard] for one in asked)
        assert servers == dict.fromkeys(VIEW.holders[shard], 5)


def test_a_silent_copy_is_avoided_for_a_while_and_the_primary_never() -> None:
    rotation = CopyRotation(first=0)
    rotation.avoid(1, until=5.0)
    early = [rotation.choose(VIEW, [0, 1], now=4.9) for _ in range(4)]
    assert {one[0] for one in early} == {0}
    assert {one[1] for one in early} == {1, 2}  # it is the primary of shard 1
    late = [rotation.choose(VIEW, [0], now=5.0)[0] for _ in range(4)]
    assert set(late) == {0, 1}


def test_readers_begin_with_different_copies() -> None:
    firsts = {CopyRotation().choose(VIEW, [0], now=0.0)[0] for _ in range(64)}
    assert firsts == {0, 1}
