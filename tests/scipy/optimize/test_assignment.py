"""Assignments by SciPy's name; derivatives of their cost."""

import numpy as np
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.scipy.optimize import linear_sum_assignment

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
