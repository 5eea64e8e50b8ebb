import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from fxflow import optim, tree
from fxflow.distributed.messages.codec import Message, decode, encode
from fxflow.distributed.parameter_server import filters, messages
from fxflow.distributed.parameter_server.consistency import (
    Consistency,
    asynchronous,
    backup,
    bsp,
    softsync,
    ssp,
)
from fxflow.distributed.parameter_server.model import Model, make_model
from fxflow.distributed.parameter_server.server import shard as shards
from fxflow.distributed.parameter_server.server.ledger import Turn
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.tables import TableSpec
from fxflow.errors import DistributedError, ShapeError
from fxflow.nn import initializers

VALUES = {"b": np.arange(2, dtype=np.float32), "w": np.ones((2, 2), np.float32)}
NAMES = sorted(VALUES)


def model_of(consistency: Consistency, rate: float = 0.5, **options: Any) -> Model:
    values = [VALUES[name] for name in NAMES]
    optimizer = optim.sgd(rate, momentum=0.9)
    return make_model(NAMES, values, optimizer, consistency, **options)


def offer(model: Model) -> Message:
    fields, arrays = model.to_message()
    values = {f"param/{name}": VALUES[name] for name in NAMES}
    fields = messages.Offer(0, fields, [])
    message = Message.of(fields, worker=1, arrays={**arrays, **values})
    return decode([bytes(frame) for frame in encode(message)])


def started(consistency: Consistency, workers: int = 2) -> Shard:
    shard = Shard()
    give(shard, offer(model_of(consistency)))
    for worker in range(1, workers + 1):
        give(shard, Message.of(messages.Join(0, ""), worker))
    return shard


def give(shard: Shard, entry: Message) -> str:
    assert shard.turn(entry) is Turn.NEXT
    return shard.apply(entry)


def push(
    shard: Shard, worker: int, size: float = 1.0, seen: int | None = None
) -> Message:
    seen = shard.group.version if seen is None else seen
    return Message.of(
        messages.Gradient(0, shard.group[worker].clock, seen),
        worker=worker,
        sequence=shard.ledger.last(worker) + 1,
        arrays={
            str(i): np.full_like(VALUES[name], size) for i, name in enumerate(NAMES)
        },
    )


def values(shard: Shard) -> list[Any]:
    return [np.asarray(p) for p in shard.params]


def alone(gradients: list[float]) -> list[Any]:
    """Returns the parameters after the same updates on one device."""
    optimizer = optim.sgd(0.5, momentum=0.9)
    params: Any = {name: np.array(value) for name, value in VALUES.items()}
    state = optimizer.init(params)
    for size in gradients:
        slopes = tree.map(lambda p, s=size: np.full_like(p, s), VALUES)
        updates, state = optimizer.update(slopes, state, params)
        params = optim.apply_updates(params, updates)
    return [np.asarray(params[name]) for name in NAMES]


def same(found: list[Any], expected: list[Any]) -> None:
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_bsp_equals_one_device_with_the_mean_gradient() -> None:
    shard = started(bsp())
    for sizes in ((1.0, 3.0), (2.0, 0.0)):
        give(shard, push(shard, 1, sizes[0]))
        assert not shard.may_read(1, shard.group[1].clock)
        assert shard.late(1, shard.group[1].clock) == (2,)
        give(shard, push(shard, 2, sizes[1]))
        assert shard.may_read(1, shard.group[1].clock)
    same(values(shard), alone([2.0, 1.0]))
    assert (shard.counts.pushes, shard.counts.updates) == (4, 2)


def test_a_round_does_not_wait_for_a_worker_that_left() -> None:
    shard = started(bsp(), workers=3)
    give(shard, push(shard, 1, 1.0))
    give(shard, push(shard, 2, 2.0))
    give(shard, Message.of(messages.Leave(0, "done"), 3))
    same(values(shard), alone([1.5]))


