"""Convolutions said in terms of the general one."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import ArgumentError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 5, 6, 3)).astype("f4")
W = RNG.normal(size=(3, 2, 3, 4)).astype("f4")


def test_shape_functions_agree_with_convolutions() -> None:
    numbers = ("NHWC", "HWIO", "NHWC")
    shapes = X.shape, W.shape
    got = lax.conv_general_shape_tuple(*shapes, (1, 2), "SAME", numbers)
    assert got == (2, 5, 3, 4)
    got = lax.conv_transpose_shape_tuple(*shapes, (2, 1), "VALID", numbers)
    assert got == lax.conv_transpose(X, W, (2, 1), "VALID", None, numbers).shape
    assert lax.conv_shape_tuple((2, 3, 8), (4, 3, 3), (2,), "SAME", 2) == (1, 4, 4)


def test_plain_ones() -> None:
    x, w = X.transpose(0, 3, 1, 2).copy(), W.transpose(3, 2, 0, 1).copy()
    expected = np.asarray(lax.conv_general_dilated(x, w, (1, 2), "SAME"))
    np.testing.assert_allclose(lax.conv(x, w, (1, 2), "SAME"), expected)
    got = lax.conv_with_general_padding(x, w, (1, 2), "SAME", None, None)
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 2)])
def test_transpose_kernel_makes_it_the_derivative(padding: str, strides) -> None:
    """⟨conv(u), v⟩ = ⟨u, conv_transpose(v)⟩ where the convolution fits evenly."""
    numbers = ("NHWC", "HWIO", "NHWC")
    v = RNG.normal(size=(1, 3, 3, 4)).astype("f4")
    back = lax.conv_transpose(
        v, W, strides, padding, dimension_numbers=numbers, transpose_kernel=True
    )
    u = RNG.normal(size=back.shape).astype("f4")
    forward = lax.conv_general_dilated(
        u, W, strides, padding, dimension_numbers=numbers
    )
    assert forward.shape == v.shape
    left = np.vdot(np.asarray(forward), v)
    np.testing.assert_allclose(left, np.vdot(u, np.asarray(back)), rtol=1e-3, atol=1e-3)


def test_consistent_padding_is_that_of_the_convolution() -> None:
    valid = lax.conv_transpose(X, W, (1, 1), "VALID")
    got = lax.conv_transpose(
        X, W, (1, 1), [(0, 0), (0, 0)], use_consistent_padding=True
    )
    np.testing.assert_allclose(got, valid, rtol=1e-6)
    inner = lax.conv_transpose(X, W, (1, 1), [(0, 0), (0, 0)])
    assert inner.shape == (2, 3, 5, 4)


def test_patches_hold_each_window() -> None:
    x = X.transpose(0, 3, 1, 2).copy()
    out = np.asarray(lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "VALID"))
    assert out.shape == (2, 18, 4, 2)
    window = x[1, :, 2:4, 2:5].reshape(-1)
    np.testing.assert_array_equal(out[1, :, 2, 1], window)


def test_local_kernels_differ_from_place_to_place() -> None:
    x = X.transpose(0, 3, 1, 2).copy()
    w = RNG.normal(size=(4, 12, 4, 5)).astype("f4")
    out = np.asarray(lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (2, 2)))
    patches = np.asarray(lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"))
    expected = np.einsum("oihw,nihw->nohw", w, patches)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_unknown_padding_and_missing_dimension_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="conv_transpose: padding must be"):
        lax.conv_transpose(X, W, (1, 1), "FULL")
    with pytest.raises(ArgumentError, match="give dimension_numbers"):
        lax.conv_transpose(X[..., None, None], W[..., None, None], (1,) * 4, "SAME")
