"""Noisy means of clipped gradients, compared with optax 0.2.8."""

import numpy as np
import pytest

import fxflow
from fxflow import optim, tree
from fxflow.errors import ArgumentError

GRADS = {"a": np.float32([[3, 4], [0.1, 0.2]]), "b": np.float32([1, 2])}
PARAMS = {"a": np.zeros(2, np.float32), "b": np.float32(0)}


def test_the_mean_of_clipped_gradients_matches_optax() -> None:
    tx = optim.contrib.dpsgd(0.1, 1.0, 0.0, seed=0, momentum=0.9)
    step = fxflow.jit(tx.update)
    updates, state = step(GRADS, tx.init(PARAMS), PARAMS)
    np.testing.assert_allclose(updates["a"], [-0.0319019, -0.0441923], rtol=1e-5)
    np.testing.assert_allclose(updates["b"], -0.0594962, rtol=1e-5)
    twice, _ = step(GRADS, state, PARAMS)
    np.testing.assert_allclose(twice["b"], -0.0594962 * 1.9, rtol=1e-5)
    assert tree.structure(twice) == tree.structure(PARAMS)


def test_the_noise_has_the_right_deviation() -> None:
    tx = optim.contrib.differentially_private_aggregate(1.0, 2.0, seed=0)
    grads = {"a": np.zeros((4, 20000), np.float32)}
    first, state = tx.update(grads, tx.init(grads))
    second, _ = tx.update(grads, state)
    np.testing.assert_allclose(np.asarray(first["a"]).std(), 0.5, rtol=0.03)
    assert not np.allclose(first["a"], second["a"])


def test_invalid_keys_and_gradients_are_refused() -> None:
    make = optim.contrib.differentially_private_aggregate
    for key, seed in ((None, None), (fxflow.random.key(0), 1)):
        with pytest.raises(ArgumentError, match="either a random key or a seed"):
            make(1.0, 1.0, key, seed=seed)
    tx = make(1.0, 1.0, seed=0)
    with pytest.raises(ArgumentError, match="with one length"):
        tx.update({"a": np.zeros((4, 2)), "b": np.zeros(3)}, tx.init(PARAMS))
