"""Rows of a snapshot in parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server.worker import row_blocks
from fxflow.distributed.parameter_server.worker.row_blocks import (
    Block,
    RowFiles,
    RowParts,
)


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
        patch.setattr(row_blocks, "PART_BYTES", most)
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

    monkeypatch.setattr(row_blocks.tempfile, "TemporaryFile", full)
    files = RowFiles(tmp_path)
    with pytest.raises(OSError, match=f"cannot be written to {tmp_path}: No space"):
        files.append([np.arange(3)])
