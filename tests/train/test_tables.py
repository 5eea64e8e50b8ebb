"""Models with tables of embeddings: in one process as on servers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, train, tree
from fxflow.core.arrays import Aval
from fxflow.distributed.parameter_server import TableSpec, asynchronous
from fxflow.errors import ArgumentError, NonFiniteError, OutOfRangeError
from fxflow.lax.kernels import pages
from fxflow.train import checkpoint, tables

ROWS = 300


def specs(**options: Any) -> list[TableSpec]:
    return [
        TableSpec("ads", 4, optim.adagrad(0.1), rows=ROWS, seed=3, **options),
        TableSpec("sites", (), optim.ftrl(0.2), nn.initializers.zeros, rows=10),
    ]


def loss(params: Any, rows: Any, batch: Any) -> Any:
    """A click model: bags of ads, and a bias for each site."""
    logits = fnp.sum(rows["ads"], 1) @ params["w"] + rows["sites"]
    return fnp.mean(nn.softplus(logits) - batch * logits)


def batches(count: int) -> Any:
    rng = np.random.default_rng(1)
    for _ in range(count):
        ids = {"ads": rng.zipf(1.3, (8, 3)) % ROWS, "sites": rng.integers(0, 10, 8)}
        yield ids, rng.integers(0, 2, 8).astype("f")


def trained(trainer: Any, steps: int = 6) -> tuple[list[float], Any, Any]:
    """Returns losses, the last state, and rows of it."""
    state = trainer.init({"w": fnp.linspace(-1.0, 1.0, 4)})
    losses = []
    for ids, batch in batches(steps):
        state, metrics = trainer.step(state, batch, ids=ids)
        losses.append(float(metrics.loss))
    rows = trainer.rows({"ads": np.arange(40).reshape(5, 8)}, state)
    return losses, state, rows


@pytest.fixture(scope="module")
def one_process() -> Any:
    return trained(train.table_trainer(loss, optim.adam(0.05), specs()))


def test_one_argument_moves_the_model_to_servers(one_process: Any) -> None:
    servers = train.table_trainer(
        loss, optim.adam(0.05), specs(), consistency=asynchronous()
    )
    losses, state, rows = trained(servers)
    np.testing.assert_allclose(one_process[0], losses, 1e-5)
    np.testing.assert_allclose(one_process[2]["ads"], rows["ads"], 1e-4, 1e-6)
    params = servers.params(state)["w"]
    np.testing.assert_allclose(one_process[1].params["w"], params, 1e-4, 1e-6)
    with pytest.raises(OutOfRangeError, match="'sites': ids must be from 0 to 9, got"):
        servers.step(state, None, ids={"ads": [0], "sites": [3, 10]})
    servers.close()


@pytest.mark.parametrize("non_finite", ["skip", "apply"])
def test_policies_are_the_same_for_finite_gradients(
    one_process: Any, non_finite: Any
) -> None:
    trainer = train.table_trainer(
        loss, optim.adam(0.05), specs(), non_finite=non_finite
    )
    losses, state, _ = trained(trainer)
    np.testing.assert_allclose(one_process[0], losses, 1e-5)
    for new, old in zip(tree.leaves(state), tree.leaves(one_process[1]), strict=True):
        np.testing.assert_allclose(new, old, 1e-4, 1e-5)


def test_initial_rows_are_those_of_servers() -> None:
    from fxflow.distributed.parameter_server.tables import RowTable

    # More rows than are created together, and no multiple of that.
    spec = TableSpec("words", 3, optim.adam(0.1), rows=9001, seed=5)
    trainer = train.table_trainer(lambda *given: 0.0, optim.sgd(0.1), [spec])
    state = trainer.init({})
    found = trainer.rows({"words": [0, 7, 8191, 8192, 9000]}, state)["words"]
    want = RowTable(spec).pull([0, 7, 8191, 8192, 9000])
    np.testing.assert_allclose(found, want, 1e-6, 1e-9)
    assert state.tables["words"][0].shape == (9001, 3)


def test_gradients_that_are_not_finite() -> None:
    def broken(params: Any, rows: Any, batch: Any) -> Any:
        return fnp.sum(rows["t"] * params) * batch

    spec = TableSpec("t", 2, optim.sgd(1.0), nn.initializers.ones, rows=4)
    ids = {"t": [1, 3]}
    refusing = train.table_trainer(broken, optim.sgd(0.1), [spec])
    state = refusing.init(fnp.ones(2))
    with pytest.raises(NonFiniteError, match="the step was not made"):
        refusing.step(state, np.float32(np.inf), ids=ids)
    # The state can still be used.
    state, _ = refusing.step(state, np.float32(0.5), ids=ids)
    np.testing.assert_allclose(refusing.rows({"t": [1, 2]}, state)["t"][:, 0], [0.5, 1])
    for policy in ("skip", "apply"):
        other = train.table_trainer(
            broken,
            optim.adam(0.1),
            [spec],
            non_finite=policy,  # type: ignore[arg-type]
        )
        state = other.init(fnp.ones(2))
        before = tree.map(np.array, state)
        state, metrics = other.step(state, np.float32(np.nan), ids=ids)
        assert np.isnan(metrics.loss)
        same = [
            np.array_equal(np.asarray(new), old)
            for new, old in zip(tree.leaves(state), tree.leaves(before), strict=True)
            if old.dtype != np.int32
        ]
        assert all(same) == (policy == "skip")
        assert np.isfinite(np.asarray(state.params)).all() == (policy == "skip")


@pytest.mark.slow
def test_steps_within_other_programs() -> None:
    trainer = train.table_trainer(
        loss, optim.sgd(0.1), specs(), non_finite="apply", has_aux=False
    )
    given = list(batches(3))
    state = trainer.init({"w": fnp.ones(4)})
    step = fxflow.jit(lambda s, i, b: trainer.step(s, b, ids=i))
    other = trainer.init({"w": fnp.ones(4)})
    for ids, batch in given:
        state, _ = trainer.step(state, batch, ids=ids)
        other, _ = step(other, ids, batch)
    for new, old in zip(tree.leaves(state), tree.leaves(other), strict=True):
        np.testing.assert_allclose(new, old, 1e-5, 1e-6)
    outside = {"ads": np.array([[ROWS]]), "sites": np.array([0])}
    # Under jit an id that does not exist gives nan, as in `nn.embedding`.
    _, metrics = step(other, outside, np.ones(1, "f"))
    assert np.isnan(metrics.loss)
    refusing = train.table_trainer(loss, optim.sgd(0.1), specs())
    with pytest.raises(ArgumentError, match="under jit, a step cannot raise"):
        fxflow.jit(lambda s: refusing.step(s, given[0][1], ids=given[0][0]))(other)


def test_a_step_takes_no_memory_of_the_size_of_a_table() -> None:
    def simple(params: Any, rows: Any, batch: Any) -> Any:
        return fnp.sum(fnp.sum(rows["t"], 1) @ params)

    for optimizer in (optim.momentum(0.1), optim.adam(0.1)):
        spec = TableSpec("t", 8, optimizer, rows=20_000)
        trainer = train.table_trainer(simple, optim.sgd(0.1), [spec])
        state = trainer.init(fnp.ones(8))
        ids = {"t": fnp.zeros((4, 5), "int32")}
        gradients = fnp.ones(8), {"t": fnp.ones((4, 5, 8))}
        program = trainer._update.lower(state, ids, gradients, None).compile()
        assert program.memory_analysis()["temp_size_in_bytes"] < 64_000
        assert not program.copies()


def test_a_checkpoint_continues(one_process: Any, tmp_path: Any) -> None:
    trainer = train.table_trainer(loss, optim.adam(0.05), specs())
    ids, batch = next(iter(batches(1)))
    checkpoint.save(tmp_path / "run", one_process[1])
    first = trainer.init({"w": fnp.zeros(4)})
    state = checkpoint.restore(tmp_path / "run", first)
    _, metrics = trainer.step(state, batch, ids=ids)
    assert float(metrics.loss) < one_process[0][0]


@pytest.mark.parametrize("mmap", [False, True])
def test_restored_tables_are_copied_to_huge_pages_once(
    one_process: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, mmap: bool
) -> None:
    copied: list[tuple[int, ...]] = []
    move = tables._moved

    def noted(array: Any) -> Any:
        copied.append(array.shape)
        return move(array)

    monkeypatch.setattr(tables, "_moved", noted)
    trainer = train.table_trainer(loss, optim.adam(0.05), specs())
    first = trainer.init({"w": fnp.zeros(4)})
    checkpoint.save(tmp_path / "run", one_process[1])
    found = []
    for least in (pages.LEAST, 1 << 10):
        monkeypatch.setattr(pages, "LEAST", least)
        state = checkpoint.restore(tmp_path / "run", first, mmap=mmap)
        trainer.rows({"ads": [3]}, state)
        for ids, batch in batches(2):
            state, _ = trainer.step(state, batch, ids=ids)
        found.append(tree.map(np.asarray, state))
    tree.map(np.testing.assert_array_equal, *found)
    huge = pages.is_huge(Aval((ROWS, 4), np.dtype(np.float32)))
    shapes = [x.shape for x in tree.leaves(state.tables["ads"])]
    assert copied == (shapes if huge else [])


def test_aux_shared_arguments_and_the_caller_s_params() -> None:
    def with_aux(params: Any, rows: Any, batch: Any, factor: Any) -> Any:
        return fnp.sum(params * rows["t"]) * factor, fnp.max(rows["t"])

    spec = TableSpec("t", 2, optim.sgd(0.5), nn.initializers.ones, rows=3)
    trainer = train.table_trainer(with_aux, optim.sgd(0.1), [spec], has_aux=True)
    params = fnp.ones(2)
    state = trainer.init(params)
    state, metrics = trainer.step(state, None, 2.0, ids={"t": [0]})
    assert float(metrics.loss) == 4 and float(metrics.aux) == 1
    np.testing.assert_array_equal(params, [1, 1])  # not donated
    np.testing.assert_allclose(trainer.params(state), [0.8, 0.8])
    np.testing.assert_allclose(trainer.rows({"t": [0, 1]}, state)["t"][:, 0], [0, 1])
    assert "['t']" in repr(trainer)
    trainer.close()


def test_invalid_arguments_are_rejected() -> None:
    def make(*tables: TableSpec, **options: Any) -> Any:
        return train.table_trainer(loss, optim.sgd(0.1), tables, **options)

    table = TableSpec("t", 2, optim.sgd(0.1), rows=3)
    for bad, options, message in (
        ([table, table], {}, "two tables have the same name"),
        ([TableSpec("t", 2, rows=3)], {}, "give it an optimizer"),
        ([TableSpec("t", 2, optim.sgd(0.1))], {}, "give rows="),
        ([table], {"cluster": {}}, r"\['cluster'\] are for servers"),
        ([table], {"non_finite": "no"}, "non_finite must be one of"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make(*bad, **options)
    with pytest.raises(ArgumentError, match=r"rows must be from 1 to 2\*\*31 - 1"):
        TableSpec("t", 2, rows=0)
    trainer = make(table)
    state = trainer.init({"w": fnp.ones(2)})
    for ids, error, message in (
        ({}, ArgumentError, r"must name the tables \['t'\], got \[\]"),
        ({"t": [0], "u": [0]}, ArgumentError, "must name the tables"),
        ({"t": [0.5]}, ArgumentError, "ids must be integers, got f"),
        ({"t": [0, 3]}, OutOfRangeError, "ids must be from 0 to 2, got 3"),
        ({"t": [-1]}, OutOfRangeError, "ids must be from 0 to 2, got -1"),
        ({"t": [2**32]}, OutOfRangeError, "got 4294967296"),
    ):
        with pytest.raises(error, match=message):
            trainer.step(state, None, ids=ids)
    with pytest.raises(ArgumentError, match="must name the tables"):
        trainer.rows({"u": [0]}, state)


@pytest.mark.parametrize(
    "options", [{"expire_after": 9}, {"admit_after": 2}, {"stored": "int8"}], ids=str
)
def test_what_only_servers_do_is_refused_in_one_process(
    options: dict[str, Any],
) -> None:
    with pytest.raises(ArgumentError, match=r"table 'ads'.*for servers"):
        train.table_trainer(loss, optim.sgd(0.1), specs(**options))
