"""Adam and its kin, one update at a time."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import optim, tree

G = np.array([2.0, -0.5, 0.0], np.float32)


def _run(tx: Any, count: int) -> tuple[Any, Any]:
    state = tx.init(np.zeros(3, np.float32))
    for _ in range(count):
        out, state = tx.update(G, state, G)
    return np.asarray(out), state


@pytest.mark.parametrize(
    "tx",
    [
        optim.scale_by_adam(),
        optim.scale_by_amsgrad(),
    ],
)
def test_constant_gradients_give_their_signs(tx: Any) -> None:
    out, _ = _run(tx, 7)
    np.testing.assert_allclose(out, np.sign(G), atol=2e-3)


def test_adamax_divides_by_the_largest() -> None:
    out, _ = _run(optim.scale_by_adamax(), 4)
    np.testing.assert_allclose(out, np.sign(G), rtol=2e-3)


def test_radam_begins_with_momentum() -> None:
    out, _ = _run(optim.scale_by_radam(), 2)
    np.testing.assert_allclose(out, G, rtol=1e-5)


def test_states_have_names() -> None:
    state = optim.scale_by_adam().init({"w": np.ones(2)})
    assert state._fields == ("count", "mu", "nu")
    assert state.count.dtype == "int32"
    assert len(tree.leaves(state)) == 3


def test_second_moments_by_meta_gradient() -> None:
    # With eps_root above 0 an update can be differentiated where the gradient is 0.
    def total(g: Any) -> Any:
        tx = optim.scale_by_adam(eps_root=1e-4)
        return tx.update(g, tx.init(g))[0].sum()

    assert np.isfinite(np.asarray(fxflow.grad(total)(G))).all()
