"""One polynomial through all points, and one rule for each interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._intervals import spread
from fxflow.scipy.interpolate.bsplines import BSpline, make_interp_spline


@library()
def _barycentric(x: Array, y: Array, w: Array, at: Array) -> Array:
    """Returns the polynomial at points, array[*points, ...]."""
    flat = fnp.reshape(at, -1)
    apart = flat[:, None] - x
    hit = apart == 0
    parts = w / fnp.where(hit, 1, apart)
    rows = fnp.reshape(y, (y.aval.shape[0], -1))
    top = fnp.matmul(parts.astype(rows.aval.dtype), rows, precision="highest")
    bottom = fnp.sum(parts, 1)[:, None]
    there = fnp.any(hit, 1)
    exact = rows[fnp.argmax(hit, 1)]
    # At a point the formula is 0 / 0: its value is known, its slope a limit.
    safe = fnp.where(there[:, None], 1, bottom)
    out = fnp.where(there[:, None], exact, top / safe)
    return fnp.reshape(out, (*at.aval.shape, *y.aval.shape[1:]))


@library()
def _slopes(x: Array, y: Array, w: Array) -> Array:
    """Returns the derivatives of the polynomial at its nodes, array[n, ...]."""
    eye = np.eye(x.aval.size, dtype=bool)
    apart = fnp.where(eye, 1, x[:, None] - x)
    matrix = fnp.where(eye, 0, (w / w[:, None]) / apart)
    # Rows sum to 0, as the derivative of a constant does.
    matrix = matrix - fnp.where(eye, fnp.sum(matrix, 1)[:, None], 0)
    rows = fnp.reshape(y, (y.aval.shape[0], -1))
    out = fnp.matmul(matrix.astype(rows.aval.dtype), rows, precision="highest")
    return fnp.reshape(out, y.aval.shape)


@register_pytree_node_class
class BarycentricInterpolator:
    """The polynomial through all points, by the barycentric formula.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the values
    and the point of evaluation between the nodes.

    Args:
      xi: real array-like[n]: points, all different; Chebyshev nodes are the best.
      yi: array-like[..., n, ...]: values.
      axis: the axis of the points.
      wi: array-like[n]: the weights, if they are known.
      rng: has no effect: SciPy takes the points in an order at random; here products
        are scaled instead.

    Attributes:
      xi: the points.
      yi: the values, array[n, ...].
      wi: the weights.
      axis: as given.

    Raises:
      ArgumentError: two points are equal.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.array([0.0, 1.0, 3.0])
      >>> BarycentricInterpolator(x, x**2)(2.0).round(3)
      Array(4., dtype=float32)

    Source: `scipy.interpolate.BarycentricInterpolator`. J.-P. Berrut and L. N.
    Trefethen, Barycentric Lagrange Interpolation, 2004.
    """

    xi: Array
    yi: Array
    wi: Array
    axis: int

    def __init__(
        self,
        xi: ArrayLike,
        yi: ArrayLike,
        axis: int = 0,
        *,
        wi: ArrayLike | None = None,
        rng: Any = None,
    ) -> None:
        name = "BarycentricInterpolator"
        x, y = promote_inexact(name, fnp.asarray(xi), fnp.asarray(yi))
        x = fnp.real(x)
        axis = canonical_axis(name, axis, y.aval.ndim)
        y = fnp.moveaxis(y, axis, 0)
        if x.aval.ndim != 1 or x.aval.size != y.aval.shape[0] or not x.aval.size:
            raise ShapeError(
                f"{name}: xi must be a vector of as many points as yi has values along "
                f"axis {axis}, got {x.aval} and {y.aval}"
            )
        if not isinstance(x, Tracer) and np.unique(x).size < x.aval.size:
            raise ArgumentError(f"{name}: points must be different")
        if wi is None:
            # In a unit of a quarter of the range products neither overflow nor vanish.
            scale = (fnp.max(x) - fnp.min(x)) / 4
            apart = (x[:, None] - x) / fnp.where(scale == 0, 1, scale)
            w = 1 / fnp.prod(apart + np.eye(x.aval.size), 1)
        else:
            w = fnp.asarray(wi, x.dtype)
        self.xi, self.yi, self.wi, self.axis = x, y, w.astype(x.dtype), axis

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Returns the arrays, and the axis."""
        return (self.xi, self.yi, self.wi), self.axis

    @classmethod
    def tree_unflatten(cls, aux: int, children: Any) -> BarycentricInterpolator:
        """Rebuilds a polynomial from its parts."""
        out = object.__new__(cls)
        out.xi, out.yi, out.wi = children
        out.axis = aux
        return out

    def __call__(self, x: ArrayLike) -> Array:
        """Returns values of the polynomial.

        Args:
          x: real array-like[*s].

        Returns:
          Array with *s in place of the axis of the points.
        """
        at, points = promote_inexact("BarycentricInterpolator", x, self.xi)
        return self._turned(_barycentric(points, self.yi, self.wi, at), at.aval.ndim)

    def _turned(self, out: Array, d: int) -> Array:
        """Moves the axes of the points of evaluation to where the nodes were."""
        if self.axis and d:
            return fnp.moveaxis(out, range(d), range(self.axis, self.axis + d))
        return out

    def derivatives(self, x: ArrayLike, der: int | None = None) -> Array:
        """Returns values and derivatives of the polynomial.

        Args:
          x: real array-like[*s].
          der: how many, the value included; None is n, beyond which they are 0.

        Returns:
          Array with an axis of `der` before those of the values.

        Raises:
          ArgumentError: `der` is not positive.
        """
        name = "BarycentricInterpolator.derivatives"
        n = int(self.xi.shape[0])
        count = n if der is None else natural(name, "der", der)
        at, points = promote_inexact(name, x, self.xi)
        rows, values = [self(at)], self.yi
        for _ in range(1, count):
            values = _slopes(self.xi, values, self.wi)
            there = _barycentric(points, values, self.wi, at)
            rows.append(self._turned(there, at.aval.ndim))
        return fnp.stack(rows)

    def derivative(self, x: ArrayLike, der: int = 1) -> Array:
        """Returns a derivative of the polynomial.

        Args:
          x: real array-like[*s].
          der: the order.

        Returns:
          Array with *s in place of the axis of the points.

        Raises:
          ArgumentError: `der` is negative.
        """
        order = natural("BarycentricInterpolator.derivative", "der", der, 0)
        return self.derivatives(x, order + 1)[-1]


