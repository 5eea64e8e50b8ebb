from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import LostCutError
from fxflow.distributed.parameter_server.server import snapshots as snapshots_module
from fxflow.distributed.parameter_server.server.ledger import Ledger
from fxflow.distributed.parameter_server.server.snapshots import Cuts
from fxflow.distributed.parameter_server.tables.cuts import RowBlock
from fxflow.errors import DistributedError


def push(worker: int, number: int) -> Message:
    return Message.of(messages.Gradient(0, 0, 0), worker, number)


def shard(**last: int) -> Any:
    numbers = [(int(name[1:]), n) for name, n in last.items()]
    return SimpleNamespace(group=[1, 2], ledger=Ledger(dict(numbers)), tables={})


def cut(which: int, upto: dict[int, int]) -> Message:
    numbers = [[worker, last] for worker, last in sorted(upto.items())]
    return Message.of(messages.Cut(0, which, upto=numbers))


def test_pushes_after_a_cut_are_held() -> None:
    cuts = Cuts()
    assert not cuts.hold(0, b"a", push(1, 4))
    cuts.begin(0, 77, 0.0, b"c")
    held = [(b"a", push(1, 4)), (b"b", push(2, 9))]
    assert all(cuts.hold(0, *item) for item in held)
    assert not cuts.hold(1, b"a", push(1, 4))  # another shard
    assert cuts.completed(0, shard(w1=3, w2=8)) is None
    asked = cut(77, {1: 4, 2: 8})
    assert cuts.define(asked.fields, b"c", asked) == held
    # When both are handled again, only the first is part of the cut.
    assert [cuts.hold(0, *item) for item in held] == [False, True]
    assert cuts.completed(0, shard(w1=3, w2=8)) is None
    assert cuts.completed(0, shard(w1=4, w2=8)) == (b"c", asked)
    assert cuts.end(0) == held[1:]
    assert not cuts.hold(0, *held[1])


def test_a_cut_does_not_wait_for_a_worker_that_died() -> None:
    cuts = Cuts()
    cuts.begin(0, 1, 0.0, b"c")
    asked = cut(1, {3: 5})
    cuts.define(asked.fields, b"c", asked)
    assert cuts.completed(0, shard(w3=4)) is not None


def test_cuts_expire() -> None:
    cuts = Cuts()
    cuts.begin(0, 1, 100.0, b"c")
    cuts.hold(0, b"a", push(1, 4))
    cuts.begin(0, 2, 101.0, b"c")  # of another worker
    with pytest.raises(DistributedError, match="snapshot of shard 0 was given up"):
        cuts.define(cut(1, {}).fields, b"c", cut(1, {}))
    assert cuts.expired(110.5) == []
    assert cuts.expired(111.5) == [0]
    assert [message.sequence for _, message in cuts.end(0)] == [4]
    with pytest.raises(DistributedError, match="make another one"):
        cuts.define(cut(2, {}).fields, b"c", cut(2, {}))


def test_rows_are_read_in_parts_and_a_part_can_be_repeated() -> None:
    ids = np.arange(3)
    blocks = [RowBlock(ids + 3 * i, np.ones((3, 2)), ()) for i in range(20)]
    table: Any = SimpleNamespace(state=lambda changed="": iter(blocks))
    cuts = Cuts()
    shard: Any = SimpleNamespace(tables={"t": table, "u": table})
    assert cuts.keep(messages.Cut(0, 5), shard, 0.0) == ["t", "u"]
    sizes = []
    for part in range(3):
        arrays = cuts.rows(messages.ReadRows(0, 5, "t", part), 50.0)
        assert cuts.rows(messages.ReadRows(0, 5, "t", part), 50.0) is arrays
        sizes.append(len(arrays))
    assert sizes == [32, 8, 0]
    with pytest.raises(DistributedError, match="rows of table 't'"):
        cuts.rows(messages.ReadRows(0, 5, "t", 7), 50.0)
    with pytest.raises(LostCutError, match="another one was begun"):
        cuts.rows(messages.ReadRows(0, 6, "t", 2), 50.0)
    cuts.expired(100.0)  # 'u' was kept while 't' was read
    assert len(cuts.rows(messages.ReadRows(0, 5, "u", 0), 100.0)) == 32
    cuts.expired(200.0)
    with pytest.raises(LostCutError, match="were not read for 60 s"):
        cuts.rows(messages.ReadRows(0, 5, "t", 2), 200.0)


def test_the_bytes_of_an_answer_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "_BYTES", 100)
    block = RowBlock(np.arange(5), np.ones((5, 2), np.float32), ())  # of 80 bytes
    table: Any = SimpleNamespace(state=lambda changed="": iter([block] * 5))
    cuts = Cuts()
    cuts.keep(messages.Cut(0, 1), SimpleNamespace(tables={"t": table}), 0.0)
    sizes = [
        len(cuts.rows(messages.ReadRows(0, 1, "t", part), 0.0)) // 2
        for part in range(4)
    ]
    assert sizes == [2, 2, 1, 0]


def test_an_evaluator_holds_pushes_for_a_shorter_time() -> None:
    cuts = Cuts()
    cuts.begin(0, 1, 100.0, b"c", params_only=True)
    cuts.begin(1, 1, 100.0, b"d")
    assert cuts.requesters() == [(0, b"c"), (1, b"d")]
    assert cuts.expired(102.5) == [0]
