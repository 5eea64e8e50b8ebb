import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow.numpy as fnp
from fxflow import nn, optim
from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server import (
    LocalServers,
    TableSpec,
    asynchronous,
    bsp,
    local_sgd,
    parameter_server,
)
from fxflow.distributed.parameter_server.tables import RowTable, remote
from fxflow.distributed.parameter_server.tables.remote import (
    Block,
    RowFiles,
    RowParts,
    TableModel,
    by_shard,
    make_table,
    rows_of,
    table_model,
)
from fxflow.errors import ArgumentError, DistributedError, OutOfRangeError

SPEC = TableSpec("words", (2, 3), optim.adam(0.1), seed=5)


def test_a_table_from_program_text_has_the_same_bits() -> None:
    model = table_model(SPEC)
    described = json.loads(json.dumps([model.description, model.fields]))
    sent = TableModel(described[0], described[1], model.programs)
    own, remote = RowTable(SPEC), make_table(sent, "here")
    rng = np.random.default_rng(0)
    for count in (3, 40, 600):
        ids = rng.integers(0, 10**12, count)
        ids[-1] = ids[0]
        gradients = rng.normal(size=(count, 2, 3)).astype(np.float32)
        own.push(ids, gradients, scale=0.5)
        remote.push(ids, gradients, scale=0.5)
        assert own.pull(ids).tobytes() == remote.pull(ids).tobytes()
    own.close()
    remote.close()


def test_a_table_needs_its_optimizer() -> None:
    with pytest.raises(ArgumentError, match="give it an optimizer"):
        table_model(TableSpec("words", 2))


def test_each_id_has_one_shard() -> None:
    ids = np.array([0, 1, 2, 3, 7, 10**15], np.int64)
    parts = by_shard(ids, 3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(6))
    assert [ids[p].tolist() for p in parts] == [[0, 3], [1, 7, 10**15], [2]]


def test_rows_of_a_push_are_found_by_table() -> None:
    arrays = {"rows/a/ids": 1, "rows/a/gradients": 2}
    assert rows_of(arrays, "a") == (1, 2)
    assert rows_of(arrays, "b") is None


# -- initial rows ----------------------------------------------------------------------


def block(first: int, count: int) -> Block:
    ids = np.arange(first, first + count)
    return [ids, np.stack([ids, -ids], axis=1).astype(np.float32)]  # 16 bytes a row


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 200), st.integers(0, 3))
def test_each_row_is_in_one_part(counts: list[int], most: int, shards: int) -> None:
    firsts = np.cumsum([0, *counts])
    blocks = [block(int(f), n) for f, n in zip(firsts, counts, strict=False)]
    tables, found = {"u": [], "t": blocks}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "PART_BYTES", most)
        shares = [(i, shards) for i in range(shards)] or [None]
        for share in shares:
            for name, (ids, rows) in RowParts(tables, share):
                assert name == "t"
                assert ids.nbytes + rows.nbytes <= max(most, 16)
                assert np.array_equal(rows, np.stack([ids, -ids], axis=1))
                assert share is None or all(ids % share[1] == share[0])
                found += ids.tolist()
    assert sorted(found) == list(range(sum(counts)))
    assert shards or found == sorted(found)


def test_parts_are_views_made_on_access() -> None:
    ids, rows = block(0, 2_000_000)
    parts = RowParts({"t": [[ids, rows]]})
    assert len(parts) == 8
    _, (some, own) = parts[3]
    assert np.shares_memory(some, ids)
    assert np.shares_memory(own, rows)


# -- rows on disk ----------------------------------------------------------------------


def test_blocks_become_one_in_files_without_names(tmp_path: Path) -> None:
    files, given = RowFiles(tmp_path / "rows"), []
    for count in (3, 0, 5):
        ids = np.arange(count) + 10 * count
        rows = np.stack([ids, -ids], axis=1).astype(dtypes.bfloat16)
        given.append([ids, rows, np.zeros((count, 0), np.float32)])
        files.append(given[-1])
    (block,) = files.blocks()
    for found, *parts in zip(block, *given, strict=True):
        assert found.dtype == parts[0].dtype
        assert np.array_equal(found, np.concatenate(parts))
    assert isinstance(block[1], np.memmap)
    assert block[1].mode == "r"
    assert list((tmp_path / "rows").iterdir()) == []


def test_without_rows_there_is_no_block(tmp_path: Path) -> None:
    assert RowFiles(tmp_path).blocks() == []
    files = RowFiles(tmp_path)
    files.append([np.arange(0), np.ones((0, 2))])
    assert files.blocks() == []


def test_an_error_names_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(dir: Any) -> Any:
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr(remote.tempfile, "TemporaryFile", full)
    files = RowFiles(tmp_path)
    with pytest.raises(OSError, match=f"cannot be written to {tmp_path}: No space"):
        files.append([np.arange(3)])


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
