"""Largest eigenvalues and inverse roots of matrices, with matrix products only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax import Precision
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.tree import norm, scale, sub, vdot


def _square(name: str, matrix: Any) -> Any:
    """Returns a matrix as floats; raises unless it is a square matrix."""
    aval = typeof(matrix)
    if aval.ndim != 2 or aval.shape[0] != aval.shape[1]:
        raise ShapeError(f"{name}: expected a square matrix, got {aval}")
    if dtypes.is_inexact(aval.dtype):
        return matrix
    return fnp.astype(matrix, dtypes.default_float())


def power_iteration(
    matrix: ArrayLike | Callable[[Any], Any],
    *,
    v0: Any = None,
    num_iters: int = 100,
    error_tolerance: ArrayLike = 1e-6,
    precision: Precision = Precision.HIGHEST,
    key: Array | None = None,
) -> tuple[Array, Any]:
    """Returns a symmetric matrix's largest eigenvalue (in magnitude) and its vector.

    Args:
      matrix: float[n, n]; or a linear function of pytrees like `v0`.
      v0: the initial vector; None means a random vector.
      num_iters: maximum number of steps.
      error_tolerance: the norm of the vector's change, up to its sign, at which the
        iteration stops.
      precision: precision of the products.
      key: the random key of the initial vector; None means `random.key(0)`.

    Returns:
      The eigenvalue, 0-d, and its eigenvector, of norm 1.

    Raises:
      ArgumentError: `matrix` is a function, and `v0` is None.
      ShapeError: the matrix is not square.

    Special cases:
      If the vector becomes 0, as for the matrix 0, both results are 0.

    Example:
      >>> value, vector = optim.power_iteration(fnp.array([[2.0, 0.0], [0.0, 1.0]]))
      >>> round(float(value), 4), round(abs(float(vector[0])), 4)
      (2.0, 1.0)

    Source: von Mises, Pollaczek-Geiringer 1929.
    """
    if callable(matrix):
        product: Callable[[Any], Any] = matrix
        if v0 is None:
            raise ArgumentError(
                "power_iteration: pass v0, because the matrix is a function"
            )
    else:
        square = _square("power_iteration", matrix)
        aval = typeof(square)
        if v0 is None:
            first = random.key(0) if key is None else key
            v0 = random.normal(first, (aval.shape[0],), aval.dtype)

        def product(v: Any) -> Any:
            return fnp.matmul(square, v, precision=precision)

    def unit(v: Any) -> Any:
        size = norm(v)
        divisor = fnp.where(fnp.equal(size, 0), 1, size)
        return tree.map(lambda x: fnp.astype(x / divisor, typeof(x).dtype), v)

    def goes_on(carry: Any) -> Any:
        count, _, _, change = carry
        return fnp.logical_and(count < num_iters, change > error_tolerance)

    def step(carry: Any) -> Any:
        count, _, v, _ = carry
        z = product(v)
        value, new = vdot(v, z), unit(z)
        # With a negative eigenvalue, the vector changes its sign at every step.
        return count + 1, value, new, norm(sub(new, scale(fnp.sign(value), v)))

    start = unit(product(v0))
    value = fnp.zeros_like(vdot(start, start))
    change = fnp.full_like(norm(start), fnp.inf)
    carry = (fnp.zeros((), dtypes.int32), value, start, change)
    _, value, vector, _ = lax.while_loop(goes_on, step, carry)
    return value, vector


def matrix_inverse_pth_root(
    matrix: ArrayLike,
    p: int,
    num_iters: int = 100,
    ridge_epsilon: ArrayLike = 1e-6,
    error_tolerance: ArrayLike = 1e-6,
    precision: Precision = Precision.HIGHEST,
) -> tuple[Array, Array]:
    r"""Returns :math:`A^{-1/p}` of a symmetric positive semidefinite matrix.

    Args:
      matrix: A: float[n, n].
      p: the exponent, at least 1.
      num_iters: maximum number of steps.
      ridge_epsilon: added to the diagonal, as a fraction of the largest eigenvalue.
      error_tolerance: the error at which the iteration stops.
      precision: precision of the products.

    Returns:
      The root X, and the error: the largest element of :math:`|X^p A - I|`.

    Raises:
      ArgumentError: p is not an int, or is less than 1.
      ShapeError: the matrix is not square.

    Special cases:
      The matrix 0 gives nan.

    Example:
      >>> root, _ = optim.matrix_inverse_pth_root(fnp.array([[4.0, 0], [0, 16.0]]), 2)
      >>> root.round(3).tolist()
      [[0.5, 0.0], [0.0, 0.25]]

    Source: Guo, Higham 2006, "A Schur-Newton method for the matrix pth root and its
    inverse", the coupled iteration.
    """
    if isinstance(p, bool) or not isinstance(p, int) or p < 1:
        raise ArgumentError(
            f"matrix_inverse_pth_root: p must be an int, 1 or more, got {p!r}"
        )
    a = _square("matrix_inverse_pth_root", matrix)
    aval = typeof(a)
    one = fnp.eye(aval.shape[0], dtype=aval.dtype)
    largest, _ = power_iteration(a, precision=precision)
    a = fnp.add(a, fnp.multiply(fnp.multiply(ridge_epsilon, largest), one))

    def times(x: Any, y: Any) -> Any:
        return fnp.matmul(x, y, precision=precision)

    def power(x: Any) -> Any:
        out, rest = None, p
        while rest:
            if rest % 2:
                out = x if out is None else times(out, x)
            rest //= 2
            x = times(x, x) if rest else x
        return out

    def error_of(m: Any) -> Any:
        return fnp.max(fnp.abs(m - one), initial=0)

    def goes_on(carry: Any) -> Any:
        # The error grows only by rounding: then the previous root is the best.
        count, _, _, _, error, before = carry
        better = fnp.logical_or(count == 0, error < before)
        enough = fnp.logical_and(count < num_iters, error > error_tolerance)
        return fnp.logical_and(enough, better)

    def step(carry: Any) -> Any:
        count, m, root, _, error, _ = carry
        factor = (1 + 1 / p) * one - m / p
        m = times(power(factor), m)
        return count + 1, m, times(root, factor), root, error_of(m), error

    z = (1 + p) / (2 * norm(a))
    m = fnp.astype(z * a, aval.dtype)
    root = fnp.astype(fnp.power(z, 1 / p) * one, aval.dtype)
    start = error_of(m)
    carry = (fnp.zeros((), dtypes.int32), m, root, root, start, start)
    _, _, root, last, error, before = lax.while_loop(goes_on, step, carry)
    worse = error > before
    return fnp.where(worse, last, root), fnp.where(worse, before, error)
