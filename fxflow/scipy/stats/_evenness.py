"""How evenly points fill the unit cube: what `qmc` has of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact

_METHODS = ("CD", "WD", "MD", "L2-star")


def points_of(name: str, sample: Any) -> Any:
    (x,) = promote_inexact(name, sample)
    if x.aval.ndim != 2:
        raise ShapeError(f"{name}: the sample must be points, f32[n, d], got {x.aval}")
    return x


_METRICS = ("euclidean", "cityblock", "chebyshev", "sqeuclidean")


@library("method", "metric")
def geometric_discrepancy(
    sample: ArrayLike, method: str = "mindist", metric: str = "euclidean"
) -> Array:
    """Returns how far apart points are: the more, the more evenly they lie.

    The result has derivatives with respect to the points.

    Args:
      sample: real array-like[n, d], from 0 to 1, of at least two points.
      method: "mindist": the least distance of two points; "mst": the mean length of
        the edges of the least tree that connects all points.
      metric: "euclidean", "cityblock", "chebyshev" or "sqeuclidean".

    Returns:
      A float.

    Raises:
      ArgumentError: unknown method or metric.
      ShapeError: the sample is not an array of at least two points.

    Example:
      >>> x = np.array([[0.0, 0.0], [0.0, 0.5], [1.0, 0.5]])
      >>> geometric_discrepancy(x), geometric_discrepancy(x, "mst")
      (Array(0.5, dtype=float32), Array(0.75, dtype=float32))

    Source: `scipy.stats.qmc.geometric_discrepancy`.
    """
    name = "geometric_discrepancy"
    for what, given, known in (
        ("method", method, ("mindist", "mst")),
        ("metric", metric, _METRICS),
    ):
        if given not in known:
            listed = ", ".join(f'"{m}"' for m in known)
            raise ArgumentError(
                f"{name}: {what} must be one of {listed}, got {given!r}"
            )
    x = points_of(name, sample)
    n = x.aval.shape[0]
    if n < 2:
        raise ShapeError(f"{name}: takes at least two points, got {x.aval}")
    if method == "mindist":
        one, other = np.triu_indices(n, 1)
        found: Array = fnp.min(_apart(x[one] - x[other], metric))
        return found
    # Prim's tree: of the points outside the one that is nearest comes next.
    fixed = lax.stop_gradient(x)

    def step(i: Any, state: Any) -> Any:
        near, parent, outside, edges = state
        new = fnp.argmin(fnp.where(outside, near, math.inf)).astype(dtypes.int32)
        edges = edges.at[i].set(fnp.stack([new, parent[new]]))
        outside = outside.at[new].set(False)
        far = _apart(fixed - fixed[new], metric)
        closer = far < near
        return fnp.where(closer, far, near), fnp.where(closer, new, parent), *(
            outside, edges,
        )  # fmt: skip

    outside = fnp.arange(n) > 0
    state = (
        _apart(fixed - fixed[0], metric),
        fnp.zeros((n,), dtypes.int32),
        outside,
        fnp.zeros((n - 1, 2), dtypes.int32),
    )
    edges = lax.fori_loop(0, n - 1, step, state)[3]
    found = fnp.mean(_apart(x[edges[:, 0]] - x[edges[:, 1]], metric))
    return found


def _apart(difference: Any, metric: str) -> Any:
    """Returns distances along the last axis; that of a point from itself is flat."""
    size = abs(difference)
    if metric == "cityblock":
        return fnp.sum(size, axis=-1)
    if metric == "chebyshev":
        return fnp.max(size, axis=-1)
    square = fnp.sum(size * size, axis=-1)
    if metric == "sqeuclidean":
        return square
    none = square == 0
    return fnp.where(none, 0, lax.sqrt(fnp.where(none, 1, square)))


@library("iterative")
def discrepancy(
    sample: ArrayLike, *, iterative: bool = False, method: str = "CD"
) -> Array:
    """Returns how unevenly points fill the unit cube.

    All pairs are compared. The result has derivatives with respect to the points.

    Args:
      sample: real array-like[n, d], from 0 to 1.
      iterative: whether n + 1 points are counted, for `update_discrepancy`.
      method: "CD" centered, "WD" wrapped around, "MD" mixture, or "L2-star".

    Returns:
      A float.

    Raises:
      ArgumentError: unknown method.
      ShapeError: the sample is not an array of points.

    Example:
      >>> discrepancy(np.array([[0.25, 0.75], [0.75, 0.25]])).round(4)
      Array(0.0623, dtype=float32)

    Source: `scipy.stats.qmc.discrepancy`.
    """
    if method not in _METHODS:
        listed = ", ".join(f'"{m}"' for m in _METHODS)
        raise ArgumentError(
            f"discrepancy: method must be one of {listed}, got {method!r}"
        )
    x = points_of("discrepancy", sample)
    value: Array
    d = x.aval.shape[1]
    n = x.aval.shape[0] + bool(iterative)
    one, other = x[:, None, :], x[None, :, :]
    apart = abs(one - other)
    far, beyond = abs(one - 0.5), abs(other - 0.5)
    near = abs(x - 0.5)
    every: Any = lambda t: fnp.sum(fnp.prod(t, axis=-1))
    if method == "CD":
        first = every(1 + 0.5 * near - 0.5 * near * near)
        both = every(1 + 0.5 * far + 0.5 * beyond - 0.5 * apart)
        value = (13 / 12) ** d - 2 / n * first + both / n**2
        return value
    if method == "WD":
        value = -((4 / 3) ** d) + every(1.5 - apart * (1 - apart)) / n**2
        return value
    if method == "MD":
        first = every(5 / 3 - 0.25 * near - 0.25 * near * near)
        both = every(
            1.875 - 0.25 * far - 0.25 * beyond - 0.75 * apart + 0.5 * apart * apart
        )
        value = (19 / 12) ** d - 2 / n * first + both / n**2
        return value
    first = every(1 - x * x)
    both = every(1 - fnp.maximum(one, other))
    return lax.sqrt(3.0**-d - 2.0 ** (1 - d) / n * first + both / n**2)


@library()
def update_discrepancy(
    x_new: ArrayLike, sample: ArrayLike, initial_disc: ArrayLike
) -> Array:
    """Returns the centered discrepancy with another point.

    Args:
      x_new: real array-like[d]: the point.
      sample: real array-like[n, d]: the points that were there.
      initial_disc: their discrepancy, with `iterative=True`.

    Returns:
      A float.

    Raises:
      ShapeError: the sample is not an array of points, or the point is not one.

    Example:
      >>> x = np.array([[0.25, 0.75], [0.75, 0.25]])
      >>> update_discrepancy(x[1], x[:1], discrepancy(x[:1], iterative=True)).round(4)
      Array(0.0623, dtype=float32)

    Source: `scipy.stats.qmc.update_discrepancy`.
    """
    name = "update_discrepancy"
    x = points_of(name, sample)
    new, x, first = promote_inexact(name, x_new, x, initial_disc)
    if new.aval.shape != x.aval.shape[1:]:
        raise ShapeError(
            f"{name}: x_new must be f32[{x.aval.shape[1]}], got {new.aval}"
        )
    n = x.aval.shape[0] + 1
    far = abs(new - 0.5)
    alone = -2 / n * fnp.prod(1 + 0.5 * far - 0.5 * far * far)
    pairs = fnp.prod(1 + 0.5 * far + 0.5 * abs(x - 0.5) - 0.5 * abs(new - x), axis=1)
    return first + alone + 2 / n**2 * fnp.sum(pairs) + fnp.prod(1 + far) / n**2
