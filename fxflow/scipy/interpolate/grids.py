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
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.interpolate.bsplines import _interval, _weights, make_interp_spline
from fxflow.scipy.interpolate.piecewise import PchipInterpolator
from fxflow.transforms.vmap import vmap

_NAME = "RegularGridInterpolator"
#: Methods, and the degree of their polynomials.
_METHODS = {
    "linear": 1,
    "nearest": 0,
    "slinear": 1,
    "cubic": 3,
    "quintic": 5,
    "pchip": 3,
}


@register_pytree_node_class
class RegularGridInterpolator:
    """A function that is known at the points of a grid.

    It is a pytree, so it passes through `jit`, `grad` and `vmap`.

    Args:
      points: for each axis of the grid a strictly ascending or descending real
        array-like[n], n ≥ 2.
      values: array-like[n1, …, nd, ...]: of the function at the points of the grid.
      method: "linear", "slinear" (the same) or "nearest"; "cubic" or "quintic", splines
        whose coefficients are found anew in each call; "pchip", monotone cubics.
      bounds_error: whether points outside of the grid are an error. It needs points
        whose values are known: in `jit` give False and a `fill_value`.
      fill_value: what there is outside of the grid; None continues the outermost cells.

    Attributes:
      grid: the points, ascending.
      values: the values, in the order of the grid.
      method: the method.
      bounds_error: as given.
      fill_value: the value outside.

    Raises:
      ArgumentError: unknown method, or points neither ascend nor descend.
      ShapeError: points and values have incompatible shapes, or there are too few for
        the method.

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
        if not isinstance(points, Sequence | np.ndarray | Array):
            raise ArgumentError(
                f"{_NAME}: points must be a tuple of a vector for each axis, got "
                f"{points!r}"
            )
        if not isinstance(bounds_error, int | np.bool_):
            raise ArgumentError(
                f"{_NAME}: bounds_error must be a bool, got {bounds_error!r}"
            )
        (data,) = promote_inexact(_NAME, values)
        grid = tuple(promote_inexact(_NAME, p)[0] for p in points)
        shape = tuple(p.aval.size for p in grid)
        lengths = data.aval.shape[: len(grid)]
        vectors = bool(grid) and all(p.aval.ndim == 1 for p in grid)
        if not vectors or shape != lengths or min(shape) < 2:
            raise ShapeError(
                f"{_NAME}: each axis must have a vector of at least two points, "
                f"got {', '.join(str(p.aval) for p in grid)} for {data.aval}"
            )
        ordered = []
        for k, p in enumerate(grid):
            p, data = _ascending(p, data, k)
            ordered.append(p)
        _require_points(method, shape)
        self.grid, self.values, self.method = tuple(ordered), data, method
        self.bounds_error, self.fill_value = bool(bounds_error), fill_value

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        rest = self.method, self.bounds_error
        return (self.grid, self.values, self.fill_value), rest

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> RegularGridInterpolator:
        """Rebuilds an interpolator from its parts."""
        out = object.__new__(cls)
        out.grid, out.values, out.fill_value = children
        out.method, out.bounds_error = aux
        return out

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Returns values of the function.

        Args:
          xi: real array-like[*s, d], or a sequence of one array-like[*s] for each axis.
          method: in place of the interpolator's own.

        Returns:
          Array[*s, ...] of the dtype of the values. One point is a row of points.

        Raises:
          ArgumentError: unknown method, or with `bounds_error` a point lies outside of
            the grid.
          ConcretizationError: with `bounds_error` the points are traced.
          ShapeError: the points have the wrong number of coordinates, or the grid has
            too few points for the method.
        """
        method = self.method if method is None else method
        _require_method(method)
        _require_points(method, tuple(p.size for p in self.grid))
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
        outside: Any = False
        lost: Any = False
        places = []
        for k, points in enumerate(self.grid):
            x, p = promote_inexact(_NAME, xi[..., k], points)
            places.append(x)
            outside = outside | (x < p[0]) | (x > p[-1])
            lost = lost | (x != x)
        if self.bounds_error:
            _require_inside(outside)
        rest = self.values.ndim - d

        def spread(weight: Any) -> Any:
            return fnp.reshape(weight, (*weight.shape, *(1,) * rest))

        if method in ("cubic", "quintic"):
            out = _by_splines(self.grid, self.values, places, _METHODS[method])
        elif method == "pchip":
            out = _by_monotone_cubics(self.grid, self.values, places)
        else:
            out = _by_cells(self.grid, self.values, places, method == "nearest")
        if self.fill_value is not None:
            out = fnp.where(spread(outside), self.fill_value, out)
        return convert(fnp.where(spread(lost), fnp.nan, out), self.values.dtype)


