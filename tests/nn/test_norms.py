"""Normalising layers against their formulas in float64."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(4, 5, 3, 6)) * 2 + 1).astype(np.float32)
SCALE = RNG.normal(size=6).astype(np.float32)
BIAS = RNG.normal(size=6).astype(np.float32)
PARAMS = {"scale": SCALE, "bias": BIAS}
STATE = {"mean": RNG.normal(size=6).astype("f"), "var": RNG.random(6).astype("f")}


def standard(x: Any, axes: Any, epsilon: float = 1e-5) -> Any:
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(
        x.var(axes, keepdims=True) + epsilon
    )


def by_group(x: Any, groups: int) -> Any:
    split = x.reshape(4, 5, 3, groups, -1)
    return standard(split, (1, 2, 4)).reshape(x.shape)


CASES = {
    "layer_norm": (lambda p, x: nn.layer_norm(p, x), lambda x: standard(x, -1)),
    "group_norm": (lambda p, x: nn.group_norm(p, x, 2), lambda x: by_group(x, 2)),
    "instance_norm": (lambda p, x: nn.instance_norm(p, x), lambda x: by_group(x, 6)),
    "batch_norm": (
        lambda p, x: nn.batch_norm(p, STATE, x, training=True)[1],
        lambda x: standard(x, (0, 1, 2)),
    ),
    "rms_norm": (
        lambda p, x: nn.rms_norm({"scale": p["scale"]}, x) + p["bias"],
        lambda x: x / np.sqrt((x.astype("d") ** 2).mean(-1, keepdims=True) + 1e-6),
    ),
}
cases = pytest.mark.parametrize("name", CASES)


@cases
def test_as_formula(name: str) -> None:
    run, formula = CASES[name]
    want = formula(X) * SCALE + BIAS
    np.testing.assert_allclose(fxflow.jit(run)(PARAMS, X), want, 1e-5, 1e-5)
    far = X + np.float32(1000)
    if name != "rms_norm":  # which has no mean to lose digits by
        np.testing.assert_allclose(run(PARAMS, far), want, 1e-2, 1e-2)
    for dtype in ("float16", "bfloat16"):
        params = {k: fnp.asarray(v, dtype) for k, v in PARAMS.items()}
        out = run(params, fnp.asarray(X, dtype))
        assert out.dtype == dtype
        np.testing.assert_allclose(np.asarray(out, "f"), want, 0.05, 0.05)
    assert run(params, X).dtype == "float32"


@cases
def test_the_gradient_agrees_with_differences(name: str) -> None:
    run, formula = CASES[name]
    x = X.astype(np.float64)
    weight = RNG.normal(size=X.shape)
    way = RNG.normal(size=X.shape)
    loss = lambda x: (run(PARAMS, x) * weight).sum()
    slope = fxflow.jit(fxflow.grad(loss))(fnp.asarray(x, "float64"))
    sides = [(formula(x + e * way) * SCALE * weight).sum() for e in (1e-5, -1e-5)]
    want = (sides[0] - sides[1]) / 2e-5
    np.testing.assert_allclose((np.asarray(slope) * way).sum(), want, 1e-5)


def test_running_moments() -> None:
    state, _ = nn.batch_norm(PARAMS, STATE, X, training=True, momentum=0.9)
    mean, var = X.mean((0, 1, 2)), X.var((0, 1, 2))
    np.testing.assert_allclose(state["mean"], 0.9 * STATE["mean"] + 0.1 * mean, 1e-5)
    np.testing.assert_allclose(state["var"], 0.9 * STATE["var"] + 0.1 * var, 1e-5)
    kept, out = nn.batch_norm(PARAMS, state, X, training=False)
    assert all(bool((kept[k] == state[k]).all()) for k in kept)
    want = (X - state["mean"]) / np.sqrt(state["var"] + 1e-5) * SCALE + BIAS
    np.testing.assert_allclose(out, want, 1e-5, 1e-5)
    half = {k: fnp.asarray(v, "bfloat16") for k, v in STATE.items()}
    assert nn.batch_norm(PARAMS, half, X, training=True)[0]["var"].dtype == "bfloat16"


def test_batch_over_a_mapped_axis() -> None:
    mask = RNG.random(X.shape[:-1]) < 0.7
    over = lambda x, m: nn.batch_norm(
        PARAMS, STATE, x, training=True, axis_name="i", mask=m
    )
    state, out = fxflow.vmap(over, axis_name="i")(X, mask)
    whole = nn.batch_norm(PARAMS, STATE, X, training=True, mask=mask)
    np.testing.assert_allclose(out, whole[1], 1e-5, 1e-5)
    for key in state:
        np.testing.assert_allclose(state[key][2], whole[0][key], 1e-5)
    some = X[mask]
    moved = STATE["mean"] + 0.01 * (some.mean(0) - STATE["mean"])
    np.testing.assert_allclose(whole[0]["mean"], moved, 1e-5)
    plain = nn.batch_norm(PARAMS, STATE, some, training=True)
    np.testing.assert_allclose(np.asarray(whole[1])[mask], plain[1], 1e-4, 1e-5)


def test_several_axes() -> None:
    params = nn.layer_norm_init((3, 6))
    want = standard(X, (2, 3))
    np.testing.assert_allclose(nn.layer_norm(params, X), want, 1e-5, 1e-5)
    root = nn.rms_norm(nn.rms_norm_init((3, 6)), X)
    want = X / np.sqrt((X**2).mean((2, 3), keepdims=True) + 1e-6)
    np.testing.assert_allclose(root, want, 1e-5, 1e-5)


def test_inits() -> None:
    for init in (nn.group_norm_init, nn.instance_norm_init, nn.batch_norm_init):
        params = init(6, dtype="float16")
        assert {k: (v.shape, v.dtype.name) for k, v in params.items()} == {
            "scale": ((6,), "float16"),
            "bias": ((6,), "float16"),
        }
    state = nn.batch_norm_state(6)
    assert float(state["mean"].max()) == 0 and float(state["var"].min()) == 1


def test_inputs_parameters_and_masks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"layer_norm: x must be float\[..., 6\], got"):
        nn.layer_norm(PARAMS, X[..., :5])
    with pytest.raises(
        ArgumentError, match=r'rms_norm: params must be a dict with "sc'
    ):
        nn.rms_norm({}, X)
    with pytest.raises(
        ShapeError, match="group_norm: 4 groups do not divide 6 features"
    ):
        nn.group_norm(PARAMS, X, 4)
    with pytest.raises(
        ArgumentError, match=r'batch_norm: state must be a dict with "me'
    ):
        nn.batch_norm(PARAMS, PARAMS, X, training=True)
    with pytest.raises(
        ShapeError, match=r"mask must be bools of shape \[4, 5, 3\], got"
    ):
        nn.batch_norm(PARAMS, STATE, X, training=True, mask=fnp.ones(6, "bool"))
    with pytest.raises(DtypeError, match="instance_norm: x must be floats, got i32"):
        nn.instance_norm(PARAMS, X.astype("int32"))
    with pytest.raises(ArgumentError, match="features must be at least 1, got 0"):
        nn.batch_norm_init(0)
