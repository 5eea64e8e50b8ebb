"""Graphs as dense arrays beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as theirs

import fxflow
from fxflow import numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse import csgraph

X = np.array([[0.0, 2.0, np.inf], [np.nan, -1.0, 3.0], [7.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nan_null": False},
        {"infinity_null": False},
        {"null_value": 7.0},
        {"null_value": np.nan},
        {"null_value": None},
    ],
)
def test_from_dense(options: dict[str, Any]) -> None:
    want = theirs.csgraph_from_dense(X, **options)
    masked = theirs.csgraph_masked_from_dense(X, **options)
    with fxflow.config.override(x64=True):
        got = csgraph.csgraph_from_dense(X, **options)
        np.testing.assert_array_equal(got.todense(), want.toarray())
        assert got.nnz == want.nnz
        ours = csgraph.csgraph_masked_from_dense(X, **options)
        np.testing.assert_array_equal(ours.mask, masked.mask)
        again = csgraph.csgraph_from_masked(ours)
        assert again.pattern is got.pattern
        np.testing.assert_array_equal(again.values, got.values)
        back = csgraph.csgraph_to_masked(got)
        np.testing.assert_array_equal(back.mask, masked.mask)
        np.testing.assert_array_equal(back.filled(9), masked.filled(9))
        dense = csgraph.csgraph_to_dense(got, np.inf)
        np.testing.assert_array_equal(dense, masked.filled(np.inf))


def test_traced_and_wrong() -> None:
    A = csgraph.csgraph_from_dense(np.array([[0, 2], [1, 0]]))
    run = fxflow.jit(lambda A: csgraph.csgraph_to_dense(A, -1))
    assert run(A).tolist() == [[-1, 2], [1, -1]]
    slope = fxflow.grad(lambda A: (csgraph.csgraph_to_dense(A) ** 2).sum())(A)
    assert slope.values.tolist() == [4, 2]
    with pytest.raises(ArgumentError, match="graph must be known"):
        fxflow.jit(csgraph.csgraph_from_dense)(fnp.ones((2, 2)))
    with pytest.raises(ShapeError, match=r"graph must be square, got shape \(2, 3\)"):
        csgraph.csgraph_from_dense(np.ones((2, 3)))
    assert scipy.sparse.issparse(A.to_scipy())
    assert isinstance(A, sparse.SparseArray)
