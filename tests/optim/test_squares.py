"""Squares of gradients, one update at a time."""

from typing import Any

import numpy as np

from fxflow import optim

G = np.array([2.0, -0.5, 0.0], np.float32)


def _run(tx: Any, count: int) -> tuple[Any, Any]:
    state = tx.init(np.zeros(3, np.float32))
    for _ in range(count):
        out, state = tx.update(G, state, G)
    return np.asarray(out), state


def test_rss_never_forgets() -> None:
    out, state = _run(optim.scale_by_rss(0.0), 4)
    np.testing.assert_allclose(out, [0.5, -0.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(state.sum_of_squares, 4 * G**2)


def test_constant_gradients_give_their_signs() -> None:
    out, _ = _run(optim.scale_by_rms(bias_correction=True), 7)
    np.testing.assert_allclose(out, np.sign(G), atol=2e-3)


def test_stddev_of_a_constant_is_its_spread() -> None:
    # Without correction the mean lags behind, so that there is a spread.
    out, state = _run(optim.scale_by_stddev(0.5, eps=0.0), 1)
    np.testing.assert_allclose(state.mu, G / 2)
    moving = G[:2]
    spread = np.sqrt(moving**2 / 2 - moving**2 / 4)
    np.testing.assert_allclose(out[:2], moving / spread, rtol=1e-6)


def test_adadelta_begins_with_small_steps() -> None:
    out, state = _run(optim.scale_by_adadelta(0.5, eps=1e-6), 1)
    np.testing.assert_allclose(state.e_g, G**2 / 2)
    np.testing.assert_allclose(out, G * np.sqrt(1e-6 / (G**2 / 2 + 1e-6)), rtol=1e-5)