def barycentric_interpolate(
    xi: ArrayLike,
    yi: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    *,
    der: int | Sequence[int] | None = 0,
    rng: Any = None,
) -> Array:
    """Returns values of the polynomial through points, or of its derivatives.

    Args:
      xi: real array-like[n]: points, all different.
      yi: array-like[..., n, ...]: values.
      x: real array-like[*s]: where to evaluate it.
      axis: the axis of the points.
      der: the order of the derivative; a sequence of orders, or None for all of them up
        to n - 1, makes a first axis of the result.
      rng: has no effect: SciPy takes the points in an order at random; here products
        are scaled instead.

    Returns:
      Array with *s in place of the axis of the points.

    Raises:
      ArgumentError: two points are equal, or an order is negative.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.array([0.0, 1.0, 3.0])
      >>> barycentric_interpolate(x, x**2, 2.0).round(3)
      Array(4., dtype=float32)

    Source: `scipy.interpolate.barycentric_interpolate`.
    """
    f = BarycentricInterpolator(xi, yi, axis)
    if isinstance(der, int | np.integer):
        return f.derivative(x, int(der)) if der else f(x)
    n = int(f.xi.shape[0])
    orders = range(n) if der is None else [int(k) for k in der]
    count = max(orders, default=-1) + 1
    every = f.derivatives(x, count) if count else fnp.zeros((0, *f(x).shape))
    return every[np.asarray(orders, int)]


_DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("linear", "nearest", "nearest-up", "previous", "next")