def interpn(
    points: Sequence[Any],
    values: ArrayLike,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: float | None = float("nan"),
) -> Array:
    """Returns values between the points of a grid.

    Args:
      points: for each axis of the grid a strictly ascending or descending real
        array-like[n], n ≥ 2.
      values: array-like[n1, …, nd, ...]: of a function at the points of the grid.
      xi: real array-like[*s, d], or a sequence of one array-like[*s] for each axis.
      method: see `RegularGridInterpolator`.
      bounds_error: whether points outside of the grid are an error. It needs points
        whose values are known: in `jit` give False and a `fill_value`.
      fill_value: what there is outside of the grid; None continues the outermost cells.

    Returns:
      Array[*s, ...] of the dtype of the values.

    Raises:
      ArgumentError: unknown method, points of the grid neither ascend nor descend, or
        with `bounds_error` a point lies outside of the grid.
      ConcretizationError: with `bounds_error` the points `xi` are traced.
      ShapeError: points and values have incompatible shapes, or there are too few for
        the method.

    Example:
      >>> x, y = np.array([0.0, 1.0]), np.array([0.0, 2.0, 4.0])
      >>> interpn((x, y), np.arange(6.0).reshape(2, 3), np.array([[0.5, 1.0]]))
      Array([2.], dtype=float32)

    Source: `scipy.interpolate.interpn`.
    """
    found = RegularGridInterpolator(points, values, method, bounds_error, fill_value)
    return found(xi)


# -- methods ---------------------------------------------------------------------------


def _by_cells(
    grid: tuple[Array, ...], values: Array, places: list[Array], nearest: bool
) -> Array:
    """Returns values by the corners of the cells that points lie in."""
    axes: list[list[tuple[Any, Any]]] = []
    for points, x in zip(grid, places, strict=True):
        x, p = promote_inexact(_NAME, x, points)
        i = fnp.clip(fnp.searchsorted(p, x) - 1, 0, p.aval.size - 2)
        part = (x - p[i]) / (p[i + 1] - p[i])
        if nearest:
            axes.append([(fnp.where(part <= 0.5, i, i + 1), None)])
        else:
            axes.append([(i, 1 - part), (i + 1, part)])
    rest = (1,) * (values.ndim - len(grid))
    parts = []
    for corner in itertools.product(*axes):
        value = values[tuple(i for i, _ in corner)]
        weights = [fnp.reshape(w, w.shape + rest) for _, w in corner if w is not None]
        parts.append(functools.reduce(operator.mul, weights, value))
    return functools.reduce(operator.add, parts)


def _by_splines(
    grid: tuple[Array, ...], values: Array, places: list[Array], k: int
) -> Array:
    """Returns values of the tensor product of splines of degree k."""
    d, behind = len(grid), values.ndim - len(grid)
    front = places[0].ndim
    at, weights = [], []
    for axis, (points, x) in enumerate(zip(grid, places, strict=True)):
        x, points = promote_inexact(_NAME, x, points)
        spline = make_interp_spline(points, fnp.moveaxis(values, axis, 0), k)
        values = fnp.moveaxis(spline.c, 0, axis)
        # nan has no interval: any will do, and the caller puts nan there.
        x = fnp.where(x != x, points[0], x)
        i = _interval(spline.t, x, k)
        own = [1] * d
        own[axis] = k + 1
        places_ = i[..., None] + np.arange(-k, 1)
        at.append(fnp.reshape(places_, (*x.shape, *own)))
        row = fnp.stack(_weights(spline.t, x, k, i), -1)
        weights.append(fnp.reshape(row, (*x.shape, *own, *(1,) * behind)))
    out = values[tuple(at)] * functools.reduce(operator.mul, weights)
    return fnp.sum(out, tuple(range(front, front + d)))


def _by_monotone_cubics(
    grid: tuple[Array, ...], values: Array, places: list[Array]
) -> Array:
    """Returns values by monotone cubics along one axis after the other."""
    shape = places[0].shape
    flat = fnp.stack([fnp.reshape(x, (-1,)) for x in places], -1)

    def one(x: Array) -> Array:
        out = values
        for k in reversed(range(len(grid))):
            out = PchipInterpolator(grid[k], out, axis=k)(x[k])
        return out

    out = vmap(one)(flat)
    return fnp.reshape(out, shape + out.shape[1:])


def _require_inside(outside: Array) -> None:
    if isinstance(outside, Tracer):
        raise ConcretizationError(
            f"{_NAME}: bounds_error=True needs points whose values are known, and a "
            "trace does not know them: give bounds_error=False and a fill_value"
        )
    if bool(fnp.any(outside)):
        count = int(fnp.sum(outside))
        raise ArgumentError(
            f"{_NAME}: xi has {count} points outside of the grid: give "
            "bounds_error=False for fill_value there"
        )


def _require_points(method: str, shape: tuple[int, ...]) -> None:
    least = _METHODS[method] + 1
    if min(shape) < least:
        raise ShapeError(
            f"{_NAME}: method={method!r} needs at least {least} points in each axis, "
            f"got {shape}"
        )


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
    if not isinstance(method, str) or method not in _METHODS:
        listed = ", ".join(f'"{m}"' for m in _METHODS)
        raise ArgumentError(f"{_NAME}: method must be one of {listed}, got {method!r}")
