"""Products of matrices in Triton's IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.lax.kernels.errors import UnsupportedError
from tests.lax.kernels.triton_samples import module_of, same, whole

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 7)).astype(np.float32)
N = rng.integers(-9, 9, (20, 40)).astype(np.int8)


def of(body: Any, *args: Any, rtol: float = 1e-5) -> str:
    f = whole(body, fxflow.eval_shape(body, *args))
    same(f, *args, rtol=rtol)
    return module_of(f, *args).text


def test_products_of_float32_are_exact() -> None:
    text = of(lambda x, y: kernels.dot(x, y.T), X, X + 1)
    assert "inputPrecision = ieee : tensor<16x16xf32>" in text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_sixteen_bits_are_summed_in_float32(dtype: str) -> None:
    text = of(lambda x, y: kernels.dot(x, y.T), *(X.astype(dtype),) * 2, rtol=1e-2)
    kind = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    assert f"16x16x{kind}> -> tensor<16x16xf32>" in text


def test_products_of_int8() -> None:
    dot = lambda x, y: kernels.dot(x, y)
    assert "-> tensor<32x16xi32>" in of(dot, N, N.T[:, :3])
    assert "tt.dot" not in of(dot, N[:, :5], N[:5, :3])


def test_products_with_vectors_are_sums() -> None:
    for body in (
        lambda x: kernels.dot(x, x[0]),
        lambda x: kernels.dot(x[:1], x.T),
        lambda x: kernels.dot(x[:, :1], x[:1]),
    ):
        assert "tt.dot" not in of(body, X)


def test_stacks_of_matrices() -> None:
    x = rng.normal(size=(2, 3, 4)).astype(np.float32)
    of(lambda x: fnp.einsum("bij,bkj->bik", x, x), x)
    of(lambda x: fnp.einsum("bij,bkj->bik", x, x), x[:1])


def test_nan_in_the_padding_takes_no_part() -> None:
    # Zeros behind the end become infinite, and infinity times zero NaN.
    of(lambda x, y: kernels.dot(1 / x, (1 / y).T), X, X)


def test_what_has_no_rule() -> None:
    with fxflow.config.override(x64=True):
        x = X.astype(np.float64)
        with pytest.raises(UnsupportedError, match="dot_general of float64"):
            module_of(whole(lambda x: kernels.dot(x, x.T), np.zeros((5, 5))), x)
