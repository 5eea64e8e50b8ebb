"""Folders and object stores have the same interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from fxflow.errors import CheckpointError
from fxflow.train.checkpoint.storage import Local, ObjectStore, Storage, storage_of


@pytest.fixture(params=["folder", "store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return Local(tmp_path / "new")
    pytest.importorskip("tensorstore", reason="pip install 'fxflow[checkpoint]'")
    return ObjectStore({"driver": "file", "path": str(tmp_path)}, 10)


def test_files_are_written_and_listed(storage: Storage) -> None:
    assert (storage.names(), storage.read("a"), storage.has("a")) == ([], None, False)
    storage.write("a", b"1")
    storage.write("a", b"22")
    inner = storage.inside("inner")
    inner.write("b", b"3")
    inner.inside("deep").write("c", b"4")
    assert (storage.read("a"), storage.has("a")) == (b"22", True)
    assert (storage.names(), inner.names()) == (["a", "inner"], ["b", "deep"])
    storage.remove("inner")
    storage.remove("a")
    storage.remove("absent")
    assert storage.names() == []


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    folder = Local(tmp_path)
    folder.write("a", b"old")
    with pytest.raises(TypeError):
        folder.write("a", "text")  # type: ignore[arg-type]
    assert (folder.names(), folder.read("a")) == (["a"], b"old")


def test_a_folder_has_one_writer_at_a_time(tmp_path: Path) -> None:
    unlock = Local(tmp_path).lock()
    with pytest.raises(CheckpointError, match="another writer"):
        Local(tmp_path).lock()
    unlock()
    Local(tmp_path).lock()()
    # A process that was replaced does not block the others of its run.
    unlock = Local(tmp_path).lock("of workers")
    Local(tmp_path).lock("of workers")()
    with pytest.raises(CheckpointError, match=r"another writer.*run of workers"):
        Local(tmp_path).lock("of others")
    unlock()


def test_paths_and_urls_name_their_storage(tmp_path: Path) -> None:
    assert str(storage_of(tmp_path, 1)) == str(tmp_path)
    assert str(storage_of(f"file://{tmp_path}", 1)) == str(tmp_path)
    pytest.importorskip("tensorstore", reason="pip install 'fxflow[checkpoint]'")
    assert str(storage_of("s3://bucket/some/run", 1)) == "s3://bucket/some/run/"
