"""Results of tests unpack as SciPy's and are pytrees."""

import numpy as np
import pytest

import fxflow
from fxflow import tree
from fxflow.errors import ArgumentError
from fxflow.scipy import stats

X, Y = np.random.default_rng(34).normal(size=(2, 9))


def test_results_are_tuples_and_pytrees() -> None:
    found = stats.linregress(X, Y)
    slope, *rest = found
    assert len(found) == 5 and len(rest) == 4 and found[0] is slope
    assert "intercept_stderr=" in repr(found)
    leaves, treedef = tree.flatten(found)
    assert len(leaves) == 6
    again = tree.unflatten(treedef, leaves)
    assert again.intercept_stderr is found.intercept_stderr


def test_results_leave_jit_with_their_methods() -> None:
    found = fxflow.jit(lambda x, y: stats.pearsonr(x, y, alternative="less"))(X, Y)
    plain = stats.pearsonr(X, Y, alternative="less")
    for name in ("low", "high"):
        np.testing.assert_allclose(
            getattr(found.confidence_interval(), name),
            getattr(plain.confidence_interval(), name),
            1e-6,
        )
    assert found.correlation is found.statistic
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        found.confidence_interval(95)
