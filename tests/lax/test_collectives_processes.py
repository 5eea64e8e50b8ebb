"""Collectives over the devices of two processes: the same numbers as in one."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import distributed, lax, pmap
from tests.lax import ragged
from tests.lax.collectives import (
    data,
    meaning,
    program,
    same,
    without_derivative,
)
from tests.processes import check_two_processes


def run() -> None:
    """What each process runs: two of the four slices are its own."""
    distributed.initialize()
    first = 2 * fxflow.process_index()
    own = slice(first, first + 2)
    x = data(4)
    for groups in (None, [[3, 0], [1, 2]], [[3, 0, 1], [2]]):
        parts = [without_derivative("i", groups)]
        if groups is None or len(groups[0]) == 2:
            parts.append(program("i", groups))

        def all_of(v, parts=parts):
            return {name: out for part in parts for name, out in part(v).items()}

        got = pmap(all_of, axis_name="i")(x[own])
        expected = {name: v[own] for name, v in meaning(x, groups).items()}
        same(got, expected, (2,))
    rng = np.random.default_rng(0)
    x, y = ragged.data(4)
    t = ragged.tables(rng, 4)
    got = pmap(ragged.call("i"), axis_name="i")(x[own], y[own], *(v[own] for v in t))
    np.testing.assert_array_equal(got, ragged.meaning(x, y, t)[own])
    step = pmap(lambda v: lax.psum(v, "i") / 4, axis_name="i")
    value = np.arange(4.0, dtype=np.float32)[own]
    for _ in range(100):  # not waited for
        value = step(value)
    assert value.tolist() == [1.5, 1.5]
    print("done")


@pytest.mark.slow
def test_two_processes():
    check_two_processes("tests.lax.test_collectives_processes")


if __name__ == "__main__":
    run()
