import json

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed import compression
from fxflow.distributed.parameter_server import filters
from fxflow.distributed.parameter_server.consistency import asynchronous, bsp
from fxflow.distributed.parameter_server.model import Model, difference, make_model

PARAMS = [np.zeros(3, np.float32), np.zeros((4, 4), np.float32)]


def model(**options: object) -> Model:
    given = {"optimizer": optim.adam(0.1), "consistency": bsp(), **options}
    return make_model(["a", "b"], PARAMS, given.pop("optimizer"), **given)


def test_a_model_survives_a_message() -> None:
    made = model()
    fields, arrays = made.to_message()
    found = Model.from_message(json.loads(json.dumps(fields)), arrays)
    assert found.fingerprint == made.fingerprint
    assert found.params == made.params
    assert found.state == made.state
    assert found.nbytes == 76


def test_different_models_have_different_fingerprints() -> None:
    others = [
        model(optimizer=optim.adam(0.2)),
        model(optimizer=optim.sgd(0.1)),
        model(consistency=asynchronous()),
        make_model(["a", "c"], PARAMS, optim.adam(0.1), bsp()),
        model(code=filters.filter_of(compression.int8(8))),
        model(code=filters.filter_of(compression.one_bit(8))),
        model(code=filters.top_k(0.3)),
        model(code=filters.by_group({"a": "bf16"})),
        model(code=filters.filter_of("bf16")),
        model(pull=filters.filter_of("bf16")),
    ]
    assert len({m.fingerprint for m in [model(), *others]}) == len(others) + 1
    assert model().fingerprint == model().fingerprint


@pytest.mark.parametrize("fields", [{}, {"consistency": {"kind": "bsp"}}])
def test_other_fields_are_rejected(fields: dict) -> None:
    with pytest.raises(ValueError, match="not a model"):
        Model.from_message({"programs": {}, **fields}, {})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            model(consistency=asynchronous()),
            "Here the consistency is bsp(), in the run",
        ),
        (model(optimizer=optim.adam(0.2)), "The program 'apply' differs: another opt"),
        (
            make_model(["a"], [PARAMS[0]], optim.adam(0.1), bsp()),
            "This server has parameter 'b' (f32[4,4]) here only",
        ),
        (
            make_model(["a", "b"], [PARAMS[0]] * 2, optim.adam(0.1), bsp()),
            "Here parameter 'b' is f32[4,4], in the run f32[3]",
        ),
    ],
    ids=["consistency", "rate", "structure", "shape"],
)
def test_difference_names_what_differs(other: Model, message: str) -> None:
    assert message in difference(model().described, other.described)
