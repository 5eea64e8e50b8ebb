"""Atomic writes: a file is replaced entirely or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fxflow.devices import files


@pytest.mark.parametrize("durable", [False, True])
def test_replaced(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a"
    for parts in ((b"one",), (b"t", b"wo"), ()):
        files.write(path, *parts, durable=durable)
        assert path.read_bytes() == b"".join(parts)
    assert os.listdir(tmp_path) == ["a"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    files.write(path, b"old", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(TypeError):
        files.write(path, b"new", "text")  # type: ignore[arg-type]
    assert (os.listdir(tmp_path), path.read_bytes()) == (["a"], b"old")
    with pytest.raises(IsADirectoryError):
        files.write(tmp_path, b"new")
    with pytest.raises(FileNotFoundError):
        files.write(tmp_path / "absent" / "a", b"new")
    assert os.listdir(tmp_path) == ["a"]


def test_names_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    replace = os.replace

    def seeing(source: str, target: Path) -> None:
        seen.append(os.path.basename(source))
        replace(source, target)

    monkeypatch.setattr(os, "replace", seeing)
    for _ in range(2):
        files.write(tmp_path / "a", b"1")
    assert len(set(seen)) == 2
    assert all(files.TEMPORARY.fullmatch(name) for name in seen)


def test_mapped(tmp_path: Path) -> None:
    files.write(tmp_path / "a", b"new")
    assert bytes(files.mapped(tmp_path / "a")) == b"new"
    files.write(tmp_path / "a")
    assert bytes(files.mapped(tmp_path / "a")) == b""


def test_a_second_descriptor_cannot_lock_a_file(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as first, (tmp_path / "lock").open("w") as other:
        files.lock(first.fileno())
        with pytest.raises(BlockingIOError):
            files.lock(other.fileno())
    with (tmp_path / "lock").open("w") as third:
        files.lock(third.fileno())  # closing released it


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for text in ("first", "second"):
        with files.replacing(path) as folder:
            (folder / "part").write_text(text)
            assert text == "first" or (path / "part").read_text() == "first"
        assert (path / "part").read_text() == text
    with pytest.raises(ValueError, match="half"), files.replacing(path) as folder:
        (folder / "part").write_text("third")
        raise ValueError("half way")
    assert (path / "part").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
