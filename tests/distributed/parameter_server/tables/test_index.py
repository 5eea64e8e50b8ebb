"""Compares the index with a dictionary while it grows and shrinks."""

import numpy as np
import pytest

from fxflow.distributed.parameter_server.tables.index import IdIndex


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
