"""Rows on disk: writing, reading, views, and errors."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from fxflow.distributed.parameter_server.tables.disk import DiskRows
from fxflow.distributed.parameter_server.tables.spec import Field
from fxflow.errors import ArgumentError

pytest.importorskip("lmdb")

FIELDS = (
    Field((2, 2), np.dtype(np.float32)),
    Field((), np.dtype(np.int32)),
    Field((3,), np.dtype(np.float16)),
)


@pytest.fixture
def rows(tmp_path):
    with_slash = DiskRows(str(tmp_path), "a/b", FIELDS)
    yield with_slash
    with_slash.close()


def some(ids, scale=1):
    return [
        (np.resize(ids, (f.shape or (1,))[::-1] + (len(ids),)).T * scale % 97)
        .reshape(len(ids), *f.shape)
        .astype(f.dtype)
        for f in FIELDS
    ]


def test_get_returns_the_rows_last_put(rows) -> None:
    ids = np.random.default_rng(0).permutation(1000) * (2**63 // 1000)
    rows.put(ids, some(ids))
    assert len(rows) == 1000 and rows.nbytes > 1000 * 30
    asked = np.unique(np.concatenate([ids[:100], ids[:50] + 1]))
    here, fields = rows.get(asked)
    assert np.array_equal(here, np.isin(asked, ids))
    for got, expected, field in zip(fields, some(asked[here]), FIELDS):
        assert got.dtype == field.dtype and np.array_equal(got, expected)
    rows.put(ids[:10], some(ids[:10], 3))
    _, fields = rows.get(np.sort(ids[:10]))
    assert np.array_equal(fields[1], some(np.sort(ids[:10]), 3)[1])
    none, fields = rows.get(np.array([1]))
    assert not none.any() and fields[0].shape == (0, 2, 2)
    rows.put(ids[:0], some(ids[:0]))
    rows.clear()
    assert len(rows) == 0


def test_a_view_does_not_see_later_writes(rows) -> None:
    ids = np.arange(20_000)
    rows.put(ids, some(ids))
    view = rows.view()
    rows.put(ids[::2], some(ids[::2], 5))
    rows.put(ids + 10**6, some(ids))
    seen, counts = [], []
    while (found := view.read(3)) is not None:
        seen.append(found[0])
        counts.append(found[1][1])
    view.close()
    assert np.array_equal(np.concatenate(seen), ids)
    assert np.array_equal(np.concatenate(counts), some(ids)[1])


def test_a_table_has_exclusive_files_and_removes_them(rows, tmp_path) -> None:
    with pytest.raises(ArgumentError, match=r"table 'a/b'.*used by another"):
        DiskRows(str(tmp_path), "a/b", FIELDS)
    other = DiskRows(str(tmp_path), "b", FIELDS)
    other.close()
    other.close()
    rows.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error(rows, monkeypatch) -> None:
    ids = np.arange(10)
    rows.put(ids, some(ids))
    usage = shutil.disk_usage(".")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="no space for 10 more rows of 26 bytes"):
        rows.put(ids + 10, some(ids))
    assert len(rows) == 10


KILLED = """
import os, sys, numpy as np
from fxflow.distributed.parameter_server.tables.disk import DiskRows
from fxflow.distributed.parameter_server.tables.spec import Field
rows = DiskRows(sys.argv[1], "t", [Field((8,), np.dtype(np.float32))])
ids = np.arange(4096)
print("ready", flush=True)
while True:
    rows.put(ids, [np.ones((4096, 8), np.float32)])
    ids = ids + 4096
"""


def test_files_of_a_killed_process_are_removed(tmp_path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with writer:
        assert writer.stdout.readline() == b"ready\n"
        with pytest.raises(ArgumentError, match="used by another"):
            DiskRows(str(tmp_path), "t", FIELDS)
        writer.send_signal(signal.SIGKILL)
    rows = DiskRows(str(tmp_path), "t", FIELDS)
    assert len(rows) == 0
    rows.close()
