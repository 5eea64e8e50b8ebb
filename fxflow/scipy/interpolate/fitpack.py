"""Splines as tuples of knots, coefficients and degree: SciPy's older names."""

from __future__ import annotations

import math
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._intervals import spread
from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    make_interp_spline,
    make_lsq_spline,
)
from fxflow.scipy.interpolate.piecewise import PPoly
from fxflow.scipy.interpolate.smoothing_splines import make_splprep, make_splrep

#: Knots, coefficients and degree, or a spline.
Tck = Any


def _spline(name: str, tck: Tck) -> BSpline:
    if isinstance(tck, BSpline):
        return tck
    if not isinstance(tck, tuple | list) or len(tck) != 3:
        raise ArgumentError(f"{name}: tck must be (t, c, k) or a BSpline, got {tck!r}")
    return BSpline(*tck)


def _as_given(tck: Tck, spline: BSpline) -> Any:
    if isinstance(tck, BSpline):
        return spline
    return spline.tck


def splrep(
    x: ArrayLike,
    y: ArrayLike,
    w: ArrayLike | None = None,
    xb: float | None = None,
    xe: float | None = None,
    k: int = 3,
    task: int = 0,
    s: float | None = None,
    t: ArrayLike | None = None,
    full_output: bool = False,
    per: bool = False,
    quiet: bool = True,
) -> Any:
    """Returns the spline through samples, a smoothing one, or the nearest on knots.

    Args:
      x: real array-like[m]: points, strictly ascending.
      y: real array-like[m]: values.
      w: real array-like[m]: weights of the differences; None is 1.
      xb: the first end of the interval; None is x[0].
      xe: the last end; None is x[-1].
      k: the degree.
      task: 0, or -1 for given knots, which is assumed if there are any.
      s: the sum of squares of the differences; 0 is a spline through the samples; None
        is 0, or m - √(2 m) if there are weights.
      t: real array-like: knots inside of the interval.
      full_output: whether to return the sum of squares, too.
      per: whether the spline is periodic; with s = 0.
      quiet: has no effect: nothing is printed.

    Returns:
      The knots, the coefficients and the degree; with `full_output` a pair of these and
      the sum of squares of the weighted differences. SciPy's error code and its message
      are missing: a fit that fails is an error.

    Raises:
      ArgumentError: an argument is out of range, or the samples do not fit.
      ConcretizationError: samples are traced, and `s` is not 0.

    Example:
      >>> x = np.arange(6.0)
      >>> splev(2.5, splrep(x, x**2)).round(3)
      Array(6.25, dtype=float32)

    Source: `scipy.interpolate.splrep`; coefficients are not padded.
    """
    tck = _fitted(x, y, w, xb, xe, k, task, s, t, per)
    if not full_output:
        return tck
    apart = fnp.asarray(y) - splev(x, tck)
    return tck, _squares(apart, w)


def _squares(apart: Array, w: Any) -> Array:
    """Returns the sum of squares of weighted differences, whose last axis has w."""
    return fnp.sum((apart if w is None else apart * fnp.asarray(w, apart.dtype)) ** 2)


def _fitted(
    x: Any,
    y: Any,
    w: Any,
    xb: Any,
    xe: Any,
    k: int,
    task: int,
    s: Any,
    t: Any,
    per: Any,
) -> tuple[Array, Array, int]:
    name = "splrep"
    _require_task(name, task, t)
    if t is None:
        if s is None and w is not None:
            m = fnp.size(x)
            s = m - math.sqrt(2 * m)
        if s:
            bc = "periodic" if per else None
            return make_splrep(x, y, w=w, xb=xb, xe=xe, k=k, s=s, bc_type=bc).tck
        if per:
            return make_interp_spline(x, y, k, bc_type="periodic").tck
        return make_interp_spline(x, y, k).tck
    x, inner = promote_inexact(name, fnp.asarray(x), fnp.asarray(t))
    ends = (x[0] if xb is None else xb, x[-1] if xe is None else xe)
    return make_lsq_spline(x, y, _with_ends(inner, ends, k), k, w).tck


def splev(x: ArrayLike, tck: Tck, der: int = 0, ext: int = 0) -> Array:
    """Returns values of a spline, or of a derivative.

    Args:
      x: real array-like[*s].
      tck: knots, coefficients and degree, or a BSpline.
      der: the order of the derivative.
      ext: what stands beyond the knots: 0, the polynomial there; 1, zeros; 2, an error
        (nan where `x` is traced); 3, the value at the end.

    Returns:
      Array[*s].

    Raises:
      ArgumentError: there is no such `ext`, or with ext=2 a point lies beyond.

    Example:
      >>> x = np.arange(6.0)
      >>> splev(2.5, splrep(x, x**2), der=1).round(3)
      Array(5., dtype=float32)

    Source: `scipy.interpolate.splev`.
    """
    name = "splev"
    if ext not in (0, 1, 2, 3):
        raise ArgumentError(f"{name}: ext must be 0, 1, 2 or 3, got {ext!r}")
    f = _spline(name, tck)
    x = fnp.asarray(x)
    first, last = f.t[f.k], f.t[f.t.shape[0] - f.k - 1]
    outside = (x < first) | (x > last)
    if ext == 3:
        return f(fnp.clip(x, first, last), der, True)
    out = f(x, der, True)
    if not ext:
        return out
    if ext == 2 and not isinstance(outside, Tracer) and bool(fnp.any(outside)):
        raise ArgumentError(f"{name}: a point lies beyond {first} … {last}")
    return fnp.where(spread(outside, out, 0), 0 if ext == 1 else fnp.nan, out)


