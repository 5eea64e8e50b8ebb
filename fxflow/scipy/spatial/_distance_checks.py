"""What arrays of distances are, and of how many points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow.core.arrays import is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike


def _known(function: str, x: Any) -> np.ndarray[Any, Any]:
    if isinstance(x, Tracer):
        raise ArgumentError(f"{function}: distances must be known, got a traced {x}")
    return np.asarray(x)


def _warned(name: str | None) -> str:
    return "" if name is None else f" '{name}'"


def is_valid_dm(
    D: ArrayLike,
    tol: float = 0.0,
    throw: bool = False,
    name: str | None = None,
    warning: bool = False,
) -> bool:
    """Returns whether an array is a table of distances: symmetric, 0 on the diagonal.

    Args:
      D: array-like, known (not traced).
      tol: how far it may be from it.
      throw: whether to raise an error instead.
      name: what the error calls the array.
      warning: has no effect.

    Returns:
      A bool.

    Raises:
      ArgumentError: it is not symmetric, or not 0 on the diagonal, and `throw`; or it
        is traced.
      ShapeError: it is not a square matrix, and `throw`.

    Example:
      >>> is_valid_dm(np.array([[0.0, 1.0], [1.0, 0.0]]))
      True

    Source: `scipy.spatial.distance.is_valid_dm`.
    """
    x = _known("is_valid_dm", D)
    called = f"is_valid_dm: the distance matrix{_warned(name)}"
    square = x.ndim == 2 and x.shape[0] == x.shape[1]
    if not square:
        if throw:
            raise ShapeError(f"{called} must be square, got shape {x.shape}")
        return False
    bound = float(tol)
    if not (abs(x - x.T) <= bound).all():
        if throw:
            raise ArgumentError(f"{called} must be symmetric within {bound}")
        return False
    if not (abs(np.diagonal(x)) <= bound).all():
        if throw:
            raise ArgumentError(f"{called} must be 0 on the diagonal within {bound}")
        return False
    return True


def _points(count: int) -> int:
    """Returns the number of points that have `count` pairs; 0 if there is none."""
    n = (1 + math.isqrt(1 + 8 * count)) // 2
    return n if n * (n - 1) // 2 == count else 0


def is_valid_y(
    y: ArrayLike, warning: bool = False, throw: bool = False, name: str | None = None
) -> bool:
    """Returns whether an array may be the distances of all pairs of some points.

    Args:
      y: array-like.
      warning: has no effect.
      throw: whether to raise an error instead.
      name: what the error calls the array.

    Returns:
      A bool: whether it is a vector of n (n - 1) / 2 distances, n ≥ 2.

    Raises:
      ShapeError: it is not, and `throw`.

    Example:
      >>> is_valid_y(np.ones(3)), is_valid_y(np.ones(4))
      (True, False)

    Source: `scipy.spatial.distance.is_valid_y`.
    """
    shape = _shape("is_valid_y", y)
    fits = len(shape) == 1 and shape[0] > 0 and bool(_points(shape[0]))
    if throw and not fits:
        raise ShapeError(
            f"is_valid_y: the distances{_warned(name)} must be a vector of n (n - 1) / "
            f"2 numbers, got shape {shape}"
        )
    return fits


def _shape(name: str, x: Any) -> tuple[int, ...]:
    if not is_arraylike(x):
        raise ArgumentError(f"{name}: takes an array, got {x!r}")
    return tuple(typeof(x).shape)


def num_obs_dm(d: ArrayLike) -> int:
    """Returns of how many points a square matrix has the distances.

    Args:
      d: array-like[n, n].

    Returns:
      An int.

    Raises:
      ShapeError: it is not a square matrix.

    Example:
      >>> num_obs_dm(np.zeros((3, 3)))
      3

    Source: `scipy.spatial.distance.num_obs_dm`, which also checks the numbers:
    `is_valid_dm` does.
    """
    shape = _shape("num_obs_dm", d)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"num_obs_dm: d must be a square matrix, got shape {shape}")
    return shape[0]


def num_obs_y(Y: ArrayLike) -> int:
    """Returns of how many points a vector has the distances of all pairs.

    Args:
      Y: array-like[n (n - 1) / 2].

    Returns:
      An int.

    Raises:
      ShapeError: it is not a vector of n (n - 1) / 2 numbers.

    Example:
      >>> num_obs_y(np.ones(6))
      4

    Source: `scipy.spatial.distance.num_obs_y`.
    """
    is_valid_y(Y, throw=True, name="Y")
    return _points(_shape("num_obs_y", Y)[0])
