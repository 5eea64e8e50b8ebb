"""Accumulation, injected hyperparameters, guards."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from tests.optim.golden import GRADIENTS, PARAMS


@pytest.mark.parametrize("mean", [True, False])
def test_multi_steps_accumulate_gradients(mean: bool) -> None:
    tx = optim.MultiSteps(optim.sgd(1.0), 3, use_grad_mean=mean)
    update = fxflow.jit(tx.update)
    state = tx.init(PARAMS)
    for i, gradients in enumerate(GRADIENTS[:6]):
        out, state = update(gradients, state, PARAMS)
        assert bool(tx.has_updated(state)) == (i % 3 == 2)
        if i % 3 != 2:
            np.testing.assert_array_equal(out["w"], np.zeros((2, 3)))
    total = sum(g["w"] for g in GRADIENTS[3:6])
    want = -total / 3 if mean else -total
    np.testing.assert_allclose(out["w"], want, rtol=1e-5)
    assert int(state.gradient_step) == 2
    assert float(np.abs(np.asarray(state.acc_grads["w"])).max()) == 0


def test_the_number_of_steps_may_be_a_schedule() -> None:
    tx = optim.MultiSteps(optim.sgd(1.0), lambda count: fnp.where(count < 1, 1, 2))
    state = tx.init(PARAMS)
    seen = []
    for gradients in GRADIENTS[:5]:
        _, state = tx.update(gradients, state, PARAMS)
        seen.append(bool(tx.has_updated(state)))
    assert seen == [True, False, True, False, True]
    with pytest.raises(ArgumentError, match="every_k_schedule must be positive, got 0"):
        optim.MultiSteps(optim.sgd(1.0), 0)


def test_gradients_are_accumulated_in_float32() -> None:
    params = fnp.ones(2, "bfloat16")
    tx = optim.MultiSteps(optim.sgd(1.0), 2)
    state = tx.init(params)
    assert state.acc_grads.dtype == "float32"
    out, _ = tx.update(params, state, params)
    assert out.dtype == "bfloat16"


def test_multi_steps_in_a_chain() -> None:
    inner = optim.MultiSteps(optim.sgd(1.0), 2).gradient_transformation()
    tx = optim.chain(optim.clip(0.1), inner)
    state = tx.init(PARAMS)
    _, state = tx.update(GRADIENTS[0], state, PARAMS)
    out, _ = tx.update(GRADIENTS[0], state, PARAMS)
    np.testing.assert_allclose(np.abs(np.asarray(out["w"])).max(), 0.1, rtol=1e-6)


def test_bad_gradients_are_skipped() -> None:
    tx = optim.apply_if_finite(optim.trace(0.5), 2)
    good = np.ones(2, np.float32)
    bad = np.array([1.0, np.nan], np.float32)
    state = tx.init(good)
    update = fxflow.jit(tx.update)
    _, state = update(good, state)
    memory = np.asarray(state.inner_state.trace)
    for errors in (1, 2):
        out, state = update(bad, state)
        np.testing.assert_array_equal(out, np.zeros(2))
        np.testing.assert_array_equal(state.inner_state.trace, memory)
        assert int(state.notfinite_count) == errors
        assert not bool(state.last_finite)
    out, state = update(bad, state)
    assert np.isnan(np.asarray(out)).any()
    _, state = update(good, state)
    assert (int(state.notfinite_count), int(state.total_notfinite)) == (0, 3)


def test_injected_hyperparameters_can_be_changed() -> None:
    tx = optim.inject_hyperparams(optim.sgd)(0.5, momentum=0.0)
    state = tx.init(PARAMS)
    assert float(state.hyperparams["learning_rate"]) == 0.5
    assert set(state.hyperparams) == {"learning_rate", "momentum"}
    update = fxflow.jit(tx.update)
    out, state = update(GRADIENTS[0], state)
    np.testing.assert_allclose(out["w"], -0.5 * GRADIENTS[0]["w"], rtol=1e-6)
    state.hyperparams["learning_rate"] = fnp.asarray(2.0, "float32")
    out, _ = update(GRADIENTS[0], state)
    np.testing.assert_allclose(out["w"], -2 * GRADIENTS[0]["w"], rtol=1e-6)


def test_injected_schedules_and_static_arguments() -> None:
    make = optim.inject_hyperparams(optim.adamw, static_args=("mask", "mu_dtype"))
    mask = lambda params: {"w": True, "b": False}
    tx = make(optim.linear_schedule(1.0, 0.0, 4), mask=mask, mu_dtype="bfloat16")
    state = tx.init(PARAMS)
    rates = []
    for gradients in GRADIENTS[:3]:
        _, state = tx.update(gradients, state, PARAMS)
        rates.append(float(state.hyperparams["learning_rate"]))
    assert rates == [1.0, 0.75, 0.5]
    assert "mask" not in state.hyperparams
    with pytest.raises(ArgumentError, match="sgd has no arguments speed"):
        optim.inject_hyperparams(optim.sgd, "speed")


def test_injected_hyperparameters_are_differentiable() -> None:
    def updated(rate: Any) -> Any:
        tx = optim.inject_hyperparams(optim.sgd)(rate)
        return tx.update(fnp.asarray(3.0), tx.init(fnp.asarray(0.0)))[0]

    assert float(fxflow.grad(updated)(0.1)) == -3.0
