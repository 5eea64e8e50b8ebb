"""Polynomials and splines of several variables: products over the axes of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, integer, natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._intervals import require_ascending
from fxflow.scipy.interpolate._scattered import points_of
from fxflow.scipy.interpolate.bsplines import BSpline, _design, _interval, _weights
from fxflow.scipy.interpolate.piecewise import (
    PPoly,
    _differentiated,
    _integrated,
)


def _orders(name: str, nu: Any, count: int) -> list[int]:
    """Returns an order of a derivative for each variable.

    Raises:
      ArgumentError: there are not as many.
    """
    if not isinstance(nu, tuple | list | np.ndarray) or len(nu) != count:
        raise ArgumentError(
            f"{name}: nu must be {count} orders, one for each variable, got {nu!r}"
        )
    return [integer(name, "nu", n) for n in nu]


def _rows(name: str, x: Any, count: int, *others: Any) -> tuple[Array, Any]:
    """Returns points as rows, and the shape of the points in the result."""
    at = promote_inexact(name, points_of(name, "x", x), *others)[0]
    if at.aval.shape[-1] != count:
        raise ShapeError(f"{name}: points must have {count} coordinates, got {at.aval}")
    return fnp.reshape(at, (-1, count)), at.aval.shape[:-1]


# -- polynomials -----------------------------------------------------------------------


@library("extrapolate")
def _polynomials(c: Array, x: Any, at: Array, extrapolate: bool) -> Array:
    """Returns polynomials at points[m, d], array[m, ...]."""
    d = len(x)
    places, lost = [], fnp.any(at != at, -1)
    for k, points in enumerate(x):
        value = at[:, k]
        i = fnp.searchsorted(points, value, side="right") - 1
        places.append(fnp.clip(i, 0, points.aval.size - 2))
        if not extrapolate:
            lost = lost | (value < points[0]) | (value > points[-1])
    out = c[(slice(None),) * d + tuple(places)]
    for k, points in enumerate(x):
        # The axes of powers that are left come first, then the points.
        before, after = d - 1 - k, out.aval.ndim - (d - k) - 1
        s = fnp.reshape(at[:, k] - points[places[k]], (-1, *(1,) * after))
        rows, out = out, out[0]
        for row in rows[1:]:
            out = out * fnp.reshape(s, (*(1,) * before, *s.aval.shape)) + row
    return fnp.where(fnp.reshape(lost, (-1, *(1,) * (out.aval.ndim - 1))), fnp.nan, out)


@register_pytree_node_class
class NdPPoly:
    """Polynomials of several variables on the cells of a grid.

    In the cell (i, j, …) the value is the sum of c[k - 1 - m, l - 1 - n, …, i, j, …] (u
    - x[0][i])^m (v - x[1][j])^n …. It is an immutable pytree: it works under `jit`,
    `vmap` and `grad`.

    Args:
      c: float or complex array-like[k0, …, kd, m0, …, md, ...]: coefficients, the
        highest powers first.
      x: real array-likes[m0 + 1], …, [md + 1]: breakpoints, strictly ascending.
      extrapolate: whether the outermost polynomials go on beyond the grid; if not,
        the result there is nan.

    Attributes:
      c: the coefficients.
      x: tuple of the breakpoints.
      extrapolate: as given.

    Raises:
      ArgumentError: breakpoints do not ascend.
      ShapeError: the shapes are incompatible.

    Example:
      >>> c = np.array([[1.0, 0.0], [0.0, 2.0]]).reshape(2, 2, 1, 1)
      >>> f = NdPPoly(c, (np.array([0.0, 4.0]), np.array([0.0, 5.0])))
      >>> f(np.array([[1.0, 3.0], [2.0, 2.0]]))
      Array([5., 6.], dtype=float32)

    Source: `scipy.interpolate.NdPPoly`.
    """

    c: Array
    x: tuple[Array, ...]
    extrapolate: bool

    def __init__(self, c: ArrayLike, x: Any, extrapolate: bool | None = None) -> None:
        name = "NdPPoly"
        x = [fnp.asarray(v) for v in x]
        d = len(x)
        c, *x = promote_inexact(name, fnp.asarray(c), *x)
        fits = d > 0 and c.aval.ndim >= 2 * d
        fits = fits and all(v.aval.ndim == 1 and v.aval.size > 1 for v in x)
        cells = tuple(v.aval.size - 1 for v in x)
        if not fits or c.aval.shape[d : 2 * d] != cells or not all(c.aval.shape[:d]):
            raise ShapeError(
                f"{name}: c must be array[k0, …, m0, …, ...], and x vectors [m0 + 1], "
                f"…, got {c.aval} and {', '.join(str(v.aval) for v in x)}"
            )
        x = [fnp.real(v) for v in x]
        for points in x:
            require_ascending(name, points)
        self._set(c, tuple(x), True if extrapolate is None else bool(extrapolate))

    def _set(self, c: Any, x: Any, extrapolate: bool) -> None:
        self.c, self.x, self.extrapolate = c, x, extrapolate

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: bool | None = None) -> NdPPoly:
        """Returns polynomials without checks.

        Args:
          c: array[k0, …, m0, …, ...]: coefficients.
          x: arrays[m0 + 1], …: breakpoints.
          extrapolate: whether polynomials go on beyond the grid.
        """
        out = object.__new__(cls)
        out._set(c, tuple(x), True if extrapolate is None else bool(extrapolate))
        return out

    def tree_flatten(self) -> tuple[tuple[Any, ...], bool]:
        """Returns the arrays and the static data."""
        return (self.c, self.x), self.extrapolate

    @classmethod
    def tree_unflatten(cls, aux: bool, children: Any) -> NdPPoly:
        """Rebuilds polynomials from their parts."""
        out = object.__new__(cls)
        c, x = children
        out._set(c, x, aux)
        return out

    def __call__(self, x: Any, nu: Any = None, extrapolate: Any = None) -> Array:
        """Returns values, or those of a derivative.

        Args:
          x: real array-like[*s, d], or a tuple of d array-likes[*s].
          nu: the orders of the derivatives with respect to each variable; None is 0.
          extrapolate: in place of the object's own.

        Returns:
          Array[*s, ...].

        Raises:
          ArgumentError: an order is negative, or there are not as many as variables.
          ShapeError: points have the wrong number of coordinates.
        """
        name, d = "NdPPoly", len(self.x)
        how = self.extrapolate if extrapolate is None else bool(extrapolate)
        c = self.c
        if nu is not None:
            for axis, n in enumerate(_orders(name, nu, d)):
                moved = fnp.moveaxis(c, axis, 0)
                moved = _differentiated(moved, natural(name, "nu", n, 0))
                c = fnp.moveaxis(moved, 0, axis)
        at, shape = _rows(name, x, d, *self.x)
        out = _polynomials(c, self.x, fnp.real(at), how)
        return fnp.reshape(out, (*shape, *self.c.shape[2 * d :]))

    def derivative(self, nu: Any) -> NdPPoly:
        """Returns the polynomials of a derivative.

        Args:
          nu: its orders by each variable; a negative one is an integral.

        Returns:
          NdPPoly.

        Raises:
          ArgumentError: there are not as many orders as variables.
        """
        d = len(self.x)
        c = self.c
        for axis, n in enumerate(_orders("NdPPoly", nu, d)):
            lead = fnp.moveaxis(c, (axis, d + axis), (0, 1))
            lead = _differentiated(lead, max(n, 0))
            for _ in range(-n):
                lead = _integrated(lead, self.x[axis])
            c = fnp.moveaxis(lead, (0, 1), (axis, d + axis))
        return self.construct_fast(c, self.x, self.extrapolate)

    def antiderivative(self, nu: Any) -> NdPPoly:
        """Returns the polynomials of an integral, 0 at the first breakpoints.

        Args:
          nu: how often to integrate by each variable; a negative one differentiates.

        Returns:
          NdPPoly.

        Raises:
          ArgumentError: there are not as many orders as variables.
        """
        return self.derivative([-n for n in _orders("NdPPoly", nu, len(self.x))])

    def integrate_1d(
        self, a: ArrayLike, b: ArrayLike, axis: int, extrapolate: Any = None
    ) -> Any:
        """Returns the integral over one variable.

        Args:
          a: real number: the lower bound.
          b: real number: the upper bound.
          axis: the variable.
          extrapolate: in place of the object's own.

        Returns:
          NdPPoly of the other variables; of one variable an array[...].
        """
        d = len(self.x)
        axis = canonical_axis("NdPPoly.integrate_1d", axis, d)
        how = self.extrapolate if extrapolate is None else bool(extrapolate)
        lead = fnp.moveaxis(self.c, (axis, d + axis), (0, 1))
        out = PPoly.construct_fast(lead, self.x[axis], how).integrate(a, b)
        if d == 1:
            return out
        return self.construct_fast(out, self.x[:axis] + self.x[axis + 1 :], how)

    def integrate(self, ranges: Any, extrapolate: Any = None) -> Array:
        """Returns the integral over a box.

        Args:
          ranges: the bounds of each variable, (a, b).
          extrapolate: in place of the object's own.

        Returns:
          Array[...].

        Raises:
          ArgumentError: there are not as many bounds as variables.
        """
        if not hasattr(ranges, "__len__") or len(ranges) != len(self.x):
            raise ArgumentError(
                f"NdPPoly.integrate: ranges must be {len(self.x)} pairs of bounds, got "
                f"{ranges!r}"
            )
        out: Any = self
        for a, b in ranges:
            out = out.integrate_1d(a, b, 0, extrapolate)
        return fnp.asarray(out)


# -- splines ---------------------------------------------------------------------------


@library("k", "extrapolate")
def _splines(t: Any, c: Array, at: Array, k: Any, extrapolate: bool) -> Array:
    """Returns the spline at points[m, d], array[m, ...]."""
    d = len(t)
    weights, places, lost = [], [], fnp.any(at != at, -1)
    for axis, (knots, degree) in enumerate(zip(t, k, strict=True)):
        x = at[:, axis]
        i = _interval(knots, x, degree)
        weights.append(fnp.stack(_weights(knots, x, degree, i), -1))
        near = i[:, None] - degree + np.arange(degree + 1)
        before, after = (1,) * axis, (1,) * (d - 1 - axis)
        places.append(fnp.reshape(near, (-1, *before, degree + 1, *after)))
        if not extrapolate:
            last = knots.aval.size - degree - 1
            lost = lost | (x < knots[degree]) | (x > knots[last])
    out = c[tuple(places)]
    for weight in weights:
        rest = out.aval.ndim - 2
        out = fnp.sum(out * fnp.reshape(weight, (*weight.aval.shape, *(1,) * rest)), 1)
    return fnp.where(fnp.reshape(lost, (-1, *(1,) * (out.aval.ndim - 1))), fnp.nan, out)


def _knots(name: str, t: Any, k: Any) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """Returns the knots and the degree of each variable.

    Raises:
      ArgumentError: knots descend, or there are not as many degrees.
      ShapeError: there are too few knots.
    """
    if not isinstance(t, tuple | list):
        raise ArgumentError(f"{name}: t must be a tuple of knots, got {t!r}")
    degrees = tuple(k) if isinstance(k, tuple | list | np.ndarray) else (k,) * len(t)
    if len(degrees) != len(t) or not len(t):
        raise ArgumentError(
            f"{name}: k must be one degree, or one for each of {len(t)} variables, got "
            f"{k!r}"
        )
    degrees = tuple(natural(name, "k", n, 0) for n in degrees)
    knots = promote_inexact(name, *(fnp.asarray(v) for v in t))
    for v, n in zip(knots, degrees, strict=True):
        if v.aval.ndim != 1 or v.aval.size < 2 * n + 2:
            raise ShapeError(
                f"{name}: t must be vectors of at least 2 k + 2 knots, got {v.aval} "
                f"for degree {n}"
            )
        if not isinstance(v, Tracer):
            host = np.asarray(v)
            if (np.diff(host) < 0).any() or not np.isfinite(host).all():
                raise ArgumentError(f"{name}: t must be finite and must not descend")
    return tuple(knots), degrees


@register_pytree_node_class
class NdBSpline:
    """A spline of several variables: a sum of products of B-splines.

    It is an immutable pytree: it works under `jit` and `vmap`, and is differentiable in
    the knots, the coefficients and the point of evaluation.

    Args:
      t: tuple of real array-likes[n0 + k0 + 1], …: knots, ascending.
      c: float or complex array-like[n0, …, nd, ...]: coefficients.
      k: the degree, or one for each variable.
      extrapolate: whether the outermost polynomials go on beyond the base intervals;
        if not, the result is nan there; None is True.

    Attributes:
      t: tuple of the knots.
      c: the coefficients.
      k: tuple of the degrees.
      extrapolate: as given.

    Raises:
      ArgumentError: knots descend, or there are not as many degrees as variables.
      ShapeError: the shapes are incompatible.

    Example:
      >>> knots = np.array([0.0, 0.0, 1.0, 1.0])
      >>> f = NdBSpline((knots, knots), np.array([[0.0, 1.0], [2.0, 3.0]]), 1)
      >>> f(np.array([[0.5, 0.25]]))
      Array([1.25], dtype=float32)

    Source: `scipy.interpolate.NdBSpline`.
    """

    t: tuple[Array, ...]
    c: Array
    k: tuple[int, ...]
    extrapolate: bool

    def __init__(
        self, t: Any, c: ArrayLike, k: Any, *, extrapolate: bool | None = None
    ) -> None:
        name = "NdBSpline"
        self.t, self.k = _knots(name, t, k)
        self.c = promote_inexact(name, fnp.asarray(c), *self.t)[0]
        sizes = tuple(v.aval.size - n - 1 for v, n in zip(self.t, self.k, strict=True))
        if self.c.aval.shape[: len(sizes)] != sizes:
            listed = ", ".join(map(str, sizes))
            raise ShapeError(
                f"{name}: c must have shape [{listed}, ...] for these knots and "
                f"degrees, got {self.c.aval}"
            )
        self.extrapolate = True if extrapolate is None else bool(extrapolate)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        return (self.t, self.c), (self.k, self.extrapolate)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> NdBSpline:
        """Rebuilds a spline from its parts."""
        out = object.__new__(cls)
        out.t, out.c = children
        out.k, out.extrapolate = aux
        return out

    def __call__(self, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Array:
        """Returns values, or those of a derivative.

        Args:
          xi: real array-like[*s, d].
          nu: the orders of the derivatives with respect to each variable; None is 0.
          extrapolate: in place of the object's own.

        Returns:
          Array[*s, ...].

        Raises:
          ArgumentError: an order is negative, or there are not as many as variables.
          ShapeError: points have the wrong number of coordinates.
        """
        f = self if nu is None else self.derivative(nu)
        how = self.extrapolate if extrapolate is None else bool(extrapolate)
        at, shape = _rows("NdBSpline", xi, len(f.t), *f.t)
        out = _splines(f.t, f.c, fnp.real(at), f.k, how)
        return fnp.reshape(out, (*shape, *f.c.shape[len(f.t) :]))

    def derivative(self, nu: Any) -> NdBSpline:
        """Returns the spline of a derivative.

        Args:
          nu: its orders by each variable; above the degree it is 0.

        Returns:
          NdBSpline of lower degrees.

        Raises:
          ArgumentError: an order is negative, or there are not as many as variables.
        """
        t, k, c = list(self.t), list(self.k), self.c
        for axis, n in enumerate(_orders("NdBSpline", nu, len(t))):
            n = natural("NdBSpline", "nu", n, 0)
            lead = fnp.moveaxis(c, axis, 0)
            line = BSpline._of(t[axis], lead, k[axis], True, 0)
            line = line.derivative(min(n, k[axis]))
            c = line.c if n <= k[axis] else fnp.zeros_like(line.c)
            t[axis], k[axis], c = line.t, line.k, fnp.moveaxis(c, 0, axis)
        return self.tree_unflatten((tuple(k), self.extrapolate), (tuple(t), c))

    @classmethod
    def design_matrix(
        cls, xvals: ArrayLike, t: Any, k: Any, extrapolate: bool = True
    ) -> Array:
        """Returns the values of all products of B-splines at points.

        Args:
          xvals: real array-like[m, d].
          t: tuple of real array-likes: the knots.
          k: the degree, or one for each variable.
          extrapolate: whether points beyond the base intervals are allowed.

        Returns:
          Float array[m, n0 … nd]. (SciPy's is sparse.)

        Raises:
          ArgumentError: a point lies beyond, and `extrapolate` is not set.
          ShapeError: points have the wrong number of coordinates.
        """
        name = "NdBSpline.design_matrix"
        knots, degrees = _knots(name, t, k)
        at, _ = _rows(name, xvals, len(knots), *knots)
        out: Any = None
        for axis, (v, n) in enumerate(zip(knots, degrees, strict=True)):
            x = fnp.real(at[:, axis])
            if not extrapolate:
                rows = BSpline.design_matrix(x, v, n)
            else:
                rows = _design(v, x, n)
            if out is None:
                out = rows
            else:
                out = fnp.reshape(out[:, :, None] * rows[:, None], (rows.shape[0], -1))
        return fnp.asarray(out)
