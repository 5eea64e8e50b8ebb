"""Folders of models with tables are written whole, by one writer, and checked."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import train
from fxflow.devices import files
from fxflow.errors import ArgumentError, ShapeError
from fxflow.serve.tables import RecommenderFiles, load_recommender, save_recommender
from fxflow.train import data
from tests.serve.tables import ads


def save(path: Path, **changes: Any) -> None:
    _, state = ads.trained()
    given = {"state": state, "tables": ads.SPECS, "features": ads.features()}
    save_recommender(path, ads.predict, **{**given, **changes})


def test_a_folder_is_replaced_as_a_whole_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ads"
    save(path, step=3)
    first = RecommenderFiles.read(path)
    rows, _ = first.arrays("site")
    save(path, step=3)
    second = RecommenderFiles.read(path)
    assert first.id != second.id and second.step == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ads", "ads.lock"]
    # Who serves the old folder has its rows until it closes them.
    assert np.array_equal(rows, second.arrays("site")[0])


def test_two_writers_and_an_earlier_step_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ads"
    save(path, step=7)
    before = RecommenderFiles.read(path).id
    with pytest.raises(ArgumentError, match="has step 7, and this is step 6"):
        save(path, step=6)
    other = os.open(f"{path}.lock", os.O_RDWR)
    files.lock(other)
    with pytest.raises(ArgumentError, match="another process is writing"):
        save(path, step=8)
    os.close(other)
    assert RecommenderFiles.read(path).id == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ads", "ads.lock"]


def test_other_folders_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(ArgumentError, match="it is kept"):
        save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years"


def test_mistakes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "ads"
    small = dataclasses.replace(ads.SPECS[0], rows=20)
    other = dataclasses.replace(ads.SPECS[0], shape=(5,))
    described = {**ads.features().features, "ads": data.Hash("ads", 10, capacity=9)}
    ragged = data.Features(described).fit([ads.LOGS])
    for kind, match, changes in [
        (ArgumentError, "'ads' has a capacity for a batch", {"features": ragged}),
        (ArgumentError, "ids below 50, table 'site' has 20 rows", {
            "tables": (small, ads.SPECS[1])}),
        (ShapeError, r"'site' has rows float32\[5\], the state has float32\[3\]", {
            "tables": (other, ads.SPECS[1])}),
        (ArgumentError, "the state has the tables", {"tables": ads.SPECS[:1]}),
        (ArgumentError, "of feature 'x'", {"columns": {"site": "x"}}),
        (ArgumentError, "columns has the tables", {"columns": {"x": "site"}}),
        (ArgumentError, "state must be a TrainerState", {"state": {"w": 1}}),
    ]:  # fmt: skip
        with pytest.raises(kind, match=match):
            save(path, **changes)
        assert not path.exists()


def test_snapshots_of_servers_have_rows_by_id_in_any_order(tmp_path: Path) -> None:
    _, state = ads.trained()
    sites, shown = (np.asarray(state.tables[n][0]) for n in ("site", "ads"))
    order = np.random.default_rng(0).permutation(50)
    parts = [order[:20], order[20:45]]  # five rows were never created
    servers = [
        {
            "rows": {
                "site": [[ids, sites[ids]]],
                "ads": [[np.arange(k, 10, 2), shown[k::2]]],
            }
        }
        for k, ids in enumerate(parts)
    ]
    save(tmp_path / "ads", state={"params": state.params, "servers": servers})
    model = load_recommender(tmp_path / "ads")
    found = model._source.read({"site": np.arange(50)}).rows["site"]
    here = np.isin(np.arange(50), order[:45])
    assert np.array_equal(found[here], sites[here])
    # The others have the values with which training would create them.
    trainer = train.table_trainer(ads.loss, ads.SPECS[0].optimizer, ads.SPECS)
    first = trainer.rows({"site": np.arange(50)}, trainer.init(ads.params()))
    assert np.allclose(found[~here], np.asarray(first["site"])[~here], atol=1e-6)
    with pytest.raises(ArgumentError, match="has a row twice"):
        save(
            tmp_path / "ads",
            state={"params": state.params, "servers": [servers[0], servers[0]]},
        )
