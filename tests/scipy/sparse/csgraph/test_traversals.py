"""Orders, trees and matchings beside SciPy's."""

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


def graphs() -> list[Any]:
    rng = np.random.default_rng(4)
    out = []
    for density in (0.05, 0.2, 0.5):
        x = rng.uniform(0.5, 2, size=(8, 8)) * (rng.random((8, 8)) < density)
        out.append(sparse.csr_array(x.astype("f4")))
    return out


@pytest.mark.parametrize("directed", [True, False])
def test_orders_and_trees(directed: bool) -> None:
    for A in graphs():
        held = scipy.sparse.csr_array(A.to_scipy())
        for i in (0, 5):
            for name in ("breadth_first_order", "depth_first_order"):
                want = getattr(theirs, name)(held, i, directed)
                got = getattr(csgraph, name)(A, i, directed)
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a, b)
                alone = getattr(csgraph, name)(A, i, directed, False)
                np.testing.assert_array_equal(alone, want[0])
            for name in ("breadth_first_tree", "depth_first_tree"):
                want = getattr(theirs, name)(held, i, directed)
                got = getattr(csgraph, name)(A, i, directed)
                np.testing.assert_allclose(got.todense(), want.toarray())
        before = theirs.breadth_first_order(held, 2, directed)[1]
        got = csgraph.reconstruct_path(A, before, directed)
        want = theirs.reconstruct_path(held, before, directed)
        np.testing.assert_allclose(got.todense(), want.toarray())


def test_trees_have_derivatives() -> None:
    A = graphs()[1]

    def total(values: Any) -> Any:
        held = sparse.SparseArray(A.pattern, values)
        return csgraph.breadth_first_tree(held, 0).sum()

    slopes = fxflow.jit(fxflow.grad(total))(A.values)
    assert float(slopes.sum()) == csgraph.breadth_first_tree(A, 0).nnz


def test_matchings_and_orders() -> None:
    rng = np.random.default_rng(5)
    for shape in ((6, 6), (4, 7), (7, 4)):
        x = (rng.random(shape) < 0.3).astype("f4")
        A, held = sparse.csr_array(x), scipy.sparse.csr_array(x)
        for kind in ("row", "column"):
            got = csgraph.maximum_bipartite_matching(A, kind)
            want = theirs.maximum_bipartite_matching(held, kind)
            np.testing.assert_array_equal(got, want)
        assert csgraph.structural_rank(A) == theirs.structural_rank(held)
        assert csgraph.structural_rank(x) == theirs.structural_rank(held)
    for A in graphs():
        both = (A + A.T).tocsr()
        for g, mode in ((A, False), (both, True)):
            want = theirs.reverse_cuthill_mckee(g.to_scipy(), mode)
            np.testing.assert_array_equal(csgraph.reverse_cuthill_mckee(g, mode), want)


def test_wrong_arguments() -> None:
    A = graphs()[0]
    with pytest.raises(ArgumentError, match=r"i_start must be a vertex, 0 … 7, got 8"):
        csgraph.breadth_first_order(A, 8)
    with pytest.raises(ArgumentError, match='perm_type must be "row" or "column"'):
        csgraph.maximum_bipartite_matching(A, "both")
    with pytest.raises(ShapeError, match="expected 8 predecessors"):
        csgraph.reconstruct_path(A, [0, 1])
    with pytest.raises(ShapeError, match="csgraph must be square"):
        csgraph.depth_first_tree(fnp.ones((2, 3)), 0)
    with pytest.raises(ArgumentError, match="predecessors must be known"):
        fxflow.jit(lambda p: csgraph.reconstruct_path(A, p))(np.zeros(8, int))
