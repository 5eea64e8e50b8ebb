"""Target networks and averages of parameters."""

import numpy as np

import fxflow.numpy as fnp
from fxflow import optim

NEW = {"w": fnp.ones(2, "bfloat16")}
OLD = {"w": fnp.full(2, 3.0)}


def test_incremental_updates_interpolate_in_float32() -> None:
    out = optim.incremental_update(NEW, OLD, 0.25)
    assert out["w"].dtype == "float32"
    np.testing.assert_allclose(out["w"], [2.5, 2.5])


def test_periodic_updates_replace_every_few_steps() -> None:
    taken = [float(optim.periodic_update(NEW, OLD, t, 3)["w"][0]) for t in range(4)]
    assert taken == [1.0, 3.0, 3.0, 1.0]
