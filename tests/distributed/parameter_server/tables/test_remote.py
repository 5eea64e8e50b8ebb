import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow import optim
from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server import (
    TableSpec,
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
from fxflow.errors import ArgumentError

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
