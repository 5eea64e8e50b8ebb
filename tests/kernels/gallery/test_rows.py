"""Updates of rows in place: the kernel against whole arrays, and the checker."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.kernels.gallery.rows import update_rows

RNG = np.random.default_rng(0)


def momentum(rows: Any, gradient: Any) -> list[Any]:
    """Returns a row, its trace, and its number of updates, after one more."""
    row, trace, count = rows
    trace = 0.5 * trace + gradient
    return [row - trace, trace, count + 1]


def on_whole_tables(ids: Any, gradients: Any, place: Any, *tables: Any) -> list[Any]:
    count = len(tables[0])
    total = fnp.zeros((count, 4)).at[ids].add(gradients, mode="drop")
    named = fnp.zeros(count, bool).at[ids].set(True, mode="drop")
    new = momentum(tables, total)
    chosen = [
        fnp.where(named.reshape(-1, *[1] * (t.ndim - 1)), n, t)
        for n, t in zip(new, tables)
    ]
    return [place, *chosen]


def test_each_named_row_is_updated_once() -> None:
    # So few rows that each occurs several times, and so many that hashes collide.
    for count, number in ((3, 20), (50, 40)):
        tables = RNG.normal(size=(2, count, 4)).astype("f")
        held = [*tables, np.zeros(count, "int32")]
        # The number of rows, and beyond: left out.
        ids = RNG.integers(0, count + 2, number).astype("int32")
        gradients = RNG.normal(size=(number, 4)).astype("f")

        def run(ids: Any, gradients: Any, place: Any, *held: Any) -> list[Any]:
            reference = on_whole_tables
            return update_rows(
                momentum, ids, gradients, place, held, reference=reference
            )

        place = np.arange(count, dtype="int32")
        given = [fnp.asarray(x) for x in (ids, gradients, place, *held)]
        # Compares with the reference and, if it is compiled, with machine code.
        _, row, trace, updates = kernels.check(run, *given)
        one = int(ids[ids < count][0])
        assert updates[one] == 1 and int(updates.sum()) == len({*ids[ids < count]})
        total = gradients[ids == one].sum(0)
        np.testing.assert_allclose(trace[one], 0.5 * tables[1][one] + total, 1e-5, 1e-5)
        np.testing.assert_allclose(row[one], tables[0][one] - trace[one], 1e-5, 1e-5)
