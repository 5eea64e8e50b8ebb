"""Operations on values: indices enter programs as operands."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ShapeError
from fxflow.sparse import values as v
from fxflow.sparse.pattern import union

ARRAY = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 2, 2], [1, 0, 0])), shape=(3, 2))
DIA = sparse.dia_array((fnp.arange(1.0, 7).reshape(2, 3), [0, 1]), shape=(3, 3))


def test_entries_of_diagonals_leave_out_what_is_outside() -> None:
    got = v.entry_values(DIA.pattern, DIA.values)
    assert got.tolist() == [1, 2, 3, 5, 6]
    assert v.rows_of(DIA.pattern).tolist() == [0, 1, 2, 0, 1]
    assert v.columns_of(DIA.pattern).tolist() == [0, 1, 2, 1, 2]
    assert v.flat(DIA.pattern, DIA.values).shape == (6,)


def test_sums_extremes_and_dense() -> None:
    p, x = ARRAY.pattern, ARRAY.values
    assert v.total(p, x, None) == 6 and v.total(p, x, 0).tolist() == [5, 1]
    assert v.dense(p, x).tolist() == [[0, 1], [0, 0], [5, 0]]
    q, y = DIA.pattern, DIA.values
    assert v.extreme(q, y, 1, "min").tolist() == [0, 0, 0]
    assert v.extreme(q, y, None, "max") == 6


def test_regrouping_adds_duplicates() -> None:
    way = ARRAY.pattern.to_csr()
    assert v.regroup(ARRAY.pattern, ARRAY.values, way).tolist() == [1, 5]


def test_merging_two_arrays() -> None:
    a = ARRAY.tocsr()
    b = sparse.csr_array(fnp.array([[4.0, 0], [0, 0], [0, 7.0]]))
    way = union(a.pattern, b.pattern)
    got = v.merged(a.pattern, b.pattern, a.values, b.values, way, "subtract")
    assert got.tolist() == [-4, 1, 5, -7]


def test_dense_arrays_are_sampled() -> None:
    p = ARRAY.pattern
    assert v.sample_dense(p, fnp.arange(6.0).reshape(3, 2)).tolist() == [1, 4, 4]
    assert v.sample_dense(p, fnp.arange(2.0)).tolist() == [1, 0, 0]
    assert v.sample_dense(p, fnp.arange(3.0)[:, None]).tolist() == [0, 2, 2]
    assert v.sample_dense(p, fnp.float32(3)).tolist() == [3, 3, 3]
    assert v.sampled(p, fnp.arange(3.0), fnp.arange(2.0)).tolist() == [0, 0, 0]
    with pytest.raises(ShapeError, match="does not broadcast"):
        v.sample_dense(p, fnp.ones(3))


def test_the_text_of_a_program_does_not_grow_with_the_entries() -> None:
    def text(n: int) -> str:
        a = sparse.eye_array(n, format="csr")
        b = sparse.diags_array(fnp.ones(n - 1), offsets=1, format="csr")

        def f(a: sparse.SparseArray, b: sparse.SparseArray) -> fxflow.Array:
            c = (a + b) @ a - b.T
            return (c * c).sum() + c.max() + c.diagonal().sum() + c[: n // 2].sum()

        return fxflow.jit(fxflow.grad(f)).lower(a, b).as_text()

    small, large = text(20), text(2000)
    assert len(large) < 1.3 * len(small)


def test_index_is_made_once() -> None:
    p = ARRAY.pattern
    made = v.index_of(p, "test", lambda: np.zeros(1, np.int32))
    assert v.index_of(p, "test", lambda: np.ones(1, np.int32)) is made


def test_product_of_values() -> None:
    got = v.product(ARRAY.pattern, ARRAY.values, fnp.array([1.0, 10.0]))
    assert got.tolist() == [10, 0, 5]
