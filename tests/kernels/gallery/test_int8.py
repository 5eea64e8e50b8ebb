"""Products with weights of one byte: kernels against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.kernels.gallery import int8 as module
from fxflow.kernels.gallery.int8 import scaled_product

RNG = np.random.default_rng(0)


def example(m: int, k: int, n: int) -> tuple[Any, Any, Any]:
    x = RNG.normal(size=(m, k)).astype(np.float32)
    w = RNG.integers(-128, 128, (k, n)).astype(np.int8)
    return x, w, RNG.random(n).astype(np.float32)


@pytest.mark.parametrize("rows", [0, 1, 5, 64, 65])
@pytest.mark.parametrize("sizes", [(256, 256), (200, 333), (3, 5)])
def test_products(rows: int, sizes: Any) -> None:
    x, w, scale = example(rows, *sizes)
    expected = (x.astype(np.float64) @ w) * scale
    for f in (scaled_product, fxflow.jit(lambda *args: scaled_product(*args))):
        np.testing.assert_allclose(f(*map(fnp.asarray, (x, w, scale))), expected,
                                   1e-4, 1e-2)  # fmt: skip


@pytest.mark.parametrize("rows", [1, 5])
def test_kernels_agree_with_their_references(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(module, "_LEAST", 0)
    args = [fnp.asarray(a) for a in example(rows, 4, 6)]
    kernels.check(scaled_product, *args)
    name = "int8_rows: 1 program" if rows == 1 else "int8: 1 program"
    assert name in kernels.explain(scaled_product, *args)


@pytest.mark.parametrize("rows", [2, 9])
def test_derivatives(rows: int) -> None:
    x, w, scale = map(fnp.asarray, example(rows, 256, 256))
    slopes = fxflow.grad(
        lambda x, s: fnp.sum(fnp.sin(scaled_product(x, w, s) / 100)), argnums=(0, 1)
    )(x, scale)
    expected = fxflow.grad(
        lambda x, s: fnp.sum(fnp.sin((x @ w.astype("float32")) * s / 100)),
        argnums=(0, 1),
    )(x, scale)
    for found, want in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(found, want, 1e-3, 1e-3)


def test_half_precision() -> None:
    x, w, scale = map(fnp.asarray, example(3, 256, 256))
    found = scaled_product(x.astype("bfloat16"), w, scale)
    assert found.dtype == "bfloat16"
    expected = (np.asarray(x, np.float64) @ np.asarray(w)) * np.asarray(scale)
    np.testing.assert_allclose(np.asarray(found, np.float32), expected, 0.05, 10)
