"""Normalization over groups of features: kernels against the plain formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, nn
from fxflow.kernels.gallery import groups as module

RNG = np.random.default_rng(0)


def example(*shape: int, dtype: str = "float32") -> tuple[Any, Any]:
    features = shape[-1]
    params = {
        "scale": fnp.asarray(RNG.normal(size=features).astype(np.float32)),
        "bias": fnp.asarray(RNG.normal(size=features).astype(np.float32)),
    }
    return params, fnp.asarray(RNG.normal(2, 3, size=shape)).astype(dtype)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST", 0)


def both(monkeypatch: pytest.MonkeyPatch, f: Any, *args: Any) -> Any:
    """Returns what a function gives with the kernel, and without."""
    found = fxflow.jit(lambda *given: f(*given))(*args)
    monkeypatch.setattr(module, "_LEAST", 1 << 30)
    return found, fxflow.jit(lambda *given: f(*given))(*args)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [1, 4, 12])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_values_are_those_of_the_operations(
    monkeypatch: pytest.MonkeyPatch, count: int, dtype: str
) -> None:
    params, x = example(3, 5, 2, 12, dtype=dtype)
    found, expected = both(
        monkeypatch, lambda p, x: nn.group_norm(p, x, count, epsilon=0.1), params, x
    )
    assert found.aval == expected.aval
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [2, None])
def test_derivatives_are_those_of_the_operations(
    monkeypatch: pytest.MonkeyPatch, count: int | None
) -> None:
    def norm(params: Any, x: Any) -> Any:
        if count is None:
            return nn.instance_norm(params, x)
        return nn.group_norm(params, x, count)

    def slopes(params: Any, x: Any) -> Any:
        loss = lambda params, x: fnp.sum(fnp.sin(norm(params, x)))
        first = fxflow.grad(loss, argnums=(0, 1))
        second = fxflow.grad(lambda x: fnp.sum(first(params, x)[1] ** 2))(x)
        return first(params, x), second, fxflow.jvp(norm, (params, x), (params, x))[1]

    found, expected = both(monkeypatch, slopes, *example(2, 6, 8))
    leaves = map(fxflow.tree.leaves, (found, expected))
    for a, b in zip(*leaves, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


@pytest.mark.usefixtures("small")
def test_the_kernel_agrees_with_its_reference() -> None:
    params, x = example(2, 3, 8)
    norm = lambda params, x: nn.group_norm(params, x, 4)
    kernels.check(norm, params, x)
    assert "on a CPU: compiled" in kernels.explain(norm, params, x)
    many = fnp.stack([x, 2 * x])
    mapped = fxflow.vmap(norm, in_axes=(None, 0))(params, many)
    np.testing.assert_allclose(mapped[1], norm(params, 2 * x), rtol=1e-5, atol=1e-5)


def test_where_it_is_faster() -> None:
    def is_kernel(*shape: int, dtype: str = "float32") -> bool:
        kind = fxflow.ShapeDtypeStruct(shape, dtype)
        params = {
            k: fxflow.ShapeDtypeStruct(shape[-1:], "float32") for k in ("scale", "bias")
        }
        norm = fxflow.make_graph(nn.instance_norm)(params, kind)
        return "kernel_call" in norm.graph.facts.names

    assert is_kernel(8, 32, 32, 64) and is_kernel(8, 32, 32, 64, dtype="bfloat16")
    for shape in ((8, 32, 32, 4), (1, 64, 64, 64), (8, 4, 4, 64), (2, 512, 64, 64)):
        assert not is_kernel(*shape)
    assert not is_kernel(1 << 13, 16)
    with fxflow.config.override(x64=True):
        assert not is_kernel(8, 32, 32, 64, dtype="float64")


def test_a_large_array_eagerly() -> None:
    params, x = example(4, 16, 32, 32)
    wide = np.asarray(x, np.float64).reshape(4, 512, 8, 4)
    centred = wide - wide.mean((1, 3), keepdims=True)
    expected = centred / np.sqrt((centred**2).mean((1, 3), keepdims=True) + 1e-5)
    expected = expected.reshape(x.shape) * np.asarray(params["scale"])
    found = nn.group_norm(params, x, 8)
    np.testing.assert_allclose(found, expected + np.asarray(params["bias"]), atol=1e-5)
