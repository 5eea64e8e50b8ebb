"""Rows are written to files completely, or an error says why not."""

from pathlib import Path

import numpy as np
import pytest

from fxflow.distributed.parameter_server.server.saving import RowWriter
from fxflow.errors import DistributedError
from tests.distributed.parameter_server.tables.harness import WIDTH, plain


def finished(writer: RowWriter) -> dict:
    writer._thread.join(10)
    found = writer.result()
    assert found is not None
    return found


def test_each_field_is_a_file(tmp_path: Path) -> None:
    table = plain()
    table.push(np.arange(9), np.ones((9, WIDTH), np.float32))
    found = finished(RowWriter(tmp_path, {"t": table.state()}, whole=True))
    ids, rows, count = found["t"]["fields"]
    assert found["t"]["rows"] == 9 and found["t"]["whole"]
    assert (ids["dtype"], rows["shape"], count["shape"]) == ("int64", [WIDTH], [])
    read = np.fromfile(tmp_path / rows["file"], np.float32).reshape(9, WIDTH)
    order = np.fromfile(tmp_path / ids["file"], np.int64)
    assert np.array_equal(read, table.pull(order))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "table-0.0",
        "table-0.1",
        "table-0.2",
    ]


def test_a_table_without_rows_has_no_files(tmp_path: Path) -> None:
    found = finished(RowWriter(tmp_path, {"t": plain().state()}, whole=True))
    assert found == {"t": {"rows": 0, "whole": True, "fields": []}}


def test_a_table_that_was_closed_is_an_error(tmp_path: Path) -> None:
    table = plain()
    table.push(np.arange(9), np.ones((9, WIDTH), np.float32))
    rows = table.state()
    table.close()
    writer = RowWriter(tmp_path, {"t": rows}, whole=True)
    with pytest.raises(DistributedError, match="given up the shard"):
        finished(writer)
    assert writer.failed and not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    writer = RowWriter(tmp_path / "file" / "x", {"t": plain().state()}, whole=True)
    with pytest.raises(DistributedError, match=r"cannot be written to .*file/x: Not a"):
        finished(writer)
