"""Splines of one variable as objects: SciPy's older classes."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    make_interp_spline,
    make_lsq_spline,
)
from fxflow.scipy.interpolate.fitpack import (
    _with_ends,
    spalde,
    splev,
    splint,
    sproot,
)
from fxflow.scipy.interpolate.smoothing_splines import make_splrep

U = TypeVar("U", bound="UnivariateSpline")

_MODES = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


def _mode(name: str, ext: Any) -> int:
    found = _MODES.get(ext, -1) if isinstance(ext, str) else ext
    if found not in (0, 1, 2, 3):
        known = ", ".join(f'"{m}"' for m in _MODES)
        raise ArgumentError(f"{name}: ext must be one of {known} or 0 … 3, got {ext!r}")
    return int(found)


def _samples(
    name: str, x: Any, y: Any, w: Any, k: Any, check_finite: bool
) -> tuple[Array, Array, Any, int]:
    k = natural(name, "k", k)
    if k > 5:
        raise ArgumentError(f"{name}: k must be at most 5, got {k}")
    x, y = promote_inexact(name, fnp.asarray(x), fnp.asarray(y))
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(
            f"{name}: x and y must be vectors of one length, got {x.aval} and {y.aval}"
        )
    if w is not None:
        w = fnp.asarray(w, x.dtype)
        if w.shape != x.shape:
            raise ShapeError(f"{name}: w must have the shape of x, got {w.aval}")
    if check_finite:
        for what, value in (("x", x), ("y", y), ("w", w)):
            if value is None or isinstance(value, Tracer):
                continue
            if not np.isfinite(np.asarray(value)).all():
                raise ArgumentError(f"{name}: {what} must be finite")
    return x, y, w, k


def _ends(name: str, x: Array, bbox: Any) -> tuple[Any, Any]:
    if len(bbox) != 2:
        raise ArgumentError(f"{name}: bbox must be a pair, got {bbox!r}")
    first, last = bbox
    return (x[0] if first is None else first, x[-1] if last is None else last)


@register_pytree_node_class
class UnivariateSpline:
    """A smoothing spline with few knots.

    It is an immutable pytree: it works under `jit` and `vmap`, and is differentiable in
    the knots, the coefficients and the point of evaluation. The host chooses knots.

    Args:
      x: real array-like[m]: points, ascending.
      y: real array-like[m]: values.
      w: real array-like[m]: weights of the differences; None is 1.
      bbox: the ends of the interval; None is the first and the last point.
      k: the degree, 1 … 5.
      s: the sum of squares of the differences; None is m, 0 a spline through all
        samples.
      ext: what stands beyond the interval: 0 or "extrapolate", the polynomial there; 1
        or "zeros"; 2 or "raise", an error (nan where points are traced); 3 or "const",
        the value at the end.
      check_finite: whether to refuse samples that are not finite.

    Raises:
      ArgumentError: an argument is out of range.
      ConcretizationError: samples are traced, and `s` is not 0.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.linspace(0.0, 3.0, 30)
      >>> UnivariateSpline(x, x**2, s=0)(1.5).round(3)
      Array(2.25, dtype=float32)

    Source: `scipy.interpolate.UnivariateSpline`; it has no `set_smoothing_factor`,
    because it is immutable.
    """

    _spline: BSpline
    _residual: Array
    ext: int

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        w: ArrayLike | None = None,
        bbox: Any = (None, None),
        k: int = 3,
        s: float | None = None,
        ext: int | str = 0,
        check_finite: bool = False,
    ) -> None:
        name = "UnivariateSpline"
        points, values, weights, k = _samples(name, x, y, w, k, check_finite)
        total = float(points.size) if s is None else s
        ends = _ends(name, points, bbox)
        if isinstance(total, int | float) and total == 0:
            spline = interpolating(points, values, bbox, k)
        else:
            spline = make_splrep(
                points, values, w=weights, xb=ends[0], xe=ends[1], k=k, s=total
            )
        self._fill(spline, points, values, weights, _mode(name, ext))

    def _fill(self, spline: BSpline, x: Array, y: Array, w: Any, ext: int) -> None:
        missed = (spline(x) - y) * (1 if w is None else w)
        self._spline, self._residual, self.ext = spline, fnp.sum(missed * missed), ext

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Returns the spline and its residual, and `ext`."""
        return (self._spline, self._residual), self.ext

    @classmethod
    def tree_unflatten(cls: type[U], aux: int, children: Any) -> U:
        """Rebuilds a spline from its parts."""
        out = object.__new__(cls)
        out._spline, out._residual = children
        out.ext = aux
        return out

    def _made(self, spline: BSpline, ext: int) -> UnivariateSpline:
        out = object.__new__(UnivariateSpline)
        out._spline, out._residual, out.ext = (
            spline,
            fnp.zeros_like(self._residual),
            ext,
        )
        return out

    def __call__(
        self, x: ArrayLike, nu: int = 0, ext: int | str | None = None
    ) -> Array:
        """Returns values of the spline, or of a derivative.

        Args:
          x: real array-like[*s].
          nu: the order of the derivative.
          ext: in place of the spline's own.

        Returns:
          Float array[*s].
        """
        how = self.ext if ext is None else _mode(type(self).__name__, ext)
        return splev(x, self._spline, nu, how)

    def get_knots(self) -> Array:
        """Returns the knots, those at the ends one time."""
        k = self._spline.k
        return self._spline.t[k : self._spline.t.shape[0] - k]

    def get_coeffs(self) -> Array:
        """Returns the coefficients."""
        return self._spline.c

    def get_residual(self) -> Array:
        """Returns the sum of squares of the weighted differences to the samples."""
        return self._residual

    def integral(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Returns the integral, the spline being 0 beyond its interval.

        Args:
          a: real number: the lower bound.
          b: real number: the upper bound.

        Returns:
          Float array[].
        """
        return splint(a, b, self._spline)

    def derivatives(self, x: ArrayLike) -> Array:
        """Returns the value and all derivatives at a point.

        Args:
          x: real number.

        Returns:
          Float array[k + 1].
        """
        return spalde(x, self._spline)

    def roots(self) -> Array:
        """Returns the zeros of a cubic spline, found on the host.

        Returns:
          Float array[r].

        Raises:
          ArgumentError: the degree is not 3.
          ConcretizationError: the spline is traced.
        """
        return sproot(self._spline)

    def derivative(self, n: int = 1) -> UnivariateSpline:
        """Returns the spline of a derivative.

        Args:
          n: its order.

        Returns:
          UnivariateSpline; beyond the interval it is 0 if this one is constant there.
        """
        return self._made(self._spline.derivative(n), 1 if self.ext == 3 else self.ext)

    def antiderivative(self, n: int = 1) -> UnivariateSpline:
        """Returns the spline of an integral.

        Args:
          n: how often to integrate.

        Returns:
          UnivariateSpline.
        """
        return self._made(self._spline.antiderivative(n), self.ext)


def interpolating(x: Array, y: Array, bbox: Any, k: int) -> BSpline:
    """Returns the spline through samples, on an interval.

    Args:
      x: real array[m]: points.
      y: real array[m, ...]: values.
      bbox: the ends of the interval; None is the first and the last point.
      k: the degree.
    """
    spline = make_interp_spline(x, y, k)
    if all(end is None for end in bbox):
        return spline
    inner = spline.t[k + 1 : spline.t.shape[0] - k - 1]
    first, last = bbox
    ends = (x[0] if first is None else first, x[-1] if last is None else last)
    return make_interp_spline(x, y, k, _with_ends(inner, ends, k))


@register_pytree_node_class
class InterpolatedUnivariateSpline(UnivariateSpline):
    """A spline through samples.

    Args:
      x: real array-like[m]: points, strictly ascending.
      y: real array-like[m]: values.
      w: has no effect.
      bbox: the ends of the interval; None is the first and the last point.
      k: the degree, 1 … 5.
      ext: what stands beyond the interval; see `UnivariateSpline`.
      check_finite: whether to refuse samples that are not finite.

    Raises:
      ArgumentError: an argument is out of range, or `x` does not ascend.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.linspace(0.0, 3.0, 30)
      >>> InterpolatedUnivariateSpline(x, x**2)(1.5).round(3)
      Array(2.25, dtype=float32)

    Source: `scipy.interpolate.InterpolatedUnivariateSpline`.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        w: ArrayLike | None = None,
        bbox: Any = (None, None),
        k: int = 3,
        ext: int | str = 0,
        check_finite: bool = False,
    ) -> None:
        name = "InterpolatedUnivariateSpline"
        points, values, _, k = _samples(name, x, y, w, k, check_finite)
        _ends(name, points, bbox)
        spline = interpolating(points, values, bbox, k)
        self._fill(spline, points, values, None, _mode(name, ext))


