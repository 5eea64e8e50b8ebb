"""Splines of two variables on a grid."""

from __future__ import annotations

from typing import Any, TypeVar

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    _interval,
    _weights,
    make_interp_spline,
)

B = TypeVar("B", bound="BivariateSpline")


@register_pytree_node_class
class BivariateSpline:
    """A spline of two variables, made by the classes that derive from it.

    It is a pytree: it works under `jit`, `vmap` and `grad`. Beyond the knots it keeps
    the value at their edge.

    Attributes:
      tx: the knots of the first variable.
      ty: those of the second one.
      c: the coefficients, array[nx, ny].
      degrees: both degrees.

    Source: `scipy.interpolate.BivariateSpline`.
    """

    tx: Array
    ty: Array
    c: Array
    degrees: tuple[int, int]

    @property
    def _name(self) -> str:
        return type(self).__name__

    @classmethod
    def _of(cls: type[B], tx: Any, ty: Any, c: Any, degrees: tuple[int, int]) -> B:
        return cls.tree_unflatten(degrees, (tx, ty, c))

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[int, int]]:
        """Returns the arrays, and the degrees."""
        return (self.tx, self.ty, self.c), self.degrees

    @classmethod
    def tree_unflatten(cls: type[B], aux: Any, children: Any) -> B:
        """Rebuilds a spline from its parts."""
        out = object.__new__(cls)
        out.tx, out.ty, out.c = children
        out.degrees = aux
        return out

    def _partial(self, dx: int, dy: int) -> tuple[Array, Array, Array, tuple[int, int]]:
        """Returns knots, coefficients and degrees of a partial derivative."""
        t, c, k = [self.tx, self.ty], self.c, list(self.degrees)
        for axis, nu in enumerate((dx, dy)):
            nu = natural(self._name, ("dx", "dy")[axis], nu, 0)
            if nu > k[axis]:
                raise ArgumentError(
                    f"{self._name}: a derivative's order must be at most the "
                    f"degree, {k[axis]}, got {nu}"
                )
            f = BSpline._of(t[axis], fnp.moveaxis(c, axis, 0), k[axis], True, 0)
            f = f.derivative(nu)
            t[axis], k[axis] = f.t, f.k
            c = fnp.moveaxis(f.c, 0, axis)
        return t[0], t[1], c, (k[0], k[1])

    def ev(self, xi: ArrayLike, yi: ArrayLike, dx: int = 0, dy: int = 0) -> Array:
        """Returns values at points.

        Args:
          xi: real array-like[*s]: the first coordinates.
          yi: real array-like[*s]: the second ones.
          dx: the order of the derivative with respect to the first variable.
          dy: with respect to the second one.

        Returns:
          Array[*s].
        """
        tx, ty, c, (kx, ky) = self._partial(dx, dy)
        at = promote_inexact(self._name, xi, yi, c)[:2]
        x, y = fnp.broadcast_arrays(*at)
        rows = []
        for v, t, k in ((x, tx, kx), (y, ty, ky)):
            v = fnp.clip(v, t[k], t[t.shape[0] - k - 1])
            i = _interval(t, v, k)
            rows.append((i - k, _weights(t, v, k, i)))
        out: Any = 0.0
        for a, u in enumerate(rows[0][1]):
            for b, w in enumerate(rows[1][1]):
                out = out + c[rows[0][0] + a, rows[1][0] + b] * u * w
        return fnp.asarray(out)

    def __call__(
        self, x: ArrayLike, y: ArrayLike, dx: int = 0, dy: int = 0, grid: bool = True
    ) -> Array:
        """Returns values on a grid, or at points.

        Args:
          x: real array-like[m]: the first coordinates.
          y: real array-like[n]: the second ones.
          dx: the order of the derivative with respect to the first variable.
          dy: with respect to the second one.
          grid: whether each x is combined with each y.

        Returns:
          Array[m, n], or of the broadcast shape of points.
        """
        if not grid:
            return self.ev(x, y, dx, dy)
        x, y = fnp.atleast_1d(fnp.asarray(x)), fnp.atleast_1d(fnp.asarray(y))
        if x.ndim != 1 or y.ndim != 1:
            raise ShapeError(
                f"{self._name}: a grid's coordinates must be vectors, got "
                f"{x.aval} and {y.aval}"
            )
        tx, ty, c, (kx, ky) = self._partial(dx, dy)
        low, high = tx[kx], tx[tx.shape[0] - kx - 1]
        lines = BSpline._of(tx, c, kx, True, 0)(fnp.clip(x, low, high))
        low, high = ty[ky], ty[ty.shape[0] - ky - 1]
        return BSpline._of(ty, lines.T, ky, True, 0)(fnp.clip(y, low, high)).T

    def integral(self, xa: float, xb: float, ya: float, yb: float) -> Array:
        """Returns the integral over a rectangle.

        Args:
          xa: the first coordinate's lower bound.
          xb: its upper bound.
          ya: the second coordinate's lower bound.
          yb: its upper bound.

        Returns:
          Array[].
        """
        kx, ky = self.degrees
        line = BSpline._of(self.tx, self.c, kx, False, 0).integrate(xa, xb)
        return BSpline._of(self.ty, line, ky, False, 0).integrate(ya, yb)

    def get_coeffs(self) -> Array:
        """Returns the coefficients, one after the other."""
        return fnp.reshape(self.c, -1)

    def get_knots(self) -> tuple[Array, Array]:
        """Returns the knots of both variables."""
        return self.tx, self.ty

    def partial_derivative(self, dx: int, dy: int) -> BivariateSpline:
        """Returns the spline of a partial derivative.

        Args:
          dx: the order of the derivative with respect to the first variable, below the
            degree.
          dy: with respect to the second one.

        Returns:
          BivariateSpline of lower degrees.

        Raises:
          ArgumentError: an order is negative or not below the degree.
        """
        for axis, nu in enumerate((dx, dy)):
            if nu >= self.degrees[axis]:
                raise ArgumentError(
                    f"{self._name}: a derivative's order must be below the degree, "
                    f"{self.degrees[axis]}, got {nu}"
                )
        return BivariateSpline._of(*self._partial(dx, dy))


