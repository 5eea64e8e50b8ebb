"""States of all optimizers can be donated, and steps need no implicit promotion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fxflow import config, optim, tree
from fxflow import numpy as fnp
from tests.optim import catalogue, runs
from tests.sweeps.sampling import sample

CALLS = {**runs.CALLS, **catalogue.CALLS}


def params() -> Any:
    return {"w": fnp.full((3, 2), 1.5), "s": fnp.full(2, 0.5)}


@pytest.mark.parametrize("call", sample([*CALLS.values()], 60, "donated states"))
def test_leaves_of_a_state_are_arrays_of_their_own(call: str) -> None:
    given: Any = params()
    if call.startswith("lookahead"):
        given = optim.LookaheadParams.init_synced(given)
    leaves = tree.leaves((given, catalogue.make(call).init(given)))
    assert len({id(leaf) for leaf in leaves}) == len(leaves)


# Its schedule is not the library's.
STRICT = [call for call in catalogue.CALLS.values() if "lambda" not in call]


@pytest.mark.parametrize("call", sample(STRICT, 60, "strict steps"))
def test_steps_without_implicit_promotion(call: str) -> None:
    with (
        config.override(numpy_dtype_promotion="strict"),
        config.override(numpy_rank_promotion="raise"),
    ):
        updates = catalogue.updated(catalogue.make(call), params(), params(), 2)
    for leaf in tree.leaves(updates):
        assert np.isfinite(np.asarray(leaf)).all()


#: Their factors are functions of the count or of the loss, in the default float.
IN_DEFAULT_FLOAT = (
    "polyak_sgd",
    "scale_by_schedule",
    "contrib.dadapt_adamw",
    "contrib.madgrad",
    "contrib.mechanize",
    "contrib.momo",
    "contrib.muon",
    "contrib.prodigy",
)
DOUBLE = [c for c in catalogue.CALLS.values() if not c.startswith(IN_DEFAULT_FLOAT)]


@pytest.mark.parametrize("call", sample(DOUBLE, 60, "double steps"))
def test_parameters_of_64_bits_move_alike_without_x64(call: str) -> None:
    def moved() -> list[Any]:
        given = {"w": np.linspace(0.5, 2, 6).reshape(3, 2), "s": np.array([0.3, -0.7])}
        wide = tree.map(lambda x: fnp.asarray(x, "float64"), given)
        updates = tree.map(lambda x: 0.1 * x, wide)
        return tree.leaves(catalogue.updated(catalogue.make(call), wide, updates, 3))

    got = moved()
    with config.override(x64=True):
        want = moved()
    for x, y in zip(got, want, strict=True):
        assert x.dtype == np.float64
        np.testing.assert_allclose(x, y, 1e-12, 1e-14)
