"""Products with weights of 4 bits: kernels against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, kernels
from fxflow.kernels.gallery import int4 as module
from fxflow.kernels.gallery.int4 import high, low, scaled_product

RNG = np.random.default_rng(0)


def example(m: int, k: int, n: int, groups: int = 1) -> tuple[Any, ...]:
    x = RNG.normal(size=(m, k)).astype(np.float32)
    w = RNG.integers(-128, 128, ((k + 1) // 2, n)).astype(np.int8)
    scale = RNG.random((groups, n)).astype(np.float32)
    return x, w, scale, RNG.integers(-8, 8, (groups, n)).astype(np.float32)


def expected(x: Any, w: Any, scale: Any, zero: Any = 0) -> Any:
    codes = np.stack([((w.astype(int) & 15) ^ 8) - 8, w.astype(int) >> 4], 1)
    codes = codes.reshape(len(scale), -1, w.shape[1])
    floats = (codes - np.broadcast_to(zero, scale.shape)[:, None]) * scale[:, None]
    return x.astype(np.float64) @ floats.reshape(-1, w.shape[1])[: x.shape[1]]


@pytest.mark.parametrize("rows", [0, 1, 3, 5, 64, 65])
@pytest.mark.parametrize("sizes", [(256, 512, 4), (250, 640, 25), (333, 401), (3, 5)])
def test_products(rows: int, sizes: Any) -> None:
    *args, zero = example(rows, *sizes)
    for more in ((), (zero,)):
        f = fxflow.jit(lambda *args: scaled_product(*args))
        found = f(*map(fnp.asarray, (*args, *more)))
        np.testing.assert_allclose(found, expected(*args, *more), 1e-4, 1e-3)


def test_products_without_a_compiler() -> None:
    args = example(2, 256, 512, 8)
    with config.override(passes="none"):
        found = fxflow.jit(lambda *args: scaled_product(*args))(*map(fnp.asarray, args))
    np.testing.assert_allclose(found, expected(*args), 1e-4, 1e-3)


def test_bytes() -> None:
    pairs = np.arange(-128, 128).astype(np.int8)
    assert list(low(fnp.asarray(pairs))[:17]) == [*range(8), *range(-8, 0), 0]
    np.testing.assert_array_equal(high(fnp.asarray(pairs)), pairs.astype(int) // 16)


@pytest.mark.parametrize("rows", [1, 5])
def test_kernels_agree_with_their_references(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(module, "_LEAST", 0)
    args = [fnp.asarray(a) for a in example(rows, 12, 6, 2)]
    kernels.check(scaled_product, *args)
    name = "int4_rows: 1 program" if rows == 1 else "int4: 1 program"
    text = kernels.explain(scaled_product, *args)
    assert name in text and "compiled" in text


@pytest.mark.parametrize("rows", [2, 9])
def test_derivatives(rows: int) -> None:
    x, w, scale, zero = map(fnp.asarray, example(rows, 512, 256, 8))
    codes = fnp.stack([low(w), high(w)], 1).reshape(8, 64, 256)

    def loss(f: Any) -> Any:
        return fxflow.grad(lambda *a: fnp.sum(fnp.sin(f(*a) / 100)), argnums=(0, 1, 2))(
            x, scale, zero
        )

    slopes = loss(lambda x, s, z: scaled_product(x, w, s, z))
    want = loss(
        lambda x, s, z: x @ ((codes - z[:, None]) * s[:, None]).reshape(512, 256)
    )
    for found, other in zip(slopes, want, strict=True):
        np.testing.assert_allclose(found, other, 1e-3, 1e-3)


def test_half_precision() -> None:
    x, w, scale, zero = example(3, 256, 512, 8)
    x = fnp.asarray(x, "bfloat16")
    found = scaled_product(x, *map(fnp.asarray, (w, scale, zero)))
    assert found.dtype == "bfloat16"
    np.testing.assert_allclose(
        np.asarray(found, np.float32),
        expected(np.asarray(x, np.float32), w, scale, zero), 0.01, 0.5,
    )  # fmt: skip