@register_pytree_node_class
class interp1d:
    """A function of one variable through samples.

    Args:
      x: real array-like[n]: points, all different.
      y: array-like[..., n, ...]: values.
      kind: "linear"; "nearest", of two that are equally near the first one, or
        "nearest-up", the last one; "previous", "next"; "zero", "slinear", "quadratic",
        "cubic" or a degree, splines.
      axis: the axis of the points.
      copy: has no effect.
      bounds_error: not supported: compiled programs raise no errors.
      fill_value: what there is beyond the points: a value, a pair of them for both
        sides, or "extrapolate".
      assume_sorted: whether `x` ascends: else samples are sorted.

    Attributes:
      x: the points, ascending.
      y: the values in their order, array[n, ...].
      kind: as given.
      axis: as given.
      fill_value: the values on both sides, or "extrapolate".

    Raises:
      ArgumentError: there is no such `kind`, or `bounds_error` is asked for.
      ShapeError: the shapes are incompatible.

    Example:
      >>> f = interp1d(np.array([0.0, 1.0, 2.0]), np.array([0.0, 10.0, 0.0]))
      >>> f(np.array([0.5, 3.0]))
      Array([ 5., nan], dtype=float32)

    Source: `scipy.interpolate.interp1d`.
    """

    x: Array
    y: Array
    kind: str | int
    axis: int
    fill_value: Any
    _spline: BSpline | None

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        kind: str | int = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        name = "interp1d"
        if bounds_error:
            raise ArgumentError(
                f"{name}: compiled programs raise no errors, so bounds_error has no "
                "meaning: points beyond give fill_value"
            )
        known = isinstance(kind, int) or kind in _STEPS or kind in _DEGREES
        if not known:
            listed = ", ".join(f'"{k}"' for k in (*_STEPS, *_DEGREES))
            raise ArgumentError(
                f"{name}: kind must be one of {listed} or a degree, got {kind!r}"
            )
        points, values = promote_inexact(name, fnp.asarray(x), fnp.asarray(y))
        points = fnp.real(points)
        axis = canonical_axis(name, axis, values.aval.ndim)
        values = fnp.moveaxis(values, axis, 0)
        if points.aval.ndim != 1 or points.aval.size != values.aval.shape[0]:
            raise ShapeError(
                f"{name}: x must be a vector of as many points as y has values along "
                f"axis {axis}, got {points.aval} and {values.aval}"
            )
        if points.aval.size < 1:
            raise ShapeError(f"{name}: there must be at least one point")
        if not assume_sorted:
            order = fnp.argsort(points)
            points, values = points[order], values[order]
        self.x, self.y, self.kind, self.axis = points, values, kind, axis
        if isinstance(fill_value, str):
            if fill_value != "extrapolate":
                raise ArgumentError(
                    f'{name}: fill_value must be values or "extrapolate", got '
                    f"{fill_value!r}"
                )
            self.fill_value = fill_value
        elif isinstance(fill_value, tuple):
            self.fill_value = tuple(fnp.asarray(v) for v in fill_value)
        else:
            self.fill_value = (fnp.asarray(fill_value),) * 2
        self._spline = None
        if kind not in _STEPS:
            degree = kind if isinstance(kind, int) else _DEGREES[kind]
            self._spline = make_interp_spline(points, values, degree)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        text = self.fill_value if isinstance(self.fill_value, str) else None
        fill = None if text else self.fill_value
        return (self.x, self.y, self._spline, fill), (self.kind, self.axis, text)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> interp1d:
        """Rebuilds a function from its parts."""
        out = object.__new__(cls)
        out.x, out.y, out._spline, fill = children
        out.kind, out.axis, text = aux
        out.fill_value = text or fill
        return out

    def __call__(self, x: ArrayLike) -> Array:
        """Returns values of the function.

        Args:
          x: real array-like[*s].

        Returns:
          Array with *s in place of the axis of the points.
        """
        at, points = promote_inexact("interp1d", fnp.asarray(x), self.x)
        out = self._inside(at, points)
        if not isinstance(self.fill_value, str):
            below, above = self.fill_value
            out = fnp.where(spread(at < points[0], out, 0), below, out)
            out = fnp.where(spread(at > points[-1], out, 0), above, out)
        out = fnp.where(spread(at != at, out, 0), fnp.nan, out).astype(self.y.dtype)
        d = at.aval.ndim
        if self.axis and d:
            return fnp.moveaxis(out, range(d), range(self.axis, self.axis + d))
        return out

    def _inside(self, at: Array, points: Array) -> Array:
        if self._spline is not None:
            return self._spline(at)
        n = points.aval.size
        if n == 1:
            return fnp.broadcast_to(self.y[0], (*at.aval.shape, *self.y.shape[1:]))
        if self.kind in ("nearest", "nearest-up"):
            middle = (points[1:] + points[:-1]) / 2
            side = "left" if self.kind == "nearest" else "right"
            return self.y[fnp.searchsorted(middle, at, side=side)]
        if self.kind in ("previous", "next"):
            # There is none before the first point, or after the last one.
            before = self.kind == "previous"
            i = (
                fnp.searchsorted(points, at, side="right" if before else "left")
                - before
            )
            out = self.y[fnp.clip(i, 0, n - 1)]
            return fnp.where(spread((i < 0) | (i > n - 1), out, 0), fnp.nan, out)
        i = fnp.clip(fnp.searchsorted(points, at) - 1, 0, n - 2)
        low, high = self.y[i], self.y[i + 1]
        part = (at - points[i]) / (points[i + 1] - points[i])
        return low + (high - low) * spread(part, low, 0)
