"""Polynomials between breakpoints, and the splines that are made of them.

All are immutable pytrees: `jit`, `vmap` and `grad` go through them, by the points, the
values and where they are evaluated.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._extensions import extended
from fxflow.scipy.interpolate._intervals import (
    Extrapolate,
    Piecewise,
    beyond,
    extrapolation,
    require_ascending,
    spread,
)
from fxflow.scipy.interpolate._roots import roots_between

P = TypeVar("P", bound="PPoly")


def _differentiated(c: Array, nu: int = 1) -> Array:
    """Returns coefficients of a derivative."""
    for _ in range(nu):
        k = c.aval.shape[0]
        if k == 1:
            return fnp.zeros_like(c)
        powers = fnp.asarray(np.arange(k - 1, 0, -1), dtypes.to_real(c.dtype))
        c = c[:-1] * spread(powers, c, 0)
    return c


@library()
def _integrated(c: Array, x: Array) -> Array:
    """Returns coefficients of the integral from the first breakpoint."""
    k = c.aval.shape[0]
    powers = fnp.asarray(np.arange(k, 0, -1), dtypes.to_real(c.aval.dtype))
    c = c / spread(powers, c, 0)
    width = spread(fnp.diff(x), c, 1)
    whole = fnp.zeros_like(c[0])
    for row in c:
        whole = (whole + row) * width
    before = fnp.cumsum(whole, 0) - whole
    return fnp.concatenate([c, before[None]], 0)


@library("extrapolate")
def _evaluated(c: Array, x: Array, at: Array, extrapolate: bool | str) -> Array:
    """Returns the polynomials at points, array[*points, ...]."""
    if extrapolate == "periodic":
        at = x[0] + fnp.mod(at - x[0], x[-1] - x[0])
    i = fnp.clip(fnp.searchsorted(x, at, side="right") - 1, 0, x.aval.size - 2)
    rows = c[:, i]
    s = spread(at - x[i], rows, 1)
    out = rows[0]
    for row in rows[1:]:
        out = out * s + row
    return beyond(out, x[0], x[-1], at, extrapolate)


@register_pytree_node_class
class PPoly(Piecewise["PPoly"]):
    """Polynomials between breakpoints.

    Between x[i] and x[i + 1] the value is the sum of c[k - 1 - m, i] (t - x[i])^m.

    Args:
      c: float or complex array-like[k, m, ...]: coefficients, the highest power first.
      x: real array-like[m + 1]: breakpoints, strictly ascending.
      extrapolate: whether the outermost polynomials go on beyond the breakpoints;
        if not, the result is nan there; "periodic" for a periodic function.
      axis: the axis of `k`, that of `m` being the next; the points of a result stand
        there.

    Attributes:
      c: the coefficients, array[k, m, ...].
      x: the breakpoints.
      extrapolate: as given.
      axis: axis of the result, where the points are.

    Raises:
      ArgumentError: `x` does not ascend, or `extrapolate` is invalid.
      ShapeError: the shapes are incompatible.

    Example:
      >>> f = PPoly(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
      >>> f(np.array([0.5, 1.5]))
      Array([0.5, 2. ], dtype=float32)
      >>> float(f.integrate(0.0, 2.0))
      2.5

    Source: `scipy.interpolate.PPoly`.
    """

    @staticmethod
    def _at(c: Array, x: Array, at: Array, extrapolate: bool | str) -> Array:
        return _evaluated(c, x, at, extrapolate)

    @staticmethod
    def _derived(c: Array, x: Array) -> Array:
        return _differentiated(c)

    @staticmethod
    def _summed(c: Array, x: Array) -> Array:
        return _integrated(c, x)

    def _like(self, c: Array, extrapolate: bool | str) -> PPoly:
        return PPoly.construct_fast(c, self.x, extrapolate, self.axis)

    def extend(self, c: ArrayLike, x: ArrayLike) -> PPoly:
        """Returns polynomials with more intervals, at the end or before the first one.

        Args:
          c: array-like[l, n, ...]: coefficients, of any degree.
          x: real array-like[n]: breakpoints, all after or all before those there are.

        Returns:
          PPoly. (SciPy changes the object.)

        Raises:
          ArgumentError: breakpoints lie between those there are, or do not ascend.
          ShapeError: the shapes are incompatible.
        """
        grown = extended("PPoly.extend", self, c, x)
        return PPoly.construct_fast(*grown, self.extrapolate, self.axis)

    @classmethod
    def from_spline(cls: type[P], tck: Any, extrapolate: Extrapolate = None) -> PPoly:
        """Returns the polynomials of a spline.

        Args:
          tck: a BSpline.
          extrapolate: in place of the spline's own.

        Returns:
          PPoly on the knots of the base interval.

        Raises:
          ArgumentError: `tck` is not a spline, or `extrapolate` is invalid.
        """
        if isinstance(tck, tuple | list) or not hasattr(tck, "t"):
            raise ArgumentError(
                f"PPoly.from_spline: tck must be a BSpline, such as BSpline(*tck), got "
                f"{tck!r}"
            )
        t, k = tck.t, tck.k
        x = t[k : t.shape[0] - k]
        scale = np.cumprod([1.0, *range(1, k + 1)])
        rows = [
            fnp.moveaxis(tck(x[:-1], nu, True), tck.axis, 0) / float(scale[nu])
            for nu in range(k, -1, -1)
        ]
        how = tck.extrapolate if extrapolate is None else extrapolate
        out = object.__new__(PPoly)
        out._set(fnp.stack(rows), x, extrapolation("PPoly.from_spline", how), tck.axis)
        return out

    def solve(
        self, y: float = 0.0, discontinuity: bool = True, extrapolate: Any = None
    ) -> Any:
        """Returns where the polynomials have a value, found on the host.

        Args:
          y: the value.
          discontinuity: whether to report breakpoints at which the function jumps over
            it.
          extrapolate: whether to look beyond the breakpoints; in place of the object's
            own.

        Returns:
          Float array[r], ascending; where a polynomial is the value, the breakpoint
          and nan. If there are more axes, a NumPy array of such arrays.

        Raises:
          ArgumentError: coefficients are complex.
          ConcretizationError: the object, or `y`, is traced.
        """
        name = f"{type(self).__name__}.solve"
        if any(isinstance(v, Tracer) for v in (self.c, self.x, y)):
            raise ConcretizationError(
                f"{name}: how many roots there are depends on coefficients that are "
                "traced: call it outside of jit and grad"
            )
        if dtypes.is_complex(self.c.dtype):
            raise ArgumentError(f"{name}: coefficients must be real, got {self.c.aval}")
        how = self.extrapolate if extrapolate is None else extrapolate
        beyond = bool(extrapolation(name, how))
        c, x = np.asarray(self.c, np.float64), np.asarray(self.x, np.float64)
        flat = c.reshape(*c.shape[:2], -1)
        found = [
            fnp.asarray(
                roots_between(flat[:, :, j], x, float(y), bool(discontinuity), beyond),
                self.c.dtype,
            )
            for j in range(flat.shape[2])
        ]
        if c.ndim == 2:
            return found[0]
        out = np.empty(len(found), object)
        out[:] = found
        return out.reshape(c.shape[2:])

    def roots(self, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """Returns the zeros, found on the host.

        Args:
          discontinuity: whether to report breakpoints at which the function jumps over
            zero.
          extrapolate: whether to look beyond the breakpoints; in place of the object's
            own.

        Returns:
          See `solve`.
        """
        return self.solve(0.0, discontinuity, extrapolate)


# -- splines by their slopes -----------------------------------------------------------


def _samples(
    name: str, x: Any, y: Any, axis: Any, *more: Any
) -> tuple[Array, list[Array], int]:
    """Returns the points, arrays of samples with the axis first, and the axis."""
    (x,) = promote_inexact(name, x)
    if x.aval.ndim != 1 or x.aval.size < 2:
        raise ShapeError(f"{name}: x must have at least two points, got {x.aval}")
    values = promote_inexact(name, y, *more, x)[:-1]
    axis = canonical_axis(name, axis, values[0].aval.ndim)
    for v in values:
        if v.aval.shape != values[0].aval.shape or v.aval.shape[axis] != x.aval.size:
            raise ShapeError(
                f"{name}: samples must have {x.aval.size} elements along axis {axis}, "
                f"as x, and one shape, got {', '.join(str(u.aval) for u in values)}"
            )
        if not isinstance(v, Tracer) and not np.all(np.isfinite(np.asarray(v))):
            raise ArgumentError(f"{name}: samples must be finite")
    require_ascending(name, x)
    return x, [fnp.moveaxis(v, axis, 0) for v in values], axis


@library()
def _cubics(x: Array, y: Array, slopes: Array) -> Array:
    """Returns coefficients of cubics with these values and slopes at the points."""
    h = spread(fnp.diff(x), y, 0)
    secant = fnp.diff(y, axis=0) / h
    bend = (slopes[:-1] + slopes[1:] - 2 * secant) / h
    return fnp.stack([bend / h, (secant - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]])


@register_pytree_node_class
class CubicHermiteSpline(PPoly):
    """Cubics with given values and slopes at the points.

    Args:
      x: real array-like[n]: points, strictly ascending, n ≥ 2.
      y: array-like[..., n, ...]: values.
      dydx: array-like of that shape: slopes.
      axis: the axis of the points.
      extrapolate: see `PPoly`; None is True.

    Attributes:
      c: coefficients, array[4, n - 1, ...].
      x: the points.
      extrapolate: as given.
      axis: as given.

    Raises:
      ArgumentError: `x` does not ascend, or a sample is not finite.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.array([0.0, 1.0, 2.0])
      >>> CubicHermiteSpline(x, x**3, 3 * x**2)(1.5)
      Array(3.375, dtype=float32)

    Source: `scipy.interpolate.CubicHermiteSpline`.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        dydx: ArrayLike,
        axis: int = 0,
        extrapolate: Extrapolate = None,
    ) -> None:
        name = "CubicHermiteSpline"
        points, (values, slopes), axis = _samples(name, x, y, axis, dydx)
        how = extrapolation(name, True if extrapolate is None else extrapolate)
        self._set(_cubics(points, values, slopes), points, how, axis)


