"""Assignments, compared with SciPy's."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import fxflow
from fxflow.errors import DtypeError, ShapeError
from fxflow.optim.assignment import hungarian_algorithm

RNG = np.random.default_rng(0)
SHAPES = [(4, 6), (6, 4), (5, 5), (1, 1), (0, 3), (3, 0)]


@pytest.mark.parametrize("shape", SHAPES)
def test_costs_match_scipy(shape: tuple[int, int]) -> None:
    many = RNG.normal(size=(20, *shape)).astype("f")
    many[::2] = np.round(many[::2])  # ties
    i, j = map(np.asarray, fxflow.jit(fxflow.vmap(hungarian_algorithm))(many))
    assert i.shape == j.shape == (20, min(shape))
    assert i.dtype == j.dtype == "int32"
    for costs, rows, columns in zip(many, i, j, strict=True):
        want = costs[linear_sum_assignment(costs)].sum()
        np.testing.assert_allclose(costs[rows, columns].sum(), want, atol=1e-5)
        assert sorted(set(rows)) == rows.tolist()
        assert len(set(columns)) == len(columns)


def test_costs_of_other_dtypes_and_nonfinite_costs() -> None:
    costs = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    assert hungarian_algorithm(costs)[1].tolist() == [1, 0, 2]
    assert hungarian_algorithm(costs > 2)[1].size == 3
    for bad in (np.nan, np.inf):  # it terminates with a valid assignment
        assert len(set(hungarian_algorithm(np.full((3, 4), bad, "f"))[1].tolist())) == 3


def test_costs_that_are_not_real_matrices_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"cost_matrix must be float\[n, m\], got f32"):
        hungarian_algorithm(np.zeros(3, "f"))
    with pytest.raises(DtypeError, match="must be real numbers, got c64"):
        hungarian_algorithm(np.zeros((2, 2), "complex64"))
