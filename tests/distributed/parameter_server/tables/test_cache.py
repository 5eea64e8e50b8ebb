"""A cache returns no row that is too old, has bounded size, and counts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow.numpy as fnp
from fxflow import nn, optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    TableSpec,
    asynchronous,
    bsp,
    local_sgd,
    parameter_server,
)
from fxflow.distributed.parameter_server.tables import CacheCounts, RowCache
from fxflow.errors import ArgumentError, DistributedError, OutOfRangeError, ShapeError

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


# -- a worker's rows -------------------------------------------------------------------

pytest.importorskip("zmq")

FAR = 10**15


def words(**options: Any) -> TableSpec:
    return TableSpec("words", 3, optim.sgd(0.5), nn.initializers.ones, **options)


def loss(params: Any, rows: Any, batch: Any) -> Any:
    return fnp.sum(rows["words"] * batch[..., None]) * params


def make(servers: int = 2, **options: Any) -> Any:
    local = LocalServers(servers)
    options = {"consistency": asynchronous(), "tables": [words()], **options}
    server = parameter_server(
        loss, optim.sgd(0.0), cluster=local.cluster, deadline=20, **options
    )
    return local, server


def test_rows_keep_64_bits() -> None:
    """`config.x64` is off."""
    third = lambda key, shape, dtype: fnp.full(shape, 1 / 3, dtype)
    table = TableSpec("words", 3, optim.sgd(0.125), third, dtype="float64")
    local, server = make(tables=[table])
    state = server.init(fnp.ones((), "float64"))
    batch = fnp.array([0.1, 0.2], "float64")
    for _ in range(2):
        state, metrics = server.step(state, batch, ids={"words": np.array([1, FAR])})
    rows = server.rows({"words": np.array([1, FAR])})["words"]
    expected = 1 / 3 - np.array([0.1, 0.2]) * 2 * 0.125
    assert rows.dtype == np.float64 and metrics.loss.dtype == np.float64
    np.testing.assert_allclose(rows, np.repeat(expected[:, None], 3, 1), rtol=1e-14)
    server.close()
    local.close()


def test_only_rows_of_the_batch_are_updated() -> None:
    local, server = make()
    state = server.init(np.float32(1.0))
    ids = np.array([[1, 4], [FAR, 4]])
    batch = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    state, metrics = server.step(state, batch, ids={"words": ids})
    assert float(metrics.loss) == 30.0
    # The gradients of a repeated id are added.
    expected = {1: 0.5, 4: 1 - 0.5 * 6, FAR: 1 - 0.5 * 3, 7: 1.0}
    found = server.rows({"words": list(expected)})["words"]
    np.testing.assert_allclose(found[:, 0], list(expected.values()))
    state, metrics = server.step(state, batch, ids={"words": ids})
    assert float(metrics.loss) == pytest.approx(3 * (0.5 - 4 - 1.5 - 8))
    held = [len(s.shards[s.number].tables["words"]) for s in local.servers]
    assert held == [1 + 1, 2]  # 4 and FAR lie on server 0; 1 and 7 on server 1
    server.close()
    local.close()


def test_pulled_rows_are_reused_within_row_staleness() -> None:
    local, server = make(1, row_staleness=2)
    state = server.init(np.float32(1.0))
    losses = []
    for _ in range(4):
        ids = {"words": np.array([5])}
        state, metrics = server.step(state, np.ones(1, np.float32), ids=ids)
        losses.append(float(metrics.loss))
    # The row is pulled at steps 0 and 3; each step subtracts 0.5 from it.
    assert losses == [3.0, 3.0, 3.0, -1.5]
    server.close()
    local.close()


def test_rounds_update_rows() -> None:
    local, server = make(1, consistency=bsp())
    state = server.init(np.float32(1.0))
    ids = {"words": np.array([5])}
    state, _ = server.step(state, np.ones(1, np.float32), ids=ids)
    assert server.rows(ids)["words"].tolist() == [[0.5, 0.5, 0.5]]
    server.close()
    local.close()


def test_invalid_tables_and_ids_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="rows of tables are updated by servers"):
        make(1, consistency=local_sgd(2))[0].close()
    with pytest.raises(ArgumentError, match="two tables have the same name"):
        make(1, tables=[words(), words()])
    local, server = make(1)
    state = server.init(np.float32(1.0))
    with pytest.raises(ArgumentError, match=r"name the tables \['words'\], got \[\]"):
        server.step(state, np.ones(1, np.float32))
    with pytest.raises(DistributedError, match="there is no table 'verbs'"):
        server._run.client.rows([{"verbs": np.array([1])}])
    for wrong, kind, why in (
        ([-1, 2], OutOfRangeError, r"from 0 to 2\*\*63 - 1, got -1"),
        ([0.5], ArgumentError, "integers, got f64"),
    ):
        with pytest.raises(kind, match=f"table 'words': ids must be {why}"):
            server.step(state, np.ones(1, np.float32), ids={"words": np.array(wrong)})
    bad = np.full(1, np.nan, np.float32)
    with pytest.raises(Exception, match="not finite"):
        server.step(state, bad, ids={"words": np.array([1])})
    server.close()
    local.close()


def test_clocks_are_those_of_the_last_pull() -> None:
    cache = RowCache((2,), np.float32, bound=0, rows=10)
    cache.put(np.array([3, 8]), np.ones((2, 2), np.float32), clock=5)
    cache.put(np.array([8]), np.ones((1, 2), np.float32), clock=7)
    cache.put(np.array([3]), np.ones((1, 2), np.float32), clock=4)
    rows, clocks = cache.lookup_all(np.array([8, 9, 3]))
    assert clocks.tolist() == [7, -1, 5] and not rows[1].any()
