"""Splines as tuples of knots, coefficients and degree: SciPy's older names."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    make_interp_spline,
    make_lsq_spline,
)
from fxflow.scipy.interpolate.piecewise import _spread

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
    per: bool = False,
) -> tuple[Array, Array, int]:
    """Returns the spline through samples, or the nearest one on given knots.

    Args:
      x: real array-like[m]: points, strictly ascending.
      y: real array-like[m]: values.
      w: weights of the samples, for given knots.
      xb: the first end of the interval; None is x[0].
      xe: the last end; None is x[-1].
      k: the degree.
      task: 0, or -1 for given knots, which is assumed if there are any.
      s: 0 or None: there is no smoothing by a number of knots that depends on data.
      t: real array-like: knots inside of the interval.
      per: whether the spline is periodic.

    Returns:
      The knots, the coefficients and the degree.

    Raises:
      ArgumentError: `s` is positive or `task` is 1, there are weights without `s` and
        `t`, or the samples do not fit.

    Example:
      >>> x = np.arange(6.0)
      >>> splev(2.5, splrep(x, x**2)).round(3)
      Array(6.25, dtype=float32)

    Source: `scipy.interpolate.splrep`; coefficients are not padded.
    """
    name = "splrep"
    if s or task == 1:
        raise ArgumentError(
            f"{name}: with s > 0 the number of knots depends on the data: give knots, "
            "t=, or filter the samples first"
        )
    if t is None and task != -1:
        if w is not None and s is None:
            raise ArgumentError(
                f"{name}: with weights SciPy smooths: give s=0 for a spline through "
                "the samples, or knots, t="
            )
        if per:
            return make_interp_spline(x, y, k, bc_type="periodic").tck
        return make_interp_spline(x, y, k).tck
    if t is None:
        raise ArgumentError(f"{name}: task -1 needs knots, t=")
    x, inner = promote_inexact(name, fnp.asarray(x), fnp.asarray(t))
    ends = [x[0] if xb is None else xb, x[-1] if xe is None else xe]
    first, last = (fnp.broadcast_to(fnp.asarray(e, x.dtype), (k + 1,)) for e in ends)
    knots = fnp.concatenate([first, inner, last])
    return make_lsq_spline(x, y, knots, k, w).tck


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
    return fnp.where(_spread(outside, out, 0), 0 if ext == 1 else fnp.nan, out)


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
