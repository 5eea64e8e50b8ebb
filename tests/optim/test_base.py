"""Pairs of init and update, and their composition."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError, TreeError
from fxflow.optim import base


def test_apply_updates_keeps_dtypes() -> None:
    params = {"a": fnp.ones(2, "bfloat16"), "b": fnp.ones((), "float32")}
    updates = {"a": fnp.ones(2, "float32"), "b": fnp.ones((), "float32")}
    out = optim.apply_updates(params, updates)
    assert [out["a"].dtype.name, out["b"].dtype.name] == ["bfloat16", "float32"]
    assert out["a"].tolist() == [2.0, 2.0]
    with pytest.raises(TreeError):
        optim.apply_updates(params, {"a": updates["a"]})


def test_chains_apply_parts_in_order() -> None:
    tx = optim.chain(optim.scale(2.0), optim.trace(0.5), optim.identity())
    x = np.ones(2, np.float32)
    state = tx.init(x)
    assert len(state) == 3
    _, state = tx.update(x, state)
    out, state = tx.update(x, state)
    assert out.tolist() == [3.0, 3.0]
    with pytest.raises(ArgumentError, match="hold the states of 3 transformations"):
        tx.update(x, state[:2])
    assert optim.chain().update(x, ())[0] is x


def test_a_state_for_other_parameters_is_named_in_the_error() -> None:
    old, new = {"w": np.ones(3)}, {"w": np.ones(3), "b": np.ones(1)}
    said = (
        r"without 'b': \.mu of the optimizer's ScaleByAdamState is \{'w': \*\}, the "
        r"updates are \{'b': \*, 'w': \*\}, each \* an array: [a-z ]*$"
    )
    nested = optim.chain(optim.clip(1.0), optim.adam(0.1))
    for tx in (optim.adam(0.1), nested):
        with pytest.raises(TreeError, match=said):
            tx.update(new, tx.init(old), new)
    # If the state fits, the error does not mention it.
    tx = optim.adamw(0.1)
    with pytest.raises(TreeError, match=r"^(?!.*optimizer's)"):
        tx.update(new, tx.init(new), old)


def test_named_chains_keep_states_by_name() -> None:
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


def test_global_norm_of_a_tree() -> None:
    arrays = {"a": np.array([3.0, 0.0]), "b": [np.array(4.0), np.array(12j)]}
    assert float(optim.global_norm(arrays)) == pytest.approx(13.0)
    assert float(optim.global_norm([])) == 0.0
    slope = fxflow.grad(lambda x: optim.global_norm([x]))(np.array([3.0, 4.0]))
    np.testing.assert_allclose(slope, [0.6, 0.8], rtol=1e-6)


def test_counts_do_not_wrap() -> None:
    assert int(base.safe_increment(base.zero_count())) == 1
    most = fnp.asarray(base.MAX_COUNT, "int32")
    assert int(base.safe_increment(most)) == base.MAX_COUNT
    assert base.safe_increment(most).dtype == "int32"


def test_missing_parameters_are_reported() -> None:
    with pytest.raises(
        ArgumentError, match=r"add_decayed_weights: needs the parameters"
    ):
        optim.adamw(0.1).update(1.0, optim.adamw(0.1).init(fnp.ones(())))


def _by_value() -> optim.GradientTransformationExtraArgs:
    def update(updates, state, params=None, *, value, **extra):
        return fxflow.tree.map(lambda u: u * value, updates), state

    return optim.GradientTransformationExtraArgs(lambda params: (), update)


@pytest.mark.parametrize(
    "around",
    [
        lambda tx: optim.chain(optim.scale(2.0), tx),
        lambda tx: optim.named_chain(("a", optim.scale(2.0)), ("b", tx)),
        lambda tx: optim.masked(optim.chain(optim.scale(2.0), tx), True),
        lambda tx: optim.multi_transform({"a": optim.chain(optim.scale(2.0), tx)}, "a"),
        lambda tx: optim.apply_if_finite(optim.chain(optim.scale(2.0), tx), 1),
        lambda tx: optim.MultiSteps(
            optim.chain(optim.scale(2.0), tx), 1
        ).gradient_transformation(),
        lambda tx: optim.inject_hyperparams(
            lambda rate: optim.chain(optim.scale(rate), tx)
        )(2.0),
    ],
)
def test_extra_arguments_reach_the_parts_that_take_them(around) -> None:
    tx = around(_by_value())
    params = {"w": fnp.ones(2)}
    out, _ = fxflow.jit(tx.update)(params, tx.init(params), params, value=3.0)
    assert out["w"].tolist() == [6.0, 6.0]
    with pytest.raises(TypeError, match="value"):
        tx.update(params, tx.init(params), params)


def test_extra_arguments_are_ignored_by_other_parts() -> None:
    params = {"w": fnp.ones(2)}
    for tx in (optim.adam(0.1), optim.with_extra_args_support(optim.scale(1.0))):
        tx.update(params, tx.init(params), params, value=3.0)
    with pytest.raises(TypeError):
        optim.scale(1.0).update(params, (), params, value=3.0)
    given = _by_value()
    assert optim.with_extra_args_support(given) is given


def test_types_of_signatures_have_names() -> None:
    class Doubled:
        def __call__(self, updates: Any, state: Any, params: Any = None) -> Any:
            return 2 * updates, state

    init: optim.TransformInitFn = lambda params: optim.EmptyState()
    update: optim.TransformUpdateFn = Doubled()
    tx = optim.GradientTransformation(init, update)
    updates: optim.Updates = tx.update(1.5, tx.init(0.0))[0]
    assert updates == 3.0


def test_transformations_compute_in_float32() -> None:
    seen = []

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        seen.extend((updates.dtype, state.dtype, params.dtype))
        return updates, state + updates

    tx = base.in_float32(optim.GradientTransformation(fnp.zeros_like, update))
    narrow = fnp.ones(2, "bfloat16")
    state = tx.init(narrow)
    out, state = tx.update(narrow, state, narrow)
    assert (out.dtype, state.dtype, *set(seen)) == ("bfloat16", "float32", "float32")
    # A state in 16 bits keeps its dtype.
    assert tx.update(narrow, narrow, narrow)[1].dtype == "bfloat16"
    assert type(base.in_float32(optim.chain(tx))) is optim.chain(tx).__class__


def test_nothing_is_rounded_within_an_optimizer() -> None:
    # The sum of gradients is 16 times the largest float16; the step is finite.
    tx, params = optim.sgd(1e-3, 0.99), fnp.zeros(1, "float16")
    gradient, state = fnp.full(1, 6e4, "float16"), tx.init(params)
    for _ in range(50):
        updates, state = tx.update(gradient, state)
    expected = -60 * (1 - 0.99**50) / 0.01
    np.testing.assert_allclose(float(updates[0]), expected, rtol=1e-3)


def test_optimizers_widen_their_arguments_once() -> None:
    seen: list[Any] = []

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        seen.append(updates)
        return updates, state

    part = base.in_float32(optim.GradientTransformation(lambda params: (), update))
    given = fnp.ones(2)
    tx = base.wide_chain(part, part)
    out, _ = tx.update(given, tx.init(given))
    assert out is given
    assert [x is given for x in seen] == [True, True]
    narrow = given.astype("float16")
    assert tx.update(narrow, tx.init(narrow))[0].dtype == "float16"
    assert {x.dtype.name for x in seen[2:]} == {"float32"}


@pytest.mark.parametrize("make", [optim.sgd, optim.adam, optim.adagrad])
def test_updates_of_integer_gradients_are_floats(make):
    params, grads = fnp.zeros(3), np.array([3, 0, -2])
    tx = make(0.1)
    state = tx.init(params)
    wanted, _ = tx.update(grads.astype(np.float32), state, params)
    found, after = tx.update(grads, state, params)
    np.testing.assert_allclose(found, wanted, 1e-6)
    dtypes = lambda tree: [x.dtype for x in fxflow.tree.leaves(tree)]
    assert dtypes(after) == dtypes(state)
