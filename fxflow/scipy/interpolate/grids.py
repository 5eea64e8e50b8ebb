"""Interpolation between the points of a grid."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact

_NAME = "RegularGridInterpolator"
_METHODS = ("linear", "nearest")


@register_pytree_node_class
class RegularGridInterpolator:
    """A function that is known at the points of a grid.

    It is a pytree, so it passes through `jit`, `grad` and `vmap`.

    Args:
      points: for each axis of the grid a strictly ascending or descending real
        array-like[n], n ≥ 2.
      values: array-like[n1, …, nd, ...]: of the function at the points of the grid.
      method: "linear" or "nearest".
      bounds_error: not supported: compiled programs raise no errors.
      fill_value: what there is outside of the grid; None continues the outermost cells.

    Attributes:
      grid: the points, ascending.
      values: the values, in the order of the grid.
      method: the method.
      bounds_error: False.
      fill_value: the value outside.

    Raises:
      ArgumentError: there is no such method, `bounds_error` is asked for, or points
        neither ascend nor descend.
      ShapeError: points and values do not fit.

    Example:
      >>> x, y = np.array([0.0, 1.0]), np.array([0.0, 2.0, 4.0])
      >>> f = RegularGridInterpolator((x, y), np.arange(6.0).reshape(2, 3))
      >>> f(np.array([[0.5, 1.0], [2.0, 0.0]]))
      Array([ 2., nan], dtype=float32)

    Source: `scipy.interpolate.RegularGridInterpolator`.
    """

    grid: tuple[Array, ...]
    values: Array
    method: str
    bounds_error: bool
    fill_value: Any

    def __init__(
        self,
        points: Sequence[Any],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: float | None = float("nan"),
    ) -> None:
        _require_method(method)
        if bounds_error:
            raise ArgumentError(
                f"{_NAME}: compiled programs raise no errors, so bounds_error has no "
                "meaning: points outside give fill_value"
            )
        (data,) = promote_inexact(_NAME, values)
        grid = tuple(promote_inexact(_NAME, p)[0] for p in points)
        shape = tuple(p.aval.size for p in grid)
        lengths = data.aval.shape[: len(grid)]
        if any(p.aval.ndim != 1 for p in grid) or shape != lengths or min(shape) < 2:
            raise ShapeError(
                f"{_NAME}: each axis must have a vector of at least two points, "
                f"got {', '.join(str(p.aval) for p in grid)} for {data.aval}"
            )
        ordered = []
        for k, p in enumerate(grid):
            p, data = _ascending(p, data, k)
            ordered.append(p)
        self.grid, self.values, self.method = tuple(ordered), data, method
        self.bounds_error, self.fill_value = False, fill_value

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays, and the rest."""
        return (self.grid, self.values, self.fill_value), self.method

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> RegularGridInterpolator:
        """Returns an interpolator of its parts."""
        out = object.__new__(cls)
        out.grid, out.values, out.fill_value = children
        out.method, out.bounds_error = aux, False
        return out

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Returns values of the function.

        Args:
          xi: real array-like[*s, d], or a sequence of one array-like[*s] for each axis.
          method: in place of the interpolator's own.

        Returns:
          Array[*s, ...] of the dtype of the values. One point is a row of points.

        Raises:
          ArgumentError: there is no such method.
          ShapeError: the points have another number of coordinates.
        """
        method = self.method if method is None else method
        _require_method(method)
        d = len(self.grid)
        if isinstance(xi, tuple | list):
            xi = fnp.stack(fnp.broadcast_arrays(*xi), axis=-1)
        (xi,) = promote_inexact(_NAME, xi)
        xi = fnp.atleast_2d(xi) if d > 1 or not xi.aval.ndim else xi
        if d == 1 and xi.aval.ndim == 1:
            xi = xi[:, None]
        if xi.aval.shape[-1] != d:
            raise ShapeError(
                f"{_NAME}: points must have {d} coordinates, got {xi.aval}"
            )
        axes: list[list[tuple[Any, Any]]] = []
        outside: Any = False
        lost: Any = False
        for k, points in enumerate(self.grid):
            x, p = promote_inexact(_NAME, xi[..., k], points)
            i = fnp.clip(fnp.searchsorted(p, x) - 1, 0, p.aval.size - 2)
            part = (x - p[i]) / (p[i + 1] - p[i])
            if method == "linear":
                axes.append([(i, 1 - part), (i + 1, part)])
            else:
                axes.append([(fnp.where(part <= 0.5, i, i + 1), None)])
            outside = outside | (x < p[0]) | (x > p[-1])
            lost = lost | (x != x)
        dtype = self.values.dtype
        rest = self.values.ndim - d

        def spread(weight: Any) -> Any:
            return fnp.reshape(weight, (*weight.shape, *(1,) * rest))

        parts = []
        for corner in itertools.product(*axes):
            value = self.values[tuple(i for i, _ in corner)]
            weights = [spread(w) for _, w in corner if w is not None]
            parts.append(functools.reduce(operator.mul, weights, value))
        out = functools.reduce(operator.add, parts)
        if self.fill_value is not None:
            out = fnp.where(spread(outside), self.fill_value, out)
        return convert(fnp.where(spread(lost), fnp.nan, out), dtype)


def _ascending(points: Array, values: Array, axis: int) -> tuple[Array, Array]:
    """Returns points of an axis in ascending order, and the values in that order."""
    if type(points) is Array:
        steps = np.diff(np.asarray(points))
        if np.all(steps > 0):
            return points, values
        if not np.all(steps < 0):
            raise ArgumentError(
                f"{_NAME}: points of axis {axis} must be strictly ascending or "
                "descending"
            )
        return fnp.flip(points), fnp.flip(values, axis)
    down = points[0] > points[-1]
    flipped = fnp.where(down, fnp.flip(values, axis), values)
    return fnp.where(down, fnp.flip(points), points), flipped


def _require_method(method: str) -> None:
    if method not in _METHODS:
        raise ArgumentError(
            f'{_NAME}: method must be "linear" or "nearest", got {method!r}'
        )