def _require_real(name: str, y: Array) -> None:
    if dtypes.is_complex(y.aval.dtype):
        raise DtypeError(f"{name}: y must be real, got {y.aval}")


@library()
def _monotone_slopes(x: Array, y: Array) -> Array:
    """Returns slopes by Fritsch and Butland's weighted harmonic means."""
    h = spread(fnp.diff(x), y, 0)
    m = fnp.diff(y, axis=0) / h
    if x.aval.size == 2:
        return fnp.concatenate([m, m], 0)
    turns = m[1:] * m[:-1] <= 0
    first, second = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    before, after = (fnp.where(turns, 1, v) for v in (m[:-1], m[1:]))
    mean = (first + second) / (first / before + second / after)

    def end(h0: Array, h1: Array, m0: Array, m1: Array) -> Array:
        d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
        steep = (fnp.sign(m0) != fnp.sign(m1)) & (fnp.abs(d) > 3 * fnp.abs(m0))
        d = fnp.where(steep, 3 * m0, d)
        return fnp.where(fnp.sign(d) != fnp.sign(m0), 0, d)

    inner = fnp.where(turns, 0, mean)
    start, stop = end(h[0], h[1], m[0], m[1]), end(h[-1], h[-2], m[-1], m[-2])
    return fnp.concatenate([start[None], inner, stop[None]], 0)