def test_staleness_divides_the_learning_rate() -> None:
    shard = started(asynchronous())
    give(shard, push(shard, 1, 1.0))
    give(shard, push(shard, 1, 1.0))
    give(shard, push(shard, 2, 1.0, seen=0))  # two updates late
    same(values(shard), alone([1.0, 1.0, 0.5]))
    assert shard.counts.staleness == {0: 2, 2: 1}


def test_the_number_of_cached_weights_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "_MAX_WEIGHTS", 2)
    shard, gradients = started(asynchronous()), [1.0, 1.0]
    for size in gradients:
        give(shard, push(shard, 1, size))
    for seen in (1, 0, 0, 4, 0):  # 1, 3, 4, 1 and 6 updates late
        late = shard.group.version - seen
        give(shard, push(shard, 2, 1.0, seen=seen))
        gradients.append(1 / max(1, late))
        assert len(shard._weights) <= 2
    same(values(shard), alone(gradients))


def test_delay_compensation_uses_the_parameters_that_the_worker_read() -> None:
    shard = started(asynchronous(rate="fixed", compensation=0.5))
    for worker in (1, 2):
        give(shard, Message.of(messages.Read(0), worker))
    give(shard, push(shard, 1, 1.0))
    before = values(shard)
    give(shard, push(shard, 2, 2.0, seen=0))
    moved = before[0] - VALUES["b"]
    slope = 2.0 + 0.5 * 4.0 * moved
    velocity = 0.9 * 1.0 + slope
    np.testing.assert_allclose(values(shard)[0], before[0] - 0.5 * velocity, rtol=1e-6)


def test_a_late_gradient_is_dropped_and_counted() -> None:
    shard = started(backup(1, 1))
    give(shard, push(shard, 1, 1.0))
    assert "late" in give(shard, push(shard, 2, 100.0, seen=0))
    same(values(shard), alone([1.0]))
    assert shard.counts.dropped == {"late": 1}


def test_an_empty_push_counts_as_a_step() -> None:
    shard = started(bsp())
    empty = push(shard, 1)
    give(shard, Message.of(empty.fields._replace(why="non-finite"), 1, 1))
    give(shard, push(shard, 2, 4.0))
    same(values(shard), alone([2.0]))
    assert shard.counts.dropped == {"non-finite": 1}


def test_a_push_is_applied_once_and_in_order() -> None:
    shard = started(asynchronous())
    first = push(shard, 1, 1.0)
    give(shard, first)
    assert shard.turn(first) is Turn.SEEN
    second = push(shard, 1, 1.0)
    third = dataclasses.replace(second, sequence=second.sequence + 1)
    assert shard.turn(third) is Turn.EARLY
    give(shard, second)
    same(values(shard), alone([1.0, 1.0]))
    assert shard.counts.repeated == 1


@pytest.mark.parametrize(
    "consistency", [bsp(), ssp(2), softsync(1), asynchronous(compensation=0.1)], ids=str
)
def test_a_copy_of_the_state_continues_to_the_same_bits(
    consistency: Consistency,
) -> None:
    shard = started(consistency)
    give(shard, Message.of(messages.Read(0), 2))
    for worker, size in ((1, 1.0), (2, 3.0), (1, 0.3)):
        give(shard, push(shard, worker, size))
    fields, arrays = shard.state()
    hosts = {name: np.asarray(x) for name, x in arrays.items()}
    copy = Shard.of_state(json.loads(json.dumps(fields)), hosts)
    assert copy.position == shard.position
    for worker, size in ((2, 0.7), (1, 1.1), (2, 0.1)):
        entry = push(shard, worker, size)
        give(shard, entry)
        give(copy, entry)
    for x, y in zip(values(shard), values(copy), strict=True):
        assert x.tobytes() == y.tobytes()
    assert shard.counts == copy.counts
    assert shard.ledger == copy.ledger


