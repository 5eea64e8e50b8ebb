"""Means over noise: compared with optax 0.2.8 for the same keys; exact derivatives."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import nn, random
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, DtypeError
from fxflow.optim.perturbations import Gumbel, Normal, make_perturbed_fun

KEY = random.key(3)
X = np.array([1.0, -2.0, 0.5], np.float32)

# The gradients of squares, from 4 samples with sigma 0.5.
NORMAL = [[1.0446918, -0.1702387, 0.823954], [0.3231679, -1.847558, -2.366152],
          [0.644585, 1.655671, 6.281103]]  # fmt: skip
PLAIN = [[0.410506, 0.3808717, 3.300425], [-2.213575, 0.356883, 7.539729],
         [0.486038, 1.793448, 6.9002]]  # fmt: skip
GUMBEL = [[1.132377, 0.186138, 0.920584], [0.333863, -1.90818, -1.950142],
          [3.155324, 4.709519, 8.157122]]  # fmt: skip
HESSIAN = [[-2.891074, 0.599953, 5.937944], [0.599953, -3.208426, -0.380486],
           [5.937944, -0.380486, 17.499716]]  # fmt: skip


def squares(x: Any) -> Any:
    return x**2


def test_numbers_match_optax() -> None:
    f = make_perturbed_fun(squares, 4, 0.5, Normal())
    want = [0.8400216, 3.5846503, 1.6032503]
    np.testing.assert_allclose(fxflow.jit(f)(KEY, X), want, 1e-5)
    for jacobian in (fxflow.jacrev, fxflow.jacfwd):
        np.testing.assert_allclose(jacobian(f, 1)(KEY, X), NORMAL, 1e-4, 1e-5)
    second = fxflow.hessian(lambda x: f(KEY, x).sum())(X)
    np.testing.assert_allclose(second, HESSIAN, 1e-4, 1e-5)
    plain = make_perturbed_fun(squares, 4, 0.5, Normal(), use_baseline=False)
    np.testing.assert_allclose(fxflow.jacrev(plain, 1)(KEY, X), PLAIN, 1e-4, 1e-5)
    g = make_perturbed_fun(squares, 4, 0.5)
    np.testing.assert_allclose(g(KEY, X), [1.2828541, 2.7718213, 4.4286566], 1e-5)
    np.testing.assert_allclose(fxflow.jacrev(g, 1)(KEY, X), GUMBEL, 1e-4, 1e-5)


def test_perturbed_functions_of_pytrees_match_optax() -> None:
    t = {"a": X, "b": np.array([[2.0]], np.float32)}
    f = make_perturbed_fun(
        lambda t: {"s": t["a"].sum() * t["b"][0, 0]}, 4, 0.5, Normal()
    )
    value, slope = fxflow.value_and_grad(lambda t: f(KEY, t)["s"])(t)
    np.testing.assert_allclose(value, -0.15970747, 1e-4)
    np.testing.assert_allclose(slope["a"], [1.7200935, 1.4501143, 6.08865], 1e-4)
    np.testing.assert_allclose(slope["b"], [[-2.6227188]], 1e-4)


def test_choice_with_gumbel_noise_is_a_softmax() -> None:
    f = make_perturbed_fun(lambda x: nn.one_hot(fnp.argmax(x), 3), 4000, 1.0)
    np.testing.assert_allclose(f(KEY, X), nn.softmax(X), atol=0.03)
    want = fxflow.jacrev(nn.softmax)(X)
    np.testing.assert_allclose(fxflow.jacrev(f, 1)(KEY, X), want, atol=0.05)


def test_densities_integrate_to_one() -> None:
    for noise in (Gumbel(), Normal()):
        x = np.linspace(-8, 20, 2001, dtype=np.float32)
        total = np.exp(np.asarray(noise.log_prob(x))).sum() * (x[1] - x[0])
        np.testing.assert_allclose(total, 1, atol=1e-3)
        assert noise.sample(KEY, (2,), "float16").dtype == "float16"


def test_invalid_counts_functions_and_dtypes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="num_samples must be at least 1, got 0"):
        make_perturbed_fun(squares, 0)
    with pytest.raises(ArgumentError, match="expected a function, got 3"):
        make_perturbed_fun(3)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match=r"must be float arrays, got i32\[3\]"):
        make_perturbed_fun(squares, 4)(KEY, np.arange(3, dtype="int32"))
