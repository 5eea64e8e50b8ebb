"""The Rosenbrock function, and checks of derivatives by differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.optimize._problems import vector_of
from fxflow.transforms.vmap import vmap


def _points(name: str, given: Any, least: int = 1) -> Array:
    x = promote_inexact(name, given)[0]
    if x.ndim < 1 or x.shape[0] < least:
        raise ShapeError(f"{name}: x must be float[n, ...], n ≥ {least}, got {x.aval}")
    return x


@library()
def rosen(x: ArrayLike) -> Array:
    """Returns the Rosenbrock function, whose minimum is 0, where all elements are 1.

    Args:
      x: float[n, ...].

    Returns:
      float[...]: the sum of 100 (x[i+1] - x[i]²)² + (1 - x[i])².

    Raises:
      ShapeError: x is 0-d or empty.

    Example:
      >>> float(rosen(fnp.array([1.0, 2.0])))
      100.0

    Source: `scipy.optimize.rosen`.
    """
    x = _points("rosen", x)
    return fnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2, 0)


@library()
def rosen_der(x: ArrayLike) -> Array:
    """Returns the gradient of the Rosenbrock function.

    Args:
      x: float[n, ...], n ≥ 2.

    Returns:
      float[n, ...].

    Raises:
      ShapeError: x is 0-d, or has fewer than two elements.

    Example:
      >>> rosen_der(fnp.array([1.0, 2.0]))
      Array([-400.,  200.], dtype=float32)

    Source: `scipy.optimize.rosen_der`.
    """
    x = _points("rosen_der", x, 2)
    rest = x[1:] - x[:-1] ** 2
    zero = fnp.zeros_like(x[:1])
    left = -400 * x[:-1] * rest - 2 * (1 - x[:-1])
    return fnp.concatenate([left, zero]) + fnp.concatenate([zero, 200 * rest])


@library()
def rosen_hess(x: ArrayLike) -> Array:
    """Returns the Hessian of the Rosenbrock function.

    Args:
      x: float[n], n ≥ 2.

    Returns:
      float[n, n].

    Raises:
      ShapeError: x is not a vector, or has fewer than two elements.

    Example:
      >>> rosen_hess(fnp.array([1.0, 2.0]))
      Array([[ 402., -400.],
             [-400.,  200.]], dtype=float32)

    Source: `scipy.optimize.rosen_hess`.
    """
    x = _points("rosen_hess", x, 2)
    if x.ndim != 1:
        raise ShapeError(f"rosen_hess: x must be float[n], got {x.aval}")
    zero = fnp.zeros_like(x[:1])
    beside = -400 * x[:-1]
    left = 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    diagonal = fnp.concatenate([left, zero])
    diagonal = diagonal + fnp.concatenate([zero, fnp.full_like(left, 200)])
    return fnp.diag(diagonal) + fnp.diag(beside, 1) + fnp.diag(beside, -1)


@library()
def rosen_hess_prod(x: ArrayLike, p: ArrayLike) -> Array:
    """Returns the product of the Hessian of the Rosenbrock function and a vector.

    Args:
      x: float[n], n ≥ 2.
      p: float[n].

    Returns:
      float[n].

    Raises:
      ShapeError: x is not a vector, has fewer than two elements, or p is not like it.

    Example:
      >>> rosen_hess_prod(fnp.array([1.0, 2.0]), fnp.array([1.0, 0.0]))
      Array([ 402., -400.], dtype=float32)

    Source: `scipy.optimize.rosen_hess_prod`.
    """
    x, p = promote_inexact("rosen_hess_prod", x, p)
    x = _points("rosen_hess_prod", x, 2)
    if x.ndim != 1 or p.shape != x.shape:
        raise ShapeError(
            f"rosen_hess_prod: x and p must be float[n], got {x.aval} and {p.aval}"
        )
    zero = fnp.zeros_like(x[:1])
    beside = -400 * x[:-1]
    left = (1200 * x[:-1] ** 2 - 400 * x[1:] + 2) * p[:-1] + beside * p[1:]
    right = beside * p[:-1] + 200 * p[1:]
    return fnp.concatenate([left, zero]) + fnp.concatenate([zero, right])


def approx_fprime(
    xk: Any, f: Callable[..., Any], epsilon: ArrayLike | None = None, *args: Any
) -> Array:
    """Returns the gradient, or the Jacobian, by forward differences.

    Args:
      xk: float[n], or a list of numbers.
      f: function of x and `args` that returns a number or float[m].
      epsilon: the step, a number or float[n]; None means √ε, with the dtype's ε,
        relative to elements of at least 1.
      *args: extra arguments.

    Returns:
      float[n] or float[m, n].

    Raises:
      ShapeError: `xk` is a matrix.

    Example:
      >>> approx_fprime(fnp.array([1.0, 2.0]), lambda x: x[0] * x[1]).round(2)
      Array([2., 1.], dtype=float32)

    Source: `scipy.optimize.approx_fprime`.
    """
    x, unravel = vector_of("approx_fprime", xk)
    n = x.size
    steps: Any = epsilon
    if epsilon is None:
        root = math.sqrt(float(fnp.finfo(x.dtype).eps))
        steps = root * fnp.maximum(1, fnp.abs(x))
    steps = fnp.broadcast_to(fnp.asarray(steps, x.dtype), (n,))

    def value(x: Any) -> Any:
        return fnp.asarray(f(unravel(x), *args), x.dtype)

    first = value(x)
    moved = x + steps
    exact = lax.optimization_barrier(moved) - x  # what was really added
    points = x + fnp.diag(exact)
    rows = vmap(lambda p: value(p) - first)(points)
    slopes: Array = fnp.moveaxis(
        rows / fnp.reshape(exact, (n, *(1,) * first.ndim)), 0, -1
    )
    return slopes


def check_grad(
    func: Callable[..., Any],
    grad: Callable[..., Any],
    x0: Any,
    *args: Any,
    epsilon: ArrayLike | None = None,
    direction: str = "all",
    key: Array | None = None,
) -> Array:
    """Returns how far a gradient is from forward differences.

    Args:
      func: function of x and `args` that returns a number.
      grad: its gradient, called as `func` is.
      x0: float[n], where to compare.
      *args: extra arguments.
      epsilon: see `approx_fprime`.
      direction: "all", or "random" to compare along one direction only.
      key: the random key of that direction; SciPy's `rng`.

    Returns:
      The norm of the difference, 0-d.

    Raises:
      ArgumentError: there is no such direction, or "random" has no key.
      ShapeError: `x0` is a matrix.

    Example:
      >>> square = lambda x: (x**2).sum()
      >>> bool(check_grad(square, fxflow.grad(square), fnp.array([1.0, 2.0])) < 1e-2)
      True

    Source: `scipy.optimize.check_grad`.
    """
    x, unravel = vector_of("check_grad", x0)
    if direction == "all":
        found = approx_fprime(x, lambda x: func(unravel(x), *args), epsilon)
        given = fnp.ravel(fnp.asarray(grad(unravel(x), *args)))
        return fnp.sqrt(fnp.sum((found - given) ** 2))
    if direction != "random" or key is None:
        raise ArgumentError(
            'check_grad: direction must be "all", or "random" with key=, got '
            f"{direction!r}"
        )
    way = random.normal(key, x.shape, x.dtype)
    along = approx_fprime(
        fnp.zeros(1, x.dtype), lambda t: func(unravel(x + t[0] * way), *args), epsilon
    )
    given = fnp.ravel(fnp.asarray(grad(unravel(x), *args)))
    return fnp.abs(along[0] - given @ way)
