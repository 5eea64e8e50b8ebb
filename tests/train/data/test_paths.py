"""Names of files and what files are known by."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fxflow.errors import DataError
from fxflow.train.data.paths import names, opened, stamp


def test_names_are_sorted_and_absent_files_an_error(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text(name)
    pattern = tmp_path / "*.csv"
    wanted = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert names("csv", pattern) == wanted
    assert names("csv", wanted[::-1]) == wanted[::-1]
    assert names("csv", tmp_path / "*.json", absent=True) == []
    with pytest.raises(DataError, match="csv: no file matches"):
        names("csv", tmp_path / "*.json")


def test_urls_are_opened_and_known_by_their_size(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.gz", "wb") as stream:
        stream.write(b"text")
    url = f"file://{tmp_path}/a.gz"
    assert names("csv", f"file://{tmp_path}/*.gz") == [url]
    with opened(url) as stream, opened(str(tmp_path / "a.gz")) as local:
        assert stream.read() == local.read() == b"text"
    assert stamp(url).size == stamp(str(tmp_path / "a.gz")).size


def test_a_rewritten_file_has_another_stamp(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    before = stamp(str(path))
    assert stamp(str(path)) == before
    (tmp_path / "b").write_text("two")
    (tmp_path / "b").rename(path)
    assert stamp(str(path)) != before
    path.unlink()
    with pytest.raises(FileNotFoundError):
        stamp(str(path))
