"""Assignment problems, linear and quadratic, by SciPy's names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
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
      `cost_matrix[rows, columns].sum()`, has derivatives with respect to the costs.

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


class AssignmentResult(NamedTuple):
    """What `quadratic_assignment` returns.

    Attributes:
      col_ind: int32[n]: the permutation.
      fun: float: the objective of it.
      nit: int: the number of iterations.
    """

    col_ind: Array
    fun: Array
    nit: Array


def quadratic_assignment(
    A: ArrayLike,
    B: ArrayLike,
    *,
    maximize: bool = False,
    P0: Any = "barycenter",
    maxiter: int = 30,
    tol: float = 0.03,
    key: Array | None = None,
) -> AssignmentResult:
    """Approximates the permutation p with the least sum of A[i, j] B[p[i], p[j]].

    The fast approximate algorithm (SciPy's "faq"): steps of Frank and Wolfe over doubly
    stochastic matrices, each with a linear assignment, and the permutation next to the
    last matrix.

    Args:
      A: float[n, n].
      B: float[n, n].
      maximize: whether to find the greatest sum.
      P0: the initial guess: "barycenter", "randomized", which needs `key`, or a doubly
        stochastic float[n, n].
      maxiter: the maximum number of steps.
      tol: the Frobenius norm of a step, over √n, at which to stop.
      key: a key of `fxflow.random`, in place of `rng`. SciPy's other `options` are
        keyword arguments here; its method "2opt" is missing.

    Returns:
      An `AssignmentResult`. Its `fun` has derivatives with respect to A and B.

    Raises:
      ArgumentError: there is no such `P0`, or "randomized" has no key.
      ShapeError: A and B are not square matrices of one size.

    Example:
      >>> a = fnp.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
      >>> b = fnp.array([[0.0, 9.0, 4.0], [9.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
      >>> float(quadratic_assignment(a, b).fun)
      40.0

    Source: `scipy.optimize.quadratic_assignment`; J. Vogelstein and others 2015.
    """
    name = "quadratic_assignment"
    a, b = promote_inexact(name, fnp.asarray(A), fnp.asarray(B))
    if a.ndim != 2 or a.shape != b.shape or a.shape[0] != a.shape[1]:
        raise ShapeError(
            f"{name}: A and B must be square matrices of one size, got {a.aval} and "
            f"{b.aval}"
        )
    n = a.shape[0]
    maxiter = natural(name, "maxiter", maxiter)
    first, second = (lax.stop_gradient(v) for v in (a, b))
    if isinstance(P0, str):
        if P0 not in ("barycenter", "randomized") or (
            P0 == "randomized" and key is None
        ):
            raise ArgumentError(
                f'{name}: P0 must be "barycenter", "randomized" with key=, or a '
                f"matrix, got {P0!r}"
            )
        start = fnp.full((n, n), 1 / max(n, 1), a.dtype)
        if key is not None and P0 == "randomized":
            noise = random.uniform(key, (n, n), a.dtype)
            # Sinkhorn's balancing.
            for _ in range(10):
                noise = noise / fnp.sum(noise, 0)
                noise = noise / fnp.sum(noise, 1, keepdims=True)
            start = (start + noise) / 2
    else:
        start = fnp.asarray(P0, a.dtype)
    if start.shape != (n, n):
        raise ShapeError(f"{name}: P0 must be float[{n},{n}], got {start.aval}")
    sign = -1.0 if maximize else 1.0

    def permutation(costs: Array) -> Array:
        _, columns = hungarian_algorithm(costs)
        return fnp.eye(n, dtype=a.dtype)[columns]

    def value(p: Array, q: Array) -> Array:
        """The bilinear form: tr(Aᵀ P B Qᵀ)."""
        return fnp.sum(first * (p @ second @ q.T))

    def step(c: Any) -> Any:
        p, count, _ = c
        slope = first @ p @ second.T + first.T @ p @ second
        way = permutation(sign * slope) - p
        # The objective along the way: curve t² + rate t.
        curve = sign * value(way, way)
        rate = sign * (value(way, p) + value(p, way))
        inner = fnp.clip(-rate / fnp.where(curve == 0, 1, 2 * curve), 0, 1)
        t = fnp.where(curve > 0, inner, fnp.where(curve + rate < 0, 1, 0))
        new = p + t.astype(p.dtype) * way
        done = fnp.linalg.norm(t * way) / n**0.5 < tol
        return new, count + 1, done

    p = lax.stop_gradient(start)
    if n:
        p, count, _ = lax.while_loop(
            lambda c: ~c[2] & (c[1] < maxiter), step, (p, np.int32(0), np.bool_(False))
        )
        _, columns = hungarian_algorithm(-p)
    else:
        count, columns = fnp.int32(0), fnp.zeros(0, np.int32)
    total = fnp.sum(a * b[columns][:, columns])
    return AssignmentResult(columns, total, count)
