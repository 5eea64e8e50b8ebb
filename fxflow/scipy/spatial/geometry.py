"""Shapes laid upon each other, arcs on spheres, and tables of distances."""

from __future__ import annotations

import math
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.linalg.spaces import orthogonal_procrustes


@library()
def procrustes(data1: ArrayLike, data2: ArrayLike) -> tuple[Array, Array, Array]:
    """Lays one set of points upon another: turned, mirrored, scaled and moved.

    Args:
      data1: real array-like[m, d].
      data2: real array-like[m, d], or [m, k] with k < d: the rest is 0.

    Returns:
      The first set with its middle at 0 and the norm 1; the second set, laid upon it;
      and the sum of the squares of what is left, from 0 to 1.

    Raises:
      ShapeError: the sets have no points, or do not fit.

    Special cases:
      nan if all points of a set are one. (SciPy raises an error.)

    Example:
      >>> a = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
      >>> b = np.array([[1.0, 1.0], [1.0, 5.0], [3.0, 1.0]])
      >>> procrustes(a, b)[2].round(4) + 0.0
      Array(0., dtype=float32)

    Source: `scipy.spatial.procrustes`; J. Gower, Generalized Procrustes analysis, 1975.
    """
    x, y = promote_inexact("procrustes", data1, data2)
    fits = x.aval.ndim == y.aval.ndim == 2 and x.aval.shape[0] == y.aval.shape[0]
    if not fits or x.aval.shape[1] < y.aval.shape[1] or not y.aval.size:
        raise ShapeError(
            f"procrustes: expected points [m, d] and [m, k], k ≤ d, got {x.aval} and "
            f"{y.aval}"
        )
    y = fnp.pad(y, [(0, 0), (0, x.aval.shape[1] - y.aval.shape[1])])
    x, y = (v - fnp.mean(v, 0) for v in (x, y))
    x, y = (v / fnp.sqrt(fnp.sum(v * v)) for v in (x, y))
    turn, scale = orthogonal_procrustes(x, y)
    y = y @ turn.T * scale
    return x, y, fnp.sum(fnp.square(x - y))


@library("tol")
def geometric_slerp(
    start: ArrayLike, end: ArrayLike, t: ArrayLike, tol: float = 1e-7
) -> Array:
    """Returns points on the arc of a great circle from one point to another.

    Args:
      start: real array-like[d] of length 1, d ≥ 2.
      end: likewise.
      t: real array-like[] or [n]: 0 is the start, 1 the end.
      tol: has no effect.

    Returns:
      Float array[d] or [n, d].

    Raises:
      ShapeError: the points are not vectors of one length, or t has more than one axis.
      ArgumentError: they have fewer than two coordinates.

    Special cases:
      nan between opposite points, where the arc is not determined. Lengths other than 1
      and t beyond 0 and 1 are taken as they are. (SciPy raises errors.)

    Example:
      >>> geometric_slerp(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.5).round(4)
      Array([0.7071, 0.7071], dtype=float32)

    Source: `scipy.spatial.geometric_slerp`; K. Shoemake, Animating Rotation with
    Quaternion Curves, 1985.
    """
    x, y, at = promote_inexact("geometric_slerp", start, end, t)
    if x.aval.ndim != 1 or x.aval.shape != y.aval.shape:
        raise ShapeError(
            f"geometric_slerp: start and end must be vectors of one length, got "
            f"{x.aval} and {y.aval}"
        )
    if x.aval.size < 2:
        raise ArgumentError(
            f"geometric_slerp: points have two coordinates or more, got {x.aval}"
        )
    if at.aval.ndim > 1:
        raise ShapeError(f"geometric_slerp: t has at most one axis, got {at.aval}")
    apart, together = (fnp.sum(fnp.square(v)) for v in (x - y, x + y))
    some = apart > 0
    root = fnp.where(some, fnp.sqrt(fnp.where(some, apart, 1)), 0)
    angle = 2 * fnp.arctan2(root, fnp.sqrt(together)) / math.pi
    angle = fnp.where(together > 0, angle, fnp.nan)
    at = at[..., None]
    first, second = (1 - at) * fnp.sinc((1 - at) * angle), at * fnp.sinc(at * angle)
    return (first * x + second * y) / fnp.sinc(angle)


