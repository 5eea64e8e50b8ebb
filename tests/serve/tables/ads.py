"""A small model of clicks, with tables, for the tests."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fxflow import nn, optim, train
from fxflow import numpy as fnp
from fxflow.distributed.parameter_server import TableSpec
from fxflow.train import data

LOGS = {
    "site": ["a.com", "b.org", None, "a.com"],
    "ads": [["x", "y"], ["z"], None, ["x", "unknown", "y", "z"]],
    "age": [17, None, 40, 70],
    "price": [1.0, 2.5, float("nan"), 4.0],
}
SPECS = (
    TableSpec("site", 3, optim.adagrad(0.1), nn.initializers.normal(1.0), rows=50),
    TableSpec("ads", 3, optim.sgd(0.1), nn.initializers.normal(1.0), rows=10),
)


@functools.cache
def features() -> data.FittedFeatures:
    described = {
        "site": data.Hash("site", 50),
        "ads": data.Vocabulary("ads", width=3),
        "age": data.Bucket("age", [18, 65]),
        "price": data.Normalize("price"),
    }
    seen = {**LOGS, "ads": [["x", "x"], ["y"], ["z"], None]}
    return data.Features(described).fit([seen])


def logits(params: Any, rows: Any, batch: Any) -> Any:
    shown = (batch["ads"] > 0)[..., None]
    total = fnp.sum(rows["ads"] * shown, 1) + rows["site"]
    return total @ params["w"] + batch["price"] + params["age"][batch["age"]]


def predict(params: Any, rows: Any, batch: Any) -> Any:
    return {"click": nn.sigmoid(logits(params, rows, batch))}


def loss(params: Any, rows: Any, batch: Any) -> Any:
    found = logits(params, rows, batch)
    return fnp.mean(nn.softplus(found) - batch["clicked"] * found)


def params() -> Any:
    return {"w": np.ones(3, np.float32), "age": np.arange(4, dtype=np.float32)}


def rows_of(columns: Any) -> list[dict[str, Any]]:
    names = list(columns)
    return [
        dict(zip(names, values, strict=True))
        for values in zip(*columns.values(), strict=True)
    ]


def ids_of(batch: Any) -> dict[str, Any]:
    return {"site": batch["site"], "ads": batch["ads"]}


@functools.cache
def trained() -> tuple[train.TableTrainer, train.TrainerState]:
    """A trainer, and a state that no step uses."""
    trainer = train.table_trainer(loss, optim.sgd(0.1), SPECS)
    assert isinstance(trainer, train.TableTrainer)
    state = trainer.init(params())
    batch = features()(LOGS)
    clicked = {**batch, "clicked": np.array([1, 0, 0, 1], np.float32)}
    for _ in range(3):
        state, _ = trainer.step(state, clicked, ids=ids_of(batch))
    return trainer, state


def expected() -> np.ndarray[Any, Any]:
    """The predictions of the training program for `LOGS`."""
    trainer, state = trained()
    batch = features()(LOGS)
    rows = trainer.rows(ids_of(batch), state)
    return np.asarray(predict(state.params, rows, batch)["click"])