def splint(a: ArrayLike, b: ArrayLike, tck: Tck) -> Array:
    """Returns the integral of a spline, which is 0 beyond its knots.

    Args:
      a: real number: the lower bound.
      b: real number: the upper bound.
      tck: knots, coefficients and degree, or a BSpline.

    Returns:
      Array[...].

    Example:
      >>> x = np.arange(6.0)
      >>> splint(0.0, 3.0, splrep(x, x**2)).round(3)
      Array(9., dtype=float32)

    Source: `scipy.interpolate.splint`.
    """
    return _spline("splint", tck).integrate(a, b, False)


def splder(tck: Tck, n: int = 1) -> Any:
    """Returns the spline of a derivative.

    Args:
      tck: knots, coefficients and degree, or a BSpline.
      n: its order.

    Returns:
      What was given: a tuple, or a BSpline.

    Raises:
      ArgumentError: `n` is above the degree.

    Example:
      >>> x = np.arange(6.0)
      >>> splev(2.0, splder(splrep(x, x**2))).round(3)
      Array(4., dtype=float32)

    Source: `scipy.interpolate.splder`.
    """
    return _as_given(tck, _spline("splder", tck).derivative(n))


def splantider(tck: Tck, n: int = 1) -> Any:
    """Returns the spline of an integral.

    Args:
      tck: knots, coefficients and degree, or a BSpline.
      n: how often to integrate.

    Returns:
      What was given: a tuple, or a BSpline.

    Example:
      >>> x = np.arange(6.0)
      >>> splev(3.0, splantider(splrep(x, x**2))).round(3)
      Array(9., dtype=float32)

    Source: `scipy.interpolate.splantider`.
    """
    return _as_given(tck, _spline("splantider", tck).antiderivative(n))


def splprep(
    x: Any,
    w: ArrayLike | None = None,
    u: ArrayLike | None = None,
    ub: float | None = None,
    ue: float | None = None,
    k: int = 3,
    task: int = 0,
    s: float | None = None,
    t: ArrayLike | None = None,
    full_output: bool = False,
    nest: int | None = None,
    per: bool = False,
    quiet: bool = True,
) -> Any:
    """Returns the smoothing spline of points of a curve.

    Args:
      x: real array-likes[m], one for each coordinate.
      w: real array-like[m]: weights of the differences; None is 1.
      u: real array-like[m]: the parameters of the points; None is the length of the
        polygon, of the whole one.
      ub: the first end of the parameters; None is u[0].
      ue: the last end; None is u[-1].
      k: the degree.
      task: 0, or -1 for given knots, which is assumed if there are any.
      s: the sum of squares of the differences; None is m - √(2 m); 0 is a spline
        through all points.
      t: real array-like: knots inside of the interval, for the nearest spline on them.
      full_output: whether to return the sum of squares, too.
      nest: how many knots there may be.
      per: whether the curve is closed; with s = 0.
      quiet: has no effect: nothing is printed.

    Returns:
      The knots, a list of the coefficients of each coordinate and the degree; and the
      parameters, array[m]. With `full_output` a pair of these two and the sum of
      squares of the weighted differences.

    Raises:
      ArgumentError: an argument is out of range.
      ConcretizationError: points are traced, and `s` is not 0.
      ShapeError: the shapes are incompatible.

    Example:
      >>> a = np.linspace(0.0, 3.0, 30)
      >>> (t, c, k), u = splprep([np.cos(a), np.sin(a)], s=0)
      >>> splev(0.5, (t, c[1], k)).round(2)
      Array(1., dtype=float32)

    Source: `scipy.interpolate.splprep`; coefficients are not padded.
    """
    found = _fitted_curve(x, w, u, ub, ue, k, task, s, t, nest, per)
    if not full_output:
        return found
    (knots, parts, k), placed = found
    at = fnp.stack([splev(placed, (knots, c, k)) for c in parts])
    return found, _squares(fnp.stack([fnp.asarray(v) for v in x]) - at, w)


