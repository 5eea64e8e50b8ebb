"""Transformations of all arrays as one vector."""

from typing import Any

import numpy as np

import fxflow
from fxflow import numpy as fnp
from fxflow import optim
from tests.optim.golden import GRADIENTS, PARAMS
from tests.optim.suite import updated


def test_flattened_steps_are_the_same() -> None:
    flat, plain = optim.flatten(optim.adamw(0.1)), optim.adamw(0.1)
    one: Any = (PARAMS, flat.init(PARAMS))
    other: Any = (PARAMS, plain.init(PARAMS))
    step = fxflow.jit(lambda p, s, g: updated(flat, p, s, g))
    for gradients in GRADIENTS[:2]:
        one = step(*one, gradients)
        other = updated(plain, *other, gradients)
    for name, want in other[0].items():
        np.testing.assert_allclose(one[0][name], want, rtol=1e-5)
    assert one[1][0].mu.shape == (sum(p.size for p in PARAMS.values()),)


def test_types_are_preserved() -> None:
    tx = optim.flatten(optim.sgd(0.5))
    grads = {"a": fnp.ones((2, 2)), "b": fnp.ones((), "bfloat16"), "c": fnp.ones(0)}
    updates, _ = tx.update(grads, tx.init(grads), grads)
    for name, grad in grads.items():
        assert updates[name].shape == grad.shape
        assert updates[name].dtype == grad.dtype
    assert updates["a"].tolist() == [[-0.5, -0.5], [-0.5, -0.5]]
    mixed = {"c": np.array([1j], np.complex64), "r": np.ones(1, np.float32)}
    updates, _ = tx.update(mixed, tx.init(mixed))
    assert updates["r"].dtype == "float32"


def test_empty_trees_and_extra_arguments() -> None:
    empty = optim.flatten(optim.sgd(0.5))
    assert empty.update({}, empty.init({}), {})[0] == {}
    tx = optim.flatten(optim.polyak_sgd())
    grads = {"x": fnp.ones(2)}
    updates, _ = tx.update(grads, tx.init(grads), grads, value=1.0)
    np.testing.assert_allclose(updates["x"], [-0.5, -0.5])
