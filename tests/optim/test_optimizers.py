"""Optimizers against optax; under jit, scan and donation."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import lax, optim, tree
from tests.optim.golden import DATA, GRADIENTS, PARAMS

OPTIMIZERS = DATA["optimizers"]
MAKERS = {
    "sgd": lambda: optim.sgd(0.1, 0.9),
    "momentum": lambda: optim.momentum(0.1),
    "nesterov": lambda: optim.nesterov(0.1),
    "adagrad": lambda: optim.adagrad(0.5),
    "rmsprop": lambda: optim.rmsprop(0.05),
    "adam": lambda: optim.adam(0.1),
    "adamw": lambda: optim.adamw(0.1),
    "nadam": lambda: optim.nadam(0.1),
    "nadamw": lambda: optim.nadamw(0.1),
    "adamax": lambda: optim.adamax(0.1),
    "adamaxw": lambda: optim.adamaxw(0.1),
    "amsgrad": lambda: optim.amsgrad(0.1),
    "adabelief": lambda: optim.adabelief(0.1),
    "yogi": lambda: optim.yogi(0.1),
    "radam": lambda: optim.radam(0.1),
    "adadelta": lambda: optim.adadelta(20.0),
    "lion": lambda: optim.lion(0.02),
    "lamb": lambda: optim.lamb(0.05),
    "lars": lambda: optim.lars(20.0),
    "sign_sgd": lambda: optim.sign_sgd(0.02),
    "noisy_sgd": lambda: optim.noisy_sgd(0.1, 1e-4, seed=0),
}


def _step(tx: Any, params: Any, state: Any, gradients: Any) -> tuple[Any, Any]:
    updates, state = tx.update(gradients, state, params)
    return optim.apply_updates(params, updates), state


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_as_optax(name: str) -> None:
    tx = eval(OPTIMIZERS[name]["call"], {"optim": optim})
    params, state = PARAMS, tx.init(PARAMS)
    step = fxflow.jit(lambda p, s, g: _step(tx, p, s, g))
    for gradients in GRADIENTS:
        params, state = step(params, state, gradients)
    for part, want in OPTIMIZERS[name]["params"].items():
        have = np.asarray(params[part]).ravel()
        np.testing.assert_allclose(have, want, rtol=2e-5, atol=1e-5)


def test_short_names() -> None:
    pairs = [
        (optim.momentum(0.1, 0.8), optim.sgd(0.1, 0.8)),
        (optim.nesterov(0.1, 0.8), optim.sgd(0.1, 0.8, True)),
    ]
    for first, second in pairs:
        states = first.init(PARAMS), second.init(PARAMS)
        for _ in range(2):
            a, one = first.update(PARAMS, states[0])
            b, two = second.update(PARAMS, states[1])
            states = one, two
        tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("name", MAKERS)
def test_finds_the_minimum(name: str) -> None:
    tx = MAKERS[name]()
    target = np.array([1.0, -2.0, 0.5], np.float32)
    params = {"x": np.zeros(3, np.float32) + np.float32(0.1)}

    def loss(params: Any) -> Any:
        return ((params["x"] - target) ** 2).sum()

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        value, gradients = fxflow.value_and_grad(loss)(params)
        return _step(tx, params, state, gradients), value

    # The state keeps its types, or scan would refuse it.
    start = params, tx.init(params)
    (params, _), values = fxflow.jit(lambda c: lax.scan(step, c, length=400))(start)
    assert float(loss(params)) < 0.05 * float(np.asarray(values)[0])


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_types_stay(name: str, dtype: str) -> None:
    tx = MAKERS[name]()
    params = [fxflow.numpy.ones((2, 3), dtype), fxflow.numpy.ones((), dtype)]

    def types(tree_of: Any) -> list[Any]:
        return [fxflow.typeof(leaf) for leaf in tree.leaves(tree_of)]

    first = tx.init(params)
    updates, second = tx.update(params, first, params)
    assert types(updates) == types(params)
    assert types(second) == types(first)
    assert types(optim.apply_updates(params, updates)) == types(params)


def test_a_donated_step() -> None:
    tx = optim.adamw(1e-2)
    params = tree.map(fxflow.numpy.asarray, PARAMS)
    state = tx.init(params)
    step = fxflow.jit(lambda p, s, g: _step(tx, p, s, g), donate_argnums=(0, 1))
    old = params["w"]
    params, state = step(params, state, GRADIENTS[0])
    params, state = step(params, state, GRADIENTS[1])
    assert old.is_deleted()
    assert int(state[0].count) == 2


def test_memory_in_another_dtype() -> None:
    for tx in (
        optim.adam(0.1, mu_dtype="bfloat16"),
        optim.lion(0.1, mu_dtype="bfloat16"),
        optim.sgd(0.1, 0.9, accumulator_dtype="bfloat16"),
        optim.amsgrad(0.1, mu_dtype="bfloat16"),
    ):
        state = tx.init(PARAMS)
        updates, state = tx.update(GRADIENTS[0], state, PARAMS)
        dtypes = {leaf.dtype.name for leaf in tree.leaves(state)}
        assert "bfloat16" in dtypes
        assert updates["w"].dtype == "float32"


def test_complex_parameters() -> None:
    params = np.array([1 + 1j, -2j], np.complex64)
    for tx in (optim.adam(0.1), optim.rmsprop(0.1), optim.adagrad(0.1)):
        updates, _ = tx.update(params, tx.init(params), params)
        assert updates.dtype == "complex64"
        # The size of a complex gradient counts, not its square.
        direction = np.asarray(updates) / params
        np.testing.assert_allclose(direction.imag, 0, atol=1e-6)