def _fitted_curve(
    x: Any,
    w: Any,
    u: Any,
    ub: Any,
    ue: Any,
    k: int,
    task: int,
    s: Any,
    t: Any,
    nest: int | None,
    per: bool,
) -> tuple[Any, Array]:
    name = "splprep"
    _require_task(name, task, t)
    points = [fnp.asarray(v) for v in x]
    if s is None:
        m = points[0].size
        s = m - math.sqrt(2 * m)
    bc = "periodic" if per else None
    if t is not None:
        placed = make_splprep(points, u=u)[1]
        ends = (placed[0] if ub is None else ub, placed[-1] if ue is None else ue)
        knots = _with_ends(fnp.asarray(t, placed.dtype), ends, k)
        f = make_lsq_spline(placed, fnp.stack(points, 1), knots, k, w)
        return (f.t, list(f.c.T), k), placed
    given: dict[str, Any] = {} if s == 0 else {"w": w, "nest": nest}
    f, placed = make_splprep(points, u=u, ub=ub, ue=ue, k=k, s=s, bc_type=bc, **given)
    return (f.t, list(f.c.T), k), placed


def _require_task(name: str, task: int, t: Any) -> None:
    if task not in (-1, 0):
        raise ArgumentError(
            f"{name}: task must be 0 or -1, got {task!r}: no call goes on from another"
        )
    if task == -1 and t is None:
        raise ArgumentError(f"{name}: task -1 needs knots, t=")


def _with_ends(inner: Array, ends: tuple[Any, Any], k: int) -> Array:
    low, high = (fnp.broadcast_to(fnp.asarray(e, inner.dtype), (k + 1,)) for e in ends)
    return fnp.concatenate([low, inner, high])


def spalde(x: ArrayLike, tck: Tck) -> Array:
    """Returns the value and all derivatives of a spline at points.

    Args:
      x: real array-like[*s].
      tck: knots, coefficients and degree, or a BSpline.

    Returns:
      Array[*s, k + 1].

    Example:
      >>> x = np.arange(6.0)
      >>> spalde(2.0, splrep(x, x**2)).round(3)
      Array([4., 4., 2., 0.], dtype=float32)

    Source: `scipy.interpolate.spalde`.
    """
    f = _spline("spalde", tck)
    return fnp.stack([f(x, nu) for nu in range(f.k + 1)], -1)


def sproot(tck: Tck, mest: int = 10) -> Array:
    """Returns the zeros of a cubic spline, found on the host.

    Args:
      tck: knots, coefficients and degree, or a BSpline.
      mest: has no effect: all zeros are returned.

    Returns:
      Float array[r], ascending.

    Raises:
      ArgumentError: the degree is not 3.
      ConcretizationError: the spline is traced.

    Example:
      >>> x = np.arange(6.0)
      >>> sproot(splrep(x, x * x - 4)).round(3)
      Array([2.], dtype=float32)

    Source: `scipy.interpolate.sproot`.
    """
    f = _spline("sproot", tck)
    if f.k != 3:
        raise ArgumentError(f"sproot: the degree must be 3, got {f.k}")
    found: Array = PPoly.from_spline(f).solve(0.0, False, False)
    return found


def insert(x: float, tck: Tck, m: int = 1, per: bool = False) -> Any:
    """Returns the same spline on one knot more.

    Args:
      x: the knot, inside of the interval; it may be traced.
      tck: knots, coefficients and degree, or a BSpline.
      m: how often to insert it.
      per: must be False: knots of periodic splines are not inserted.

    Returns:
      What was given: a tuple, or a BSpline.

    Raises:
      ArgumentError: the knot is not inside of the interval, or `per` is set.

    Example:
      >>> x = np.arange(6.0)
      >>> splev(2.5, insert(2.2, splrep(x, x**2))).round(3)
      Array(6.25, dtype=float32)

    Source: `scipy.interpolate.insert`; W. Boehm, Inserting New Knots into B-Spline
    Curves, 1980.
    """
    name = "insert"
    if per:
        raise ArgumentError(f"{name}: knots of periodic splines cannot be inserted")
    f = _spline(name, tck)
    for _ in range(natural(name, "m", m)):
        t, c, k = f.t, f.c, f.k
        n = t.shape[0] - k - 1
        knot = fnp.asarray(x, t.dtype)
        known = not isinstance(knot, Tracer) and not isinstance(t, Tracer)
        if known and not float(t[k]) <= float(knot) <= float(t[n]):
            raise ArgumentError(
                f"{name}: x must lie between {t[k]} and {t[n]}, got {x}"
            )
        at = fnp.clip(fnp.searchsorted(t, knot, side="right") - 1, k, n - 1)
        i = fnp.arange(n + 1)
        left, right = t[fnp.minimum(i, n)], t[fnp.minimum(i + k, n + k)]
        width = right - left
        share = (knot - left) / fnp.where(width == 0, 1, width)
        share = fnp.where(i <= at - k, 1, fnp.where(i > at, 0, share))
        share = spread(share.astype(t.dtype), c, 0)
        mixed = (
            share * c[fnp.minimum(i, n - 1)] + (1 - share) * c[fnp.maximum(i - 1, 0)]
        )
        places = fnp.arange(t.shape[0] + 1)
        knots = t[fnp.where(places > at, places - 1, places)]
        knots = fnp.where(places == at + 1, knot, knots)
        f = BSpline._of(knots, mixed, k, f.extrapolate, f.axis)
    return _as_given(tck, f)
