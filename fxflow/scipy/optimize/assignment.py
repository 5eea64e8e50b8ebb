"""Assignment problems, linear and quadratic, by SciPy's names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
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
    method: str = "faq",
    *,
    maximize: bool = False,
    partial_match: ArrayLike | None = None,
    partial_guess: ArrayLike | None = None,
    P0: Any = "barycenter",
    maxiter: int | None = None,
    tol: float = 0.03,
    key: Array | None = None,
) -> AssignmentResult:
    """Approximates the permutation p with the least sum of A[i, j] B[p[i], p[j]].

    The fast approximate algorithm, "faq", takes steps of Frank and Wolfe over doubly
    stochastic matrices, each with a linear assignment, and the permutation next to the
    last matrix. "2opt" exchanges two elements of a permutation as long as that helps:
    at each step those that help most, where SciPy takes the first that help.

    Args:
      A: float[n, n].
      B: float[n, n].
      method: "faq" or "2opt".
      maximize: whether to find the greatest sum.
      partial_match: int[m, 2]: pairs i, p[i] that are given.
      partial_guess: int[m, 2]: pairs to begin with, for "2opt"; other elements are
        paired in ascending order, or at random if there is a `key`.
      P0: the initial guess of "faq": "barycenter", "randomized", which needs `key`, or
        a doubly stochastic float[n, n].
      maxiter: the maximum number of steps; None is 30 for "faq", and no limit for
        "2opt".
      tol: the Frobenius norm of a step of "faq", over √n, at which to stop.
      key: a key of `fxflow.random`, in place of `rng`. SciPy's `options` are keyword
        arguments here.

    Returns:
      An `AssignmentResult`. Its `fun` has derivatives with respect to A and B.

    Raises:
      ArgumentError: there is no such method or `P0`, pairs are out of range or not
        distinct, an argument is of the other method, or "randomized" has no key.
      ShapeError: A and B are not square matrices of one size, or pairs are not
        int[m, 2].

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
    if method not in ("faq", "2opt"):
        raise ArgumentError(f'{name}: method must be "faq" or "2opt", got {method!r}')
    n = a.shape[0]
    if maxiter is None:
        maxiter = 30 if method == "faq" else int(np.iinfo(np.int32).max)
    most = natural(name, "maxiter", maxiter)
    first, second = (lax.stop_gradient(v) for v in (a, b))
    sign = -1.0 if maximize else 1.0
    fixed = _pairs(name, "partial_match", partial_match, n)
    if method == "2opt":
        if not isinstance(P0, str) or P0 != "barycenter":
            raise ArgumentError(f'{name}: P0 is of method "faq", not of "2opt"')
        start = _completed(
            [fixed, _pairs(name, "partial_guess", partial_guess, n)], n, key
        )
        free = fnp.ones(n, bool).at[fixed[:, 0]].set(False)
        columns, count = _exchanged(sign * first, second, start, free, most)
    else:
        if partial_guess is not None:
            raise ArgumentError(f'{name}: partial_guess is of method "2opt"')
        p = _initial(name, P0, n, a.dtype, key)
        columns, count = _by_steps(sign * first, second, p, fixed, most, tol)
    total = fnp.sum(a * b[columns][:, columns])
    return AssignmentResult(columns, total, count)


def _pairs(name: str, what: str, pairs: Any, n: int) -> Array:
    """Returns pairs of a row and a column, int32[m, 2].

    Raises:
      ArgumentError: an element is out of range, or not distinct.
      ShapeError: they are not int[m, 2].
    """
    given = fnp.zeros((0, 2), np.int32) if pairs is None else fnp.asarray(pairs)
    if given.size == 0:
        given = fnp.zeros((0, 2), np.int32)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ShapeError(f"{name}: {what} must be int[m, 2], got {given.aval}")
    if not isinstance(given, Tracer):
        host = np.asarray(given)
        if host.size and (host.min() < 0 or host.max() >= n):
            raise ArgumentError(
                f"{name}: {what} must be from 0 to {n - 1}, got {pairs}"
            )
        if any(np.unique(host[:, i]).size < len(host) for i in range(2)):
            raise ArgumentError(f"{name}: {what} must be distinct, got {pairs}")
    return given.astype(np.int32)


def _completed(parts: list[Array], n: int, key: Array | None) -> Array:
    """Returns the permutation of n elements with some pairs, int32[n].

    Args:
      parts: pairs; those of the first part are kept.
      n: the number of elements.
      key: for the others at random; None pairs them in ascending order.
    """
    columns = fnp.full(n, n, np.int32)
    taken = fnp.zeros(n, bool)
    for pairs in parts:
        row, column = pairs[:, 0], pairs[:, 1]
        new = (columns[row] == n) & ~taken[column]
        columns = columns.at[row].set(fnp.where(new, column, columns[row]))
        taken = taken.at[column].set(True)
    # The free ones come first, in order.
    open_ = columns == n
    rows = fnp.argsort(~open_, stable=True)
    if key is None:
        order = fnp.argsort(taken, stable=True)
    else:
        order = fnp.argsort(random.uniform(key, (n,)) + taken.astype("float32"))
    rest = fnp.zeros(n, np.int32).at[rows].set(order.astype(np.int32))
    return fnp.where(open_, rest, columns)


