"""One-hot vectors."""

import numpy as np
import pytest

import fxflow
from fxflow import nn
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError


def test_values_and_places() -> None:
    x = np.array([[0, 2], [3, -1]])
    want = np.zeros((2, 2, 3), np.float32)
    want[0, 0, 0] = want[0, 1, 2] = 1
    np.testing.assert_array_equal(nn.one_hot(x, 3), want)
    for axis in (0, 1, 2, -1, -3):
        out = nn.one_hot(x, 3, axis=axis, dtype="int8")
        assert out.dtype == "int8"
        np.testing.assert_array_equal(np.moveaxis(np.asarray(out), axis, -1), want)


def test_scalars_bools_and_floats_are_encoded() -> None:
    assert nn.one_hot(2, 4).tolist() == [0, 0, 1, 0]
    assert nn.one_hot(np.array(True), 2).tolist() == [0, 1]
    assert nn.one_hot(np.array([1.0, 1.5]), 2).tolist() == [[0, 1], [0, 0]]
    assert nn.one_hot(np.array([1, 0], np.uint8), 2, dtype=bool).dtype == "bool"
    assert nn.one_hot(np.zeros((0,), np.int32), 3).shape == (0, 3)


def test_under_vmap() -> None:
    x = np.arange(6).reshape(2, 3)
    out = fxflow.jit(fxflow.vmap(lambda row: nn.one_hot(row, 6)))(x)
    np.testing.assert_array_equal(out, nn.one_hot(x, 6))


def test_invalid_indices_classes_and_axes_are_refused() -> None:
    with pytest.raises(AxisError, match=r"the result of i32\[2\] has no axis 2"):
        nn.one_hot(np.arange(2), 3, axis=2)
    with pytest.raises(ShapeError, match="num_classes must not be negative, got -1"):
        nn.one_hot(np.arange(2), -1)
    with pytest.raises(DtypeError, match=r"indices must be real numbers, got c64\[1\]"):
        nn.one_hot(np.ones(1, np.complex64), 2)
    with pytest.raises(ArgumentError, match=r"one_hot: x is .* of type list"):
        nn.one_hot([1], 2)
