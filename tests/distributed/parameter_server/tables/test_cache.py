"""A cache returns no row that is too old, has bounded size, and counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.tables import CacheCounts, RowCache
from fxflow.errors import ArgumentError, ShapeError

IDS = st.lists(st.integers(0, 12), max_size=8, unique=True)
STEPS = st.lists(
    st.tuples(st.sampled_from(["lookup", "put", "late", "drop", "step"]), IDS),
    max_size=40,
)


def new(bound: int = 1, rows: int = 100) -> RowCache:
    return RowCache((1,), np.float32, bound=bound, rows=rows)


def put(cache: RowCache, ids: list[int], clock: int) -> None:
    rows = np.full((len(ids), 1), clock, np.float32)
    cache.put(np.array(ids, np.int64), rows, clock)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS, bound=st.integers(0, 3), room=st.sampled_from([1, 5, 13]))
def test_no_cached_row_is_too_old(steps, bound, room) -> None:
    cache, pulled, clock = new(bound, room), {}, 5
    for step, ids in steps:
        asked = np.array(ids, np.int64)
        if step == "step":
            clock += 1
        elif step == "drop":
            cache.drop(asked)
            for i in ids:
                pulled.pop(i, None)
        elif step == "lookup":
            rows, here = cache.lookup(asked, clock)
            for i, row, known in zip(ids, rows[:, 0], here):
                fresh = pulled.get(i, -9) + bound >= clock
                assert not known or (fresh and row == pulled[i])
                assert known or not fresh
                assert known or row == 0
        else:
            at = clock - 2 if step == "late" else clock
            put(cache, ids, at)
            pulled.update({i: max(at, pulled.get(i, at)) for i in ids})
        assert len(cache) <= room
        if room < 13:  # evicted rows may be put again with an older clock
            pulled = {i: c for i, c in pulled.items() if _has(cache, i, c)}


def _has(cache: RowCache, i: int, clock: int) -> bool:
    slot = cache._memory.find(np.array([i]))[0]
    return slot >= 0 and cache._memory.fields[1][slot] == clock


def test_counts_distinguish_hits_misses_and_stale_rows() -> None:
    cache = new(bound=1)
    put(cache, [1, 2], 3)
    put(cache, [2], 4)
    _, here = cache.lookup(np.array([1, 2, 2, 9]), 5)
    assert here.tolist() == [False, True, True, False]
    assert cache.counts == CacheCounts(hits=2, misses=2, stale=1)


def test_the_least_recently_used_rows_are_evicted() -> None:
    cache = new(bound=9, rows=3)
    put(cache, [1, 2, 3], 0)
    cache.lookup(np.array([1, 3]), 0)
    put(cache, [4], 0)
    assert cache.lookup(np.array([1, 2, 3, 4]), 0)[1].tolist() == [
        True,
        False,
        True,
        True,
    ]
    put(cache, [5, 6, 7, 8, 9], 0)
    assert len(cache) == 3


def test_announce_returns_each_missing_row_once() -> None:
    cache = new(bound=2)
    put(cache, [1, 2], 0)
    put(cache, [3], 1)
    batch = np.array([1, 3, 7, 7, 5])
    assert cache.announce(batch, clock=1, at=3).tolist() == [1, 5, 7]
    assert cache.announce(np.array([7, 8]), clock=1, at=3).tolist() == [8]
    put(cache, [1, 5, 7], 1)
    assert cache.announce(batch, clock=1, at=3).tolist() == []
    assert cache.announce(batch, clock=2, at=4).tolist() == [1, 3, 5, 7]
    assert cache.announce(np.array([99]), clock=1, at=4).tolist() == []
    assert cache.counts.announced == 8
    cache.clear()
    assert len(cache) == 0
    assert cache.announce(np.array([8]), clock=1, at=2).tolist() == [8]


def test_invalid_bounds_and_rows_of_another_shape_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="got -1 and 5"):
        new(-1, 5)
    with pytest.raises(ArgumentError, match="got 1 and 0"):
        new(1, 0)
    with pytest.raises(ShapeError, match=r"expected 2 rows of shape \(1,\)"):
        new().put(np.array([1, 2]), np.zeros((2, 3), np.float32), 0)