def test_a_copy_admits_and_forgets_the_same_rows() -> None:
    spec = TableSpec(
        *("words", 2, optim.sgd(1.0), initializers.ones),
        admit_after=2,
        expire_after=3,
        stored="int8",
    )
    shard = Shard()
    give(shard, offer(model_of(asynchronous(), tables=[spec])))
    give(shard, Message.of(messages.Join(0, ""), 1))

    def next_push(*ids: int) -> Message:
        entry = push(shard, 1)
        entry.arrays["rows/words/ids"] = np.array(ids)
        gradients = np.full((len(ids), 2), 0.3, np.float32)
        entry.arrays["rows/words/gradients"] = gradients
        return entry

    for ids in (3, 4), (3, 5), (5,):
        give(shard, next_push(*ids))
    fields, arrays = shard.state()
    hosts = {name: np.asarray(x) for name, x in arrays.items()}
    copy = Shard.of_state(json.loads(json.dumps(fields)), hosts)
    every = np.arange(8)
    for ids in (4,), (4, 5), (6,), (6,), (4,), (5, 7):
        entry = next_push(*ids)
        give(shard, entry)
        give(copy, entry)
        one, two = (x.table("words").read(every) for x in (shard, copy))
        assert one.tobytes() == two.tobytes()
    assert one[3].tolist() == [1, 1]  # forgotten
    assert one[4, 0] < 1 and one[7].tolist() == [1, 1]


def test_another_model_is_refused_and_named() -> None:
    shard = started(bsp())
    with pytest.raises(DistributedError, match="worker 1 has another model"):
        shard.turn(offer(model_of(bsp(), rate=0.1)))
    assert shard.turn(offer(model_of(bsp()))) is Turn.SEEN


def test_changed_types_are_refused_and_named() -> None:
    shard = started(bsp())
    wrong = push(shard, 1)
    wrong.arrays["1"] = np.ones((3, 2), np.float32)
    with pytest.raises(
        DistributedError, match=r"worker 1 sent f32\[3,2\] as part 1.*f32\[2,2\]"
    ):
        shard.turn(wrong)
    wrong.arrays["1"] = np.ones((2, 2), np.float64)
    with pytest.raises(DistributedError, match="f64"):
        shard.turn(wrong)
    with pytest.raises(DistributedError, match="arrived before any model"):
        Shard().turn(push(shard, 1))


