"""The assignment problem by SciPy's name."""

from __future__ import annotations

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.assignment import hungarian_algorithm


def linear_sum_assignment(
    cost_matrix: ArrayLike, maximize: bool = False
) -> tuple[Array, Array]:
    """Pairs rows with distinct columns at the least total cost.

    Args:
      cost_matrix: float[n, m], finite. Integers and bools are compared as floats.
      maximize: whether to find the greatest total instead.

    Returns:
      int32[min(n, m)] twice: rows in ascending order, and their columns. The total,
      `cost_matrix[rows, columns].sum()`, has derivatives by the costs.

    Raises:
      DtypeError: the costs are complex.
      ShapeError: they are not a matrix.

    Example:
      >>> costs = fnp.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
      >>> linear_sum_assignment(costs)[1]
      Array([1, 0, 2], dtype=int32)

    Source: `scipy.optimize.linear_sum_assignment`; see
    `optim.assignment.hungarian_algorithm`, which it calls.
    """
    costs = fnp.asarray(cost_matrix)
    if maximize and costs.dtype.kind in "bu":
        costs = costs.astype("float32")
    return hungarian_algorithm(-costs if maximize else costs)
