"""Transformations that scale."""

import inspect
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import optim, random
from fxflow.errors import ArgumentError
from tests.optim.golden import GRADIENTS, PARAMS


def _one(tx: Any, x: Any, params: Any = None) -> Any:
    return tx.update(x, tx.init(x), params)[0]


def test_schedules_count_updates() -> None:
    tx = optim.scale_by_schedule(lambda count: 10.0 * count)
    state = tx.init(0.0)
    seen = []
    for _ in range(3):
        out, state = tx.update(np.float32(1.0), state)
        seen.append(float(out))
    assert seen == [0.0, 10.0, 20.0]
    assert int(state.count) == 3


def test_scale_by_learning_rate_flips_the_sign() -> None:
    x = np.ones(1, np.float32)
    assert _one(optim.scale_by_learning_rate(0.5), x).tolist() == [-0.5]
    up = optim.scale_by_learning_rate(0.5, flip_sign=False)
    assert _one(up, x).tolist() == [0.5]
    by_schedule = optim.scale_by_learning_rate(lambda count: 0.25)
    assert _one(by_schedule, x).tolist() == [-0.25]


def test_learning_rate_is_differentiable() -> None:
    def updated(rate: Any) -> Any:
        return _one(optim.sgd(rate), np.float32(3.0))

    assert float(fxflow.grad(updated)(0.1)) == -3.0


def test_the_trust_ratio_scales_to_the_parameters_norm() -> None:
    x = {"a": np.array([3.0, 4.0]), "b": np.zeros(2), "c": np.ones(2)}
    params = {"a": np.array([0.0, 10.0]), "b": np.ones(2), "c": np.zeros(2)}
    out = _one(optim.scale_by_trust_ratio(trust_coefficient=0.5), x, params)
    np.testing.assert_allclose(out["a"], [3.0, 4.0])
    np.testing.assert_allclose(out["b"], [0.0, 0.0])
    np.testing.assert_allclose(out["c"], [1.0, 1.0])


def test_weights_decay_by_schedule_and_mask() -> None:
    tx = optim.add_decayed_weights(lambda count: count + 1.0, {"w": True, "b": False})
    state = tx.init(PARAMS)
    for factor in (1.0, 2.0):
        out, state = tx.update(GRADIENTS[0], state, PARAMS)
        want = GRADIENTS[0]["w"] + factor * PARAMS["w"]
        np.testing.assert_allclose(out["w"], want, rtol=1e-6)
        np.testing.assert_array_equal(out["b"], GRADIENTS[0]["b"])


def test_the_noise_decreases_and_is_reproducible() -> None:
    x = {"a": np.zeros(4000, np.float32), "b": np.zeros(4000, np.float32)}
    tx = optim.add_noise(4.0, 1.0, random.key(0))
    state = tx.init(x)
    for step in (1, 2):
        out, state = tx.update(x, state)
        np.testing.assert_allclose(np.std(out["a"]), 2 / np.sqrt(step), rtol=0.05)
        assert (np.asarray(out["a"]) != np.asarray(out["b"])).any()
    again, _ = tx.update(x, tx.init(x))
    first, _ = tx.update(x, tx.init(x))
    np.testing.assert_array_equal(again["a"], first["a"])
    with pytest.raises(ArgumentError, match="either a random key or a seed"):
        optim.add_noise(0.1, 0.5)


def test_zero_nans_and_keep_params_nonnegative() -> None:
    x = np.array([np.nan, -3.0, np.inf], np.float32)
    assert _one(optim.zero_nans(), x).tolist() == [0.0, -3.0, np.inf]
    params = np.array([1.0, 1.0, 5.0], np.float32)
    steps = np.array([-3.0, 1.0, -5.0], np.float32)
    out = _one(optim.keep_params_nonnegative(), steps, params)
    assert (params + np.asarray(out)).tolist() == [0.0, 2.0, 0.0]


def test_centralize_does_not_change_vectors() -> None:
    out = _one(optim.centralize(), GRADIENTS[0])
    np.testing.assert_array_equal(out["b"], GRADIENTS[0]["b"])
    np.testing.assert_allclose(np.asarray(out["w"]).mean(1), 0, atol=1e-6)


def test_a_missing_learning_rate_means_no_scaling() -> None:
    # As in optax, not even the sign changes.
    x = np.ones(1, np.float32)
    for tx in (optim.scale_by_learning_rate(), optim.sgd(None), optim.sgd(None, 0.9)):
        assert _one(tx, x).tolist() == [1.0]
    # These descend without a learning rate; optax's adadelta ascends.
    assert float(_one(optim.adadelta(), x, x)[0]) < 0
    assert float(_one(optim.lbfgs(linesearch=None), x, x)[0]) < 0


RATED = {
    f"{module.__name__.removeprefix('fxflow.')}.{name}": getattr(module, name)
    for module in (optim, optim.contrib)
    for name in module.__all__
    if "learning_rate" in getattr(getattr(module, name), "__annotations__", ())
    and inspect.isfunction(getattr(module, name))
}
NEEDED = {
    "base_optimizer": optim.sgd(0.1),
    "l2_norm_clip": 1.0,
    "noise_multiplier": 1.0,
    "seed": 0,
}


@pytest.mark.parametrize("name", RATED)
def test_parameters_are_not_a_learning_rate(name: str) -> None:
    make = RATED[name]
    parameters = inspect.signature(make).parameters
    needed = {key: value for key, value in NEEDED.items() if key in parameters}
    number = make(learning_rate=np.float32(0.1), **needed)
    assert isinstance(number, optim.GradientTransformation)
    for wrong in (fxflow.numpy.ones(3), {"w": np.ones((3, 4))}, [0.1], "0.1"):
        with pytest.raises(ArgumentError, match=r"learning_rate must.*1e-3.*init"):
            make(learning_rate=wrong, **needed)


def test_names_of_pytorch_optimizers() -> None:
    tx = optim.adam(1e-3)
    with pytest.raises(AttributeError, match=r"'step': here it is updates, state = tx"):
        tx.step()  # type: ignore[attr-defined]
    for value in (tx, optim.identity(), fxflow.numpy.ones(3)):
        with pytest.raises(AttributeError, match=r"zero_grad'.*not needed"):
            value.zero_grad()  # type: ignore[attr-defined]
