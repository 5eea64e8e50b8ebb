"""The choices of least cost."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import fxflow
from fxflow.dataflow.sharding.dimensions import dimensions_of
from fxflow.dataflow.sharding.model import MeshCosts, Model
from fxflow.dataflow.sharding.program import program_of
from fxflow.dataflow.sharding.solving import solve
from fxflow.dataflow.sharding.tying import tied
from tests.dataflow.sharding.networks import (
    accelerator,
    perceptron_step,
    perceptron_types,
    struct,
)


def model(batch: int, width: int, hidden: int, latency: float) -> Model:
    x = struct(batch, width)
    graph = fxflow.make_graph(perceptron_step)(perceptron_types(width, hidden), x, x)
    dims = dimensions_of(program_of(graph.graph))
    mesh = fxflow.make_mesh((4,), ("x",))
    return Model(dims, tied(dims), MeshCosts(mesh, accelerator(latency)))


def best(found: Model, limit: float) -> float:
    """The least cost of all choices."""
    least = math.inf
    keys = list(found.choices)
    for chosen in itertools.product(*found.choices.values()):
        masks = dict(zip(keys, chosen, strict=True))
        cost = found.cost(masks)
        if cost < least and found.peak(masks)[0] <= limit:
            least = cost
    return least


@pytest.mark.parametrize("seed", range(6))
def test_no_choice_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, width, hidden = (int(2 ** rng.integers(4, 13)) for _ in range(3))
    found = model(batch, width, hidden, 10.0 ** rng.uniform(-9, -5))
    solution = solve(found)
    expected = best(found, math.inf)
    assert solution.seconds == pytest.approx(expected, rel=1e-6)
    assert solution.bound <= solution.seconds * (1 + 1e-9)
    limit = 0.6 * found.peak(dict.fromkeys(found.choices, 0))[0]
    limited = solve(found, limit)
    expected = best(found, limit)
    if limited.least is None:
        assert limited.memory <= limit
        assert limited.seconds <= 1.02 * expected
    else:
        assert expected == math.inf


def test_if_nothing_fits_the_fewest_bytes_are_found() -> None:
    found = model(64, 64, 256, 1e-6)
    solution = solve(found, 1000.0)
    assert solution.least == solution.memory > 1000
    undivided = found.peak(dict.fromkeys(found.choices, 0))[0]
    assert solution.least < 0.4 * undivided
