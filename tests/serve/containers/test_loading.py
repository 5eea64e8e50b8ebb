"""Folders of models with tables are loaded by their path."""

from __future__ import annotations

from pathlib import Path

import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.loading import load_model
from fxflow.serve.tables import Recommender, save_recommender
from tests.serve.tables import ads


def test_a_folder_is_a_model(tmp_path: Path) -> None:
    path = str(tmp_path / "ads")
    with pytest.raises(ServeError, match="a model must be named"):
        load_model(path)
    _, state = ads.trained()
    save_recommender(path, ads.predict, state, ads.SPECS, ads.features())
    assert isinstance(load_model(path), Recommender)
    with pytest.raises(ServeError, match="it takes no factory"):
        load_model(path, factory=True)
    with pytest.raises(ServeError, match="argument 'more'"):
        load_model(path, arguments={"more": 1})