def _exchanged(
    a: Array, b: Array, start: Array, free: Array, maxiter: int
) -> tuple[Array, Array]:
    """Returns a permutation that no exchange improves, and the number of exchanges."""
    n = a.shape[0]
    if n < 2:
        return start, fnp.int32(0)
    both = free[:, None] & free & ~fnp.eye(n, dtype=bool)
    tiny = 8 * float(fnp.finfo(a.dtype).eps)
    scale = fnp.sum(fnp.abs(a)) * fnp.max(fnp.abs(b)) / n

    def gains(columns: Array) -> Array:
        """How the sum changes if the elements of i and j are exchanged."""
        c = b[columns][:, columns]
        out: Any = 0.0
        for u, v in ((a, c), (a.T, c.T)):
            products = fnp.matmul(u, v.T, precision="highest")
            own, ends = fnp.diag(products), (fnp.diag(u), fnp.diag(v))
            out = out + products + products.T - own[:, None] - own
            # Without the elements of the rows i and j that are exchanged themselves.
            out = out - (ends[0][:, None] - u.T) * (v.T - ends[1][:, None])
            out = out - (u - ends[0]) * (ends[1] - v)
        d, e = fnp.diag(a), fnp.diag(c)
        out = out + (d[:, None] - d) * (e - e[:, None])
        return fnp.asarray(out + (a - a.T) * (c.T - c))

    def step(s: Any) -> Any:
        columns, count, _ = s
        change = fnp.where(both, gains(columns), fnp.inf)
        best = fnp.argmin(change)
        i, j = best // n, best % n
        helps = change[i, j] < -tiny * scale
        swapped = columns.at[fnp.stack([i, j])].set(columns[fnp.stack([j, i])])
        return fnp.where(helps, swapped, columns), count + helps, ~helps

    begin = (start, np.int32(0), np.bool_(False))
    columns, count, _ = lax.while_loop(lambda s: ~s[2] & (s[1] < maxiter), step, begin)
    return columns, count


def _initial(name: str, P0: Any, n: int, dtype: Any, key: Array | None) -> Array:
    """Returns the doubly stochastic matrix to begin with."""
    if isinstance(P0, str):
        if P0 not in ("barycenter", "randomized") or (
            P0 == "randomized" and key is None
        ):
            raise ArgumentError(
                f'{name}: P0 must be "barycenter", "randomized" with key=, or a '
                f"matrix, got {P0!r}"
            )
        start = fnp.full((n, n), 1 / max(n, 1), dtype)
        if key is not None and P0 == "randomized":
            noise = random.uniform(key, (n, n), dtype)
            # Sinkhorn's balancing.
            for _ in range(10):
                noise = noise / fnp.sum(noise, 0)
                noise = noise / fnp.sum(noise, 1, keepdims=True)
            start = (start + noise) / 2
    else:
        start = fnp.asarray(P0, dtype)
    if start.shape != (n, n):
        raise ShapeError(f"{name}: P0 must be float[{n},{n}], got {start.aval}")
    return lax.stop_gradient(start)


def _by_steps(
    a: Array, b: Array, start: Array, fixed: Array, maxiter: int, tol: float
) -> tuple[Array, Array]:
    """Returns the permutation of Frank and Wolfe's steps, and their number."""
    n = a.shape[0]
    if not n:
        return fnp.zeros(0, np.int32), fnp.int32(0)
    rows, columns = fixed[:, 0], fixed[:, 1]
    given = fnp.zeros((n, n), bool).at[rows, columns].set(True)
    lines = (fnp.any(given, 0) | fnp.any(given, 1)[:, None]) & ~given

    def assigned(costs: Array) -> Array:
        if fixed.shape[0]:
            # A given pair is worth more than all others.
            most = 2 * n * (1 + fnp.max(fnp.abs(costs)))
            costs = fnp.where(given, -most, fnp.where(lines, most, costs))
        return hungarian_algorithm(costs)[1]

    def value(p: Array, q: Array) -> Array:
        """The bilinear form: tr(Aᵀ P B Qᵀ)."""
        return fnp.sum(a * (p @ b @ q.T))

    def step(c: Any) -> Any:
        p, count, _ = c
        slope = a @ p @ b.T + a.T @ p @ b
        way = fnp.eye(n, dtype=a.dtype)[assigned(slope)] - p
        # The objective along the way: curve t² + rate t.
        curve = value(way, way)
        rate = value(way, p) + value(p, way)
        inner = fnp.clip(-rate / fnp.where(curve == 0, 1, 2 * curve), 0, 1)
        t = fnp.where(curve > 0, inner, fnp.where(curve + rate < 0, 1, 0))
        new = p + t.astype(p.dtype) * way
        done = fnp.linalg.norm(t * way) / n**0.5 < tol
        return new, count + 1, done

    if fixed.shape[0]:
        # The rows and columns of the others keep their sums.
        open_ = max(n - fixed.shape[0], 1)
        scaled = fnp.where(lines | given, 0, start * (n / open_))
        start = fnp.where(given, 1, scaled).astype(start.dtype)
    p, count, _ = lax.while_loop(
        lambda c: ~c[2] & (c[1] < maxiter), step, (start, np.int32(0), np.bool_(False))
    )
    return assigned(-p), count
