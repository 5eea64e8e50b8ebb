"""Ragged arrays are made from every form, and joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import ragged
from fxflow.errors import ArgumentError, ShapeError

ROWS = [[1.0, 2.0], [], [3.0, 4.0, 5.0]]
X = ragged.array(ROWS, capacity=8)


def test_of_rows() -> None:
    assert X.tolist() == ROWS and X.capacity == 8
    assert ragged.array(ROWS).capacity == 5
    assert ragged.array(ROWS, "f8").dtype == np.float64
    wide = ragged.array([np.ones((2, 3)), np.zeros((0, 3)), np.ones((1, 3))])
    assert wide.shape == (3, None, 3)
    assert ragged.array([]).tolist() == []
    assert ragged.array([[], []]).tolist() == [[], []]


@pytest.mark.parametrize("jitted", [False, True])
def test_of_padded_masks_and_row_ids(jitted: bool) -> None:
    run: Any = fxflow.jit if jitted else lambda f: f
    padded = fnp.arange(12.0).reshape(3, 4)
    found = run(lambda x, n: ragged.from_padded(x, n, 7))(padded, fnp.array([1, 0, 3]))
    assert found.tolist() == [[0], [], [8, 9, 10]] and found.capacity == 7
    mask = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0]], bool)
    found = run(lambda x, m: ragged.from_mask(x, m, 5))(padded, mask)
    assert found.tolist() == [[0, 3], [], [9, 10]]
    assert ragged.from_mask(padded, mask).capacity == 12
    ids = fnp.array([0, 0, 2, 3, 3])
    found = run(lambda v, i: ragged.from_row_ids(v, i, 3))(fnp.arange(5), ids)
    assert found.tolist() == [[0, 1], [], [2]]


def test_pad_and_stack() -> None:
    padded, lengths = ragged.pad_and_stack(ROWS, 4, -1)
    np.testing.assert_array_equal(lengths, [2, 0, 3])
    expected = [[1, 2, -1, -1], [-1] * 4, [3, 4, 5, -1]]
    np.testing.assert_array_equal(padded, expected)
    assert ragged.pad_and_stack(ROWS)[0].shape == (3, 3)


@pytest.mark.parametrize("axis", [0, 1])
def test_concatenate(axis: int) -> None:
    y = ragged.array([[6.0], [7.0, 8.0], []], capacity=4)
    expected = ROWS + y.tolist()
    if axis:
        expected = [a + b for a, b in zip(ROWS, y.tolist(), strict=True)]
    assert ragged.concatenate([X, y], axis).tolist() == expected
    found = fxflow.jit(lambda x, y: ragged.concatenate([x, y], axis, 9))(X, y)
    assert found.tolist() == expected and found.capacity == 9


def test_gradient_of_joined_rows() -> None:
    def loss(x: Any) -> Any:
        both = ragged.concatenate([x, x * 2], 1)
        return fnp.sum((both * both).sum())

    found = fxflow.grad(loss, allow_int=True)(X)
    np.testing.assert_allclose(found.values[:5], 10 * X.values[:5])
    np.testing.assert_array_equal(found.values[5:], 0)


def test_bad_input() -> None:
    with pytest.raises(ShapeError, match="row 1"):
        ragged.array([[1.0], 2.0])
    with pytest.raises(ShapeError, match="first axis only"):
        ragged.array([np.ones((1, 2)), np.ones((1, 3))])
    with pytest.raises(ArgumentError, match="capacity of 2"):
        ragged.array(ROWS, capacity=2)
    with pytest.raises(ShapeError, match="from_padded"):
        ragged.from_padded(fnp.ones((2, 3)), [1])
    with pytest.raises(ArgumentError, match="3 values, got a length of 4"):
        ragged.from_padded(fnp.ones((2, 3)), [1, 4])
    with pytest.raises(ShapeError, match="from_mask"):
        ragged.from_mask(fnp.ones((2, 3)), fnp.ones((2, 3)))
    with pytest.raises(ArgumentError, match="capacity of 1"):
        ragged.from_mask(fnp.ones((2, 3)), fnp.ones((2, 3), bool), 1)
    with pytest.raises(ArgumentError, match="ascend"):
        ragged.from_row_ids(fnp.ones(2), [1, 0], 2)
    with pytest.raises(ShapeError, match="one row id"):
        ragged.from_row_ids(fnp.ones(2), [1], 2)
    with pytest.raises(ArgumentError, match="at least one"):
        ragged.pad_and_stack([])
    with pytest.raises(ArgumentError, match="axis=2"):
        ragged.concatenate([X], 2)
    with pytest.raises(ArgumentError, match="joins ragged"):
        ragged.concatenate([X, 3])  # type: ignore[list-item]
    with pytest.raises(ShapeError, match="as many rows"):
        ragged.concatenate([X, ragged.array([[1.0]])], 1)