def _power(name: str, p: Any) -> float:
    """Returns the power of a Minkowski distance.

    Raises:
      ArgumentError: it is less than 1.
    """
    p = number(name, "p", p)
    if not p >= 1:
        raise ArgumentError(f"{name}: p must be at least 1, got {p}")
    return float(p)


@library("p")
def minkowski_distance_p(x: ArrayLike, y: ArrayLike, p: float = 2.0) -> Array:
    """Returns the p-th powers of the distances of vectors.

    Args:
      x: array-like[..., d].
      y: array-like[..., d], which broadcasts with x.
      p: a number from 1 to inf, where it is the distance itself.

    Returns:
      Float array[...].

    Raises:
      ArgumentError: p is less than 1.
      ShapeError: the vectors have incompatible shapes.

    Example:
      >>> minkowski_distance_p(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([3.0, 4.0]))
      Array([25., 13.], dtype=float32)

    Source: `scipy.spatial.minkowski_distance_p`.
    """
    name = "minkowski_distance_p"
    p = _power(name, p)
    a, b = promote_inexact(name, x, y)
    if not a.aval.ndim or not b.aval.ndim:
        raise ShapeError(f"{name}: takes vectors, got {a.aval} and {b.aval}")
    apart = fnp.abs(a - b)
    if p == math.inf:
        return fnp.max(apart, -1)
    if p == 2:
        return fnp.sum(apart * apart, -1)
    return fnp.sum(apart if p == 1 else apart**p, -1)


@library("p")
def minkowski_distance(x: ArrayLike, y: ArrayLike, p: float = 2.0) -> Array:
    """Returns the distances of vectors.

    Args:
      x: array-like[..., d].
      y: array-like[..., d], which broadcasts with x.
      p: a number from 1 to inf: 1, the sum of the differences; inf, the greatest one.

    Returns:
      Float array[...].

    Raises:
      ArgumentError: p is less than 1.
      ShapeError: the vectors have incompatible shapes.

    Special cases:
      The derivative of a distance of 0 is 0.

    Example:
      >>> minkowski_distance(np.zeros(2), np.array([3.0, 4.0]))
      Array(5., dtype=float32)

    Source: `scipy.spatial.minkowski_distance`.
    """
    p = _power("minkowski_distance", p)
    total: Array = minkowski_distance_p(x, y, p)
    if p in (1, math.inf):
        return total
    some = ~(total == 0)
    safe = fnp.where(some, total, 1)
    return fnp.where(some, fnp.sqrt(safe) if p == 2 else safe ** (1 / p), total)


@library("p", "threshold")
def distance_matrix(
    x: ArrayLike, y: ArrayLike, p: float = 2.0, threshold: int = 1000000
) -> Array:
    """Returns the distances of each vector of one set from each of another.

    Args:
      x: array-like[m, d].
      y: array-like[n, d].
      p: a number from 1 to inf.
      threshold: has no effect.

    Returns:
      Float array[m, n].

    Raises:
      ArgumentError: p is less than 1.
      ShapeError: the arguments are not vectors of one length.

    Special cases:
      The derivative of a distance of 0 is 0.

    Example:
      >>> distance_matrix(np.zeros((1, 2)), np.array([[3.0, 4.0], [0.0, 1.0]]))
      Array([[5., 1.]], dtype=float32)

    Source: `scipy.spatial.distance_matrix`.
    """
    a, b = promote_inexact("distance_matrix", x, y)
    if a.aval.ndim != 2 or b.aval.ndim != 2 or a.aval.shape[1] != b.aval.shape[1]:
        raise ShapeError(
            f"distance_matrix: expected vectors [m, d] and [n, d], got {a.aval} and "
            f"{b.aval}"
        )
    out: Array = minkowski_distance(a[:, None], b[None], p)
    return out
