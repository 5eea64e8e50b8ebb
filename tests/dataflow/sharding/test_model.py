"""The cost of choices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import fxflow
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.collectives import Collective
from fxflow.dataflow.sharding.dimensions import dimensions_of
from fxflow.dataflow.sharding.model import MeshCosts, Model
from fxflow.dataflow.sharding.program import program_of
from fxflow.dataflow.sharding.tying import tied
from tests.dataflow.sharding.networks import (
    accelerator,
    perceptron,
    perceptron_step,
    perceptron_types,
    struct,
)


def model(fun: Any, *args: Any, lengths: tuple[int, ...] = (4,)) -> Model:
    dims = dimensions_of(program_of(fxflow.make_graph(fun)(*args).graph))
    mesh = fxflow.make_mesh(lengths, ("x", "y")[: len(lengths)])
    return Model(dims, tied(dims), MeshCosts(mesh, accelerator()))


def undivided(found: Model) -> dict[int, int]:
    return dict.fromkeys(found.choices, 0)


def test_a_division_of_the_hidden_units_takes_one_sum() -> None:
    found = model(perceptron, perceptron_types(64, 128), struct(32, 64))
    bias = found.row(found.dims.program.inputs[0])
    masks = {**undivided(found), bias.axes[0]: 1}
    collectives = [
        c for sign in found.signatures for c in found.collectives(sign, masks)
    ]
    assert collectives == [Collective("all-reduce", 1, 32 * 64 * 4)]


def test_the_cost_is_the_sum_over_operations() -> None:
    found = model(
        perceptron_step, perceptron_types(64, 128), struct(32, 64), struct(32, 64)
    )
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(50):
        masks = {d: int(rng.choice(c)) for d, c in found.choices.items()}
        total = found.cost(masks)
        if not math.isfinite(total):
            continue
        checked += 1
        each = sum(n * found.seconds(s, masks) for s, n in found.signatures.items())
        least = sum(n for s, n in found.signatures.items() if not s.kind.is_fused)
        each += found.costs.rates.start + least * found.costs.rates.operation
        np.testing.assert_allclose(total, each, rtol=1e-9)
    assert checked > 5


def test_one_mesh_axis_for_two_axes_of_a_value_is_impossible() -> None:
    found = model(fnp.sin, struct(8, 8))
    row = found.row(found.dims.program.inputs[0])
    both = {**undivided(found), row.axes[0]: 1, row.axes[1]: 1}
    assert found.cost(both) == math.inf
    assert math.isfinite(found.cost({**both, row.axes[1]: 0}))


def test_nothing_is_moved_within_a_branch() -> None:
    def f(x: Any) -> Any:
        return fxflow.lax.cond(
            x[0, 0] > 0, lambda x: fnp.sum(x, 1), lambda x: x[:, 1], x
        )

    found = model(f, struct(8, 8))
    rows, columns = found.row(found.dims.program.inputs[0]).axes
    assert math.isfinite(found.cost({**undivided(found), rows: 1}))
    assert found.cost({**undivided(found), columns: 1}) == math.inf


def test_storage_divides_the_longest_axis_left() -> None:
    found = model(
        perceptron_step,
        perceptron_types(64, 128),
        struct(32, 64),
        struct(32, 64),
        lengths=(2, 2),
    )
    up = found.row(found.dims.program.inputs[2])
    masks = {**undivided(found), up.store: 1}
    assert found.stored_masks(up, masks) == (0, 1)
    assert found.stored_masks(up, {**masks, up.axes[1]: 2}) == (1, 2)
    assert found.nbytes(up, masks) == 64 * 128 * 4 / 2


def test_memory_counts_what_is_alive() -> None:
    def f(x: Any) -> Any:
        y = fnp.sum(fnp.dot(x, x), 1)
        return fnp.dot(y, y)

    found = model(f, struct(64, 64))
    peak, op = found.peak(undivided(found))
    assert found.dims.program.ops[op].kind.name in ("dot_general", "reduce_sum")
    assert 2 * 64 * 64 * 4 <= peak <= 2 * 64 * 64 * 4 + 64 * 4
    constant, tables = found.memory_tables(found.moment(op))
    at = constant + sum(t[(0,) * len(key)] for key, t in tables.items())
    assert at == peak


def test_donated_inputs_are_free_after_their_last_use() -> None:
    dims = dimensions_of(
        program_of(
            fxflow.make_graph(lambda x: fnp.dot(fnp.dot(x, x), x))(struct(64, 64)).graph
        )
    )
    costs = MeshCosts(fxflow.make_mesh((2,), ("x",)), accelerator())
    kept = Model(dims, tied(dims), costs)
    given = Model(dims, tied(dims), costs, donated=dims.program.inputs)
    ends = [m.moment(len(dims.program.ops)).rows for m in (kept, given)]
    assert sum(ends[0].values()) == 2 and sum(ends[1].values()) == 1