def test_parameters_are_encoded_once_for_all_workers() -> None:
    shard = Shard()
    give(shard, offer(model_of(asynchronous(), pull=filters.filter_of("bf16"))))
    give(shard, Message.of(messages.Join(0, ""), 1))
    first = shard.encoded()
    assert [x.dtype.name for x in first] == ["bfloat16", "bfloat16"]
    assert shard.encoded() is first
    give(shard, push(shard, 1))
    assert shard.encoded() is not first
    for mine, sent in zip(shard.params, shard.encoded(), strict=True):
        rounded = np.asarray(mine).astype(sent.dtype)
        np.testing.assert_array_equal(rounded.ravel(), sent.ravel())
    fields, arrays = shard.state()
    again = Shard.of_state(fields, arrays)
    for one, other in zip(shard.encoded(), again.encoded(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_updates_overwrite_parameters_that_were_sent() -> None:
    shard = started(asynchronous(rate="fixed"))
    give(shard, push(shard, 1))
    places = [p.unsafe_buffer_pointer() for p in (*shard.params, *shard.optimizer)]
    shard.encoded()  # parameters that were sent may be overwritten; references may not
    give(shard, push(shard, 2))
    after = [p.unsafe_buffer_pointer() for p in (*shard.params, *shard.optimizer)]
    assert after == places
    sent, kept = shard.encoded(), shard.values()[1]
    before = [value.copy() for value in sent]
    give(shard, push(shard, 1))
    same(sent, before)
    same([kept[f"param/{name}"] for name in NAMES], before)
    assert not np.array_equal(values(shard)[0], before[0])


def test_updates_do_not_overwrite_what_delay_compensation_needs() -> None:
    shard = started(asynchronous(rate="fixed", compensation=0.1))
    give(shard, Message.of(messages.Read(0), 1))
    before = shard.params
    copies = values(shard)
    give(shard, push(shard, 2))
    assert not any(p.is_deleted() for p in before)
    same([np.asarray(p) for p in before], copies)


# -- a snapshot's rows, which arrive in parts ------------------------------------------


def lacking(snapshot: str = "a", parts: int = 3) -> tuple[Shard, Message]:
    spec = TableSpec("words", 2, optim.adam(0.1), initializers.ones)
    offered = offer(model_of(asynchronous(), tables=[spec]))
    zeros = {f"optimizer/{i}": np.zeros_like(VALUES[n]) for i, n in enumerate(NAMES)}
    fields = offered.fields._replace(keys=["", ""], snapshot=snapshot, parts=parts)
    arrays = {**offered.arrays, **zeros}
    begun = dataclasses.replace(offered, fields=fields, arrays=arrays)
    shard = Shard()
    give(shard, begun)
    return shard, begun


def part(number: int, snapshot: str = "a", worker: int = 1) -> Message:
    ids = np.arange(4) + 10 * number
    rows = np.full((4, 2), number, np.float32)
    fields = messages.PushRows(0, "words", snapshot)
    state = [np.full(4, number, np.int32), rows + 1, rows + 2]
    arrays = {str(i): x for i, x in enumerate([ids, rows, *state])}
    return Message.of(fields, worker, number, 1, arrays)


def test_parts_of_a_snapshot_count_once_and_in_order() -> None:
    shard, begun = lacking()
    assert shard.fingerprint == ""
    assert shard.turn(part(2)) is Turn.EARLY
    give(shard, part(1))
    assert shard.turn(part(1)) is Turn.SEEN
    assert shard.turn(begun) is Turn.SEEN
    give(shard, part(2, worker=7))  # of another worker with the same snapshot
    with pytest.raises(DistributedError, match=r"'words' is not complete yet: 2 of 3"):
        shard.table("words")
    with pytest.raises(DistributedError, match="the run has not begun"):
        shard.values()
    fields, arrays = shard.state()
    again = Shard.of_state(json.loads(json.dumps(fields)), arrays)
    give(again, part(3))
    assert again.fingerprint == again.model.fingerprint
    assert again.turn(part(9)) is Turn.SEEN
    assert again.table("words").pull([10, 23, 33])[:, 0].tolist() == [1, 2, 3]
    shard.close()
    again.close()


def test_parts_of_another_snapshot_are_refused() -> None:
    shard, begun = lacking()
    give(shard, part(1))
    for message in (
        part(2, "b"),
        dataclasses.replace(begun, fields=begun.fields._replace(parts=4)),
        offer(model_of(asynchronous())),
    ):
        with pytest.raises(
            DistributedError, match=r"1 of 3 parts have arrived, .* worker"
        ):
            shard.require_snapshot(message)
    with pytest.raises(DistributedError, match="worker 1 has another snapshot"):
        shard.turn(part(2, "b"))
    good = part(2)
    bad = {**good.arrays, "1": np.ones((4, 3), np.float32)}
    with pytest.raises(ShapeError, match="a block of 4 rows must have fields"):
        shard.turn(dataclasses.replace(good, arrays=bad))
    other = dataclasses.replace(good, fields=good.fields._replace(table="names"))
    with pytest.raises(DistributedError, match="there is no table 'names'"):
        shard.turn(other)
    shard.close()


def test_a_snapshot_with_rows_but_no_table_is_refused() -> None:
    offered = offer(model_of(asynchronous()))
    zeros = {f"optimizer/{i}": np.zeros_like(VALUES[n]) for i, n in enumerate(NAMES)}
    fields = offered.fields._replace(keys=["", ""], snapshot="", parts=2)
    begun = Message.of(fields, 1, arrays={**offered.arrays, **zeros})
    with pytest.raises(DistributedError, match="2 parts of rows for 0 tables"):
        Shard().turn(begun)
