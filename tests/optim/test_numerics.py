"""Norms with lower bounds and scaled gradients, compared with optax 0.2.8."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import optim
from fxflow.optim import numerics

X = np.array([3.0, 4.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda: optim.safe_norm(X, 6.0), 6.0),
        (lambda: optim.safe_norm(M, 2.0, 1, 1, True), [[3.0], [12.0]]),
        (lambda: optim.safe_norm(M, 4.0, axis=1), [4.0, 7.0710678]),
        (lambda: optim.safe_norm(np.array([3 + 4j]), 1.0), 5.0),
        (lambda: optim.safe_norm(np.zeros(0), 1.0), 1.0),
        (lambda: optim.safe_norm(np.float32(3), 1.0), 3.0),
        (lambda: optim.safe_norm(M.reshape(1, 2, 3), 1.0), 7.4161985),
        (lambda: optim.safe_root_mean_squares(X, 1.0), 3.5355339),
        (lambda: optim.safe_root_mean_squares(X, 6.0), 6.0),
        (lambda: optim.safe_root_mean_squares(np.array([3 + 4j]), 1.0), 5.0),
        (lambda: optim.safe_root_mean_squares(np.zeros(0), 1.0), 1.0),
    ],
)
def test_safe_norms_never_fall_below_their_minimum(call: Any, want: Any) -> None:
    out = call()
    np.testing.assert_allclose(out, want, rtol=1e-6)
    assert out.shape == np.shape(want)


@pytest.mark.parametrize("f", [optim.safe_norm, optim.safe_root_mean_squares])
def test_gradients_are_zero_at_and_below_the_minimum(f: Any) -> None:
    slope = fxflow.jit(fxflow.grad(f))
    for x, least in ((np.zeros(2), 0.0), (X, 6.0), (np.zeros(2), 1e-3)):
        assert slope(np.float32(x), least).tolist() == [0, 0]
    factor = 1.0 if f is optim.safe_norm else 0.5**0.5
    np.testing.assert_allclose(slope(X, 1.0), factor * X / 5, rtol=1e-6)
    assert f(X.astype("float16"), 1.0).dtype == "float16"
    rows = fxflow.vmap(lambda x: f(x, 1.0))(M)
    np.testing.assert_allclose(rows, [f(x, 1.0) for x in M], rtol=1e-6)


def test_scale_gradient_scales_derivatives_only() -> None:
    def loss(x: Any, scale: Any) -> Any:
        return fnp.sum(optim.scale_gradient({"x": x, "n": 3}, scale)["x"] ** 2)

    both = fxflow.jit(fxflow.grad(loss, (0, 1)))(X, np.float32(3))
    assert both[0].tolist() == [18, 24]
    assert float(both[1]) == 0
    assert float(loss(X, 0.0)) == 25
    half = optim.scale_gradient(X.astype("float16"), 2.0)
    assert half.dtype == "float16"
    out, tangent = fxflow.jvp(lambda x: optim.scale_gradient(x, 2.0), (X,), (X,))
    assert (out.tolist(), tangent.tolist()) == ([3, 4], [6, 8])


def test_narrow_dtypes_are_computed_in_float32() -> None:
    assert numerics.widened(fnp.ones(2, "float8_e4m3fn")).dtype == "float32"
    for kept in (1.0, fnp.ones(2), fnp.ones(2, int), fnp.ones(2, complex)):
        assert numerics.widened(kept) is kept
    shaped = fxflow.ShapeDtypeStruct((2,), "bfloat16")
    assert numerics.widened(shaped).dtype == "float32"
    halves = fnp.full(4, 300.0, "float16")
    assert float(optim.safe_norm(halves, 0.0)) == 600.0
    assert float(optim.safe_root_mean_squares(halves, 0.0)) == 300.0


def test_roots_and_quotients_are_finite_at_zero() -> None:
    root, slope = fxflow.value_and_grad(numerics.positive_root)(0.0)
    assert 0 < float(root) < 1e-18
    assert np.isfinite(float(slope))
    found, slopes = fxflow.value_and_grad(numerics.quotient, (0, 1))(0.0, 0.0)
    assert (float(found), *map(float, slopes)) == (0.0, 0.0, 0.0)
    assert float(numerics.quotient(3.0, -2.0)) == -1.5
