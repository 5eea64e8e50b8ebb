"""Optimizers by rows: against the optimizer of each row alone, and of whole tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, optim, tree
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.optim import row_steps

RNG = np.random.default_rng(0)
OPTIMIZERS: dict[str, Any] = {
    "sgd": optim.sgd(0.1),
    "momentum": optim.momentum(0.1),
    "adagrad": optim.adagrad(0.1),
    "rowwise_adagrad": optim.rowwise_adagrad(0.1),
    "adam": optim.adam(0.1),
    "ftrl": optim.ftrl(0.3, l1=0.01, l2=0.1),
    "schedule": optim.chain(
        optim.clip_by_global_norm(0.5), optim.sgd(optim.linear_schedule(0.5, 0.1, 4))
    ),
}


def row_by_row(tx: Any, table: Any, steps: Any) -> Any:
    """Returns the table after steps, of which each row knows only its own."""
    out = np.asarray(table).copy()
    for row in range(len(out)):
        params, state = fnp.asarray(out[row]), tx.init(fnp.asarray(out[row]))
        for ids, gradients in steps:
            if not (ids == row).any():
                continue
            total = fnp.asarray(gradients[ids == row].astype("f8").sum(0), out.dtype)
            updates, state = tx.update(total, state, params)
            params = optim.apply_updates(params, updates)
        out[row] = params
    return out


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_row_is_a_parameter_of_its_own(name: str) -> None:
    tx = OPTIMIZERS[name]
    table = RNG.normal(size=(7, 3)).astype("f")
    steps = [
        (RNG.integers(0, 6, 8), RNG.normal(size=(8, 3)).astype("f")) for _ in range(4)
    ]
    rows = optim.by_rows(tx)
    update = fxflow.jit(rows.update)
    found, state = fnp.asarray(table), rows.init(table)
    for ids, gradients in steps:
        ids[1] = ids[0]  # at least one id occurs twice
        found, state = update(gradients, ids, found, state)
    np.testing.assert_allclose(found, row_by_row(tx, table, steps), 2e-5, 1e-6)
    # The last row has not been named: not a bit of it changed, nor of its state.
    np.testing.assert_array_equal(found[6], table[6])
    first = rows.init(table).rows
    for new, old in zip(tree.leaves(state.rows), tree.leaves(first), strict=True):
        np.testing.assert_array_equal(new[6], old[6])
        assert fxflow.typeof(new) == fxflow.typeof(old)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad", "adam", "ftrl"])
def test_a_step_on_all_rows_is_one_on_the_table(name: str) -> None:
    tx = OPTIMIZERS[name]
    rows = optim.by_rows(tx)
    table = fnp.asarray(RNG.normal(size=(5, 3)), "f4")
    found, state, whole, memory = table, rows.init(table), table, tx.init(table)
    for _ in range(3):
        gradient = RNG.normal(size=(5, 3)).astype("f")
        order = RNG.permutation(5)
        found, state = rows.update(gradient[order], order, found, state)
        updates, memory = tx.update(fnp.asarray(gradient), memory, whole)
        whole = optim.apply_updates(whole, updates)
    np.testing.assert_allclose(found, whole, 1e-5, 1e-6)


def test_a_loss_of_rows_has_the_gradient_of_the_table() -> None:
    table = fnp.asarray(RNG.normal(size=(9, 4)), "f4")
    ids = RNG.integers(0, 9, (3, 5))

    def loss(rows: Any) -> Any:
        return fnp.sum(fnp.sin(fnp.sum(rows, 1)) * rows[:, 0])

    dense = fxflow.grad(lambda t: loss(t[ids]))(table)
    tx = optim.by_rows(optim.sgd(1.0))
    sparse = fxflow.grad(loss)(table[ids])
    found, _ = tx.update(sparse, ids, table, tx.init(table))
    np.testing.assert_allclose(found, table - dense, 1e-5, 1e-5)


def test_ids_from_the_end_outside_and_none() -> None:
    table = fnp.zeros((4, 2))
    tx = optim.by_rows(optim.momentum(1.0))
    state = tx.init(table)
    ids = np.array([-1, 3, 4, -5, 2**31 - 1])
    found, kept = tx.update(np.ones((5, 2)), ids, table, state)
    np.testing.assert_array_equal(found[:, 0], [0, 0, 0, -2])
    np.testing.assert_array_equal(kept.rows[0].trace[:, 0], [0, 0, 0, 2])
    for empty in ((0,), (2, 0)):
        nothing = np.zeros(empty, int)
        same, _ = tx.update(np.zeros((*empty, 2)), nothing, table, state)
        np.testing.assert_array_equal(same, table)
    none = fnp.zeros((0, 2))
    same, _ = tx.update(np.ones((1, 2)), np.array([0]), none, tx.init(none))
    assert same.shape == (0, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int64", "uint64"])
def test_ids_of_any_integers(dtype: str) -> None:
    table = fnp.zeros((300, 2))
    tx = optim.by_rows(optim.sgd(1.0))
    ids = fnp.asarray(np.array([100, 7, 100], dtype), dtype)
    found, _ = tx.update(fnp.ones((3, 2)), ids, table, tx.init(table))
    assert np.flatnonzero(np.asarray(found)[:, 0]).tolist() == [7, 100]
    assert float(found[100, 0]) == -2


def test_contents_of_place_do_not_matter() -> None:
    tx = optim.by_rows(optim.adagrad(0.1))
    table = fnp.asarray(RNG.normal(size=(6, 2)), "f4")
    state = tx.init(table)
    ids, gradients = np.array([5, 1, 5, 0]), RNG.normal(size=(4, 2)).astype("f")
    want, _ = tx.update(gradients, ids, table, state)
    for value in (3, -7, 2**31 - 1):
        other = state._replace(place=fnp.full(6, value, "int32"))
        found, _ = tx.update(gradients, ids, table, other)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_types_of_tables_are_kept_and_sums_are_wide(dtype: str) -> None:
    tx = optim.by_rows(optim.sgd(2.0**-8))
    table = fnp.ones((3, 2), dtype)
    # One by one, ones beyond 256 would vanish in a sum of bfloat16.
    found, state = tx.update(
        fnp.ones((512, 2), dtype), np.zeros(512, int), table, tx.init(table)
    )
    assert found.dtype == dtype and state.place.dtype == "int32"
    np.testing.assert_array_equal(np.asarray(found, "f4")[:, 0], [-1, 1, 1])


def test_tables_of_other_ranks_and_batches_of_tables() -> None:
    tx = optim.by_rows(optim.adam(0.1))
    for row in ((), (2, 3)):
        table = fnp.ones((5, *row))
        gradients = RNG.normal(size=(3, *row)).astype("f")
        found, _ = tx.update(gradients, np.array([4, 0, 4]), table, tx.init(table))
        assert found.shape == table.shape
        np.testing.assert_array_equal(found[1:4], table[1:4])
    tables = fnp.asarray(RNG.normal(size=(2, 5, 3)), "f4")
    ids = RNG.integers(0, 5, (2, 4))
    gradients = RNG.normal(size=(2, 4, 3)).astype("f")
    states = fxflow.vmap(tx.init)(tables)
    found, _ = fxflow.vmap(tx.update)(gradients, ids, tables, states)
    for i in range(2):
        want, _ = tx.update(gradients[i], ids[i], tables[i], tx.init(tables[i]))
        np.testing.assert_allclose(found[i], want, 1e-6)


def test_updates_have_derivatives() -> None:
    tx = optim.by_rows(optim.sgd(0.5))
    table, ids = fnp.ones((4, 2)), np.array([1, 3, 1])

    def after(gradients: Any, table: Any) -> Any:
        return fnp.sum(tx.update(gradients, ids, table, tx.init(table))[0] ** 2)

    for f in (after, fxflow.jit(after)):
        of_gradients, of_table = fxflow.grad(f, (0, 1))(fnp.ones((3, 2)), table)
        # Row 1 becomes 0, row 3 becomes 1/2.
        np.testing.assert_allclose(of_gradients[:, 0], [0, -0.5, 0])
        np.testing.assert_allclose(of_table[:, 0], [2, 0, 2, 1])


def test_a_step_is_in_place_and_scans() -> None:
    tx = optim.by_rows(optim.adam(0.1))
    table = fnp.zeros((4096, 8))
    state = tx.init(table)
    ids, gradients = fnp.arange(4) * 1000, fnp.ones((4, 8))
    step = fxflow.jit(tx.update, donate_argnums=(2, 3))
    program = step.lower(gradients, ids, table, state).compile()
    # Neither a copy nor a dense gradient: less than a tenth of the table.
    assert program.memory_analysis()["temp_size_in_bytes"] < table.nbytes / 10
    assert not program.copies()

    def body(carry: Any, _: Any) -> Any:
        return tx.update(gradients, ids, *carry), None

    (found, _), _ = lax.scan(body, (table, state), length=3)
    for _ in range(3):
        table, state = step(gradients, ids, table, state)
    np.testing.assert_allclose(found, table, 1e-6)


@pytest.mark.parametrize("name", ["sgd", "adam", "schedule"])
def test_a_kernel_updates_the_same_rows_in_place(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = optim.by_rows(OPTIMIZERS[name])
    table = fnp.asarray(RNG.normal(size=(4096, 2)), "f4")
    ids = RNG.integers(-4100, 4100, (5, 7))
    ids[:, 1] = ids[0, 0]
    gradients = RNG.normal(size=(5, 7, 2)).astype("f")
    states = [tx.init(table)]
    tables = [table]
    for least in (1 << 60, 0):
        monkeypatch.setattr(row_steps, "_LEAST", least)
        monkeypatch.setattr(row_steps, "_LEAST_BYTES", least)
        run = fxflow.jit(lambda *args: tx.update(*args), donate_argnums=(2, 3))
        program = run.lower(gradients, ids, table, states[0]).compile()
        assert program.memory_analysis()["temp_size_in_bytes"] < table.nbytes / 4
        state = tree.map(fnp.copy, states[0])
        found, state = run(gradients, ids, fnp.copy(table), state)
        tables.append(found)
        states.append(state)
    np.testing.assert_allclose(tables[1], tables[2], 1e-6, 1e-6)
    for one, other in zip(
        tree.leaves(states[1].rows), tree.leaves(states[2].rows), strict=True
    ):
        np.testing.assert_allclose(one, other, 1e-6, 1e-6)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="expected a gradient transformation"):
        optim.by_rows(0.1)  # type: ignore[arg-type]
    tx = optim.by_rows(optim.sgd(0.1))
    table = fnp.zeros((3, 2))
    state = tx.init(table)
    with pytest.raises(DtypeError, match=r"real floating, got i32\[3\]"):
        tx.init(fnp.arange(3))
    with pytest.raises(ShapeError, match="an axis of rows"):
        tx.init(1.0)
    with pytest.raises(DtypeError, match="ids must be integers"):
        tx.update(np.ones((1, 2)), np.ones(1), table, state)
    with pytest.raises(ShapeError, match=r"the shape \[4, 2\] of table\[ids\]"):
        tx.update(np.ones((2, 2)), np.zeros(4, int), table, state)
