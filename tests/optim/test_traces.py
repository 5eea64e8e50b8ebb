"""Sums and averages of gradients, one update at a time."""

from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.errors import ArgumentError

G = np.array([2.0, -0.5, 0.0], np.float32)


def _run(tx: Any, count: int) -> tuple[Any, Any]:
    state = tx.init(np.zeros(3, np.float32))
    for _ in range(count):
        out, state = tx.update(G, state, G)
    return np.asarray(out), state


@pytest.mark.parametrize("nesterov", [False, True])
def test_trace_sums_gradients(nesterov: bool) -> None:
    out, state = _run(optim.trace(0.5, nesterov), 3)
    total = 1 + 0.5 + 0.25
    np.testing.assert_allclose(state.trace, G * total)
    want = 1 + 0.5 * total if nesterov else total
    np.testing.assert_allclose(out, G * want)


def test_ema_of_a_constant_is_the_constant() -> None:
    np.testing.assert_allclose(_run(optim.ema(0.9), 5)[0], G, rtol=1e-5)
    biased = _run(optim.ema(0.9, debias=False), 5)[0]
    np.testing.assert_allclose(biased, G * (1 - 0.9**5), rtol=1e-5)


def test_lion_steps_by_signs() -> None:
    out, _ = _run(optim.scale_by_lion(), 7)
    np.testing.assert_allclose(out, np.sign(G), atol=2e-3)


@pytest.mark.parametrize(
    ("mode", "want"),
    [("smooth", np.tanh(3 * G * 0.1)), ("refined", np.clip(G * 0.1, -1, 1))],
)
def test_lion_with_other_modes(mode: str, want: Any) -> None:
    out, _ = _run(optim.scale_by_lion(mode=mode, smooth_beta=3.0), 1)
    np.testing.assert_allclose(out, want, rtol=1e-5)
    with pytest.raises(ArgumentError, match="one of hard, smooth, refined, got 'soft'"):
        optim.scale_by_lion(mode="soft")
