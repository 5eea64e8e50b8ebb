"""Programs after reports of optax's and Flax's users: optimizers, schedules, norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, tree
from fxflow.errors import ArgumentError

MODES = pytest.mark.parametrize(
    "mode", [lambda f: f, fxflow.jit], ids=["eager", "compiled"]
)


def _train(mode: Any, optimizer: Any, params: Any, grads: Any) -> tuple[Any, Any]:
    """The parameters after one step for each gradient, and the last state."""
    update, state = mode(optimizer.update), optimizer.init(params)
    for grad in grads:
        updates, state = update(grad, state, params)
        params = optim.apply_updates(params, updates)
    return params, state


@MODES
def test_accumulated_steps_decay_the_weights(mode: Any) -> None:
    """The wrapped optimizer gets the parameters (optax#145)."""
    inner = optim.chain(optim.add_decayed_weights(0.5), optim.sgd(0.1))
    grads = [fnp.float32([1, 2]), fnp.float32([3, 6])]
    got, _ = _train(mode, optim.MultiSteps(inner, 2), fnp.float32([4, 8]), grads)
    # The mean gradient is (2, 4), the decay adds (2, 4).
    np.testing.assert_allclose(got, [3.6, 7.2], rtol=1e-6)


@MODES
def test_accumulated_steps_keep_a_state_of_booleans(mode: Any) -> None:
    """The state of `zero_nans` stays Boolean between the steps that count
    (optax#828)."""
    inner = optim.chain(optim.zero_nans(), optim.sgd(1.0))
    optimizer = optim.MultiSteps(inner, 2)
    one = fnp.ones(3)
    params, state = _train(mode, optimizer, one, [one, one * fnp.nan, one, 3 * one])
    np.testing.assert_array_equal(params, -one)
    kinds = [tree.map(lambda a: a.dtype, s) for s in (state, optimizer.init(one))]
    assert kinds[0] == kinds[1]


@MODES
def test_accumulated_factored_steps_in_half_precision(mode: Any) -> None:
    """Adafactor in `MultiSteps` keeps bfloat16 parameters (optax#377)."""
    params = fnp.ones((128, 128), "bfloat16")
    optimizer = optim.MultiSteps(optim.adafactor(1e-2), 2)
    got, _ = _train(mode, optimizer, params, [params] * 4)
    assert got.dtype == params.dtype
    plain, _ = _train(mode, optim.adafactor(1e-2), params, [params] * 2)
    np.testing.assert_array_equal(got.astype("f"), plain.astype("f"))
    assert got[0, 0] < 1


@MODES
@pytest.mark.parametrize(
    "rate",
    [
        1e-3,
        np.float32(1e-3),
        np.float64(1e-3),
        np.array(1e-3, ml_dtypes.bfloat16),
        fnp.bfloat16(1e-3),
    ],
)
def test_updates_have_the_dtype_of_the_parameters(mode: Any, rate: Any) -> None:
    """How the learning rate is written changes no dtype (optax#1405)."""
    params = fnp.ones(8, "bfloat16")
    optimizer = optim.adam(rate)
    updates, state = mode(optimizer.update)(params, optimizer.init(params), params)
    assert updates.dtype == params.dtype
    kinds = [tree.map(lambda a: a.dtype, s) for s in (state, optimizer.init(params))]
    assert kinds[0] == kinds[1]


@MODES
@pytest.mark.parametrize("name", ["adam", "adamw", "lamb", "prodigy"])
def test_optimizers_stay_in_32_bits_where_64_are_on(mode: Any, name: str) -> None:
    """With x64, neither updates nor states of float32 become float64
    (optax#1051, flax#924)."""
    make = getattr(optim, name, None) or getattr(optim.contrib, name)
    with fxflow.config.override(x64=True):
        params = fnp.ones(3, "float32")
        optimizer = make(1e-3)
        state = optimizer.init(params)
        updates, after = mode(optimizer.update)(params, state, params)
        assert updates.dtype == np.float32
        kinds = [tree.map(lambda a: np.dtype(a.dtype), s) for s in (state, after)]
        assert kinds[0] == kinds[1]
        assert np.dtype("float64") not in tree.leaves(kinds)


@MODES
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_injected_hyperparameters_change_no_step(mode: Any, dtype: str) -> None:
    """Adam with injected hyperparameters takes the steps of adam: a decay of .999
    does not become 1 in bfloat16 (optax#1414, optax#1532, optax#583)."""
    params = fnp.array([1.0, -2.0], dtype)
    grads = [fnp.array([1.0, -0.5], dtype) * (-0.7) ** i for i in range(6)]
    plain, _ = _train(mode, optim.adamw(0.05), params, grads)
    injected = optim.inject_hyperparams(optim.adamw)(learning_rate=0.05)
    got, state = _train(mode, injected, params, grads)
    np.testing.assert_allclose(got.astype("f"), plain.astype("f"), rtol=1e-6)
    assert got.dtype == params.dtype
    np.testing.assert_allclose(state.hyperparams["b2"], 0.999, rtol=1e-6)


@MODES
def test_injected_schedule_is_seen_in_the_state(mode: Any) -> None:
    """The state shows the learning rate of the step that was taken (optax#424)."""
    schedule = optim.warmup_cosine_decay_schedule(1e-6, 1e-3, 2, 10, 1e-6)
    optimizer = optim.inject_hyperparams(optim.adam)(learning_rate=schedule)
    params = fnp.ones(2)
    for count in 1, 3, 5:
        _, state = _train(mode, optimizer, params, [params] * count)
        rate = state.hyperparams["learning_rate"]
        np.testing.assert_allclose(rate, schedule(count - 1), rtol=1e-6)


@MODES
def test_integer_hyperparameters(mode: Any) -> None:
    """`b1=0` is `b1=0.0` (jax#2517)."""
    params, grads = fnp.ones(3), [fnp.float32([1, -2, 0])] * 3
    got, _ = _train(mode, optim.adam(0.1, b1=0), params, grads)
    expected, _ = _train(mode, optim.adam(0.1, b1=0.0), params, grads)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_allclose(got, [0.7, 1.3, 1], rtol=1e-6)


@MODES
def test_schedules_of_traced_steps(mode: Any) -> None:
    """Interpolated schedules take traced and mapped steps (optax#504)."""
    cosine = 0.25 + 0.75 * (1 - np.cos(np.pi * np.arange(2) / 2)) / 2
    cases = [
        (
            optim.piecewise_interpolate_schedule("linear", 1.0, {2: 0.5, 6: 0.1}),
            [1, 0.75, 0.5, 0.3875, 0.275, 0.1625, 0.05, 0.05],
        ),
        # Up from 1/4 in 3 steps, down to 1/4 in 5.
        (
            optim.linear_onecycle_schedule(10, 1.0, 0.3, 0.8, 4.0, 8.0),
            [0.25, 0.5, 0.75, 1, 0.85, 0.7, 0.55, 0.4],
        ),
        (optim.cosine_onecycle_schedule(4, 1.0, 0.5, 4.0, 8.0), [*cosine, 1]),
    ]
    for schedule, expected in cases:
        steps = fnp.arange(len(expected))
        got = mode(fxflow.vmap(schedule))(steps)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        np.testing.assert_allclose(mode(schedule)(2), expected[2], rtol=1e-6)


def test_warm_up_as_long_as_the_schedule_is_refused() -> None:
    """A cosine of 0 steps has no value: the message says which lengths (optax#1413)."""
    with pytest.raises(ArgumentError, match=r"decay_steps.* 5 and 5"):
        optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 5)
    schedule = optim.warmup_cosine_decay_schedule(0.0, 1.0, 0, 4, 0.1)
    got = [schedule(i) for i in range(6)]
    cosine = 0.1 + 0.45 * (1 + np.cos(np.pi * np.arange(5) / 4))
    np.testing.assert_allclose(got, [*cosine, 0.1], rtol=1e-6)


