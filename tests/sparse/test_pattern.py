"""Patterns: one object for equal ones, plans made once, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.sparse.pattern import (
    FORMATS,
    Merge,
    Pattern,
    Regrouping,
    intersection,
    of_pair,
    pattern_of_keys,
    union,
)

COO = Pattern("coo", (3, 4), ([2, 0, 2, 2], [1, 3, 0, 1]), (4,))


def test_equal_patterns_are_one_object() -> None:
    again = Pattern("coo", [3, 4], (np.array([2, 0, 2, 2]), (1, 3, 0, 1)), [4])
    assert again is COO and copy.deepcopy(COO) is COO and copy.copy(COO) is COO
    assert pickle.loads(pickle.dumps(COO)) is COO
    other = Pattern("coo", (4, 4), ([2, 0, 2, 2], [1, 3, 0, 1]), (4,))
    assert other is not COO and other != COO
    assert repr(COO) == "Pattern(coo, [3,4], nnz=4)"


def test_arrays_are_copies_that_cannot_be_written() -> None:
    row = np.array([0, 1])
    pattern = Pattern("coo", (2, 2), (row, row), (2,))
    row[0] = 1
    assert pattern.arrays["row"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        pattern.arrays["row"][0] = 1


def test_operands_are_made_once() -> None:
    assert COO.operands is COO.operands
    layout = COO.layout
    assert layout[:3] == (3, 4, 4) and layout.ordered and layout.transposed_ordered
    csr = COO.to_csr().pattern
    assert not csr.layout.ordered and csr.is_canonical and not COO.is_canonical
    assert csr.transposed.layout == csr.layout.transposed


@pytest.mark.parametrize("start", FORMATS)
@pytest.mark.parametrize("end", FORMATS)
def test_every_format_becomes_every_other(start: str, end: str) -> None:
    rng = np.random.default_rng(3)
    dense = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.4)
    dense = dense.astype(np.float32)
    array = sparse.csr_array(dense).asformat(start)
    moved = array.asformat(end)
    assert moved.format == end
    np.testing.assert_array_equal(moved.todense(), dense)
    theirs = scipy.sparse.csr_array(dense).asformat(start).asformat(end)
    assert moved.to_scipy().format == end
    np.testing.assert_array_equal(moved.to_scipy().toarray(), theirs.toarray())


def test_duplicates_are_added_in_order_of_rows() -> None:
    way = COO.to_csr()
    assert isinstance(way, Regrouping) and not way.is_identity
    assert way.pattern.arrays["indices"].tolist() == [3, 0, 1]
    assert way.source.tolist() == [1, 2, 0, 3] and way.target.tolist() == [0, 1, 2, 2]
    assert way.pattern.to("csr").is_identity


def test_blocks_of_another_size() -> None:
    array = sparse.csr_array(fnp.arange(24.0).reshape(4, 6))
    blocks = array.tobsr((2, 3))
    assert blocks.blocksize == (2, 3) and blocks.values.shape == (4, 2, 3)
    again = blocks.tobsr((4, 2))
    assert again.blocksize == (4, 2)
    np.testing.assert_array_equal(again.todense(), array.todense())
    np.testing.assert_array_equal(blocks.T.todense(), array.todense().T)
    assert blocks.T.blocksize == (3, 2)


def test_union_and_intersection() -> None:
    a = Pattern.of_coords([0, 1, 1], [0, 0, 2], (2, 3))
    b = Pattern.of_coords([0, 1], [1, 2], (2, 3))
    both, common = union(a, b), intersection(a, b)
    assert isinstance(both, Merge) and union(a, b) is both
    assert both.pattern.keys.tolist() == [0, 1, 3, 5]
    assert both.left.tolist() == [0, 3, 1, 2] and both.right.tolist() == [2, 0, 2, 1]
    assert common.pattern.keys.tolist() == [5]
    same = union(a, a)
    assert same.left is None and same.right is None and same.pattern is a


def test_what_belongs_to_a_pair_is_remembered() -> None:
    made = []
    for _ in range(2):
        of_pair(COO, COO.transposed, "test", lambda: made.append(1) or len(made))
    assert made == [1]


def test_keys_make_a_pattern() -> None:
    pattern = pattern_of_keys(np.array([1, 2, 9]), (3, 4))
    assert pattern.arrays["indptr"].tolist() == [0, 2, 2, 3]
    assert pattern.arrays["indices"].tolist() == [1, 2, 1]


def test_changed_values_do_not_trace_again() -> None:
    traced = []

    @fxflow.jit
    def f(a: sparse.SparseArray, x: fxflow.Array) -> fxflow.Array:
        traced.append(1)
        return a @ x

    for k in range(3):
        values = fnp.full(4, float(k))
        again = Pattern("coo", (3, 4), ([2, 0, 2, 2], [1, 3, 0, 1]), (4,))
        f(sparse.SparseArray(again, values), fnp.ones(4))
    assert len(traced) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("lil", (2, 2), ([0], [0]), (1,)), "format is one of"),
        (("coo", (2, 2, 2), ([0], [0]), (1,)), "two axes"),
        (("coo", (2, -2), ([0], [0]), (1,)), "two axes"),
        (("coo", (2, 2), ([0, 2], [0, 0]), (2,)), r"row must be below 2, got \[2\]"),
        (("coo", (2, 2), ([0, 1], [0]), (2,)), "1 indices, but values"),
        (("coo", (2, 2), ([0.5], [0]), (1,)), "vector of integers"),
        (("csr", (2, 2), ([0, 1], [0]), (1,)), "indptr must have 3 numbers"),
        (("csr", (2, 2), ([0, 2, 1], [0]), (1,)), "ascend from 0 to 1"),
        (("bsr", (3, 4), ([0, 1], [0]), (1, 2, 2)), "do not divide"),
        (("dia", (3, 4), ([0, 0],), (2, 4)), "given twice"),
        (("dia", (3, 4), ([0],), (2, 4)), "1 offsets"),
    ],
)
def test_wrong_arrays_are_refused(args: tuple, message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        Pattern(*args)


def test_traced_indices_are_refused() -> None:
    with pytest.raises(ArgumentError, match="must be known when tracing"):
        fxflow.jit(lambda i: Pattern("coo", (3, 3), (i, i), (2,)).nnz)(np.arange(2))
