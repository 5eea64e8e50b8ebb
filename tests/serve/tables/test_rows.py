"""Rows of memory-mapped tables: those of ids, or initial ones; ids are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.errors import ServeError
from fxflow.export.files import Bundle
from fxflow.serve.tables.artifacts import StoredTable
from fxflow.serve.tables.rows import InitialRows, MappedRows


class Files:
    """A folder without files."""

    def __init__(self, rows: Any, ids: Any = None, limit: int | None = None) -> None:
        self.path, self.created = Path("ads"), 0.0
        shape = rows.shape[1:]
        self.tables = {"t": StoredTable(shape, "float32", limit, ("t",), "rows.npy")}
        self._arrays = rows, ids

    def arrays(self, name: str) -> Any:
        return self._arrays

    def init(self, name: str) -> Bundle | None:
        return None


@given(
    known=st.sets(st.integers(0, 2**63 - 1), max_size=30),
    asked=st.lists(st.integers(0, 2**63 - 1), max_size=10),
    data=st.data(),
)
def test_sorted_ids_find_their_rows(known: Any, asked: Any, data: Any) -> None:
    ids = np.array(sorted(known), np.int64)
    rows = (np.arange(len(ids), dtype=np.float32) + 1)[:, None]
    if known:
        asked = asked + data.draw(st.lists(st.sampled_from(sorted(known))))
    source = MappedRows(Files(rows, ids))  # type: ignore[arg-type]
    wanted = np.array(asked, np.int64).reshape(-1, 1)
    found = source.read({"t": wanted}).rows["t"]
    place = {i: k + 1 for k, i in enumerate(ids.tolist())}
    assert found.shape == (len(asked), 1, 1)
    assert found.ravel().tolist() == [place.get(i, 0) for i in asked]


def test_rows_by_position_end_where_the_file_ends() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    source = MappedRows(Files(rows, None, limit=5))  # type: ignore[arg-type]
    found = source.read({"t": np.array([[2, 4], [0, 2]])})
    assert found.rows["t"].tolist() == [[[4, 5], [0, 0]], [[0, 1], [4, 5]]]
    assert found.params is None and found.age > 1e9  # since 1970
    for wrong in (-1, 5):
        with pytest.raises(
            ServeError, match=f"'t': ids must be from 0 to 4, got {wrong}"
        ):
            source.read({"t": np.array([0, wrong])})


def test_initial_rows_without_a_program_are_zero() -> None:
    table = StoredTable((2,), "bfloat16", None, ("t",))
    made = InitialRows(table, None)(np.arange(200))
    assert made.shape == (200, 2) and made.dtype.name == "bfloat16"
    assert not made.astype(np.float32).any()


def test_a_table_larger_than_memory_is_read_by_rows(tmp_path: Path) -> None:
    count = 2**31 - 1
    path = tmp_path / "rows.npy"
    shape = (count, 8)  # 64 GiB, of which the file system stores the rows written here
    rows = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    rows[[5, count - 1]] = np.array([[1.0], [2.0]])
    rows.flush()
    source = MappedRows(Files(np.load(path, mmap_mode="r"), limit=count))  # type: ignore[arg-type]
    found = source.read({"t": np.array([count - 1, 5, 1_000_000_000])}).rows["t"]
    assert found[:, 7].tolist() == [2.0, 1.0, 0.0]
    source.close()
