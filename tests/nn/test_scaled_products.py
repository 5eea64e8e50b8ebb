"""Products of numbers in few bits. What is stored was compared with JAX's numbers."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 64)).astype(np.float32)
Y = RNG.normal(size=(2, 8, 64)).astype(np.float32)
NUMBERS = (((2,), (2,)), ((0,), (0,)))


def stored(x: Any, mode: str) -> Any:
    """What a block is rounded to, in NumPy."""
    size, kind, most = {
        "mxfp8": (32, ml_dtypes.float8_e4m3fn, 448.0),
        "nvfp4": (16, ml_dtypes.float4_e2m1fn, 6.0),
    }[mode]
    blocks = x.reshape(*x.shape[:-1], -1, size)
    scale = np.abs(blocks).max(-1, keepdims=True) / most
    scale = np.where(scale == 0, 1, scale)  # of blocks of zeros
    if mode == "mxfp8":
        scale = np.exp2(np.ceil(np.log2(scale)))
    else:
        scale = scale.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    parts = np.clip(blocks / scale, -most, most).astype(kind).astype(np.float32)
    return (parts * scale).reshape(x.shape)


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_stored_and_multiplied(mode: str) -> None:
    config = nn.get_scaled_dot_general_config(mode)
    product = fxflow.jit(
        lambda x, y: nn.scaled_dot_general(x, y, NUMBERS, configs=[config] * 3)
    )
    expected = np.einsum("bmk,bnk->bmn", stored(X, mode), stored(Y, mode))
    np.testing.assert_allclose(product(X, Y), expected, 1e-4, 1e-4)
    assert np.abs(expected - np.einsum("bmk,bnk->bmn", X, Y)).max() < 5
    # Derivatives are products of what is stored along their own sums.
    g = np.ones((2, 4, 8), np.float32)
    by_x, by_y = fxflow.vjp(product, X, Y)[1](fnp.asarray(g))
    assert by_x.shape == X.shape and by_y.shape == Y.shape
    padded = np.concatenate([np.swapaxes(Y, 1, 2), np.zeros((2, 64, 24))], 2)
    rows = stored(padded.astype(np.float32), mode)[..., :8]
    # The cotangent: ones in blocks of 8 numbers and zeros.
    one = stored(np.ones((1, 32), np.float32), mode)[0, 0]
    np.testing.assert_allclose(by_x[0, 0], one * rows[0].sum(1), 1e-4, 1e-4)
    # Zeros stay zeros, and odd lengths are filled up.
    none = product(np.zeros_like(X)[..., :50], Y[..., :50])
    assert not none.any()


def test_axes_in_any_order() -> None:
    config = nn.get_scaled_dot_general_config("mxfp8")
    turned = (((0, 2), (1, 0)), ((), ()))
    x, y = fnp.asarray(X), fnp.asarray(np.transpose(X, (2, 0, 1)))
    got = nn.scaled_dot_general(x, y, turned, configs=[config] * 3)
    np.testing.assert_allclose(got, np.einsum("amb,ban->mn", X, y), 0.2, 3.0)
    assert got.shape == (4, 4)
    same = nn.scaled_dot_general(X, Y, NUMBERS, fnp.bfloat16)
    assert same.dtype == "bfloat16"


def test_global_scale() -> None:
    one, two = (
        nn.get_scaled_dot_general_config("nvfp4", s) for s in (None, fnp.float32(0.5))
    )
    a, b = (nn.scaled_dot_general(X, Y, NUMBERS, configs=[c] * 3) for c in (one, two))
    assert one.global_scale.shape == (1,) and one.block_size == 16
    np.testing.assert_allclose(a, b, 0.3, 3.0)


def test_scaled_matmul() -> None:
    scale_x = np.full((2, 4, 2), 2, np.float32)
    scale_y = np.full((2, 8, 2), 3, np.float32)
    got = nn.scaled_matmul(X, Y, scale_x, scale_y)
    np.testing.assert_allclose(got, 6 * np.einsum("bmk,bnk->bmn", X, Y), 1e-4, 1e-4)
    short = nn.scaled_matmul(X, Y, scale_x, scale_y, preferred_element_type=fnp.float16)
    assert short.dtype == np.float16


def test_invalid_configurations_and_operands_are_refused() -> None:
    with pytest.raises(ArgumentError, match="mode"):
        nn.get_scaled_dot_general_config("fp3")
    config = nn.get_scaled_dot_general_config("mxfp8")
    with pytest.raises(ArgumentError, match="three"):
        nn.scaled_dot_general(X, Y, NUMBERS, configs=[config])
    with pytest.raises(ArgumentError, match="implementation"):
        nn.scaled_dot_general(X, Y, NUMBERS, implementation="own")
    with pytest.raises(DtypeError, match="floats"):
        nn.scaled_dot_general(X.astype(int), Y, NUMBERS)
    ones = fnp.ones((2, 4, 2))
    with pytest.raises(ShapeError, match="three axes"):
        nn.scaled_matmul(X[0], Y[0], ones, ones)
    with pytest.raises(ShapeError, match="blocks"):
        nn.scaled_matmul(X, Y, ones, fnp.ones((2, 8, 4)))
