"""Valid specifications of a table, and their description as JSON."""

import json
import zlib

import numpy as np
import pytest

import fxflow
from fxflow import optim, random
from fxflow.distributed.parameter_server.tables import (
    RowPrograms,
    RowTable,
    TableSpec,
    row_functions,
    row_programs,
)
from fxflow.errors import ArgumentError, DtypeError
from fxflow.nn import initializers


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


# -- programs --------------------------------------------------------------------------

WIDTH = 5
OPTIMIZERS = {
    "sgd": optim.sgd(0.1),
    "momentum": optim.momentum(0.1, 0.9),
    "adagrad": optim.adagrad(0.1),
    "adam": optim.adam(0.1),
    "schedule": optim.sgd(optim.linear_schedule(0.1, 0.0, 4)),
}


def test_initial_values_do_not_depend_on_order_or_block() -> None:
    spec = TableSpec("t", WIDTH, optim.sgd(0.1), seed=3)
    ids = np.random.default_rng(0).integers(0, 2**63, 300)
    at_once = RowTable(spec).pull(ids)
    backwards = RowTable(spec, row_programs(spec, (4, 64)))
    for i in range(len(ids), 0, -7):
        backwards.pull(ids[max(i - 7, 0) : i])
    assert np.array_equal(backwards.pull(ids), at_once)
    assert len(np.unique(at_once)) == at_once.size
    assert abs(at_once.std() - 0.01) < 0.001


def test_initial_values_depend_on_the_seed_the_name_and_the_id() -> None:
    def first(**other):
        options = {"name": "t", "shape": WIDTH, "optimizer": optim.sgd(0.1), **other}
        halves = np.array([[2, 5]], np.uint32)
        return row_functions(TableSpec(**options)).init(halves)[0]

    assert np.array_equal(first(), first())
    for other in ({"seed": 1}, {"name": "u"}):
        assert not np.array_equal(first(), first(**other))
    key = random.fold_in(random.key(0), zlib.crc32(b"t"))
    key = random.fold_in(random.fold_in(key, 2), 5)
    assert np.array_equal(first()[0], initializers.normal(0.01)(key, (WIDTH,)))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_row_is_updated_like_a_parameter(name) -> None:
    optimizer = OPTIMIZERS[name]
    table = RowTable(TableSpec("t", WIDTH, optimizer))
    generator = np.random.default_rng(0)
    params = {i: fxflow.numpy.asarray(table.pull([i])[0]) for i in range(3)}
    states = {i: optimizer.init(p) for i, p in params.items()}

    @fxflow.jit
    def step(param, state, gradient):
        updates, state = optimizer.update(gradient, state, param)
        return optim.apply_updates(param, updates), state

    for ids in ([0, 1], [1], [1, 2], [0, 1, 2], [1]):
        gradients = generator.normal(size=(len(ids), WIDTH)).astype(np.float32)
        table.push(ids, gradients)
        for i, gradient in zip(ids, gradients):
            params[i], states[i] = step(params[i], states[i], gradient)
    rows = table.pull([0, 1, 2])
    assert np.allclose(rows, np.stack([params[i] for i in range(3)]), rtol=1e-6)


def test_scale_multiplies_the_change() -> None:
    table = RowTable(TableSpec("t", WIDTH, optim.adam(0.1), initializers.zeros))
    table.push([1], np.ones((1, WIDTH), np.float32), scale=0.5)
    assert np.allclose(table.pull([1]), -0.05)


def test_compiled_programs_give_the_same_bits() -> None:
    spec = TableSpec("t", (2, 3), optim.adam(0.01))
    functions = row_functions(spec)
    init, update = (lowered.compile() for lowered in functions.lower(8))
    sent = RowPrograms(
        functions.fields,
        init,
        lambda fields, g, scale: update(tuple(fields), g, np.float32(scale)),
        (8,),
    )
    own, remote = (
        RowTable(spec),
        RowTable(TableSpec.from_description(spec.describe()), sent),
    )
    ids = np.arange(50) * 3
    gradients = np.random.default_rng(0).normal(size=(50, 2, 3)).astype(np.float32)
    for table in (own, remote):
        table.push(ids, gradients)
        table.push(ids[::2], gradients[1::2])
    assert np.array_equal(own.pull(ids), remote.pull(ids))


def test_invalid_rows_and_optimizers_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="table 't': give it an optimizer"):
        row_functions(TableSpec("t", WIDTH))
    noisy = optim.GradientTransformation(lambda row: random.key(0), optim.sgd(1).update)
    with pytest.raises(DtypeError, match="table 't': the optimizer's state has a key"):
        row_functions(TableSpec("t", WIDTH, noisy))
    bits = lambda key, shape, dtype: random.bits(key, shape)
    wrong = TableSpec("t", WIDTH, optim.sgd(0.1), bits)
    with pytest.raises(DtypeError, match="table 't': the initializer must make"):
        row_functions(wrong)