@register_pytree_node_class
class PchipInterpolator(PPoly):
    """Cubics that rise and fall only where the samples do.

    Args:
      x: real array-like[n]: points, strictly ascending, n ≥ 2.
      y: real array-like[..., n, ...]: values.
      axis: the axis of the points.
      extrapolate: see `PPoly`; None is True.

    Attributes:
      c: coefficients, array[4, n - 1, ...].
      x: the points.
      extrapolate: as given.
      axis: as given.

    Raises:
      ArgumentError: `x` does not ascend, or a sample is not finite.
      DtypeError: `y` is complex.
      ShapeError: the shapes are incompatible.

    Example:
      >>> f = PchipInterpolator(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0]))
      >>> f(0.5)
      Array(0., dtype=float32)

    Source: `scipy.interpolate.PchipInterpolator`. F. N. Fritsch and J. Butland, A
    Method for Constructing Local Monotone Piecewise Cubic Interpolants, 1984.
    """

    def __init__(
        self, x: ArrayLike, y: ArrayLike, axis: int = 0, extrapolate: Extrapolate = None
    ) -> None:
        name = "PchipInterpolator"
        points, (values,), axis = _samples(name, x, y, axis)
        _require_real(name, values)
        how = extrapolation(name, True if extrapolate is None else extrapolate)
        slopes = _monotone_slopes(points, values)
        self._set(_cubics(points, values, slopes), points, how, axis)


