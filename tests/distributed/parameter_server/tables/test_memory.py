"""Slots are distinct and reused, and the coldest are found."""

import numpy as np
import pytest

from fxflow.distributed.parameter_server.tables.memory import IdIndex, Memory
from fxflow.distributed.parameter_server.tables.spec import Field
from fxflow.errors import OutOfMemoryError

FIELDS = (Field((2,), np.dtype(np.float32)), Field((), np.dtype(np.int32)))


def filled(count: int) -> Memory:
    memory = Memory(FIELDS, 64)
    ids = np.arange(count)
    memory.write(memory.add(ids), [np.stack([ids, ids], 1), ids])
    return memory


def test_slots_of_removed_rows_are_reused() -> None:
    memory = filled(10)
    memory.remove(memory.find(np.array([3, 4, 5])))
    assert len(memory) == 7
    slots = memory.add(np.array([100, 101, 102, 103]))
    assert sorted(slots.tolist()) == [3, 4, 5, 10]
    rows, count = memory.gather(memory.find(np.array([9, 0])))
    assert rows.tolist() == [[9, 9], [0, 0]] and count.tolist() == [9, 0]
    memory.clear()
    assert len(memory) == 0 and memory.find(np.array([9])).tolist() == [-1]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_coldest_returns_the_least_recently_used(count) -> None:
    memory = filled(10)
    for slot in (9, 8, 0, 1, 2, 3, 4, 5, 6, 7):
        memory.tick()
        memory.touch(np.array([slot]))
    memory.touch(np.array([9, 9]))
    memory.tick()
    lru = memory.coldest(count, frequency=False)
    assert set(lru) == set([8, 0, 1, 2, 3][:count])


def test_frequent_rows_and_rows_in_use_are_not_evicted() -> None:
    memory = filled(40)
    memory.tick()
    memory.touch(np.arange(40))
    for _ in range(3):
        memory.tick()
        memory.touch(np.arange(30))
    assert set(memory.coldest(10, frequency=True)) == set(range(30, 40))
    memory.touch(np.arange(35))
    assert set(memory.coldest(10, frequency=False)) == set(range(35, 40))


def test_uses_of_rows_that_are_not_evicted_are_not_recorded() -> None:
    memory = Memory(FIELDS, 64, evicts=False)
    memory._used[:] = memory._uses[:] = 7
    slots = memory.add(np.arange(10))
    memory.tick()
    memory.touch(slots)
    assert (memory._used == 7).all() and (memory._uses == 7).all()
    assert not memory.dirty.any() and not memory.stored.any()


def test_a_sample_of_many_rows_finds_cold_ones() -> None:
    memory = Memory(FIELDS, 10_000)
    memory.add(np.arange(10_000))
    for slot in range(10):
        memory.tick()
        memory.touch(np.arange(slot * 1000, slot * 1000 + 1000))
    memory.tick()
    found = memory.coldest(100, frequency=False)
    assert len(np.unique(found)) == 100
    # A tenth of all rows are sampled, and the oldest tenth of these is returned.
    assert (found < 2000).mean() > 0.9


def test_too_many_rows_for_the_memory_are_an_error() -> None:
    with pytest.raises(OutOfMemoryError, match="2147483647 rows of"):
        Memory([Field((1 << 24,), np.dtype(np.float32))], 2**40)


# -- index -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(30_000),
        np.arange(30_000) << 40,
        np.random.default_rng(0).integers(0, 2**63, 30_000),
        2**63 - 1 - np.arange(30_000) * 4096,
    ],
    ids=["neighbours", "high bits", "random", "largest"],
)
def test_the_index_equals_a_dictionary(ids) -> None:
    index, expected = IdIndex(len(ids)), {}
    generator = np.random.default_rng(1)
    rest = generator.permutation(ids)
    while len(rest):
        count = int(generator.choice([0, 1, 7, 500, 3000]))
        new, rest = rest[:count], rest[count:]
        slots = np.arange(len(expected), len(expected) + len(new)) + 5
        index.insert(new, slots)
        expected.update(zip(new.tolist(), slots.tolist()))
        asked = generator.choice(ids, 50)
        assert index.find(asked).tolist() == [expected.get(i, -1) for i in asked]
    assert index.count == len(expected)
    assert len(index._overflow) < len(ids) / 100
    removed = generator.permutation(ids)[:20_000]
    index.remove(removed)
    assert (index.find(removed) == -1).all()
    kept = np.setdiff1d(ids, removed)
    assert index.find(kept).tolist() == [expected[i] for i in kept.tolist()]
    index.insert(removed, np.arange(20_000))
    assert index.find(removed).tolist() == list(range(20_000))
    index.clear()
    assert index.count == 0 and (index.find(ids) == -1).all()


def test_overflowed_ids_are_found_and_removed(monkeypatch) -> None:
    # All ids hash to four buckets, so most are in the dictionary.
    monkeypatch.setattr(IdIndex, "_hashes", lambda self, ids: ids & 3)
    index, ids = IdIndex(2000), np.arange(1000)
    index.insert(ids[:300], ids[:300])
    index.insert(ids[300:], ids[300:])
    assert len(index._overflow) == 1000 - 4 * 16
    assert np.array_equal(index.find(ids), ids)
    assert index.find(np.arange(1000, 1004)).tolist() == [-1] * 4
    index.remove(ids[::3])
    assert index.find(ids[:6]).tolist() == [-1, 1, 2, -1, 4, 5]
    index.insert(ids[::3], ids[::3])
    assert np.array_equal(index.find(ids), ids)
