"""Requests have raw columns; predictions are those of the training program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import numpy as fnp
from fxflow import optim, train
from fxflow.distributed.parameter_server import TableSpec
from fxflow.errors import ServeError
from fxflow.serve.tables import Recommender, load_recommender, save_recommender
from fxflow.train import data
from tests.serve.tables import ads


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Recommender:
    path = tmp_path_factory.mktemp("model") / "ads"
    _, state = ads.trained()
    save_recommender(path, ads.predict, state, ads.SPECS, ads.features())
    return load_recommender(path)


def test_predictions_are_those_of_training(model: Recommender) -> None:
    rows = ads.rows_of({**ads.LOGS, "price": [1.0, 2.5, None, 4.0]})
    found = model.predict(rows)["click"]
    np.testing.assert_allclose(found, ads.expected(), rtol=1e-6)
    assert model.age is not None and 0 <= model.age < 600


def test_requests_are_texts_of_rows_in_batches_of_any_size(model: Recommender) -> None:
    signature = model.prepare(6)
    assert signature.objects and str(signature.inputs[0]) == "bytes[batch]"
    assert [str(spec) for spec in signature.outputs] == ["f32[batch]"]
    rows = ads.rows_of({**ads.LOGS, "price": [1.0, 2.5, None, 4.0]})
    for count in (1, 3, 4, 5):
        picked = [rows[k % 4] for k in range(count)]
        texts = np.array([json.dumps(row).encode() for row in picked], object)
        (found,) = model.run([texts], count)
        wanted = [ads.expected()[k % 4] for k in range(count)]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"price": ...}, "has no column 'price'; the columns are 'site'"),
        ({"more": 1}, "has the unknown column 'more'"),
        ({"site": 3}, "column 'site': row 0 is of kind integer"),
        ({"ads": "x"}, "a list of values"),
        ({"age": "old"}, "column 'age': row 0 is of kind string"),
    ],
)
def test_bad_rows_are_the_clients_mistakes(
    model: Recommender, change: dict[str, Any], match: str
) -> None:
    row = {**ads.rows_of(ads.LOGS)[0], **change}
    given = {k: v for k, v in row.items() if v is not ...}
    with pytest.raises(ServeError, match=match) as caught:
        model.predict([given])
    assert caught.value.status == 400


@pytest.mark.parametrize("text", [b"{", b"[1]", b"\xff"])
def test_rows_must_be_objects(model: Recommender, text: bytes) -> None:
    with pytest.raises(ServeError, match="a row must be") as caught:
        model.run([np.array([text], object)], 1)
    assert caught.value.status == 400


def test_a_table_may_have_the_ids_of_several_features(tmp_path: Path) -> None:
    features = data.Features(
        {"seen": data.Hash("seen", 20, width=2), "ad": data.Hash("ad", 20)}
    ).fit([])
    spec = TableSpec("items", (), optim.sgd(1.0), rows=20)
    state = train.TrainerState(
        np.float32(2),
        (),
        {"items": (np.arange(20, dtype=np.float32), None)},  # type: ignore[arg-type]
    )

    def predict(scale: Any, rows: Any, batch: Any) -> Any:
        return {"sum": scale * fnp.sum(rows["items"], 1)}

    columns = {"items": ["seen", "ad"]}
    path = tmp_path / "items"
    save_recommender(path, predict, state, [spec], features, columns=columns)
    rows = [{"seen": ["a", "b", "c"], "ad": "d"}, {"seen": [], "ad": "a"}]
    found = load_recommender(path).predict(rows)["sum"]
    ids = features({k: [row[k] for row in rows] for k in rows[0]})
    wanted = 2 * (ids["seen"].sum(1) + ids["ad"])
    assert found.tolist() == wanted.tolist()


def test_a_folder_without_rows_needs_servers(tmp_path: Path) -> None:
    state = train.TrainerState(ads.params(), (), {})
    path = tmp_path / "ads"
    save_recommender(path, ads.predict, state, ads.SPECS, ads.features())
    with pytest.raises(ServeError, match="has no rows of table 'site'"):
        load_recommender(path)