@library("modified")
def _local_slopes(x: Array, y: Array, modified: bool) -> Array:
    """Returns Akima's slopes."""
    m = fnp.diff(y, axis=0) / spread(fnp.diff(x), y, 0)
    if x.aval.size == 2:
        return fnp.concatenate([m, m], 0)
    left = 2 * m[:1] - m[1:2]
    right = 2 * m[-1:] - m[-2:-1]
    m = fnp.concatenate([2 * left - m[:1], left, m, right, 2 * right - m[-1:]], 0)
    change = fnp.abs(fnp.diff(m, axis=0))
    if modified:
        change = change + fnp.abs(m[1:] + m[:-1]) / 2
    after, before = change[2:], change[:-2]
    both = after + before
    flat = both <= 1e-9 * fnp.max(both)
    safe = fnp.where(flat, 1, both)
    weighted = (after * m[1:-2] + before * m[2:-1]) / safe
    rest = fnp.zeros_like(weighted) if modified else (m[3:] + m[:-3]) / 2
    return fnp.where(flat, rest, weighted)


@register_pytree_node_class
class Akima1DInterpolator(PPoly):
    """Cubics with slopes of the points around, without wide swings.

    Args:
      x: real array-like[n]: points, strictly ascending, n ≥ 2.
      y: real array-like[..., n, ...]: values.
      axis: the axis of the points.
      method: "akima", or "makima", which overshoots less at flat places.
      extrapolate: see `PPoly`; None is False.

    Attributes:
      c: coefficients, array[4, n - 1, ...].
      x: the points.
      extrapolate: as given.
      axis: as given.

    Raises:
      ArgumentError: unknown method, `x` does not ascend, or a sample is not finite.
      DtypeError: `y` is complex.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.arange(5.0)
      >>> Akima1DInterpolator(x, x)(1.5)
      Array(1.5, dtype=float32)

    Source: `scipy.interpolate.Akima1DInterpolator`. H. Akima, A New Method of
    Interpolation and Smooth Curve Fitting Based on Local Procedures, 1970.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        axis: int = 0,
        *,
        method: str = "akima",
        extrapolate: Extrapolate = None,
    ) -> None:
        name = "Akima1DInterpolator"
        if method not in ("akima", "makima"):
            raise ArgumentError(
                f'{name}: method must be "akima" or "makima", got {method!r}'
            )
        points, (values,), axis = _samples(name, x, y, axis)
        _require_real(name, values)
        how = extrapolation(name, False if extrapolate is None else extrapolate)
        slopes = _local_slopes(points, values, method == "makima")
        self._set(_cubics(points, values, slopes), points, how, axis)


# -- splines with two derivatives ------------------------------------------------------

_ENDS = {"clamped": (1, 0.0), "natural": (2, 0.0)}
_KINDS = ("not-a-knot", "periodic", *_ENDS)


def _ends(name: str, bc_type: Any, shape: tuple[int, ...]) -> list[Any]:
    """Returns for both ends "not-a-knot", "periodic" or (order, value)."""
    both = [bc_type] * 2 if isinstance(bc_type, str) else list(bc_type)
    if len(both) != 2:
        raise ArgumentError(f"{name}: bc_type must be a string or two, got {bc_type!r}")
    out: list[Any] = []
    for one in both:
        if isinstance(one, str):
            if one not in _KINDS or (one == "periodic" and bc_type != "periodic"):
                listed = ", ".join(f'"{k}"' for k in _KINDS)
                raise ArgumentError(
                    f"{name}: bc_type must be one of {listed}, or for each end one of "
                    f"them but periodic, or (order, value), got {bc_type!r}"
                )
            out.append(_ENDS.get(one, one))
            continue
        order, value = one
        if order not in (1, 2):
            raise ArgumentError(
                f"{name}: a derivative at an end is 1 or 2, got {order}"
            )
        if fnp.shape(value) not in ((), shape):
            raise ShapeError(
                f"{name}: a derivative at an end must have shape {shape}, got "
                f"{fnp.shape(value)}"
            )
        out.append((order, value))
    return out


@library("kinds")
def _smooth_slopes(x: Array, y: Array, ends: Any, kinds: Any) -> Array:
    """Returns the slopes with which second derivatives are continuous.

    Args:
      x: the points.
      y: the values, the axis first.
      ends: the values of derivatives at both ends.
      kinds: for each end "not-a-knot", "periodic", 1 or 2.
    """
    n, shape = x.aval.size, y.aval.shape
    y = fnp.reshape(y, (n, -1))
    dx = fnp.diff(x)
    h = dx[:, None]
    m = fnp.diff(y, axis=0) / h
    if kinds[0] == "periodic":
        return fnp.reshape(_periodic_slopes(dx, m), shape)
    if n == 3 and kinds == ("not-a-knot", "not-a-knot"):
        bend = (m[1] - m[0]) / (dx[0] + dx[1])
        slopes = [m[0] - dx[0] * bend, m[0] + dx[0] * bend, m[1] + dx[1] * bend]
        return fnp.reshape(fnp.stack(slopes), shape)

    def end(kind: Any, value: Any, h: Array, m: Array) -> tuple[Any, Any, Array]:
        """Returns an end's equation: its own coefficient, its neighbour's, and rhs."""
        if kind == "not-a-knot" and n == 2:
            return 1.0, 0.0, m[0]
        if kind == "not-a-knot":
            d = h[0] + h[1]
            rhs = (h[0] + 2 * d) * h[1] * m[0] + h[0] * h[0] * m[1]
            return h[1], d, rhs / d
        value = fnp.reshape(fnp.asarray(value, y.aval.dtype), -1)
        value = fnp.broadcast_to(value, m[0].aval.shape)
        if kind == 1:
            return 1.0, 0.0, value
        return 2 * h[0], h[0], 3 * h[0] * m[0] - value * h[0] * h[0] / 2

    first = end(kinds[0], ends[0], dx, m)
    # Seen from the right the slopes, the odd derivatives, have the other sign.
    value = ends[1] if kinds[1] == 2 else -fnp.asarray(ends[1], y.aval.dtype)
    last = end(kinds[1], value, fnp.flip(dx), -fnp.flip(m, 0))
    one = fnp.ones(1, x.aval.dtype)
    diagonal = fnp.concatenate([first[0] * one, 2 * (dx[:-1] + dx[1:]), last[0] * one])
    upper = fnp.concatenate([first[1] * one, dx[:-1], 0 * one])
    lower = fnp.concatenate([0 * one, dx[1:], last[1] * one])
    inner = 3 * (h[1:] * m[:-1] + h[:-1] * m[1:])
    rhs = fnp.concatenate([first[2][None], inner, -last[2][None]], 0)
    return fnp.reshape(_solved(lower, diagonal, upper, rhs), shape)


def _solved(lower: Array, diagonal: Array, upper: Array, rhs: Array) -> Array:
    """Returns the solution of a tridiagonal system."""
    low, mid, up = (v.astype(rhs.aval.dtype) for v in (lower, diagonal, upper))
    return lax.linalg.tridiagonal_solve(low, mid, up, rhs)


def _periodic_slopes(dx: Array, m: Array) -> Array:
    """Returns slopes of a periodic spline by Sherman and Morrison's formula."""
    n = dx.aval.size
    if n == 1:
        return fnp.concatenate([m * 0, m * 0], 0)
    before, h = fnp.roll(dx, 1), dx
    rhs = 3 * (h[:, None] * fnp.roll(m, 1, 0) + before[:, None] * m)
    if n == 2:
        # Both neighbours of a point are the other one.
        t = fnp.sum(m / dx[:, None], 0) / fnp.sum(1 / dx)
        return fnp.broadcast_to(t, (3, *t.aval.shape))
    lower, diagonal, upper = h, 2 * (before + h), before
    corner, other = lower[0], upper[-1]
    shift = -diagonal[0]
    ends = np.arange(n)
    diagonal = diagonal - fnp.where(ends == 0, shift, 0)
    diagonal = diagonal - fnp.where(ends == n - 1, corner * other / shift, 0)
    u = fnp.where(ends == 0, shift, fnp.where(ends == n - 1, other, 0))
    lower = fnp.where(ends == 0, 0, lower)
    upper = fnp.where(ends == n - 1, 0, upper)
    both = fnp.concatenate([rhs, u[:, None].astype(rhs.aval.dtype)], 1)
    found = _solved(lower, diagonal, upper, both)
    y, z = found[:, :-1], found[:, -1:]
    ratio = corner / shift
    part = (y[:1] + ratio * y[-1:]) / (1 + z[:1] + ratio * z[-1:])
    out = y - z * part
    return fnp.concatenate([out, out[:1]], 0)


