"""Rows and columns of sparse arrays."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.sparse.selecting import lookup, positions, selection

ARRAY = sparse.csr_array(fnp.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0]]))


def test_positions_of_an_index() -> None:
    assert positions(slice(None, None, -1), 3).tolist() == [2, 1, 0]
    assert positions(-1, 3) == 2 and positions([-1, 0], 3).tolist() == [2, 0]
    assert positions(np.array([True, False, True]), 3).tolist() == [0, 2]
    assert positions([], 3).tolist() == []
    with pytest.raises(IndexError, match="mask of shape"):
        positions([True], 3)


def test_repeated_columns() -> None:
    way = selection(ARRAY.pattern, np.array([2, 0]), np.array([1, 0, 1]))
    assert way.pattern.shape == (2, 3)
    assert way.pattern.arrays["indices"].tolist() == [0, 1, 2, 1]
    assert way.source.tolist() == [4, 3, 4, 0]


def test_elements_without_an_entry_are_behind_the_last() -> None:
    found = lookup(ARRAY.pattern, np.array([0, 0, 2]), np.array([1, 2, 1]))
    assert found.tolist() == [5, 1, 4]
    empty = sparse.csr_array((2, 2)).pattern
    assert lookup(empty, np.array([0]), np.array([1])).tolist() == [0]


def test_traced_indices_are_refused() -> None:
    with pytest.raises(ArgumentError, match="must be known when tracing"):
        fxflow.jit(lambda i: ARRAY[i])(1)


def test_gradient_of_a_part() -> None:
    got = fxflow.grad(lambda a: (a[[2, 2]] ** 2).sum() + a[0, 2])(ARRAY)
    assert got.values.tolist() == [0, 1, 0, 16, 20]


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "bsr", "dia"])
def test_resize(format: str) -> None:
    held = sparse.csr_array(np.arange(1.0, 25).reshape(4, 6)).asformat(format)
    for shape in ((4, 6), (2, 6), (6, 8), (3, 9), (0, 4)):
        want = held.to_scipy().tocsr()
        want.resize(*shape)
        for got in (
            held.resize(shape),
            fxflow.jit(lambda a, s=shape: a.resize(*s))(held),
        ):
            np.testing.assert_array_equal(got.todense(), want.toarray())
            assert got.shape == shape and got.format == format
    blocks = held.tobsr((2, 3))
    assert blocks.resize(2, 9).format == "bsr" and blocks.resize(3, 9).format == "csr"
    slope = fxflow.grad(lambda a: (a.resize(2, 3) ** 2).sum())(held.tocsr())
    want = np.zeros((4, 6))
    want[:2, :3] = 2 * np.asarray(held.todense())[:2, :3]
    np.testing.assert_array_equal(slope.todense(), want)
    for shape in ((2,), (2, -1), (2, 1.5)):
        with pytest.raises(ShapeError, match="resize: shape must be two numbers"):
            held.resize(shape)
