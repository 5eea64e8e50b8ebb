"""Shortest paths by method, and the lengths of known paths, beside SciPy's."""

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


def graph(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 2, size=(9, 9)) * (rng.random((9, 9)) < 0.25)
    return sparse.csr_array(x.astype("f4"))


@pytest.mark.parametrize("directed", [True, False])
def test_paths(directed: bool) -> None:
    A = graph(1)
    held = scipy.sparse.csr_array(A.to_scipy())
    want = theirs.floyd_warshall(held, directed)
    np.testing.assert_allclose(csgraph.floyd_warshall(A, directed), want, 1e-6)
    np.testing.assert_allclose(csgraph.johnson(A, directed), want, 1e-6)
    np.testing.assert_allclose(
        csgraph.johnson(A, directed, [2, 3], unweighted=True),
        theirs.johnson(held, directed, [2, 3], unweighted=True),
    )
    lengths, before = csgraph.floyd_warshall(A, directed, True)
    for null in (np.inf, 0.0):
        got = fxflow.jit(
            lambda A, b, null=null: csgraph.construct_dist_matrix(A, b, directed, null)
        )(A, before)
        expected = theirs.construct_dist_matrix(
            held, np.asarray(before), directed, null
        )
        np.testing.assert_allclose(got, expected, 1e-6)
    np.testing.assert_allclose(lengths, want, 1e-6)


def test_lengths_have_derivatives() -> None:
    A = graph(2)
    before = csgraph.shortest_path(A, return_predecessors=True)[1]

    def total(A: Any) -> Any:
        found = csgraph.construct_dist_matrix(A, before, null_value=0)
        return (found**2).sum()

    slope = fxflow.grad(total)(A)
    step = 1e-3 * np.random.default_rng(0).normal(size=A.nnz)
    ends = [total(A._with(A.values + s * step)) for s in (1, -1)]
    expected = (np.asarray(slope.values) * step).sum()
    np.testing.assert_allclose((ends[0] - ends[1]) / 2, expected, 2e-2)


def test_wrong_arguments() -> None:
    A = graph(1)
    with pytest.raises(ShapeError, match=r"predecessors must be \[9, 9\], got i"):
        csgraph.construct_dist_matrix(A, np.zeros((2, 2), int))
    with pytest.raises(ArgumentError, match="predecessors must be integers"):
        csgraph.construct_dist_matrix(A, np.zeros((9, 9)))
    with pytest.raises(ShapeError, match="csgraph must be square"):
        csgraph.floyd_warshall(fnp.ones((2, 3)))
    assert csgraph.construct_dist_matrix(
        np.zeros((0, 0)), np.zeros((0, 0), int)
    ).shape == (0, 0)