@register_pytree_node_class
class CubicSpline(PPoly):
    """Cubics with two continuous derivatives through samples.

    Args:
      x: real array-like[n]: points, strictly ascending, n ≥ 2.
      y: array-like[..., n, ...]: values.
      axis: the axis of the points.
      bc_type: the ends: "not-a-knot", where the two outermost cubics are one;
        "periodic", where y[0] is y[-1]; "clamped", slope 0; "natural", second
        derivative 0; or for each end one of them or (order, value), a derivative of
        order 1 or 2, a number or an array of the shape of `y` without the axis.
      extrapolate: see `PPoly`; None is "periodic" for such a spline, or else True.

    Attributes:
      c: coefficients, array[4, n - 1, ...].
      x: the points.
      extrapolate: as given.
      axis: as given.

    Raises:
      ArgumentError: there is no such `bc_type`, `x` does not ascend, a sample is not
        finite, or the ends of a periodic spline differ.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.arange(5.0)
      >>> CubicSpline(x, x**3)(np.array([0.5, 2.5]))
      Array([ 0.125, 15.625], dtype=float32)

    Source: `scipy.interpolate.CubicSpline`; C. de Boor, A Practical Guide to Splines,
    1978.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        axis: int = 0,
        bc_type: Any = "not-a-knot",
        extrapolate: Extrapolate = None,
    ) -> None:
        name = "CubicSpline"
        points, (values,), axis = _samples(name, x, y, axis)
        ends = _ends(name, bc_type, values.aval.shape[1:])
        periodic = ends[0] == "periodic"
        if periodic and not isinstance(values, Tracer):
            edge = np.asarray(values)
            if not np.allclose(edge[0], edge[-1], 1e-15, 1e-15):
                raise ArgumentError(
                    f"{name}: y[0] and y[-1] of a periodic spline must be equal"
                )
        kinds = tuple(e if isinstance(e, str) else e[0] for e in ends)
        given = [0.0 if isinstance(e, str) else e[1] for e in ends]
        slopes = _smooth_slopes(points, values, given, kinds)
        default = "periodic" if periodic else True
        how = extrapolation(name, default if extrapolate is None else extrapolate)
        self._set(_cubics(points, values, slopes), points, how, axis)
