"""Polynomials through points and slopes, from Newton's form, and ratios of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import require_callable
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural, number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._intervals import spread
from fxflow.scipy.interpolate.piecewise import PchipInterpolator


@library("repeats")
def _divided(x: Array, y: Array, repeats: tuple[int, ...]) -> Array:
    """Returns Newton's coefficients, array[n, ...].

    Args:
      x: real array[n].
      y: array[n, ...]: the values, and at a point that repeats the next derivatives.
      repeats: how many points before each one are equal to it.
    """
    # The differences of order s of equal points are derivatives over s!.
    n = x.shape[0]
    first = np.arange(n) - np.asarray(repeats)
    same = first[:, None] == first
    rows, out = y[first], [y[0]]
    for order in range(1, n):
        ends = np.arange(order, n)
        equal = same[ends, ends - order]
        step = x[order:] - x[: n - order]
        step = spread(fnp.where(equal, 1, step), rows, 0)
        slopes = y[np.minimum(first[ends] + order, n - 1)] / math.factorial(order)
        rows = fnp.where(
            equal.reshape(-1, *(1,) * (rows.ndim - 1)),
            slopes,
            (rows[1:] - rows[:-1]) / step,
        )
        out.append(rows[0])
    return fnp.stack(out)


@library("count")
def _taylor(x: Array, c: Array, at: Array, count: int) -> Array:
    """Returns Taylor coefficients at points, array[count, *points, ...]."""
    n = x.shape[0]
    shape = (count, *at.shape, *c.shape[1:])
    out = fnp.zeros(shape, c.dtype).at[0].set(c[n - 1])
    for k in range(n - 2, -1, -1):
        # p(t) (t - x[k]) + c[k], in powers of t - at.
        step = spread(at - x[k], out[0], 0)
        shifted = fnp.concatenate([fnp.zeros_like(out[:1]), out[:-1]], 0)
        out = (out * step + shifted).at[0].add(c[k])
    return out


@register_pytree_node_class
class KroghInterpolator:
    """The polynomial through points with given values and derivatives.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the values
    and the point of evaluation.

    Args:
      xi: real array-like[n]: points; a point that is there m times, one after the
        other, has a value and m - 1 derivatives.
      yi: array-like[..., n, ...]: values, and derivatives where points are equal.
      axis: the axis of the points.

    Attributes:
      xi: the points.
      yi: the values, array[n, ...].
      c: Newton's coefficients, array[n, ...].
      axis: as given.

    Raises:
      ArgumentError: equal points are not one after the other.
      ShapeError: the shapes are incompatible.

    Special cases:
      Traced points are assumed to be distinct.

    Example:
      >>> f = KroghInterpolator(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 3.0]))
      >>> f(np.array([0.5, 2.0]))
      Array([ 1., 10.], dtype=float32)

    Source: `scipy.interpolate.KroghInterpolator`. F. T. Krogh, Efficient Algorithms for
    Polynomial Interpolation and Numerical Differentiation, 1970.
    """

    xi: Array
    yi: Array
    c: Array
    axis: int

    def __init__(self, xi: ArrayLike, yi: ArrayLike, axis: int = 0) -> None:
        name = "KroghInterpolator"
        x, y = promote_inexact(name, fnp.asarray(xi), fnp.asarray(yi))
        x = fnp.real(x)
        axis = canonical_axis(name, axis, y.ndim)
        y = fnp.moveaxis(y, axis, 0)
        if x.ndim != 1 or x.size != y.shape[0] or not x.size:
            raise ShapeError(
                f"{name}: xi must be a vector of as many points as yi has values along "
                f"axis {axis}, got {x.aval} and {y.aval}"
            )
        repeats = [0] * x.size
        if not isinstance(x, Tracer):
            host = np.asarray(x)
            for i in range(1, x.size):
                repeats[i] = repeats[i - 1] + 1 if host[i] == host[i - 1] else 0
            if np.unique(host).size != repeats.count(0):
                raise ArgumentError(
                    f"{name}: equal points must be one after the other, got "
                    f"{host.tolist()}"
                )
        self.xi, self.yi, self.axis = x, y, axis
        self.c = _divided(x, y, tuple(repeats))

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Returns the arrays, and the axis."""
        return (self.xi, self.yi, self.c), self.axis

    @classmethod
    def tree_unflatten(cls, aux: int, children: Any) -> KroghInterpolator:
        """Rebuilds a polynomial from its parts."""
        out = object.__new__(cls)
        out.xi, out.yi, out.c = children
        out.axis = aux
        return out

    def _at(self, x: Any, count: int) -> tuple[Array, int]:
        at, points = promote_inexact("KroghInterpolator", fnp.asarray(x), self.xi)
        return _taylor(points, self.c.astype(fnp.result_type(self.c, at)), at, count), (
            at.ndim
        )

    def _placed(self, out: Array, d: int, before: int = 0) -> Array:
        if not self.axis or not d:
            return out
        start = range(before, before + d)
        return fnp.moveaxis(out, start, [i + self.axis for i in start])

    def __call__(self, x: ArrayLike) -> Array:
        """Returns values of the polynomial.

        Args:
          x: real array-like[*s].

        Returns:
          Array with *s in place of the axis of the points.
        """
        out, d = self._at(x, 1)
        return self._placed(out[0], d)

    def derivative(self, x: ArrayLike, der: int = 1) -> Array:
        """Returns a derivative of the polynomial.

        Args:
          x: real array-like[*s].
          der: its order.

        Returns:
          Array with *s in place of the axis of the points.
        """
        order = natural("KroghInterpolator.derivative", "der", der, 0)
        out, d = self._at(x, order + 1)
        return self._placed(out[order] * math.factorial(order), d)

    def derivatives(self, x: ArrayLike, der: int | None = None) -> Array:
        """Returns the polynomial and its derivatives.

        Args:
          x: real array-like[*s].
          der: how many; None is as many as there are points.

        Returns:
          Array[der, ...], the values first.
        """
        count = self.xi.shape[0] if der is None else der
        count = natural("KroghInterpolator.derivatives", "der", count)
        out, d = self._at(x, count)
        factorials = np.cumprod([1.0, *range(1, count)])
        scale = fnp.asarray(factorials, fnp.real(out).dtype)
        return self._placed(out * spread(scale, out, 0), d, 1)


