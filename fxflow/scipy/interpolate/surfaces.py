"""Splines of two variables on a grid."""

from __future__ import annotations

import importlib
from typing import Any, TypeVar

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    _design,
    _interval,
    _weights,
)
from fxflow.scipy.interpolate.smoothing_splines import (
    _jumps,
    _through,
    weight_for_sum,
)
from fxflow.scipy.interpolate.univariate import interpolating

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


class FittedSurface(BivariateSpline):
    """A spline of two variables near values, which knows what it leaves of them."""

    fp: Array

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[int, int]]:
        """Returns the arrays, and the degrees."""
        return (self.tx, self.ty, self.c, self.fp), self.degrees

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        """Rebuilds a spline from its parts."""
        out = object.__new__(cls)
        out.tx, out.ty, out.c, out.fp = children
        out.degrees = aux
        return out

    def get_residual(self) -> Array:
        """Returns the weighted sum of squares of what is left, array[]."""
        return self.fp


# -- knots that the host chooses -------------------------------------------------------


def on_host(name: str, instead: str, *values: Any) -> list[Any]:
    """Returns known values, of derivatives too, as NumPy arrays of 64 bits.

    Args:
      name: of the function, for messages.
      instead: what to do if values are traced.
      *values: arrays.

    Raises:
      ConcretizationError: a value is traced by `jit` or `vmap`.
    """
    fixed = [lax.stop_gradient(fnp.asarray(v)) for v in values]
    if any(isinstance(v, Tracer) for v in fixed):
        raise ConcretizationError(
            f"{name}: the number of knots depends on the points, which are traced: "
            f"{instead}"
        )
    return [np.asarray(v, np.float64) for v in fixed]


def scipy_of(name: str) -> Any:
    """Returns SciPy's module, which chooses knots.

    Args:
      name: of the function, for messages.

    Raises:
      ImportError: SciPy is not installed.
    """
    try:
        return importlib.import_module("scipy.interpolate")
    except ImportError as error:
        raise ImportError(
            f"{name} needs SciPy, which is not installed: pip install scipy"
        ) from error


def _both_ways(
    ax: Array, ay: Array, bx: Array, by: Array, z: Array, u: Any
) -> tuple[Array, Array]:
    """Returns coefficients for jumps that count exp(u), and the sum of squares."""

    def solved(rows: Array, jumps: Array, right: Array) -> Array:
        whole = fnp.concatenate([rows, jumps * fnp.exp(u / 2)], 0)
        q, r = fnp.linalg.qr(whole)
        top = fnp.matmul(q[: rows.shape[0]].T, right, precision="highest")
        found: Array = lax.linalg.triangular_solve(r, top, left_side=True)
        return found

    c = solved(ay, by, solved(ax, bx, z).T).T
    near = fnp.matmul(ax, fnp.matmul(c, ay.T, precision="highest"), precision="highest")
    return c, fnp.sum((z - near) ** 2)


def _grid_excess(
    u: Any, ax: Array, ay: Array, bx: Array, by: Array, z: Array, s: Any
) -> Array:
    left: Array = _both_ways(ax, ay, bx, by, z, u)[1] - s
    return left


@library("kx", "ky")
def _smoothed_grid(
    tx: Array, ty: Array, x: Array, y: Array, z: Array, s: Array, kx: int, ky: int
) -> tuple[Array, Array]:
    """Returns the coefficients with small jumps, and the sum of squares."""
    ax, ay = _design(tx, x, kx), _design(ty, y, ky)
    bx, by = _jumps(tx, kx), _jumps(ty, ky)
    parts = (ax, ay, bx, by, z)
    if not bx.shape[0] and not by.shape[0]:
        return _both_ways(*parts, fnp.zeros((), z.dtype))
    sizes = [fnp.sum(v * v) for v in parts[:4]]
    scale = fnp.log((sizes[0] + sizes[1]) / (sizes[2] + sizes[3]))
    return _both_ways(*parts, weight_for_sum(_grid_excess, parts, scale, s))