@register_pytree_node_class
class LSQUnivariateSpline(UnivariateSpline):
    """The spline on given knots that is nearest to samples.

    Args:
      x: real array-like[m]: points, ascending.
      y: real array-like[m]: values.
      t: real array-like: the knots inside of the interval.
      w: real array-like[m]: weights of the differences; None is 1.
      bbox: the ends of the interval; None is the first and the last point.
      k: the degree, 1 … 5.
      ext: what stands beyond the interval; see `UnivariateSpline`.
      check_finite: whether to refuse samples that are not finite.

    Raises:
      ArgumentError: an argument is out of range, or `x` does not ascend.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.linspace(0.0, 3.0, 30)
      >>> LSQUnivariateSpline(x, x**2, [1.0, 2.0])(1.5).round(3)
      Array(2.25, dtype=float32)

    Source: `scipy.interpolate.LSQUnivariateSpline`.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        t: Any,
        w: ArrayLike | None = None,
        bbox: Any = (None, None),
        k: int = 3,
        ext: int | str = 0,
        check_finite: bool = False,
    ) -> None:
        name = "LSQUnivariateSpline"
        points, values, weights, k = _samples(name, x, y, w, k, check_finite)
        ends = _ends(name, points, bbox)
        knots = _with_ends(fnp.asarray(t, points.dtype), ends, k)
        spline = make_lsq_spline(points, values, knots, k, weights)
        self._fill(spline, points, values, weights, _mode(name, ext))
