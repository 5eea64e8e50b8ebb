"""Where gradients are 0 all optimizers take a finite step, with finite derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import tree
from tests.optim import catalogue
from tests.sweeps.sampling import sample

CASES = [*catalogue.CALLS.values(), *catalogue.AT_ZERO.values()]


def filled(value: float) -> Any:
    return {"w": fnp.full((3, 2), value), "s": fnp.full(2, value)}


@pytest.mark.parametrize("call", sample(CASES, 60, "zero gradients"))
@pytest.mark.parametrize("params", [0.0, 1.0])
def test_zero_gradients(call: str, params: float) -> None:
    tx = catalogue.make(call)

    def last(gradients: Any, params: Any) -> Any:
        updates = catalogue.updated(tx, gradients, params, 2)
        return sum(fnp.sum(leaf) for leaf in tree.leaves(updates))

    value, slopes = fxflow.value_and_grad(last, (0, 1))(filled(0.0), filled(params))
    for found in (value, *tree.leaves(slopes)):
        assert np.isfinite(np.asarray(found)).all(), call
