"""Moments of gradients, one update at a time."""

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
        optim.scale_by_rms(bias_correction=True),
    ],
)
def test_constant_gradients_give_their_signs(tx: Any) -> None:
    out, _ = _run(tx, 7)
    np.testing.assert_allclose(out, np.sign(G), atol=2e-3)


def test_adamax_divides_by_the_maximum() -> None:
    out, _ = _run(optim.scale_by_adamax(), 4)
    np.testing.assert_allclose(out, np.sign(G), rtol=2e-3)


def test_radam_begins_with_momentum() -> None:
    out, _ = _run(optim.scale_by_radam(), 2)
    np.testing.assert_allclose(out, G, rtol=1e-5)


def test_states_have_named_fields() -> None:
    state = optim.scale_by_adam().init({"w": np.ones(2)})
    assert state._fields == ("count", "mu", "nu")
    assert state.count.dtype == "int32"
    assert len(tree.leaves(state)) == 3


def test_updates_are_differentiable_with_eps_root() -> None:
    # With a positive eps_root an update is differentiable where the gradient is 0.
    def total(g: Any) -> Any:
        tx = optim.scale_by_adam(eps_root=1e-4)
        return tx.update(g, tx.init(g))[0].sum()

    assert np.isfinite(np.asarray(fxflow.grad(total)(G))).all()


def test_rss_sums_all_squares() -> None:
    out, state = _run(optim.scale_by_rss(0.0), 4)
    np.testing.assert_allclose(out, [0.5, -0.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(state.sum_of_squares, 4 * G**2)


def test_stddev_of_a_constant_is_its_spread() -> None:
    # Without bias correction the mean lags behind, so the spread is not 0.
    out, state = _run(optim.scale_by_stddev(0.5, eps=0.0), 1)
    np.testing.assert_allclose(state.mu, G / 2)
    moving = G[:2]
    spread = np.sqrt(moving**2 / 2 - moving**2 / 4)
    np.testing.assert_allclose(out[:2], moving / spread, rtol=1e-6)


def test_adadelta_begins_with_small_steps() -> None:
    out, state = _run(optim.scale_by_adadelta(0.5, eps=1e-6), 1)
    np.testing.assert_allclose(state.e_g, G**2 / 2)
    np.testing.assert_allclose(out, G * np.sqrt(1e-6 / (G**2 / 2 + 1e-6)), rtol=1e-5)