@register_pytree_node_class
class RectBivariateSpline(BivariateSpline):
    """The spline of two variables through values on a grid.

    It is a pytree: it works under `jit`, `vmap` and `grad`. Beyond the grid it keeps
    the value at its edge.

    Args:
      x: real array-like[m]: the first coordinates, strictly ascending.
      y: real array-like[n]: the second ones.
      z: real array-like[m, n]: the values.
      bbox: the ends of both intervals, all None: those of the coordinates.
      kx: the degree in the first variable.
      ky: in the second one.
      s: 0: there is no smoothing.

    Attributes:
      tx: the knots of the first variable.
      ty: those of the second one.
      c: the coefficients, array[nx, ny].
      degrees: both degrees.

    Raises:
      ArgumentError: coordinates do not ascend, or `s` or `bbox` asks for more.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x, y = np.arange(5.0), np.arange(6.0)
      >>> f = RectBivariateSpline(x, y, x[:, None] * y**2)
      >>> f.ev(1.5, 2.5).round(3)
      Array(9.375, dtype=float32)

    Source: `scipy.interpolate.RectBivariateSpline`.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        z: ArrayLike,
        bbox: Any = (None, None, None, None),
        kx: int = 3,
        ky: int = 3,
        s: float = 0,
    ) -> None:
        name = "RectBivariateSpline"
        if s:
            raise ArgumentError(
                f"{name}: with s > 0 the number of knots depends on the data: s must "
                "be 0"
            )
        if any(b is not None for b in bbox):
            raise ArgumentError(f"{name}: bbox must be the ends of the coordinates")
        (z,) = promote_inexact(name, fnp.asarray(z))
        if z.aval.ndim != 2:
            raise ShapeError(f"{name}: z must have two axes, got {z.aval}")
        first = make_interp_spline(x, z, natural(name, "kx", kx), axis=0)
        second = make_interp_spline(y, first.c, natural(name, "ky", ky), axis=1)
        self.tx, self.ty = first.t, second.t
        self.c, self.degrees = second.c.T, (first.k, second.k)
