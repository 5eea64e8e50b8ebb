import json

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.parameter_server.tables import RowTable, TableSpec
from fxflow.distributed.parameter_server.tables.remote import (
    TableModel,
    by_shard,
    make_table,
    rows_of,
    table_model,
)
from fxflow.errors import ArgumentError

SPEC = TableSpec("words", (2, 3), optim.adam(0.1), seed=5)


def test_a_table_from_program_text_has_the_same_bits() -> None:
    model = table_model(SPEC)
    described = json.loads(json.dumps([model.description, model.fields]))
    sent = TableModel(described[0], described[1], model.programs)
    own, remote = RowTable(SPEC), make_table(sent, "here")
    rng = np.random.default_rng(0)
    for count in (3, 40, 600):
        ids = rng.integers(0, 10**12, count)
        ids[-1] = ids[0]
        gradients = rng.normal(size=(count, 2, 3)).astype(np.float32)
        own.push(ids, gradients, scale=0.5)
        remote.push(ids, gradients, scale=0.5)
        assert own.pull(ids).tobytes() == remote.pull(ids).tobytes()
    own.close()
    remote.close()


def test_a_table_needs_its_optimizer() -> None:
    with pytest.raises(ArgumentError, match="give it an optimizer"):
        table_model(TableSpec("words", 2))


def test_each_id_has_one_shard() -> None:
    ids = np.array([0, 1, 2, 3, 7, 10**15], np.int64)
    parts = by_shard(ids, 3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(6))
    assert [ids[p].tolist() for p in parts] == [[0, 3], [1, 7, 10**15], [2]]


def test_rows_of_a_push_are_found_by_table() -> None:
    arrays = {"rows/a/ids": 1, "rows/a/gradients": 2}
    assert rows_of(arrays, "a") == (1, 2)
    assert rows_of(arrays, "b") is None
