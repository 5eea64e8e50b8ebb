"""Disjoint sets beside SciPy's."""

import numpy as np
import pytest
import scipy.cluster.hierarchy as want

from fxflow.errors import ArgumentError
from fxflow.scipy.cluster.hierarchy import DisjointSet


@pytest.mark.parametrize("seed", range(3))
def test_merges_agree_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours, theirs = DisjointSet(range(30)), want.DisjointSet(range(30))
    for a, b in rng.integers(0, 30, (25, 2)).tolist():
        assert ours.merge(a, b) == theirs.merge(a, b)
        assert ours.n_subsets == theirs.n_subsets
        assert ours.connected(a, 3) == theirs.connected(a, 3)
        assert ours.subset(b) == theirs.subset(b)
        assert ours.subset_size(b) == theirs.subset_size(b)
        assert [ours[x] for x in range(30)] == [theirs[x] for x in range(30)]
    assert ours.subsets() == theirs.subsets()
    ours.add("new")
    ours.add("new")
    assert (len(ours), "new" in ours, [*ours][-1]) == (31, True, "new")


def test_elements_that_are_not_there() -> None:
    sets = DisjointSet()
    assert (len(sets), sets.subsets()) == (0, [])
    for call in (lambda: sets[1], lambda: sets.merge(1, 2), lambda: sets.subset(0)):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(ArgumentError, match="hash"):
        sets.add([1])  # type: ignore[arg-type]
