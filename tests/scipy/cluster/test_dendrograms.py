"""Trees as objects, and the order of their leaves, beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.hierarchy as want
import scipy.spatial.distance

import fxflow
from fxflow.errors import ArgumentError, NotDifferentiableError, ShapeError
from fxflow.scipy.cluster import hierarchy

RNG = np.random.default_rng(2)
POINTS = RNG.normal(size=(9, 2))
Y = scipy.spatial.distance.pdist(POINTS)
Z = want.linkage(Y, "average")


def test_trees() -> None:
    theirs, their_nodes = want.to_tree(Z, rd=True)
    ours, nodes = hierarchy.to_tree(Z, rd=True)
    assert ours.pre_order() == theirs.pre_order() == want.leaves_list(Z).tolist()
    for a, b in zip(nodes, their_nodes, strict=True):
        assert (a.id, a.get_count(), a.is_leaf()) == (b.id, b.count, b.is_leaf())
        np.testing.assert_allclose(a.dist, b.dist, 1e-6)
    assert ours.get_left().get_id() == theirs.left.id
    assert ours.get_right().pre_order(str) == [
        str(n) for n in (nodes[i] for i in theirs.right.pre_order())
    ]
    assert nodes[-1] > nodes[-2] and nodes[0] < nodes[-1] and nodes[0] == nodes[1]
    assert "count=9" in repr(ours) and hierarchy.to_tree(Z).count == 9
    found = hierarchy.dendrogram(Z, no_plot=True)
    assert found["leaves"] == ours.pre_order()


def test_optimal_leaf_ordering() -> None:
    with fxflow.config.override(x64=True):
        for method in ("single", "average", "ward"):
            tree = want.linkage(POINTS, method)
            expected = want.optimal_leaf_ordering(tree, Y)
            for got in (
                hierarchy.optimal_leaf_ordering(tree, Y),
                fxflow.jit(hierarchy.optimal_leaf_ordering)(tree, POINTS),
                hierarchy.linkage(POINTS, method, optimal_ordering=True),
            ):
                np.testing.assert_allclose(got, expected, 1e-10)
        twice = fxflow.vmap(hierarchy.optimal_leaf_ordering)(
            np.stack([tree, tree]), np.stack([Y, Y])
        )
        np.testing.assert_allclose(twice[1], expected, 1e-10)
    with pytest.raises(NotDifferentiableError):
        fxflow.grad(lambda y: hierarchy.optimal_leaf_ordering(Z, y).sum())(Y)
    with pytest.raises(ShapeError, match=r"of 9 observations, \[36\], got f32\[35\]"):
        hierarchy.optimal_leaf_ordering(Z, Y[:-1])


def test_matlab() -> None:
    with fxflow.config.override(x64=True):
        theirs = want.to_mlab_linkage(Z)
        np.testing.assert_array_equal(hierarchy.to_mlab_linkage(Z), theirs)
        np.testing.assert_array_equal(hierarchy.from_mlab_linkage(theirs), Z)
    assert hierarchy.from_mlab_linkage(np.zeros(0)).size == 0
    with pytest.raises(ArgumentError, match="numbered from 1 to 16"):
        hierarchy.from_mlab_linkage(Z[:, :3])
    with pytest.raises(ShapeError, match=r"\[n - 1, 3\], got shape \(8, 4\)"):
        hierarchy.from_mlab_linkage(Z)


def test_checks() -> None:
    R = want.inconsistent(Z)
    for x in (R, -R, R[:, :3], R[:0], R.astype(int), R[0]):
        assert hierarchy.is_valid_im(x) == want.is_valid_im(x)
    with pytest.raises(ArgumentError, match="'table' has negative means"):
        hierarchy.is_valid_im(-R, throw=True, name="table")
    with pytest.raises(ShapeError, match=r"R must be float\[n - 1, 4\], got int64"):
        hierarchy.is_valid_im(R.astype(int), throw=True)
    assert hierarchy.correspond(Z, Y) and not hierarchy.correspond(Z, Y[:3])
    with pytest.raises(ArgumentError, match="Z must be known"):
        fxflow.jit(hierarchy.to_tree)(Z)
    with pytest.raises(ArgumentError, match="both left and right"):
        hierarchy.ClusterNode(2, hierarchy.ClusterNode(0))
    with pytest.raises(ArgumentError, match="must not be negative"):
        hierarchy.ClusterNode(-1)
