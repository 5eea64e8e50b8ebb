"""Mixed precision: policies and loss scaling."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.train import precision
from fxflow.train.precision import LossScale, Policy


def test_only_floats_are_cast() -> None:
    policy = precision.policy("params=full,compute=half,output=bf16")
    assert policy == Policy(fnp.float32, fnp.float16, fnp.bfloat16)
    key = fxflow.random.key(0)
    values = {"w": np.ones(2), "n": 3, "c": np.ones(2, np.complex64), "key": key}
    cast = policy.cast_to_compute(values)
    assert (cast["w"].dtype, cast["n"], cast["key"]) == (np.float16, 3, key)
    assert cast["c"].dtype == np.complex64
    assert policy.cast_to_output(cast)["w"].dtype == fnp.bfloat16
    assert policy.cast_to_param(cast)["w"].dtype == np.float32


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("weights=float32", "expected params="),
        ("params=int32", "'int32' is not a floating-point dtype"),
        ("params=", "'' is not a floating-point dtype"),
        (32, "expected a string"),
    ],
)
def test_invalid_policies_are_refused(text: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        precision.policy(text)


def test_nonfinite_leaves_are_detected() -> None:
    assert bool(precision.all_finite({}))
    assert bool(precision.all_finite({"a": fnp.arange(3), "b": fnp.float16(1)}))
    assert not bool(precision.all_finite([fnp.ones(2), fnp.array([1, fnp.nan])]))


def test_the_scale_stays_in_range() -> None:
    scale = precision.loss_scale(2.0, period=1, smallest=1.0)
    for _ in range(3):
        scale = scale.adjust(fnp.array(False))
    assert float(scale.scale) == 1
    scale = precision.loss_scale(2.0**127, period=1).adjust(fnp.array(True))
    assert float(scale.scale) == 2.0**127
    fixed = precision.loss_scale(8.0, factor=1.0, period=1)
    assert float(fixed.adjust(fnp.array(False)).scale) == 8
    with pytest.raises(ArgumentError, match="period at least 1"):
        precision.loss_scale(period=0)


def test_the_period_counts_finite_steps_in_a_row() -> None:
    scale = precision.loss_scale(4.0, period=2)
    found = []
    for finite in (True, False, True, True, True, True):
        scale = scale.adjust(fnp.array(finite))
        found.append(float(scale.scale))
    assert found == [4, 2, 2, 4, 4, 8]


def test_scaling_prevents_underflow_in_float16() -> None:
    policy = precision.policy("params=f32,compute=f16,output=f32")

    def loss(params: fxflow.Array, scale: LossScale | None) -> fxflow.Array:
        half = policy.cast_to_compute(params)
        value = fnp.sum((half * fnp.float16(1e-4)) ** 2)
        return value if scale is None else scale.apply(value)

    params = fnp.array([0.5])
    exact = 2 * 0.5 * 1e-8
    assert float(fxflow.grad(loss)(params, None)[0]) == 0
    scale = precision.loss_scale(2.0**14)
    scaled = scale.unscale(fxflow.grad(loss)(params, scale))
    np.testing.assert_allclose(scaled[0], exact, rtol=2e-2)


def test_a_step_that_overflows_is_skipped() -> None:
    optimizer = optim.sgd(0.1)

    @fxflow.jit
    def step(params, scale, factor):
        def loss(w):
            return scale.apply((w.astype(fnp.float16) * factor) ** 2)

        gradient = scale.unscale(fxflow.grad(loss)(params))
        finite = precision.all_finite(gradient)
        updates, _ = optimizer.update(gradient, optimizer.init(params), params)
        new = optim.apply_updates(params, updates)
        return precision.select_tree(finite, new, params), scale.adjust(finite)

    scale = precision.loss_scale(2.0**15)
    params, scale = step(fnp.float32(1.0), scale, fnp.float16(100.0))
    assert (float(params), float(scale.scale)) == (1.0, 2.0**14)
    params, scale = step(params, scale, fnp.float16(0.5))
    np.testing.assert_allclose(params, 0.95, rtol=1e-3)


def test_scales_may_exceed_float16() -> None:
    scale = precision.loss_scale(2.0**17)
    loss = fnp.asarray(0.25, "float16")
    scaled = scale.apply(loss)
    assert (float(scaled), scaled.dtype) == (2.0**15, "float16")
    back = scale.unscale({"w": scaled})["w"]
    assert (float(back), back.dtype) == (0.25, "float32")
