"""Rows of a snapshot in files without names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.core.arrays import dtypes
from fxflow.distributed.parameter_server.worker import row_files
from fxflow.distributed.parameter_server.worker.row_files import RowFiles


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


def test_no_rows_are_no_block(tmp_path: Path) -> None:
    assert RowFiles(tmp_path).blocks() == []
    files = RowFiles(tmp_path)
    files.append([np.arange(0), np.ones((0, 2))])
    assert files.blocks() == []


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(dir: Any) -> Any:
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr(row_files.tempfile, "TemporaryFile", full)
    files = RowFiles(tmp_path)
    with pytest.raises(OSError, match=f"cannot be written to {tmp_path}: No space"):
        files.append([np.arange(3)])
