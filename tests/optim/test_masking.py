"""Transformations of some of the parameters."""

import numpy as np
import pytest

import fxflow
from fxflow import optim, tree
from fxflow.errors import ArgumentError
from tests.optim.golden import GRADIENTS, PARAMS

NESTED = {
    "layer": {"w": np.ones(2, np.float32), "b": np.ones(1, np.float32)},
    "top": 2.0,
}


def test_masks_may_be_prefixes_or_functions() -> None:
    for mask in (
        {"layer": True, "top": False},
        {"layer": {"w": True, "b": True}, "top": False},
        lambda values: {"layer": True, "top": False},
    ):
        tx = optim.masked(optim.scale(3.0), mask)
        out, _ = tx.update(NESTED, tx.init(NESTED))
        assert out["layer"]["w"].tolist() == [3.0, 3.0]
        assert out["top"] == 2.0


def test_masked_parameters_have_no_state() -> None:
    tx = optim.masked(optim.scale_by_adam(), {"w": True, "b": False})
    state = tx.init(PARAMS)
    assert len(tree.leaves(state)) == 3
    out, state = fxflow.jit(tx.update)(GRADIENTS[0], state)
    np.testing.assert_array_equal(out["b"], GRADIENTS[0]["b"])
    assert len(tree.leaves(state)) == 3


def test_each_group_has_its_transformation() -> None:
    tx = optim.multi_transform(
        {"a": optim.sgd(1.0), "b": optim.chain(optim.trace(0.5), optim.scale(2.0))},
        lambda params: {"w": "a", "b": "b"},
    )
    state = tx.init(PARAMS)
    for factor in (2.0, 3.0):
        out, state = tx.update(GRADIENTS[0], state, PARAMS)
        np.testing.assert_allclose(out["w"], -GRADIENTS[0]["w"])
        np.testing.assert_allclose(out["b"], factor * GRADIENTS[0]["b"], rtol=1e-6)
    assert set(state.inner_states) == {"a", "b"}


def test_unknown_labels_are_refused() -> None:
    tx = optim.multi_transform({"a": optim.identity()}, {"w": "a", "b": "c"})
    with pytest.raises(ArgumentError, match="labels 'c' have no transformation; the"):
        tx.init(PARAMS)