def krogh_interpolate(
    xi: ArrayLike,
    yi: ArrayLike,
    x: ArrayLike,
    der: int | Sequence[int] | None = 0,
    axis: int = 0,
) -> Array:
    """Returns values of the polynomial through points, or derivatives.

    Args:
      xi: real array-like[n]: see `KroghInterpolator`.
      yi: array-like[..., n, ...]: values.
      x: real array-like[*s]: where to evaluate it.
      der: the order of the derivative, or several; None is all.
      axis: the axis of the points.

    Returns:
      Array with *s in place of the axis of the points; behind an axis of the
      derivatives if `der` is not a number.

    Example:
      >>> x = np.array([0.0, 1.0, 3.0])
      >>> krogh_interpolate(x, x**2, 2.0, der=1)
      Array(4., dtype=float32)

    Source: `scipy.interpolate.krogh_interpolate`.
    """
    f = KroghInterpolator(xi, yi, axis)
    if der is None:
        return f.derivatives(x)
    if isinstance(der, int | np.integer):
        return f.derivative(x, int(der)) if der else f(x)
    orders = [natural("krogh_interpolate", "der", d, 0) for d in der]
    return f.derivatives(x, max(orders) + 1)[np.asarray(orders)]


def pchip_interpolate(
    xi: ArrayLike,
    yi: ArrayLike,
    x: ArrayLike,
    der: int | Sequence[int] = 0,
    axis: int = 0,
) -> Any:
    """Returns values of monotone cubics through points, or derivatives.

    Args:
      xi: real array-like[n]: points, strictly ascending.
      yi: real array-like[..., n, ...]: values.
      x: real array-like[*s]: where to evaluate them.
      der: the order of the derivative, or several.
      axis: the axis of the points.

    Returns:
      Array with *s in place of the axis of the points, or a list of them.

    Example:
      >>> pchip_interpolate(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0]), 1.5)
      Array(1., dtype=float32)

    Source: `scipy.interpolate.pchip_interpolate`.
    """
    f = PchipInterpolator(xi, yi, axis)
    if isinstance(der, int | np.integer):
        return f(x, int(der))
    return [f(x, int(nu)) for nu in der]


# -- coefficients ----------------------------------------------------------------------


@library()
def _lagrange(x: Array, w: Array) -> Array:
    c = _divided(x, w, (0,) * x.shape[0])
    out = c[-1:]
    for k in range(x.shape[0] - 2, -1, -1):
        out = fnp.pad(out, (0, 1)) - x[k] * fnp.pad(out, (1, 0))
        out = out.at[-1].add(c[k])
    return out


