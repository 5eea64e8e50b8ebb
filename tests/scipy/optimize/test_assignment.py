"""Assignments by SciPy's name; derivatives of their cost."""

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.optimize import linear_sum_assignment, quadratic_assignment

COSTS = np.random.default_rng(0).normal(size=(4, 5)).astype("f")


def test_assignments_match_scipy() -> None:
    for costs in (COSTS, COSTS.T, (COSTS * 10).astype("int32"), COSTS > 0):
        for maximize in (False, True):
            i, j = linear_sum_assignment(costs, maximize=maximize)
            rows, columns = scipy.optimize.linear_sum_assignment(costs, maximize)
            assert i.tolist() == rows.tolist()
            best = float(costs[rows, columns].sum())
            assert abs(float(np.asarray(costs)[i, j].sum()) - best) < 1e-5


def test_the_cost_has_a_derivative() -> None:
    def cost(c: fxflow.Array) -> fxflow.Array:
        return c[linear_sum_assignment(c)].sum()

    slope = fxflow.grad(cost)(fnp.asarray(COSTS))
    i, j = scipy.optimize.linear_sum_assignment(COSTS)
    want = np.zeros_like(COSTS)
    want[i, j] = 1
    np.testing.assert_array_equal(slope, want)


@pytest.mark.parametrize("maximize", [False, True])
def test_quadratic_assignments_are_those_of_scipy(maximize: bool) -> None:
    rng = np.random.default_rng(4)
    run = fxflow.jit(lambda a, b: quadratic_assignment(a, b, maximize=maximize))
    ours = theirs = 0.0
    for _ in range(6):
        a, b = (rng.integers(0, 9, (6, 6)).astype(float) for _ in range(2))
        with fxflow.config.override(x64=True):
            got = run(a, b)
        options = {"maximize": maximize, "rng": np.random.default_rng(0)}
        want = scipy.optimize.quadratic_assignment(a, b, options=options)
        assert sorted(got.col_ind.tolist()) == list(range(6))
        p = np.asarray(got.col_ind)
        assert float(got.fun) == np.sum(a * b[p][:, p])
        ours, theirs = ours + float(got.fun), theirs + want.fun
    # Equal costs of an assignment lead to different, equally good searches.
    assert ours > 0.95 * theirs if maximize else ours < 1.05 * theirs


def test_quadratic_assignments_from_other_matrices() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=(5, 5)).astype("f")
    order = rng.permutation(5)
    b = a[order][:, order]
    key = fxflow.random.key(0)
    drawn = quadratic_assignment(a, b, P0="randomized", key=key, maximize=True)
    known = quadratic_assignment(a, b, P0=np.eye(5)[np.argsort(order)], maximize=True)
    np.testing.assert_allclose(known.fun, np.sum(a * a), 1e-5)
    assert drawn.fun <= known.fun + 1e-4
    slope = fxflow.grad(lambda a: quadratic_assignment(a, b, maximize=True).fun)(a)
    assert slope.shape == (5, 5) and bool(fnp.any(slope != 0))
    with pytest.raises(ShapeError, match="square matrices of one size"):
        quadratic_assignment(a, b[:4])
    with pytest.raises(ArgumentError, match="P0 must be"):
        quadratic_assignment(a, b, P0="randomized")
