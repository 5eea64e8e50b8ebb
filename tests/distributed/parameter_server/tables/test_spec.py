"""Valid specifications of a table, and their description as JSON."""

import json

import pytest

from fxflow import optim
from fxflow.distributed.parameter_server.tables import TableSpec
from fxflow.errors import ArgumentError, DtypeError


def test_a_description_survives_json() -> None:
    spec = TableSpec(
        "words", (2, 3), optim.sgd(0.1), dtype="bfloat16", rows_in_memory=5, folder="x"
    )
    sent = json.loads(json.dumps(spec.describe()))
    found = TableSpec.from_description(sent)
    assert found.optimizer is None and found.describe() == spec.describe()
    assert found.shape == (2, 3) and found.width == 6
    with pytest.raises(ArgumentError, match=r"unknown \['size'\], missing \['name'\]"):
        TableSpec.from_description({"size": 1, "shape": 2})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"name": ""}, ArgumentError, "name must be a string"),
        ({"shape": 0}, ArgumentError, r"at least 1, got \(0,\)"),
        ({"shape": "wide"}, ArgumentError, "shape must be an int or a tuple"),
        ({"dtype": "int32"}, DtypeError, "table 't': rows must be real floating"),
        ({"evict": "fifo"}, ArgumentError, r"\['lru', 'lfu'\], got 'fifo'"),
        ({"non_finite": "no"}, ArgumentError, "non_finite must be one of"),
        ({"rows_in_memory": 0, "folder": "x"}, ArgumentError, "at least 1, got 0"),
        ({"rows_in_memory": 9}, ArgumentError, "needs a folder"),
    ],
)
def test_invalid_options_are_rejected(options, error, message) -> None:
    with pytest.raises(error, match=message):
        TableSpec(**{"name": "t", "shape": 3, **options})
