"""Flows, matchings of least weight and several paths beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as theirs

import fxflow
from fxflow import numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError
from fxflow.scipy.sparse import csgraph

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("method", ["dinic", "edmonds_karp"])
def test_maximum_flow(method: str) -> None:
    for density in (0.2, 0.5):
        x = RNG.integers(1, 9, (7, 7)) * (RNG.random((7, 7)) < density)
        x = x.astype(np.int32)
        A, held = sparse.csr_array(x), scipy.sparse.csr_array(x)
        want = theirs.maximum_flow(held, 0, 6, method=method)
        run = lambda A: csgraph.maximum_flow(A, 0, 6, method=method)
        for got in (run(A), fxflow.jit(run)(A)):
            assert int(got.flow_value) == want.flow_value
            flow = np.asarray(got.flow.todense())
            np.testing.assert_array_equal(flow, want.flow.toarray())
    with pytest.raises(ArgumentError, match="source and sink must differ"):
        csgraph.maximum_flow(A, 1, 1)
    with pytest.raises(ArgumentError, match=r"sink must be a vertex, 0 … 6, got 7"):
        csgraph.maximum_flow(A, 1, 7)
    with pytest.raises(DtypeError, match="capacities must be int32, got float32"):
        csgraph.maximum_flow(x.astype("f4"), 0, 6)
    with pytest.raises(ArgumentError, match="method must be"):
        csgraph.maximum_flow(A, 0, 6, method="fast")


def test_matchings_of_least_weight() -> None:
    for shape in ((5, 5), (3, 6), (6, 3)):
        x = RNG.uniform(0.5, 3, shape).astype("f4")
        x[0, 0] = 0
        A, held = sparse.csr_array(x), scipy.sparse.csr_array(x)
        for maximize in (False, True):
            want = theirs.min_weight_full_bipartite_matching(held, maximize)
            run = lambda A, m=maximize: csgraph.min_weight_full_bipartite_matching(A, m)
            for got in (run(A), fxflow.jit(run)(A)):
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="no full matching"):
        csgraph.min_weight_full_bipartite_matching(fnp.array([[1.0, 0], [1.0, 0]]))


def test_yen() -> None:
    x = RNG.uniform(0.5, 2, (6, 6)) * (RNG.random((6, 6)) < 0.6)
    for options in ({}, {"directed": False}, {"unweighted": True}):
        want = theirs.yen(
            scipy.sparse.csr_array(x), 0, 5, 4, return_predecessors=True, **options
        )
        with fxflow.config.override(x64=True):
            got = csgraph.yen(x, 0, 5, 4, return_predecessors=True, **options)
            np.testing.assert_allclose(got[0], want[0], 1e-12)
            np.testing.assert_array_equal(got[1], want[1])
    A: Any = sparse.csr_array(x)
    assert csgraph.yen(A, 0, 5, 2).dtype == np.float32
    with pytest.raises(ConcretizationError):
        fxflow.jit(lambda A: csgraph.yen(A, 0, 5, 2))(A)
