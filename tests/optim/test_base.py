"""Pairs of init and update, and their composition."""

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import optim
from fxflow.core.errors import ArgumentError, TreeError
from fxflow.optim import base


def test_apply_updates_keeps_dtypes() -> None:
    params = {"a": fnp.ones(2, "bfloat16"), "b": fnp.ones((), "float32")}
    updates = {"a": fnp.ones(2, "float32"), "b": fnp.ones((), "float32")}
    out = optim.apply_updates(params, updates)
    assert [out["a"].dtype.name, out["b"].dtype.name] == ["bfloat16", "float32"]
    assert out["a"].tolist() == [2.0, 2.0]
    with pytest.raises(TreeError):
        optim.apply_updates(params, {"a": updates["a"]})


def test_chain() -> None:
    tx = optim.chain(optim.scale(2.0), optim.trace(0.5), optim.identity())
    x = np.ones(2, np.float32)
    state = tx.init(x)
    assert len(state) == 3
    _, state = tx.update(x, state)
    out, state = tx.update(x, state)
    assert out.tolist() == [3.0, 3.0]
    with pytest.raises(ArgumentError, match="expected the states of 3 transformations"):
        tx.update(x, state[:2])
    assert optim.chain().update(x, ())[0] is x


def test_named_chain() -> None:
    tx = optim.named_chain(("double", optim.scale(2.0)), ("memory", optim.trace(0.5)))
    x = np.ones(2, np.float32)
    out, state = tx.update(x, tx.init(x))
    assert out.tolist() == [2.0, 2.0]
    assert state["memory"].trace.tolist() == [2.0, 2.0]
    with pytest.raises(ArgumentError, match="names must differ, got \\['a', 'a'\\]"):
        optim.named_chain(("a", optim.identity()), ("a", optim.identity()))


def test_set_to_zero_and_stateless() -> None:
    x = {"a": np.ones(2, np.float16)}
    zero, _ = optim.set_to_zero().update(x, optim.EmptyState())
    assert zero["a"].tolist() == [0.0, 0.0]
    assert zero["a"].dtype == "float16"
    tx = optim.stateless(lambda updates, params: params)
    assert tx.update(1.0, tx.init(2.0), 3.0)[0] == 3.0


def test_global_norm() -> None:
    arrays = {"a": np.array([3.0, 0.0]), "b": [np.array(4.0), np.array(12j)]}
    assert float(optim.global_norm(arrays)) == pytest.approx(13.0)
    assert float(optim.global_norm([])) == 0.0
    slope = fxflow.grad(lambda x: optim.global_norm([x]))(np.array([3.0, 4.0]))
    np.testing.assert_allclose(slope, [0.6, 0.8], rtol=1e-6)


def test_counts_do_not_wrap() -> None:
    assert int(base.increment(base.zero_count())) == 1
    most = fnp.asarray(base.MAX_COUNT, "int32")
    assert int(base.increment(most)) == base.MAX_COUNT
    assert base.increment(most).dtype == "int32"


def test_missing_parameters() -> None:
    with pytest.raises(
        ArgumentError, match=r"add_decayed_weights: needs the parameters"
    ):
        optim.adamw(0.1).update(1.0, optim.adamw(0.1).init(fnp.ones(())))