@MODES
def test_confident_ctc_loss_is_not_negative(mode: Any) -> None:
    """The loss of a nearly certain alignment is −log1p(−p²), not below 0
    (optax#1771)."""
    logits = np.float32([[[0, 17], [0, 17]]])
    loss = mode(lambda x: nn.ctc_loss(x, np.array([[1]])))(logits)
    p = 1 / (1 + np.exp(17.0))
    assert loss.shape == (1,)
    assert loss[0] >= 0
    np.testing.assert_allclose(loss, -np.log1p(-(p**2)), atol=1e-12)


@MODES
def test_huber_loss_of_negative_differences(mode: Any) -> None:
    """The threshold is on the absolute difference, also in the gradient
    (attorch#13)."""
    x = np.float32([-3, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 3])
    loss = mode(lambda x: optim.losses.huber_loss(x, fnp.zeros_like(x)))(x)
    expected = np.where(np.abs(x) <= 1, x**2 / 2, np.abs(x) - 0.5)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    slope = fxflow.grad(lambda x: fnp.sum(optim.losses.huber_loss(x)))
    np.testing.assert_allclose(mode(slope)(x), np.clip(x, -1, 1), rtol=1e-6)


@MODES
@pytest.mark.parametrize("layer", ["batch", "layer", "group", "standardize"])
def test_normalization_of_values_far_from_zero(mode: Any, layer: str) -> None:
    """The variance of values near 10⁴ comes from their deviations: it is neither
    negative nor off (flax#1491, equinox#314)."""
    x = np.random.default_rng(0).normal(1e4, 1, (32, 16)).astype("f")
    axis = 0 if layer == "batch" else 1
    wide = x.astype(np.float64)
    wide = (wide - wide.mean(axis, keepdims=True)) / np.sqrt(
        wide.var(axis, keepdims=True) + 1e-5
    )
    run: Callable[[Any], Any] = {
        "batch": lambda x: nn.batch_norm(
            nn.batch_norm_init(16), nn.batch_norm_state(16), x, training=True
        ),
        "layer": lambda x: nn.layer_norm(nn.layer_norm_init(16), x),
        "group": lambda x: nn.group_norm(nn.group_norm_init(16), x, 1),
        "standardize": lambda x: nn.standardize(x, 1),
    }[layer]
    out = next(a for a in tree.leaves(mode(run)(x)) if a.shape == x.shape)
    np.testing.assert_allclose(out, wide, atol=3e-3)
