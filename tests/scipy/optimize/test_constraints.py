"""Bounds and constraints in all their forms, and what is refused."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from fxflow.scipy.optimize.constraints import bounds_of, rows_of

X = fnp.array([1.0, 2.0])
INF = np.inf


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        (None, [-INF, -INF], [INF, INF]),
        (Bounds(0.0), [0, 0], [INF, INF]),
        (Bounds([0.0, 1.0], 3.0), [0, 1], [3, 3]),
        ([(None, 1), (2, None)], [-INF, 2], [1, INF]),
        (np.array([[0.0, 1.0], [2.0, 3.0]]), [0, 2], [1, 3]),
    ],
)
def test_bounds_become_two_vectors(bounds: Any, low: Any, high: Any) -> None:
    found = bounds_of("f", bounds, X, X)
    assert [v.tolist() for v in found] == [low, high]


def test_bounds_of_a_pytree() -> None:
    like = {"a": fnp.zeros(1), "b": fnp.zeros(1)}
    found = bounds_of("f", Bounds({"a": fnp.zeros(1), "b": fnp.ones(1)}, 2.0), X, like)
    assert [v.tolist() for v in found] == [[0, 1], [2, 2]]


def test_bounds_that_do_not_fit_are_refused() -> None:
    for wrong in ([(0, 1)], 3.0, [(0, 1, 2)] * 2):
        with pytest.raises(ArgumentError, match="bounds must be"):
            bounds_of("f", wrong, X, X)
    with pytest.raises(ArgumentError, match="above its upper"):
        bounds_of("f", Bounds(2.0, 1.0), X, X)
    with pytest.raises(ShapeError, match="lower bounds must be"):
        bounds_of("f", Bounds(fnp.zeros(3)), X, X)


def test_rows_are_sorted_into_equations_and_inequalities() -> None:
    matrix = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    given = [
        LinearConstraint(matrix, [1.0, -INF, 0.0], [1.0, 5.0, 4.0]),
        {"type": "ineq", "fun": lambda x, a: x[0] - a, "args": (3.0,)},
        NonlinearConstraint(lambda x: x @ x, 5.0, 5.0),
    ]
    rows = rows_of("f", given, X, lambda x: x, ())
    assert rows is not None
    assert rows.counts == (2, 4)
    assert rows.equal(X).tolist() == [0, 0]
    assert rows.above(X).tolist() == [3, 3, 1, -2]
    sides = rows.multipliers(fnp.array([1.0, 2.0]), fnp.array([3.0, 4.0, 5.0, 6.0]))
    assert [v.tolist() for v in sides] == [[1, -4, -2], [6], [2]]


def test_what_is_not_a_constraint_is_refused() -> None:
    for wrong in ([3.0], {"type": "eq"}, {"type": "le", "fun": len}):
        with pytest.raises(ArgumentError):
            rows_of("f", wrong, X, lambda x: x, ())
    with pytest.raises(ShapeError, match="A of a LinearConstraint"):
        rows_of("f", LinearConstraint(np.ones((2, 3))), X, lambda x: x, ())
    with pytest.raises(ArgumentError, match="must be a function"):
        NonlinearConstraint(3, 0, 1)  # type: ignore[arg-type]


def test_residuals_of_bounds_and_lines() -> None:
    x, rows = [1.0, 2.0, 4.0], [[1.0, 1.0, 0.0], [0.0, 2.0, -1.0]]
    for ours, theirs, given in (
        (Bounds, scipy.optimize.Bounds, ([0.0, 2.5, -INF], [1.0, 3.0, 3.5])),
        (
            LinearConstraint,
            scipy.optimize.LinearConstraint,
            (rows, [-INF, 1.0], [2.0, 5.0]),
        ),
    ):
        got = ours(*map(np.array, given)).residual(np.array(x))
        want = theirs(*given).residual(np.array(x))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, 1e-6)
