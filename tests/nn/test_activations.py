"""Activations: values and slopes as JAX's, kinks, dtypes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.nn import golden

POINTS = np.array(
    [-30, -6, -3.5, -3, -1, -0.5, -0.0, 0, 0.25, 1, 2, 3, 6, 7, 30], np.float32
)
NAMES = [
    "identity",
    "relu",
    "relu6",
    "sigmoid",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "soft_sign",
    "silu",
    "mish",
    "log_sigmoid",
    "leaky_relu",
    "hard_tanh",
    "hard_sigmoid",
    "hard_silu",
    "elu",
    "celu",
    "selu",
    "gelu",
    "squareplus",
]


@pytest.mark.parametrize("name", NAMES)
def test_as_jax(name: str) -> None:
    function = getattr(nn, name)
    golden.near(function(POINTS), golden.array(name))
    slopes = fxflow.vmap(fxflow.grad(function))(POINTS)
    golden.near(slopes, golden.array(name, "slopes"))


def test_exact_gelu_as_jax() -> None:
    exact = lambda x: nn.gelu(x, approximate=False)
    golden.near(exact(POINTS), golden.array("gelu_exact"))
    slopes = fxflow.vmap(fxflow.grad(exact))(POINTS)
    golden.near(slopes, golden.array("gelu_exact", "slopes"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_floats_keep_their_dtype(name: str, dtype: str) -> None:
    x = fxflow.numpy.asarray(POINTS, dtype)
    out = getattr(nn, name)(x)
    assert out.dtype == dtype
    assert out.shape == x.shape
    tol = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 2e-6}[dtype]
    golden.near(out, golden.array(name), tol)


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays(name: str) -> None:
    assert math.isnan(float(getattr(nn, name)(math.nan)))


@pytest.mark.parametrize("name", ["relu", "hard_tanh", "identity"])
def test_integers_stay(name: str) -> None:
    out = getattr(nn, name)(np.array([-2, 0, 3]))
    assert out.dtype == "int32"


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu", "elu", "softplus", "mish"])
def test_integers_become_floats(name: str) -> None:
    assert getattr(nn, name)(np.array([-2, 0, 3])).dtype == "float32"


@pytest.mark.parametrize("name", NAMES)
def test_jit_and_lists(name: str) -> None:
    function = getattr(nn, name)
    np.testing.assert_allclose(
        fxflow.jit(function)(POINTS), function(POINTS), rtol=2e-6, atol=2e-6
    )
    with pytest.raises(ArgumentError):
        function([1.0, 2.0])


def test_relu_costs_two_operations() -> None:
    graph = fxflow.make_graph(nn.relu)(POINTS)
    assert len(graph.nodes) <= 2


def test_parameters_broadcast() -> None:
    slopes = np.array([[0.5], [2.0]], np.float32)
    x = np.array([-1.0, 1.0], np.float32)
    np.testing.assert_allclose(nn.leaky_relu(x, slopes), [[-0.5, 1], [-2, 1]])
    for function in (nn.elu, nn.celu, nn.squareplus):
        assert function(x, slopes).shape == (2, 2)


def test_glu() -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6) / 10
    want = x[:, :3] / (1 + np.exp(-x[:, 3:]))
    np.testing.assert_allclose(nn.glu(x), want, rtol=1e-6)
    assert nn.glu(x, axis=0).shape == (1, 6)
    with pytest.raises(
        ShapeError, match=r"glu: axis 0 of f32\[3,2\] must have an even"
    ):
        nn.glu(np.ones((3, 2), np.float32), 0)
    with pytest.raises(AxisError, match=r"glu: there is no axis 2 in f32\[2,6\]"):
        nn.glu(x, 2)


def test_log1mexp() -> None:
    x = np.array([1e-6, 0.1, 0.6, 0.7, 2.0, 40.0])
    want = np.where(x < 1, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))
    np.testing.assert_allclose(nn.log1mexp(x), want, rtol=3e-6)
    assert float(nn.log1mexp(0.0)) == -math.inf
    slopes: Callable[..., Any] = fxflow.vmap(fxflow.grad(nn.log1mexp))
    np.testing.assert_allclose(slopes(x.astype(np.float32)), 1 / np.expm1(x), rtol=2e-5)
    assert float(fxflow.grad(nn.log1mexp)(0.0)) == math.inf


def test_keys_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"silu: takes numbers, got key<fry>\[\]"):
        nn.silu(fxflow.random.key(0))


def test_squareplus_of_negative_numbers_does_not_cancel() -> None:
    for dtype in ("float16", "float32"):
        x = np.array([-100.5, -30, -2, 0, 3], dtype)
        wide = x.astype(float)
        expected = (wide + np.sqrt(wide**2 + 4)) / 2
        for run in (nn.squareplus, fxflow.jit(nn.squareplus)):
            np.testing.assert_allclose(run(x), expected, rtol=2e-3)
    np.testing.assert_allclose(
        fxflow.grad(nn.squareplus)(-100.0), (1 - 100 / np.sqrt(10004)) / 2, rtol=1e-4
    )


def test_hard_tanh_of_unsigned_integers() -> None:
    x = np.array([0, 5], np.uint8)
    for run in (nn.hard_tanh, fxflow.jit(nn.hard_tanh)):
        assert run(x).tolist() == [0, 1] and run(x).dtype == np.uint8


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "name", ["gelu", "soft_sign", "squareplus", "softplus", "silu"]
)
def test_far_from_zero_nothing_cancels_or_overflows(name: str, dtype: str) -> None:
    """Values and two derivatives are those of 64 bits, up to rounding."""
    f = getattr(nn, name)
    info = fnp.finfo(dtype)
    x = np.array([-300, -40, -9, -5, -1, 1, 5, 9, 40, 300]).astype(fnp.dtype(dtype))
    eps, least = float(info.eps), 8 * float(info.tiny)
    for g in (f, fxflow.grad(f), fxflow.grad(fxflow.grad(f))):
        got = np.asarray(fxflow.jit(fxflow.vmap(g))(x)).astype("f8")
        with fxflow.config.override(x64=True):
            want = np.asarray(fxflow.vmap(g)(x.astype("f8")))
        # An exponential of a number of size x has that many roundings.
        share = eps * (30 + 100 * np.abs(x.astype("f8")))
        assert (np.abs(got - want) <= share * np.abs(want) + least).all()
