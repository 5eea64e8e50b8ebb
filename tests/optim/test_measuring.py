"""Measurements in the state."""

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, optim


def test_measurements_in_a_loop() -> None:
    tx = optim.chain(
        optim.snapshot("before", optim.tree.norm),
        optim.scale(2.0),
        optim.monitor(
            {
                "after": optim.tree.norm,
                "mean": optim.measure_with_ema(optim.tree.norm, 0.9),
            }
        ),
    )
    state = tx.init(fnp.zeros(2))

    def step(state, g):
        updates, state = tx.update(g, state)
        return state, updates

    # scan requires that the state keeps its types.
    g = fnp.array([[3.0, 4.0], [6.0, 8.0]])
    state, updates = fxflow.jit(lambda s: lax.scan(step, s, g))(state)
    np.testing.assert_allclose(updates, 2 * g)
    found = {name: float(optim.tree.get(state, name)) for name in ("before", "after")}
    assert found == {"before": 10.0, "after": 20.0}
    # optax's result for norms of 10 and 20.
    np.testing.assert_allclose(optim.tree.get(state, "mean"), 2 * 7.631577, rtol=1e-5)