@register_pytree_node_class
class RectBivariateSpline(FittedSurface):
    """The spline of two variables through values on a grid, or near them.

    It is a pytree: it works under `jit`, `vmap` and `grad`. Beyond the grid it keeps
    the value at its edge.

    With s > 0 the knots depend on the values: SciPy finds them on the host, of values
    that are known (also within `grad`); the coefficients on them are functions of all
    arguments with derivatives, and have the smallest jumps that `s` allows.

    Args:
      x: real array-like[m]: the first coordinates, strictly ascending.
      y: real array-like[n]: the second ones.
      z: real array-like[m, n]: the values.
      bbox: the ends of both intervals; None is the least or the greatest coordinate.
      kx: the degree in the first variable.
      ky: in the second one.
      s: the sum of squares of what is left; 0 is the spline through the values.
      maxit: has no effect: s is met to rounding.

    Attributes:
      tx: the knots of the first variable.
      ty: those of the second one.
      c: the coefficients, array[nx, ny].
      degrees: both degrees.
      fp: the sum of squares of what is left.

    Raises:
      ArgumentError: coordinates do not ascend, `s` is negative, or `bbox` is not four
        ends around the coordinates.
      ConcretizationError: s > 0, and an argument is traced by `jit` or `vmap`: give
        knots to `LSQBivariateSpline`.
      ImportError: s > 0, and SciPy is not installed.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x, y = np.arange(5.0), np.arange(6.0)
      >>> f = RectBivariateSpline(x, y, x[:, None] * y**2)
      >>> f.ev(1.5, 2.5).round(3)
      Array(9.375, dtype=float32)

    Source: `scipy.interpolate.RectBivariateSpline`; P. Dierckx, Curve and Surface
    Fitting with Splines, 1993.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        z: ArrayLike,
        bbox: Any = (None, None, None, None),
        kx: int = 3,
        ky: int = 3,
        s: Any = 0,
        maxit: int = 20,
    ) -> None:
        name = "RectBivariateSpline"
        given = promote_inexact(name, *(fnp.asarray(v) for v in (x, y, z)))
        z = given[2]
        if z.aval.ndim != 2:
            raise ShapeError(f"{name}: z must have two axes, got {z.aval}")
        if len(bbox) != 4:
            raise ArgumentError(
                f"{name}: bbox must be four numbers or None, got {bbox!r}"
            )
        kx, ky = natural(name, "kx", kx), natural(name, "ky", ky)
        if not _through(s):
            self._smooth(given, bbox, (kx, ky), fnp.asarray(s, z.dtype))
            return
        first = interpolating(given[0], z, bbox[:2], kx)
        second = interpolating(given[1], first.c.T, bbox[2:], ky)
        self.tx, self.ty = first.t, second.t
        self.c, self.degrees = second.c.T, (first.k, second.k)
        self.fp = fnp.zeros((), self.c.dtype)

    def _smooth(
        self, given: Any, bbox: Any, degrees: tuple[int, int], s: Array
    ) -> None:
        name = "RectBivariateSpline"
        host = on_host(name, "give knots to LSQBivariateSpline", *given, s)
        if not host[3] > 0:
            raise ArgumentError(f"{name}: s must not be negative, got {s}")
        own = (host[0][0], host[0][-1], host[1][0], host[1][-1])
        box = [float(e if b is None else b) for b, e in zip(bbox, own, strict=True)]
        theirs = scipy_of(name)
        kx, ky = degrees
        try:
            found = theirs.RectBivariateSpline(*host[:3], box, kx, ky, float(host[3]))
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name}: {error}") from None
        dtype = given[2].dtype
        self.tx, self.ty = (fnp.asarray(t, dtype) for t in found.get_knots())
        self.degrees = degrees
        x, y, z = given
        self.c, self.fp = _smoothed_grid(self.tx, self.ty, x, y, z, s, kx, ky)
