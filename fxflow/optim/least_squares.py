"""Nonnegative least squares."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, typeof
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.base import Scalar


def nnls(
    A: ArrayLike,
    b: ArrayLike,
    iters: int,
    unroll: int | bool = 1,
    L: Scalar | None = None,
) -> Array:
    r"""Returns nonnegative least-squares solutions.

    It approximates :math:`\arg\min_{x \ge 0} \lVert A x - b \rVert^2` by accelerated
    projected gradient descent, and is differentiable.

    Args:
      A: float[m, n].
      b: float[m], or float[m, k] for several problems.
      iters: number of steps. The error of the objective decreases as 1 / iters².
      unroll: number of steps to unroll in the loop; see `lax.scan`.
      L: reciprocal of the step size, at least the largest singular value of
        :math:`A^T A`; None means its Frobenius norm.

    Returns:
      float[n], or float[n, k].

    Raises:
      ShapeError: A is not a matrix, or b has another number of rows.

    Special cases:
      The result is 0 if A is 0 or `iters` is 0.

    Example:
      >>> A = fnp.array([[1.0, 0.0], [0.0, 2.0]])
      >>> fnp.round(optim.nnls(A, fnp.array([3.0, -1.0]), 50), 3).tolist()
      [3.0, 0.0]

    Reference: Beck and Teboulle 2009, "A fast iterative shrinkage-thresholding
    algorithm for linear inverse problems" (FISTA).
    """
    matrix, right = typeof(A), typeof(b)
    if matrix.ndim != 2:
        raise ShapeError(f"nnls: A must be float[m, n], got {matrix}")
    if right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise ShapeError(
            f"nnls: b must be float[{matrix.shape[0]}] or float[{matrix.shape[0]}, k] "
            f"for A {matrix}, got {right}"
        )
    dtype = fnp.result_type(A, b, float)
    a, y = fnp.asarray(A, dtype), fnp.asarray(b, dtype)
    square = fnp.matmul(fnp.transpose(a), a)
    target = fnp.matmul(fnp.transpose(a), y)
    bound = fnp.asarray(fnp.linalg.norm(square) if L is None else L, dtype)
    none = fnp.equal(bound, 0)
    rate = fnp.where(none, 0, fnp.divide(1, fnp.where(none, 1, bound)))

    def step(carry: Any, _: Any) -> Any:
        x, ahead, t = carry
        slope = fnp.subtract(fnp.matmul(square, ahead), target)
        new = fnp.maximum(fnp.subtract(ahead, fnp.multiply(rate, slope)), 0)
        later = fnp.multiply(0.5, fnp.add(1, fnp.sqrt(1 + 4 * fnp.square(t))))
        speed = fnp.divide(fnp.subtract(t, 1), later)
        ahead = fnp.add(new, fnp.multiply(speed, fnp.subtract(new, x)))
        return (new, ahead, later), None

    start = fnp.zeros_like(target)
    first = (start, start, fnp.ones((), dtype))
    (x, _, _), _ = lax.scan(step, first, length=iters, unroll=unroll)
    found: Array = x
    return found
