"""Folders that are damaged, mixed or of another version are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.tables import RecommenderFiles, load_recommender, save_recommender
from tests.serve.tables import ads


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "ads"
    _, state = ads.trained()
    save_recommender(path, ads.predict, state, ads.SPECS, ads.features())
    return path


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "copy")
    return tmp_path / "copy"


def change(path: Path, **fields: object) -> None:
    described = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**described, **fields}))


def test_other_versions_are_refused(copy: Path) -> None:
    change(copy, version=2)
    with pytest.raises(ServeError, match=r"format version 2; this fxflow.*version 1"):
        RecommenderFiles.read(copy)


def test_the_rows_of_another_snapshot_are_refused(copy: Path) -> None:
    np.save(copy / "table-0.rows.npy", np.zeros((49, 3), np.float32))
    with pytest.raises(ServeError, match="of different snapshots"):
        load_recommender(copy)
    np.save(copy / "table-0.rows.npy", np.zeros((50, 3), np.float64))
    with pytest.raises(ServeError, match="of different snapshots"):
        load_recommender(copy)
    (copy / "table-0.rows.npy").unlink()
    with pytest.raises(ServeError, match=r"table-0\.rows\.npy cannot be read"):
        load_recommender(copy)


def test_damage_is_named(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="is not a folder that save_recommender"):
        RecommenderFiles.read(tmp_path)
    change(copy, tables={"site": {"rows": "../secret.npy"}})
    with pytest.raises(ServeError, match="is damaged"):
        RecommenderFiles.read(copy)
    change(copy, format="other")
    with pytest.raises(ServeError, match="format 'other'"):
        RecommenderFiles.read(copy)


def test_a_file_elsewhere_is_not_read(saved: Path, copy: Path) -> None:
    described = json.loads((saved / "manifest.json").read_text())
    described["tables"]["site"]["rows"] = "../table-0.rows.npy"
    change(copy, tables=described["tables"])
    with pytest.raises(ServeError, match=r"the file '\.\./table-0"):
        RecommenderFiles.read(copy)
