"""Graphs against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as theirs

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.sparse import csgraph

N = 9


def graph(seed: int, density: float = 0.25) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 2, size=(N, N)) * (rng.random((N, N)) < density)
    return sparse.csr_array(x.astype("f4"))


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("symmetrized", [False, True])
def test_laplacians(normed: bool, out: bool, symmetrized: bool) -> None:
    A = graph(1)
    options = {"normed": normed, "use_out_degree": out, "symmetrized": symmetrized}
    found, diagonal = csgraph.laplacian(A, return_diag=True, **options)
    want, degrees = theirs.laplacian(
        scipy.sparse.csr_array(A.to_scipy()), return_diag=True, **options
    )
    np.testing.assert_allclose(found.todense(), want.toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(diagonal, degrees, rtol=1e-5)


def test_derivative_of_a_laplacian() -> None:
    A = graph(2)
    x = fnp.arange(float(N))

    def energy(a: Any, normed: bool) -> Any:
        return x @ (csgraph.laplacian(a, normed=normed) @ x)

    slope = fxflow.grad(lambda a: energy(a, False))(A)
    at = np.arange(N)
    want = (at[None] ** 2 - at[:, None] * at[None]) * (np.asarray(A.todense()) != 0)
    np.testing.assert_allclose(slope.todense(), want, rtol=1e-5)
    alone = sparse.csr_array(np.array([[0, 2.0, 0], [2, 0, 0], [0, 0, 0]], "f4"))
    slope = fxflow.grad(lambda a: csgraph.laplacian(a, normed=True).sum())(alone)
    assert np.isfinite(slope.values).all()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("unweighted", [True, False])
def test_shortest_paths(directed: bool, unweighted: bool) -> None:
    for seed in range(3):
        A = graph(seed)
        options = {"directed": directed, "unweighted": unweighted}
        found, before = fxflow.jit(
            lambda a, o=options: csgraph.shortest_path(a, return_predecessors=True, **o)
        )(A)
        want, parents = theirs.shortest_path(
            A.to_scipy(), return_predecessors=True, **options
        )
        np.testing.assert_allclose(found, want, rtol=1e-5)
        assert ((np.asarray(before) == -9999) == (parents == -9999)).all()
        if not unweighted:  # else there are several
            np.testing.assert_array_equal(before, parents)


def test_paths_from_some_vertices_and_limits() -> None:
    A = graph(3)
    want = theirs.dijkstra(A.to_scipy(), indices=[2, 5], limit=2.0)
    np.testing.assert_allclose(
        csgraph.dijkstra(A, indices=[2, 5], limit=2.0), want, rtol=1e-5
    )
    one, before = csgraph.bellman_ford(A, indices=4, return_predecessors=True)
    np.testing.assert_allclose(one, theirs.bellman_ford(A.to_scipy(), indices=4), 1e-5)
    assert before.shape == (N,)
    negative = fnp.array([[0.0, 1.0], [-2.0, 0.0]])
    assert np.isnan(csgraph.shortest_path(negative)).any()


def test_components_and_trees() -> None:
    for seed in range(4):
        A = graph(seed, 0.1)
        for options in ({}, {"connection": "strong"}, {"directed": False}):
            count, labels = csgraph.connected_components(A, **options)
            want, known = theirs.connected_components(A.to_scipy(), **options)
            assert count == want
            np.testing.assert_array_equal(labels, known)
        tree = csgraph.minimum_spanning_tree(A)
        want = theirs.minimum_spanning_tree(A.to_scipy())
        np.testing.assert_allclose(tree.todense(), want.toarray(), rtol=1e-6)
    inside = fxflow.jit(lambda a: csgraph.connected_components(a)[1])(A)
    np.testing.assert_array_equal(inside, csgraph.connected_components(A)[1])


def test_bad_input() -> None:
    with pytest.raises(ShapeError, match="square"):
        csgraph.laplacian(fnp.ones((2, 3)))
    with pytest.raises(ArgumentError, match="csgraph must be"):
        csgraph.dijkstra("graph")
    with pytest.raises(ArgumentError, match="connection"):
        csgraph.connected_components(graph(0), connection="loose")
    with pytest.raises(ArgumentError, match="method"):
        csgraph.shortest_path(graph(0), method="A*")
    with pytest.raises(ArgumentError, match="integers"):
        csgraph.dijkstra(graph(0), indices=0.5)
    with pytest.raises(ConcretizationError, match="traced"):
        fxflow.jit(lambda a: csgraph.minimum_spanning_tree(a).values)(graph(0))


def test_laplacians_as_functions_and_operators() -> None:
    A = graph(3)
    x = np.arange(A.shape[0], dtype=np.float32)
    want = csgraph.laplacian(A) @ x
    for form in ("function", "lo"):
        found, degrees = csgraph.laplacian(A, return_diag=True, form=form)
        np.testing.assert_allclose(found(x), want, rtol=1e-6)
        assert degrees.shape == x.shape
    with pytest.raises(ArgumentError, match='form must be "array"'):
        csgraph.laplacian(A, form="matrix")


@pytest.mark.parametrize("directed", [True, False])
def test_lengths_from_the_nearest_source(directed: bool) -> None:
    A = graph(4)
    options: dict[str, Any] = {"indices": [2, -1, 5], "directed": directed}
    options |= {"min_only": True, "limit": 1.5}
    want = theirs.dijkstra(A.to_scipy(), return_predecessors=True, **options)
    run = fxflow.jit(lambda A: csgraph.dijkstra(A, return_predecessors=True, **options))
    lengths, before, sources = run(A)
    np.testing.assert_allclose(lengths, want[0], rtol=1e-5)
    np.testing.assert_array_equal(before, want[1])
    expected = np.where(want[2] == -1, A.shape[0] - 1, want[2])
    np.testing.assert_array_equal(sources, expected)
    np.testing.assert_allclose(csgraph.dijkstra(A, **options), want[0], rtol=1e-5)
    # Edges of length 0 in a circle lead back to their source.
    at = ([0, 1, 2], [1, 0, 1])
    zero = sparse.coo_array((fnp.array([0.0, 0.0, 1.0]), at), shape=(3, 3))
    found = csgraph.dijkstra(zero, indices=[2], min_only=True, return_predecessors=True)
    assert found[0].tolist() == [1, 1, 0] and found[2].tolist() == [2, 2, 2]