def lagrange(x: ArrayLike, w: ArrayLike) -> Array:
    """Returns the coefficients of the polynomial through points.

    Args:
      x: real array-like[n]: points, all different.
      w: array-like[n]: values.

    Returns:
      Array[n], the highest power first; `fnp.polyval` evaluates it.

    Raises:
      ArgumentError: two points are equal.
      ShapeError: the arguments are not vectors of one length.

    Example:
      >>> lagrange(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 8.0]))
      Array([ 3., -2.,  0.], dtype=float32)

    Source: `scipy.interpolate.lagrange`, which returns a `numpy.poly1d`.
    """
    name = "lagrange"
    x, w = promote_inexact(name, fnp.asarray(x), fnp.asarray(w))
    if x.ndim != 1 or x.shape != w.shape or not x.size:
        raise ShapeError(
            f"{name}: x and w must be vectors of one length, got {x.aval} and {w.aval}"
        )
    if not isinstance(x, Tracer) and np.unique(np.asarray(x)).size < x.size:
        raise ArgumentError(f"{name}: points must be different")
    return _lagrange(x, w)


def approximate_taylor_polynomial(
    f: Callable[[Array], Array],
    x: ArrayLike,
    degree: int,
    scale: float,
    order: int | None = None,
) -> Array:
    """Returns the Taylor polynomial of a function, from its values around a point.

    `fxflow.jet` gives the exact one, of functions that fxflow can differentiate.

    Args:
      f: function of real arrays.
      x: real number: the point.
      degree: degree of the polynomial.
      scale: the width of the interval in which `f` is evaluated.
      order: order of the polynomial that is fitted; None is `degree`.

    Returns:
      Array[degree + 1], the highest power of the distance to `x` first.

    Raises:
      ArgumentError: `degree` is negative, or `order` less than it.

    Example:
      >>> approximate_taylor_polynomial(lambda x: x * x, 1.0, 2, 1.0).round(4)
      Array([1., 2., 1.], dtype=float32)

    Source: `scipy.interpolate.approximate_taylor_polynomial`, which returns a
    `numpy.poly1d`.
    """
    name = "approximate_taylor_polynomial"
    require_callable(f, f"{name}: f")
    degree = natural(name, "degree", degree, 0)
    n = (degree if order is None else natural(name, "order", order, degree)) + 1
    wide = number(name, "scale", scale)
    (x,) = promote_inexact(name, x)
    angles = np.linspace(0, math.pi, n, endpoint=False)
    points = wide * fnp.asarray(np.cos(angles), x.dtype) + x
    found = KroghInterpolator(points, f(points))._at(x, degree + 1)[0]
    return fnp.flip(found, 0)


@library("m", "n")
def _pade(an: Array, m: int, n: int) -> tuple[Array, Array]:
    size = m + n + 1
    right = np.zeros((size, n + 1))
    right[: n + 1] = np.eye(n + 1)
    rows = np.arange(size)[:, None]
    at = rows - 1 - np.arange(m)
    left = fnp.where(at >= 0, -an[np.maximum(at, 0)], 0)
    both = fnp.concatenate([fnp.asarray(right, an.dtype), left], 1)
    found = fnp.linalg.solve(both, an[:size])
    one = fnp.ones(1, an.dtype)
    p, q = found[: n + 1], fnp.concatenate([one, found[n + 1 :]])
    return fnp.flip(p), fnp.flip(q)


def pade(an: ArrayLike, m: int, n: int | None = None) -> tuple[Array, Array]:
    """Returns the ratio of polynomials with given Taylor coefficients.

    Args:
      an: array-like[k]: the coefficients, the lowest power first.
      m: the degree of the denominator.
      n: the degree of the numerator; None is as many as `an` allows.

    Returns:
      The numerator, array[n + 1], and the denominator, array[m + 1], the highest power
      first; `fnp.polyval` evaluates them.

    Raises:
      ArgumentError: the degrees add up to k or more.
      ShapeError: `an` is not a vector.

    Example:
      >>> p, q = pade(np.array([1.0, 1.0, 0.5]), 1)
      >>> p, q
      (Array([0.5, 1. ], dtype=float32), Array([-0.5,  1. ], dtype=float32))

    Source: `scipy.interpolate.pade`, which returns a `numpy.poly1d` twice.
    """
    name = "pade"
    (an,) = promote_inexact(name, fnp.asarray(an))
    if an.ndim != 1 or not an.size:
        raise ShapeError(f"{name}: an must be a vector, got {an.aval}")
    m = natural(name, "m", m, 0)
    n = an.size - 1 - m if n is None else natural(name, "n", n, 0)
    if n < 0 or m + n >= an.size:
        raise ArgumentError(
            f"{name}: degrees m={m} and n={n} need {m + max(n, 0) + 1} coefficients, "
            f"got {an.size}"
        )
    return _pade(an, m, n)
