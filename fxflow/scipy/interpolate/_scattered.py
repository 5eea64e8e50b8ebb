"""What interpolators between points that lie anywhere have in common."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.numpy._operands import promote_inexact


def points_of(name: str, what: str, x: Any) -> Array:
    """Returns points of an array, or of a tuple of coordinates.

    Raises:
      ShapeError: they have no axis of coordinates.
    """
    if isinstance(x, tuple | list) and len(x) and all(fnp.ndim(v) for v in x):
        arrays = [fnp.asarray(v) for v in x]
        if isinstance(x, tuple):
            x = fnp.stack(fnp.broadcast_arrays(*arrays), -1)
    out: Array = promote_inexact(name, fnp.asarray(x))[0]
    if not out.aval.ndim:
        raise ShapeError(
            f"{name}: {what} must have an axis of coordinates, got {out.aval}"
        )
    return out


def scaled(points: Array, rescale: bool) -> tuple[Array, Array]:
    """Returns an offset and a scale that make coordinates alike."""
    if not rescale:
        d = points.aval.shape[1]
        return fnp.zeros(d, points.dtype), fnp.ones(d, points.dtype)
    low, high = fnp.min(points, 0), fnp.max(points, 0)
    return low, fnp.where(high > low, high - low, 1)


class Scattered:
    """Points with values."""

    points: Array
    values: Array

    def _set_points(self, name: str, x: Any, y: Any) -> None:
        points = points_of(name, "x", x)
        (values,) = promote_inexact(name, fnp.asarray(y))
        if points.aval.ndim == 1:
            points = points[:, None]
        n = points.aval.shape[0]
        fits = points.aval.ndim == 2 and values.aval.ndim and values.aval.shape[0] == n
        if not fits or not n:
            raise ShapeError(
                f"{name}: expected points [n, d] and values [n, ...], n > 0, got "
                f"{points.aval} and {values.aval}"
            )
        self.points, self.values = points, values

    def _queries(self, name: str, args: tuple[Any, ...]) -> tuple[Array, Any]:
        """Returns points as rows, and the shape of the points in the result."""
        d = self.points.shape[1]
        if len(args) > 1:
            xi = fnp.stack(fnp.broadcast_arrays(*map(fnp.asarray, args)), -1)
        else:
            xi = points_of(name, "xi", args[0])
            if d == 1 and (xi.ndim == 1 or xi.shape[-1] != 1):
                xi = xi[..., None]
        if xi.shape[-1] != d:
            raise ShapeError(f"{name}: points must have {d} coordinates, got {xi.aval}")
        xi = promote_inexact(name, xi, self.points)[0]
        return fnp.reshape(xi, (-1, d)), xi.shape[:-1]
